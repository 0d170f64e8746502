"""Deleting sessions: rows go in short transactions, the session's own last; a stone keeps it from coming back."""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef

from dashboard.accounts import audit
from dashboard.accounts.refusals import Refused
from dashboard.ingest.counting import hand_over, total_again
from dashboard.jobs.control import cancel_job
from dashboard.jobs.post import post_job
from dashboard.jobs.run import JobRun
from dashboard.models import (
    AgentSession,
    AuditAction,
    Collector,
    CompactionRun,
    DeletedSession,
    DeletionReason,
    FollowedFile,
    PromptShape,
    ResumedFile,
    RunState,
    SessionChange,
    ShapeUse,
    Team,
    User,
)
from dashboard.runs.endings import OPEN_STATES, close_run

FINISH = "finish_deletion"
# A transaction holds the database for well below 100 ms: what one row costs, in rows of a call.
ROWS_AT_ONCE = 300
_COSTS = {
    "calls": 1,
    "unanswered_calls": 1,
    "breaks": 1,
    "compactions": 1,
    "hours": 1,
    "threads": 1,
    "breakers": 1,
    "captured_requests": 10,
    "segments": 10,
    "redaction_counts": 1,
    "runs": 25,
}
_SURE_AFTER = timedelta(minutes=1)
_FILE_SOURCES = frozenset({"follow", "import"})  # what reads the file itself


def delete_session(session: AgentSession, *, by: User | None, now: datetime) -> None:
    """All of it. Should this process die meanwhile, a job does the rest."""
    _begin_for(session, by, now=now)
    remove_rows(session.pk)


def delete_expired(session: AgentSession, since: datetime, *, now: datetime) -> bool:
    """By the team's retention, whose job comes again: it may come back when it goes on. False when it went on since
    it was looked for, or is gone."""
    if not _begin_expired(session.pk, since, now=now):
        return False
    remove_rows(session.pk)
    return True


def delete_resumed(resumed: ResumedFile, *, by: User | None, now: datetime) -> None:
    """Delete the session that was read from a transcript of ours which was taken back.

    A session that was added to is kept. The tombstone is created in any case: a follower may be reading the file right
    now, and would bring the session back.
    """
    named = {"team": resumed.team, "external_id": resumed.external_id}
    with transaction.atomic():
        session = AgentSession.objects.select_for_update().filter(**named).first()
        if session is not None and is_added_to(session, resumed):
            return
        _bury(
            resumed.team, resumed.external_id, DeletionReason.UNDO, by.username if by else "", now=now, session=session
        )
        if session is None:
            return
        _audit_deletion(session, by)
        _post_finish(session, now=now)
    remove_rows(session.pk)


def is_added_to(session: AgentSession, resumed: ResumedFile) -> bool:
    """Whether the session holds more than the transcript that was written: newer lines, other sources, runs."""
    return (
        session.last_at > resumed.written_at or not _FILE_SOURCES.issuperset(session.sources) or session.runs.exists()
    )


def finish_begun(run: JobRun) -> int:
    """What a process left half removed that died, whatever the team decided since; how many sessions. What is younger
    than its stone is no remainder."""
    same = {"team": OuterRef("team"), "external_id": OuterRef("external_id")}
    begun = DeletedSession.objects.filter(**same, deleted_at__gt=OuterRef("last_at"))
    pks = list(AgentSession.objects.filter(Exists(begun)).values_list("pk", flat=True))
    for pk in pks:
        remove_rows(pk, run)
    return len(pks)


def allow_again(team: Team, external_id: str, *, by: User) -> None:
    """Whatever sends it next brings it back; of its files it is forgotten that they were read."""
    with transaction.atomic():
        if AgentSession.objects.filter(team=team, external_id=external_id).exists():
            raise Refused("This session is still being deleted. Try again in a minute.")
        if not DeletedSession.objects.filter(team=team, external_id=external_id).delete()[0]:
            raise Refused("This session is no longer in the list of deleted sessions.")
        FollowedFile.objects.filter(team=team, path__contains=external_id).delete()
        audit.note(team, AuditAction.SESSION_ALLOWED, by=by, subject=external_id)


