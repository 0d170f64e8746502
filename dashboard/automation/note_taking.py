"""The worker's side of session notes, job kind "take_notes": judged, written, kept as a version.

What goes wrong is told quietly, on the session's page: notes that nobody asked for must not be in anybody's way.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone

from compaction.compactors.notes.schedule import STALE_SECONDS, ExtractionMark, compute_extraction_need
from compaction.errors import CompactionCancelled, RunError
from dashboard.automation.crossings import FRESH_FOR
from dashboard.automation.guards import is_guarded
from dashboard.automation.note_versions import keep_version
from dashboard.automation.note_writers import Written, write_notes
from dashboard.automation.wishes import NotesWriter, find_wish
from dashboard.jobs.run import JobRun
from dashboard.models import AgentSession, JobState, NotesExtraction, SessionNote
from dashboard.plain_json import spell_decimal
from dashboard.runs.basis import Basis, read_basis
from dashboard.runs.choices import RunRefused
from dashboard.runs.session_notes import find_note

# After a failure nobody is asked again for so long: each try may cost money.
PAUSE_AFTER_FAILURE = timedelta(minutes=10)


@dataclass(frozen=True)
class _Order:
    """What is to be noted, worked out before anything is written."""

    basis: Basis
    writer: NotesWriter
    template: str
    context_tokens: int
    number: int


def take_notes(job: JobRun) -> None:
    session = AgentSession.objects.select_related("team").filter(pk=int(str(job.payload["session"]))).first()
    if session is None:
        return
    is_asked = bool(job.payload.get("is_asked"))
    try:
        order = _find_order(session, is_asked=is_asked, now=timezone.now())
        if order is None:
            return
        if not _begin(job, order):
            return  # another job is at it
        written = write_notes(job, order.basis, order.writer, order.template)
    except CompactionCancelled:
        job.check()
        raise
    except (RunRefused, RunError) as error:
        _tell_failure(job, session, error)
        return
    _keep(job, session, order, written)


def _find_order(session: AgentSession, *, is_asked: bool, now: datetime) -> _Order | None:
    """None where no notes are to be taken. Raises RunRefused where they cannot be."""
    wish = find_wish(session.team)
    writer = wish.notes_writer
    if is_asked and writer is NotesWriter.OFF:
        writer = NotesWriter.EXTRACTIVE  # a person may always have those that cost nothing
    if not is_asked and (writer is NotesWriter.OFF or not _is_wanted(session, now=now)):
        return None
    note = find_note(session)
    basis = read_basis(session)
    mark = ExtractionMark(note.last_entry_uuid, note.context_tokens) if note else None
    need = compute_extraction_need(basis.entries, mark)
    has_news = note is None or note.last_entry_uuid != basis.last_entry_uuid
    if not (has_news if is_asked else need.is_due):
        return None
    return _Order(basis, writer, wish.notes_template, need.context_tokens, note.number + 1 if note else 1)


def _is_wanted(session: AgentSession, *, now: datetime) -> bool:
    """A session that goes on, in a call of its own, and no failure just now."""
    if not session.has_content or now - session.last_at > FRESH_FOR:
        return False
    failed = NotesExtraction.objects.filter(
        session=session, agent_id="", job__finished_at__gt=now - PAUSE_AFTER_FAILURE
    )
    return not failed.exists() and not is_guarded(session)


def _begin(job: JobRun, order: _Order) -> bool:
    """Whether the thread is this job's now: one extraction at a time. One that was lost is taken over."""
    session, now = order.basis.session, timezone.now()
    with job.writing():
        held = NotesExtraction.objects.select_for_update(of=("self",)).select_related("job")
        row = held.filter(session=session, agent_id="").first()
        if row is not None and row.job_id != job.claim.job.pk and _is_alive(row, now=now):
            return False
        if SessionNote.objects.filter(session=session, agent_id="", number__gte=order.number).exists():
            return False  # written since this job looked
        if row is None:
            return _insert(job, session, now=now)
        NotesExtraction.objects.filter(pk=row.pk).update(job=job.claim.job, started_at=now)
    return True


def _insert(job: JobRun, session: AgentSession, *, now: datetime) -> bool:
    try:
        with transaction.atomic():
            NotesExtraction.objects.create(session=session, agent_id="", job=job.claim.job, started_at=now)
    except IntegrityError:
        return False
    return True


def _is_alive(row: NotesExtraction, *, now: datetime) -> bool:
    """Begun a moment ago, or still in the hands of a worker."""
    if row.job.finished_at is not None:
        return False
    is_held = row.job.state == JobState.RUNNING and row.job.lease_until is not None and row.job.lease_until > now
    return is_held or (now - row.started_at).total_seconds() < STALE_SECONDS


def _keep(job: JobRun, session: AgentSession, order: _Order, written: Written) -> None:
    with job.finishing() as told:
        note = SessionNote(
            team=session.team,
            session=session,
            number=order.number,
            text=written.text,
            writer=written.writer.value,
            last_entry_uuid=order.basis.last_entry_uuid[:200],
            context_tokens=order.context_tokens,
            cost_usd=written.cost_usd,
        )
        keep_version(note, written.redactions)
        NotesExtraction.objects.filter(session=session, agent_id="", job=job.claim.job).delete()
        told |= {"number": note.number, "writer": note.writer, "cost_usd": spell_decimal(note.cost_usd)}


def _tell_failure(job: JobRun, session: AgentSession, error: RunRefused | RunError) -> None:
    """The row stays with the job that failed: the page tells it, and the next one takes it over. One that another job
    holds is left to it."""
    code = error.code if isinstance(error, RunRefused) else error.reason
    with job.finishing() as told:
        rows = NotesExtraction.objects.filter(session=session, agent_id="")
        if not rows.filter(job__finished_at=None).exclude(job=job.claim.job).exists():
            rows.update_or_create(
                session=session, agent_id="", defaults={"job": job.claim.job, "started_at": timezone.now()}
            )
        told |= {"refusal": str(error)[:500], "code": code}
