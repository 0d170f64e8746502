"""The worker's side of a crossed line, job kind "answer_crossing": suggest, or start the run that is due.

Every crossing is answered once; a second job for the same one finds the row and leaves.
"""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from compaction.compactors.auto import MicroSteps
from compaction.compactors.micro.by_size import clear_by_size
from compaction.compactors.outcome import Trigger
from compaction.errors import AutomaticRunsPaused
from dashboard.automation.crossings import FRESH_FOR, find_last_crossing, is_armed
from dashboard.automation.guards import is_guarded
from dashboard.automation.wishes import Wish, find_wish
from dashboard.hooks.notices import tell_crossing
from dashboard.jobs.run import JobPostponed, JobRun
from dashboard.models import AgentSession, ApiCall, AutomaticMode, CompactionRun, LineCrossing, RunKind
from dashboard.runs.basis import Basis, read_basis
from dashboard.runs.breakers import read_breaker
from dashboard.runs.choices import AUTOMATIC, RunChoices, RunRefused
from dashboard.runs.preview import preview_run
from dashboard.runs.session_notes import LOOK_AGAIN_SECONDS, find_notes_wait
from dashboard.runs.start import start_automatic_run

SWITCHED_OFF = "Automatic mode was turned off before a run started."
OVER = "Before a run started, the context fell below the threshold or the session went inactive."


def answer_crossing(job: JobRun) -> None:
    session = AgentSession.objects.select_related("team").filter(pk=int(str(job.payload["session"]))).first()
    if session is None:
        return
    now = timezone.now()
    wish = find_wish(session.team)
    failed_run = int(str(job.payload.get("after_run", 0)))  # from notes, and they would not do
    crossing = _find_unfinished(session, failed_run)
    if crossing is None:
        if failed_run or wish.mode is AutomaticMode.OFF or not is_due(session, now=now):
            return
        with job.writing():
            crossing = _note_crossing(session, wish.mode, now=now)
    if crossing is None or crossing.answer != AutomaticMode.RUN:
        return
    changes = _find_changes(session, crossing, wish, failed_run=failed_run, now=now)
    with job.finishing() as told:
        LineCrossing.objects.filter(pk=crossing.pk).update(**changes)
        run = changes.get("run")
        told |= {"run": run.pk if isinstance(run, CompactionRun) else None, "refusal": str(changes["refusal"])[:200]}


def _find_changes(
    session: AgentSession, crossing: LineCrossing, wish: Wish, *, failed_run: int, now: datetime
) -> dict[str, object]:
    """What becomes of a crossing that is to be answered by a run: it reads the conversation, so outside every
    transaction. Raises JobPostponed while notes are being taken."""
    run = _find_run(crossing, failed_run)
    if run is not None:
        return {"run": run, "refusal": ""}
    if wish.mode is AutomaticMode.SUGGEST:
        return {"run": None, "answer": wish.mode, "refusal": ""}
    if wish.mode is AutomaticMode.OFF:
        return {"run": None, "answer": wish.mode, "refusal": SWITCHED_OFF, "dismissed_at": now}
    if not _is_above(session, now=now):
        return {"run": None, "refusal": OVER}
    wait_seconds = 0.0 if failed_run else find_notes_wait(session, since=crossing.at, now=now)
    if wait_seconds > 0:
        raise JobPostponed(min(wait_seconds, LOOK_AGAIN_SECONDS))
    run, refusal = _start(session, wish, now=now, uses_notes=not failed_run)
    return {"run": run, "refusal": refusal[:500]}


def _find_unfinished(session: AgentSession, failed_run: int) -> LineCrossing | None:
    """One that a worker noted before it was killed, or whose run from notes failed: it is answered now, not noted
    anew."""
    last = find_last_crossing(session.pk)
    if last is None or last.answer != AutomaticMode.RUN or last.refusal:
        return None
    return last if (last.run_id or failed_run) == failed_run else None


def _find_run(crossing: LineCrossing, failed_run: int) -> CompactionRun | None:
    """The run that a killed worker started for it."""
    runs = CompactionRun.objects.filter(session=crossing.session, agent_id=crossing.agent_id, source=AUTOMATIC)
    return runs.filter(created_at__gte=crossing.at, pk__gt=failed_run).order_by("pk").first()


def is_due(session: AgentSession, *, now: datetime) -> bool:
    """Above the line now, at work not long ago, not in a call that compacts itself, and not answered since it rose."""
    if not _is_above(session, now=now) or is_guarded(session):
        return False
    return is_armed(session.pk, find_last_crossing(session.pk))


def _is_above(session: AgentSession, *, now: datetime) -> bool:
    line_tokens = session.auto_line_tokens
    return line_tokens is not None and session.context_tokens >= line_tokens and now - session.last_at <= FRESH_FOR


def _note_crossing(session: AgentSession, mode: AutomaticMode, *, now: datetime) -> LineCrossing | None:
    """The row; None where another job was quicker."""
    calls = ApiCall.objects.filter(session=session, agent_id="").order_by("-number")
    try:
        with transaction.atomic():
            crossing = LineCrossing.objects.create(
                team=session.team,
                session=session,
                at=now,
                call_number=calls.values_list("number", flat=True).first() or 0,
                used_tokens=session.context_tokens,
                line_tokens=session.auto_line_tokens or 0,
                answer=mode,
            )
            tell_crossing(crossing)
            return crossing
    except IntegrityError:
        return None


def _start(session: AgentSession, wish: Wish, *, uses_notes: bool, now: datetime) -> tuple[CompactionRun | None, str]:
    """The first rung that does, or why there is no run, as a sentence: it is told quietly, never raised."""
    try:
        read_breaker(session).require_closed(Trigger.AUTO)
        kind = choose_kind(session, now=now) if uses_notes else RunKind.FULL
        choices = RunChoices(kind=kind, summarizer=wish.summarizer, trigger=Trigger.AUTO)
        return start_automatic_run(session, choices, now=now), ""
    except RunRefused as refusal:
        return None, refusal.sentence
    except AutomaticRunsPaused as paused:
        return None, str(paused)


def choose_kind(session: AgentSession, *, now: datetime) -> RunKind:
    """Clearing where that brings it below the line, then the session's notes, then a full compaction."""
    basis = read_basis(session)
    if _is_clearing_enough(basis, now=now):
        return RunKind.MICRO_SIZE
    preview = preview_run(session, RunChoices(kind=RunKind.NOTES, trigger=Trigger.AUTO), now=now)
    return RunKind.FULL if preview.refusals else RunKind.NOTES


def _is_clearing_enough(basis: Basis, *, now: datetime) -> bool:
    if basis.lines is None:
        return False
    outcome = clear_by_size(
        basis.context.entries,
        used_tokens=basis.before_tokens,
        warning_tokens=basis.lines.warning.tokens,
        now=now,
    )
    if outcome is None:
        return False
    return basis.before_tokens - MicroSteps((outcome,)).saved_tokens < basis.lines.auto.tokens
