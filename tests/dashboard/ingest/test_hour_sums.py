"""The sums of a team's hours are those of its sessions, whatever was written, when, and how often it was added up."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Q
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from dashboard.ingest.hour_sums import SUMS, add_sessions, add_up_changes, read_sums
from dashboard.ingest.hour_triggers import ensure_hour_triggers
from dashboard.models import ChangedHour, SessionHour, Team, TeamHour
from tests.builders import make_session, make_team

FIRST_AT = datetime(2026, 3, 1, tzinfo=UTC)
_HOUR, _SESSION, _CENTS = st.integers(0, 3), st.integers(0, 2), st.integers(0, 10_000)
CHANGES = st.one_of(
    st.tuples(st.just("write"), _SESSION, _HOUR, _CENTS),
    st.tuples(st.just("drop hour"), _SESSION, _HOUR, st.just(0)),
    st.tuples(st.just("drop session"), _SESSION, st.just(0), st.just(0)),
    st.tuples(st.just("add up"), st.just(0), st.just(0), st.integers(1, 5)),
)


def read_all(team: Team) -> list[tuple[Any, ...]]:
    return sorted(read_sums(TeamHour.objects.all(), SessionHour.objects.all(), Q(team_id=team.pk)))


def add_all(team: Team) -> list[tuple[Any, ...]]:
    return sorted(add_sessions(SessionHour.objects.filter(team=team)))


def write_hour(team: Team, name: str, hour: int, cents: int) -> None:
    session = team.sessions.filter(external_id=name).first() or make_session(team, name)
    spent_usd = (Decimal(cents) / 7).quantize(Decimal("0.00000001"))  # no round number in binary
    tokens = {"read_tokens": cents, "input_tokens": 2 * cents}
    SessionHour.objects.update_or_create(
        session=session,
        hour_at=FIRST_AT + timedelta(hours=hour),
        defaults={"team": team, "spent_usd": spent_usd, "lost_usd": Decimal(cents) / 100, **tokens},
    )


def add_up(limit: int = 500) -> int:
    with transaction.atomic():
        return add_up_changes(limit)


class TestSums(TestCase):
    @settings(max_examples=40, deadline=None)
    @given(st.lists(CHANGES, max_size=12))
    def test_are_right_after_every_change_in_any_order(self, changes: list[tuple[str, int, int, int]]) -> None:
        team, other = make_team("Harbour"), make_team("Docks")
        write_hour(other, "theirs", 0, 99)
        for what, session, hour, number in changes:
            name, at = f"session-{session}", FIRST_AT + timedelta(hours=hour)
            if what == "write":
                write_hour(team, name, hour, number)
            elif what == "drop hour":
                SessionHour.objects.filter(session__external_id=name, hour_at=at).delete()
            elif what == "drop session":
                team.sessions.filter(external_id=name).delete()
            else:
                add_up(number)
            assert read_all(team) == add_all(team)
        assert read_all(other) == add_all(other)


@pytest.mark.django_db
def test_what_was_added_up_is_read_without_its_sessions() -> None:
    team = make_team("Harbour")
    for number in range(20):
        write_hour(team, f"session-{number}", number % 4, number)
    before = add_all(team)
    add_up()
    assert not ChangedHour.objects.exists()
    assert sorted(TeamHour.objects.filter(team=team).values_list(*SUMS)) == before == read_all(team)
    with CaptureQueriesContext(connection) as asked:
        read_all(team)
    assert len(asked) == 1


@pytest.mark.django_db
def test_hours_written_before_there_were_triggers_count_as_changed() -> None:
    team = make_team("Harbour")
    with connection.cursor() as cursor:
        on = "" if connection.vendor == "sqlite" else " ON dashboard_sessionhour"
        for event in ("insert", "update", "delete"):
            cursor.execute(f"DROP TRIGGER session_hour_{event}{on}")
    write_hour(team, "old", 1, 100)
    assert read_all(team) == []
    ensure_hour_triggers("default")
    assert read_all(team) == add_all(team) != []


@pytest.mark.django_db
def test_a_team_that_goes_takes_its_sums_along() -> None:
    team = make_team("Harbour")
    write_hour(team, "one", 1, 100)
    add_up()
    team.delete()
    add_up()
    assert not TeamHour.objects.exists()
    assert not ChangedHour.objects.exists()
