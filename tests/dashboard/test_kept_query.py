"""Queries whose SQL is put together once answer as the querysets they are written as."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.sessions.models import Session
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.accounts.session_store import SessionStore
from dashboard.kept_query import KeptListQuery, KeptQuery, Open, column_names, make_object
from dashboard.models import AgentSession, Membership, Role, Team
from tests.builders import make_session, make_team

pytestmark = pytest.mark.django_db


def test_rows_are_those_of_the_queryset_values_and_types_alike() -> None:
    told = {"spent_usd": Decimal("1.25"), "recent_hits": [90, 91], "forecast": {"turns": [1, 2, 3]}}
    session = make_session(make_team("one"), "first", **told)
    kept = KeptQuery(lambda: AgentSession.objects.filter(pk=Open("pk")).values_list(*column_names(AgentSession)))
    plain = AgentSession.objects.filter(pk=session.pk).values_list(*column_names(AgentSession))
    assert kept.read(pk=session.pk) == list(plain)


def test_every_question_has_its_own_values_and_one_query() -> None:
    first, second = make_team("one"), make_team("two")
    kept = KeptQuery(lambda: Team.objects.filter(slug=Open("slug")).values_list(*column_names(Team)))
    assert make_object(Team, kept.read(slug="one")[0]) == first
    with CaptureQueriesContext(connection) as asked:
        assert make_object(Team, kept.read(slug="two")[0]) == second
        assert kept.read(slug="three' OR '1'='1") == []
    assert len(asked) == 2


def test_a_query_about_several_rows_takes_any_number_of_them() -> None:
    teams = [make_team(name) for name in ("one", "two", "three")]
    kept = KeptListQuery(
        "pk", lambda ours: Team.objects.filter(ours, is_local=False).order_by("pk").values_list("slug")
    )
    for count in (0, 1, 3, 2, 0):
        with CaptureQueriesContext(connection) as asked:
            assert kept.read([team.pk for team in teams[:count]]) == [(team.slug,) for team in teams[:count]]
        assert len(asked) == 1


def test_an_object_that_was_made_can_be_saved() -> None:
    make_team("one", member="mia")
    kept = KeptQuery(lambda: Membership.objects.filter(role=Open("role")).values_list(*column_names(Membership)))
    membership = make_object(Membership, kept.read(role=Role.MEMBER.value)[0])
    membership.role = Role.VIEWER
    membership.save()
    assert Membership.objects.get().role == Role.VIEWER


def test_a_browser_session_that_is_over_is_nobodys() -> None:
    store = SessionStore()
    store["who"] = "mia"
    store.save()
    assert SessionStore(store.session_key)["who"] == "mia"
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    late = SessionStore(store.session_key)
    assert "who" not in late
    assert late.session_key is None
