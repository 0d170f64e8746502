"""Demo in, demo out: every table is as it was before, whoever else has rows in it."""

from datetime import datetime
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from dashboard.demo import making
from dashboard.demo.fleet import FLEET, Planned
from dashboard.demo.ordering import order_demo
from dashboard.demo.removal import remove_demo
from dashboard.jobs.perform import perform_due
from dashboard.models import (
    AgentSession,
    ApiCall,
    ChangedHour,
    CompactionRun,
    Job,
    JobState,
    RunKind,
    RunState,
    SessionNote,
    Team,
    User,
)
from tests.builders import make_team, make_user
from tests.dashboard.ingest.database_state import read_state
from tests.dashboard.retention.talks import NOW, furnish, make_origin, make_talk

pytestmark = pytest.mark.django_db


def read_rows() -> dict[str, list[Any]]:
    """Of every table, but for what pages remember of who is signed in."""
    models = [model for model in apps.get_models() if model._meta.app_label == "dashboard"]
    return {model.__name__: sorted(map(repr, model._default_manager.values())) for model in models}


def test_no_row_is_left_and_real_ones_are_as_they_were(transactional_db: None) -> None:
    origin = make_origin()
    furnish(origin, make_talk(at=NOW))
    # A person who happens to be called like one of the demo.
    make_user("ines.demo")
    perform_due()
    before, state = read_rows(), read_state()
    now = timezone.now()
    order_demo(make_user("olga"), now=now)
    perform_due()  # the sessions, then what was asked for about them
    made = AgentSession.objects.filter(team__is_demo=True)
    assert made.count() == len(FLEET)
    assert CompactionRun.objects.filter(team__is_demo=True, state=RunState.DONE).count() == len(RunKind)
    assert SessionNote.objects.filter(team__is_demo=True).count() == 2
    assert Job.objects.get(kind="go_on_with_demo").state == JobState.QUEUED
    assert ChangedHour.objects.filter(team_id__in=Team.objects.filter(is_demo=True)).exists()
    assert User.objects.filter(is_demo=True).count() == 3
    remove_demo(now=timezone.now())
    assert read_state() == state
    after = read_rows()
    assert {name for name in before if before[name] != after[name]} == set()


def test_removing_it_while_it_is_made_leaves_no_row(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    make_team("Real", owner="olga")
    before = read_rows()
    make_session, made = making._make_session, []

    def make_and_remove(planned: Planned, team: Team, owner: User, *, now: datetime) -> None:
        """The button is pressed in another process, behind the second session."""
        make_session(planned, team, owner, now=now)
        made.append(planned.name)
        if len(made) == 2:
            assert remove_demo(now=timezone.now()) == 2

    monkeypatch.setattr(making, "_make_session", make_and_remove)
    order_demo(make_user("olga"), now=timezone.now())
    perform_due()
    assert len(made) == 2
    assert read_rows() == before
    perform_due()
    assert read_rows() == before


def test_job_that_is_begun_again_makes_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    make_team("Real", owner="olga")
    worked_on = [planned for planned in FLEET if planned.own_run or planned.has_notes]
    monkeypatch.setattr(making, "FLEET", worked_on)
    now = timezone.now()
    order_demo(make_user("olga"), now=now)
    making.fill_demo(now=now)
    names, calls = {session["external_id"] for session in read_state()["sessions"]}, ApiCall.objects.count()
    assert order_demo(make_user("olga"), now=now).pk == Job.objects.get(kind="make_demo").pk
    perform_due()
    assert {session["external_id"] for session in read_state()["sessions"]} == names
    assert ApiCall.objects.count() == calls > 0
    assert (CompactionRun.objects.count(), SessionNote.objects.count()) == (len(RunKind), 2)
    assert Team.objects.filter(is_demo=True).count() == 2


def test_button_makes_it_and_button_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "FLEET", FLEET[:1])
    make_team("Real", owner="olga", admin="anna", member="mia")
    clients = {name: Client() for name in ("olga", "anna", "mia")}
    for name, client in clients.items():
        client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
        assert (b"Load demo data" in client.get("/").content) == (name != "mia")
    olga = clients["olga"]
    assert olga.post("/demo/").status_code == 302
    assert b"Loading demo data" in olga.get("/").content
    assert olga.get("/demo/progress/?waiting=yes").headers.get("HX-Refresh") is None
    perform_due()
    assert olga.get("/demo/progress/?waiting=yes").headers["HX-Refresh"] == "true"
    assert b"Remove demo data" in olga.get("/").content
    # Of a demo that is not theirs nobody is told, and nobody removes it.
    assert b"There is no demo." in clients["anna"].post("/demo/remove/", follow=True).content
    assert Team.objects.filter(is_demo=True).exists()
    assert b"Demo data removed" in olga.post("/demo/remove/", follow=True).content
    assert not Team.objects.filter(is_demo=True).exists()
    assert b"Load demo data" in olga.get("/").content