def finish_deletion(job: JobRun) -> None:
    """Rows that a process left behind which died while it deleted."""
    remove_rows(int(str(job.payload["session"])), job)


@transaction.atomic
def _begin_for(session: AgentSession, by: User | None, *, now: datetime) -> None:
    held = AgentSession.objects.select_for_update().filter(pk=session.pk).first()
    if held is None:
        return
    _begin(held, DeletionReason.PERSON, by.username if by else audit.FROM_THE_TERMINAL, now=now)
    _audit_deletion(held, by)
    _post_finish(held, now=now)


def _audit_deletion(session: AgentSession, by: User | None) -> None:
    """The title is content, so the log names the session by its id."""
    audit.note(
        session.team,
        AuditAction.SESSION_DELETED,
        by=by,
        subject=session.external_id,
        developer=session.developer,
        calls=session.call_count,
    )


def _post_finish(session: AgentSession, *, now: datetime) -> None:
    key = f"{FINISH}:{session.pk}:{now.timestamp():.0f}"
    post_job(FINISH, key=key, team=session.team, payload={"session": session.pk}, due_at=now + _SURE_AFTER)


@transaction.atomic
def _begin_expired(session_pk: int, since: datetime, *, now: datetime) -> bool:
    held = AgentSession.objects.select_for_update().filter(pk=session_pk, last_at__lt=since).first()
    if held is not None:
        _begin(held, DeletionReason.RETENTION, "", now=now)
    return held is not None


def _begin(session: AgentSession, reason: DeletionReason, name: str, *, now: datetime) -> None:
    """Its row is locked, so whoever records into it is done, or sees the stone."""
    _bury(session.team, session.external_id, reason, name, now=now, session=session)
    for run in CompactionRun.objects.filter(session=session, state__in=OPEN_STATES).select_related("job"):
        if run.job is not None:
            cancel_job(run.job, now=now)
        close_run(run.pk, RunState.CANCELLED, now=now)


def _bury(
    team: Team, external_id: str, reason: DeletionReason, name: str, *, now: datetime, session: AgentSession | None
) -> None:
    """Create the tombstone, which stops the session from being ingested again; None where no row was read yet."""
    DeletedSession.objects.update_or_create(
        team=team,
        external_id=external_id,
        defaults={
            "reason": reason,
            "deleted_at": now,
            "deleted_by_name": name,
            "owner": session.owner if session else None,
            "collector": session.collector if session else Collector.NONE,
        },
    )


def remove_rows(session_pk: int, job: JobRun | None = None) -> None:
    is_done = False
    while not is_done:
        if job is not None:
            job.check()
        with transaction.atomic():
            is_done = _remove_some(session_pk)


def _remove_some(session_pk: int) -> bool:
    """True when nothing is left. The row is locked first, as by whoever records."""
    session = AgentSession.objects.select_for_update().filter(pk=session_pk).first()
    if session is None:
        return True
    left = ROWS_AT_ONCE
    for name, cost in _COSTS.items():
        if left <= 0:
            return False
        left -= cost * _remove_rows_of(session, name, max(1, left // cost))
    if left <= 0:
        return False
    shapes = list(ShapeUse.objects.filter(session=session).values_list("shape", flat=True))
    session.delete()  # with what is left of it
    PromptShape.objects.filter(pk__in=shapes, uses=None).delete()
    SessionChange.objects.note_removal(session.team_id)
    return True


def _remove_rows_of(session: AgentSession, name: str, limit: int) -> int:
    rows = getattr(session, name).all()
    pks = list(rows.values_list("pk", flat=True)[:limit])
    if not pks:
        return 0
    batch = rows.filter(pk__in=pks)
    counted = list(batch.filter(is_counted=True).values_list("call_id", flat=True)) if name == "calls" else []
    batch.delete()
    for heir in sorted(hand_over(session.team_id, counted)) if counted else ():
        total_again(heir)
    return len(pks)
