"""Breakers of threads: counted for automatic runs alone, closed by any success, reset by admins and noted."""

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.utils import timezone

from compaction.errors import CompactionCancelled, SummaryRefused
from compaction.events import BreakerClosed, BreakerOpened
from dashboard.models import AgentSession, AuditEvent, ThreadBreaker
from dashboard.runs.breakers import find_breaker, note_failure, note_success, read_breaker, reset_breaker
from tests.builders import make_session
from tests.dashboard.runs.world import make_harbour, person
from tests.session_rows import make_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> AgentSession:
    return make_session(make_harbour(), "session-1")


def test_three_failures_of_automatic_runs_open_it_and_a_success_closes_it(session: AgentSession) -> None:
    run = make_run(session, trigger="auto")
    events = [note_failure(run, SummaryRefused(), now=timezone.now()) for _ in range(3)]
    assert [len(each) for each in events] == [0, 0, 1]
    assert events[2] == (BreakerOpened(session_id="session-1", failures=3),)
    row = find_breaker(session)
    assert row is not None
    assert (row.failures, row.last_failure_code, row.opened_at is not None) == (3, "refusal", True)
    assert read_breaker(session).is_open
    assert note_success(run) == (BreakerClosed(session_id="session-1"),)
    assert not read_breaker(session).is_open


@pytest.mark.parametrize(
    ("trigger", "error"), [("manual", SummaryRefused()), ("auto", CompactionCancelled())], ids=["by hand", "cancelled"]
)
def test_what_says_nothing_about_the_next_run_does_not_count(
    session: AgentSession, trigger: str, error: SummaryRefused | CompactionCancelled
) -> None:
    note_failure(make_run(session, trigger=trigger), error, now=timezone.now())
    assert not ThreadBreaker.objects.exists()


def test_threads_have_breakers_of_their_own(session: AgentSession) -> None:
    note_failure(make_run(session, trigger="auto", agent_id="a1"), SummaryRefused(), now=timezone.now())
    assert read_breaker(session, "a1").failures == 1
    assert read_breaker(session).failures == 0


def test_admins_reset_it_and_the_log_says_who(session: AgentSession) -> None:
    ThreadBreaker.objects.create(session=session, failures=4, opened_at=timezone.now())
    for name in ("mia", "vera"):
        with pytest.raises(PermissionDenied):
            reset_breaker(person(name), session)
    with pytest.raises(Http404):
        reset_breaker(person("charlie"), session)
    assert reset_breaker(person("anna"), session)
    assert not reset_breaker(person("anna"), session)
    assert read_breaker(session).failures == 0
    event = AuditEvent.objects.get(action="breaker reset")
    assert (event.actor_name, event.subject, event.details) == ("anna", "session-1", {"thread": "main", "failures": 4})
