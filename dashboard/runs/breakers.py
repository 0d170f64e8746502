"""The breaker of each thread: failures of automatic runs in a row, closed by any success, reset by an admin."""

from datetime import datetime

from django.db import transaction

from compaction.compactors.breaker import Breaker, list_breaker_events
from compaction.compactors.outcome import Trigger
from compaction.errors import RunError
from compaction.events import Event
from dashboard.access import Act, Actor, require_team
from dashboard.accounts.audit import note
from dashboard.models import AgentSession, AuditAction, CompactionRun, ThreadBreaker


def find_breaker(session: AgentSession, agent_id: str = "") -> ThreadBreaker | None:
    """None where no automatic run of the thread ever failed."""
    return ThreadBreaker.objects.filter(session=session, agent_id=agent_id).first()


def read_breaker(session: AgentSession, agent_id: str = "") -> Breaker:
    row = find_breaker(session, agent_id)
    return Breaker(row.failures if row else 0)


def note_success(run: CompactionRun) -> tuple[Event, ...]:
    """Closes it; the events for the log. To be called inside the transaction that writes the result."""
    before = read_breaker(run.session, run.agent_id)
    if before.failures:
        _keep(run.session, run.agent_id, Breaker(), now=None)
    return _list_events(run, before, before.after_success())


def note_failure(run: CompactionRun, error: RunError, *, now: datetime) -> tuple[Event, ...]:
    """Counts automatic runs alone: a person's attempt says nothing about the next automatic one."""
    before = read_breaker(run.session, run.agent_id)
    after = before.after_failure(error, Trigger(run.trigger))
    if after != before:
        _keep(run.session, run.agent_id, after, now=now, code=error.reason)
    return _list_events(run, before, after)


def reset_breaker(actor: Actor, session: AgentSession, agent_id: str = "") -> bool:
    """Automatic runs of the thread may be tried again. False when nothing held them back."""
    team = require_team(actor, session.team.slug, Act.TUNE)
    with transaction.atomic():
        row = ThreadBreaker.objects.select_for_update().filter(session=session, agent_id=agent_id).first()
        if row is None or not row.failures:
            return False
        note(
            team,
            AuditAction.BREAKER_RESET,
            by=actor.user,
            subject=session.external_id,
            thread=agent_id or "main",
            failures=row.failures,
        )
        _keep(session, agent_id, Breaker(), now=None)
    return True


def _keep(session: AgentSession, agent_id: str, breaker: Breaker, *, now: datetime | None, code: str = "") -> None:
    row, _ = ThreadBreaker.objects.get_or_create(session=session, agent_id=agent_id)
    row.failures = breaker.failures
    row.opened_at = (row.opened_at or now) if breaker.is_open else None
    if now is not None:
        row.last_failure_at, row.last_failure_code = now, code[:40]
    row.save()


def _list_events(run: CompactionRun, before: Breaker, after: Breaker) -> tuple[Event, ...]:
    return list_breaker_events(before, after, session_id=run.session.external_id, agent_id=run.agent_id or None)
