"""The worker's side of a crossed line, job kind "answer_crossing": suggest, or start the run that is due.

Every crossing is answered once; a second job for the same one finds the row and leaves.
"""

from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from compaction.compactors.auto_micro import MicroSteps
from compaction.compactors.micro_size import clear_by_size
from compaction.compactors.outcome import Trigger
from compaction.errors import AutomaticRunsPaused
from dashboard.automation.crossings import FRESH_FOR, find_last_crossing, is_armed
from dashboard.automation.wishes import Wish, find_wish
from dashboard.hooks.notices import tell_crossing
from dashboard.jobs.run import JobPostponed, JobRun
from dashboard.models import AgentSession, ApiCall, AutomaticMode, CompactionRun, LineCrossing, RunKind
from dashboard.runs.basis import Basis, read_basis
from dashboard.runs.breakers import read_breaker
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.preview import preview_run
from dashboard.runs.session_notes import LOOK_AGAIN_SECONDS, find_notes_wait
from dashboard.runs.start import AUTOMATIC, start_automatic_run


def answer_crossing(job: JobRun) -> None:
    session = AgentSession.objects.select_related("team").filter(pk=int(str(job.payload["session"]))).first()
    if session is None:
        return
    now = timezone.now()
    wish = find_wish(session.team)
    crossing = _find_unfinished(session)
    if crossing is None:
        if wish.mode is AutomaticMode.OFF or not is_due(session, now=now):
            return
        with job.writing():
            crossing = _note_crossing(session, wish.mode, now=now)
    if crossing is None or crossing.answer != AutomaticMode.RUN:
        return
    run, refusal = _find_run(crossing), ""
    if run is None:
        wait_seconds = find_notes_wait(session, since=crossing.at, now=now)
        if wait_seconds > 0:
            raise JobPostponed(min(wait_seconds, LOOK_AGAIN_SECONDS))
        run, refusal = _start(session, wish, now=now)  # reads the conversation, so outside every transaction
    with job.finishing() as told:
        LineCrossing.objects.filter(pk=crossing.pk).update(run=run, refusal=refusal[:500])
        told |= {"run": run.pk if run else None, "refusal": refusal[:200]}


def _find_unfinished(session: AgentSession) -> LineCrossing | None:
    """One that a worker noted before it was killed: it is answered now, not noted anew."""
    last = find_last_crossing(session.pk)
    is_unfinished = last is not None and last.answer == AutomaticMode.RUN and last.run_id is None and not last.refusal
    return last if is_unfinished else None


def _find_run(crossing: LineCrossing) -> CompactionRun | None:
    """The run that a killed worker started for it."""
    runs = CompactionRun.objects.filter(session=crossing.session, agent_id=crossing.agent_id, source=AUTOMATIC)
    return runs.filter(created_at__gte=crossing.at).order_by("pk").first()


def is_due(session: AgentSession, *, now: datetime) -> bool:
    """Above the line now, at work not long ago, and not answered since it rose."""
    line_tokens = session.auto_line_tokens
    if line_tokens is None or session.context_tokens < line_tokens or now - session.last_at > FRESH_FOR:
        return False
    return is_armed(session.pk, find_last_crossing(session.pk))


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


def _start(session: AgentSession, wish: Wish, *, now: datetime) -> tuple[CompactionRun | None, str]:
    """The first rung that does, or why there is no run, as a sentence: it is told quietly, never raised."""
    try:
        if (breaker := read_breaker(session)).is_open:
            return None, str(AutomaticRunsPaused(breaker.failures))
        kind = choose_kind(session, now=now)
        choices = RunChoices(kind=kind, summarizer=wish.summarizer, trigger=Trigger.AUTO)
        return start_automatic_run(session, choices, now=now), ""
    except RunRefused as refusal:
        return None, refusal.sentence


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
