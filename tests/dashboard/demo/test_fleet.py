"""The demo shows everything there is to show: causes, compactions, levels, ways in."""

import pytest
from django.test import Client
from django.utils import timezone

from compaction.cache.causes import Cause
from dashboard.automation.wishes import NotesWriter
from dashboard.demo.fleet import FLEET, find_wish
from dashboard.models import (
    LEVELS,
    AgentSession,
    CacheBreak,
    CompactionRun,
    Drop,
    LossKind,
    ObservedCompaction,
    RunKind,
    RunState,
    SessionNote,
    SummarizerName,
    Team,
    Thread,
    User,
)
from tests.builders import make_user

pytestmark = pytest.mark.django_db


def enter(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.mark.usefixtures("demo")
def test_every_cause_there_is_is_there() -> None:
    seen = set(CacheBreak.objects.values_list("cause", flat=True))
    # Before the first call there is no cache, so none is lost: it has no row.
    assert seen == {cause.value for cause in Cause} - {Cause.FIRST_CALL.value}
    grades = set(CacheBreak.objects.filter(kind=LossKind.BREAK).values_list("grade", flat=True))
    assert grades == {"api", "client", "request", "inferred", "unknown"}


@pytest.mark.usefixtures("demo")
def test_every_kind_of_compaction_is_there() -> None:
    rows = ObservedCompaction.objects.all()
    assert set(rows.values_list("kind", flat=True)) == {"full", "micro", "failed"}
    full = rows.filter(kind="full")
    assert set(full.values_list("trigger", flat=True)) == {"auto", "manual"}
    assert set(full.values_list("drift", flat=True)) == {"", "early", "late"}
    assert set(full.values_list("is_mid_task", flat=True)) == {True, False}
    assert max(full.values_list("chain_number", flat=True)) >= 3


@pytest.mark.usefixtures("demo")
def test_compactions_and_notes_of_our_own_are_there() -> None:
    """Asked for by those whose sessions they are, and done: none needs a model."""
    runs = {run.kind: run for run in CompactionRun.objects.select_related("session")}
    assert set(runs) == set(RunKind)
    for run in runs.values():
        assert (run.state, run.failure_code) == (RunState.DONE, "")
        assert run.after_tokens is not None
        assert run.after_tokens < (run.before_tokens or 0)
        assert run.started_by == run.session.owner
        assert not run.summarizer or not SummarizerName(run.summarizer).is_paid
    notes = SessionNote.objects.all()
    assert runs[RunKind.NOTES].session in {note.session for note in notes}
    client = enter("olga")
    for run in runs.values():
        assert client.get(f"/runs/{run.pk}/").status_code == 200
    for note in notes:
        assert note.writer == NotesWriter.EXTRACTIVE
        assert "Current State" in client.get(f"/sessions/{note.session_id}/notes/").content.decode()


@pytest.mark.usefixtures("demo")
def test_sessions_are_of_all_levels_ways_and_people() -> None:
    sessions = AgentSession.objects.all()
    assert sessions.count() == len(FLEET) >= 40
    assert set(sessions.values_list("level", flat=True)) == set(LEVELS) - {"not known"}
    assert {way for row in sessions for way in row.sources} == {"push", "otlp", "proxy", "api", "hooks", "statusline"}
    assert len(set(sessions.values_list("developer", flat=True))) == 3
    assert len(set(sessions.values_list("project", flat=True))) == 3
    assert not sessions.filter(title="").exists()
    assert not sessions.filter(spent_usd=0).exists()
    assert Thread.objects.exclude(agent_id="").exists()
    assert not Drop.objects.exists()
    assert sum((timezone.now() - row.last_at).total_seconds() < 300 for row in sessions) >= 2


@pytest.mark.usefixtures("demo")
def test_outsider_sees_nothing_of_it() -> None:
    session = AgentSession.objects.order_by("pk")[0]
    for name, status in (("mia", 404), ("olga", 200)):
        client = enter(name)
        assert client.get(f"/sessions/{session.pk}/").status_code == status
        assert client.get(f"/teams/{session.team.slug}/").status_code == status
        assert (b"demo" in client.get("/sessions/").content.lower()) == (status == 200)


@pytest.mark.usefixtures("demo")
def test_sessions_and_teams_of_the_demo_are_marked() -> None:
    client = enter("olga")
    team = Team.objects.filter(is_demo=True).order_by("pk")[0]
    client.get(f"/teams/{team.slug}/")
    badge = '<span class="badge accent">demo</span>'
    session = AgentSession.objects.filter(team=team).order_by("pk")[0]
    for path in (f"/sessions/{session.pk}/", f"/teams/{team.slug}/"):
        assert badge in client.get(path).content.decode(), path
    sessions = client.get("/sessions/").content.decode()
    assert sessions.count("Sample data. Sessions, people and costs are fictional.") == 1
    assert badge not in sessions.split("<main")[1]  # the banner says it once
    client.get(f"/teams/{Team.objects.get(is_demo=False).slug}/")
    assert client.get("/sessions/").content.decode().split("<main")[1].count(badge) == 1
    client.get(f"/teams/{team.slug}/")
    overview = client.get("/").content.decode()
    assert "Remove demo data" in overview
    assert "Sample data. Sessions, people and costs are fictional." in overview


@pytest.mark.usefixtures("demo")
def test_people_of_the_demo_cannot_sign_in() -> None:
    assert not any(user.has_usable_password() for user in User.objects.filter(is_demo=True))


def test_each_session_of_a_project_is_about_something_else() -> None:
    wishes = [find_wish(planned) for planned in FLEET]
    assert len(set(wishes)) == len(wishes)
