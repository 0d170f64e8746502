"""The worker's side of a run, job kind "compact". Repeatable: a run that has its result is left as it is.

The engine and the model work outside every transaction; the result is written in one, together with the job's end.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial

from django.utils import timezone

from compaction.compactors.micro.clearing import MicroOutcome
from compaction.compactors.outcome import CompactionOutcome, RecompactionInfo, Trigger
from compaction.compactors.restore.restorer import ContextRestorer
from compaction.compactors.run import RunPorts
from compaction.errors import CompactionCancelled, RunError
from compaction.events import Event
from compaction.ports import Stage
from dashboard.hooks.run_hooks import RunHooks
from dashboard.ingest.audit_rows import audit_compaction
from dashboard.jobs.run import JobCancelled, JobFailed, JobPostponed, JobRun, WorkerStopping
from dashboard.models import CompactionRun, RunKind, RunState, SummarizerName
from dashboard.runs.attempt_rows import AttemptBook, close_lost_attempts
from dashboard.runs.basis import COUNTED, ESTIMATE, Basis, read_basis
from dashboard.runs.breakers import note_failure, note_success
from dashboard.runs.choices import MESSAGES, RunChoices, RunRefused
from dashboard.runs.costs import choose_models
from dashboard.runs.counting import count_entries
from dashboard.runs.endings import OPEN_STATES, close_run, settle_run
from dashboard.runs.kinds import clear_results, compact, make_request
from dashboard.runs.missing_lines import find_difference, refuse_difference
from dashboard.runs.monitor import RunMonitor
from dashboard.runs.next_rung import has_next_rung, post_next_rung
from dashboard.runs.outcome_rows import keep_clearing, keep_outcome
from dashboard.runs.parent_requests import add_parent
from dashboard.runs.session_notes import LOOK_AGAIN_SECONDS, add_notes, find_notes_wait
from dashboard.runs.summarizers import open_summarizer
from dashboard.runs.team_settings import find_settings


class _Refused(RunError):
    """What was there when the run was started is gone now."""

    def __init__(self, refusal: RunRefused) -> None:
        super().__init__(refusal.sentence)
        self.reason = refusal.code


def perform_run(job: JobRun) -> None:
    rows = CompactionRun.objects.select_related("session", "session__team", "team")
    run = rows.filter(pk=int(str(job.payload["run"])), state__in=OPEN_STATES).first()
    if run is None:
        return  # it has ended, or its session was deleted
    if run.kind == RunKind.NOTES:
        _wait_for_notes(run)
    monitor = RunMonitor(job, run.pk)
    try:
        _begin(job, run)
        _compact(job, run, monitor)
    except CompactionCancelled:
        _stop(job, run)
    except RunError as error:
        _fail(job, run, monitor, error)


def _wait_for_notes(run: CompactionRun) -> None:
    """Notes that are being taken are worth a few seconds; the job is due again soon, and no worker sleeps."""
    wait_seconds = find_notes_wait(run.session, run.agent_id, since=run.created_at, now=timezone.now())
    if wait_seconds > 0:
        raise JobPostponed(min(wait_seconds, LOOK_AGAIN_SECONDS))


def _begin(job: JobRun, run: CompactionRun) -> None:
    """What an earlier worker had in flight is lost; a run that was cancelled meanwhile does not start again."""
    if job.claim.job.cancel_requested_at is not None:
        job.cancelled.set()
        raise CompactionCancelled
    with job.writing():
        close_lost_attempts(run.pk)
        CompactionRun.objects.filter(pk=run.pk).update(
            state=RunState.RUNNING, started_at=run.started_at or timezone.now()
        )


def _compact(job: JobRun, run: CompactionRun, monitor: RunMonitor) -> None:
    basis = _read_basis(run)
    with job.writing():
        _note_basis(run, basis)
    now = timezone.now()
    choices = _read_choices(run)
    if choices.kind.is_micro:
        _clear(job, run, basis, monitor, now=now)
        return
    if choices.kind is RunKind.NOTES:
        basis = add_notes(basis)
    outcome, counted_tokens = _summarise(job, run, basis, choices, monitor, now=now)
    report = audit_compaction(basis.context.entries, outcome.entries)
    if monitor.is_cancelled():
        raise CompactionCancelled
    with job.finishing() as told:
        keep_outcome(run, outcome, report, now=timezone.now(), counted_tokens=counted_tokens)
        settle_run(run.pk)
        events = note_success(run)
        told |= {"run": run.pk, "after_tokens": outcome.expected_tokens}
    _log(monitor, events)


def _read_basis(run: CompactionRun) -> Basis:
    try:
        basis = read_basis(run.session, run.agent_id)
    except RunRefused as refusal:
        raise _Refused(refusal) from refusal
    if run.source != MESSAGES:
        # The session may have gone on since the run was started: what nobody confirmed is not compacted.
        difference = None if run.accepts_difference else refuse_difference(basis)
        if difference is not None:
            raise _Refused(difference)
        return basis
    # An agent told these with its messages; what is stored is the messages alone.
    return replace(
        basis,
        prefix_tokens=run.prefix_tokens,
        before_tokens=run.before_tokens or 0,
        before_origin=run.before_origin,
        line_tokens=run.line_tokens,
    )


def _summarise(
    job: JobRun, run: CompactionRun, basis: Basis, choices: RunChoices, monitor: RunMonitor, *, now: datetime
) -> tuple[CompactionOutcome, int | None]:
    """What came of it, and its size where the API has counted it."""
    settings = find_settings(run.team)
    book = AttemptBook(job, run.pk, settings)
    basis = add_parent(basis, choices, settings, now=now)
    models, position = choose_models(basis, choices, settings), _find_position(run, basis)
    request = make_request(basis, choices, models, now=now, position=position)
    summarizer = open_summarizer(choices, basis, book, settings)
    outside = RunPorts(summarizer, hooks=RunHooks(job, run), restore=ContextRestorer(), monitor=monitor)
    outcome = compact(basis, choices, request, outside)
    model = basis.model or models.session or models.small or ""
    count = partial(count_entries, summarizer, model=model, prefix_tokens=basis.prefix_tokens, monitor=monitor)
    if basis.before_origin == ESTIMATE and (before_tokens := count(basis.context.entries)) is not None:
        with job.writing():
            rows = CompactionRun.objects.filter(pk=run.pk)
            rows.update(before_tokens=before_tokens, before_origin=COUNTED)
    # What the API makes of its own block is not counted here: the estimate is of the words in it.
    is_native = choices.summarizer is SummarizerName.NATIVE
    return outcome, None if is_native else count(outcome.entries)


def _clear(job: JobRun, run: CompactionRun, basis: Basis, monitor: RunMonitor, *, now: datetime) -> None:
    monitor.enter_stage(Stage.PREPARING)
    outcome: MicroOutcome = clear_results(basis, RunKind(run.kind), now=now)
    if monitor.is_cancelled():
        raise CompactionCancelled
    with job.finishing() as told:
        keep_clearing(run, basis, outcome, now=timezone.now())
        settle_run(run.pk)
        events = note_success(run)
        told |= {"run": run.pk, "saved_tokens": outcome.tokens_saved}
    _log(monitor, (outcome.event, *events))


def _read_choices(run: CompactionRun) -> RunChoices:
    return RunChoices(
        kind=RunKind(run.kind),
        summarizer=SummarizerName(run.summarizer),
        agent_id=run.agent_id,
        pivot_uuid=run.pivot_uuid,
        instructions=run.instructions,
        model=run.model,
        trigger=Trigger(run.trigger),
        accept_difference=run.accepts_difference,
    )


def _note_basis(run: CompactionRun, basis: Basis) -> None:
    CompactionRun.objects.filter(pk=run.pk).update(
        session_version=basis.session.version,
        last_entry_uuid=basis.last_entry_uuid[:200],
        before_tokens=basis.before_tokens,
        before_origin=basis.before_origin,
        prefix_tokens=basis.prefix_tokens,
        line_tokens=basis.line_tokens,
        gap_count=basis.gap_count,
        found_tokens=find_difference(basis.coverage),
        is_recompaction=basis.context.boundary is not None,
    )


def _find_position(run: CompactionRun, basis: Basis) -> RecompactionInfo:
    earlier = CompactionRun.objects.filter(session=run.session, agent_id=run.agent_id, state=RunState.DONE)
    previous = earlier.order_by("-pk").values_list("pk", flat=True).first()
    return RecompactionInfo(
        is_recompaction=basis.context.boundary is not None,
        previous_run_id=str(previous) if previous else None,
        source=run.source,
    )


def _fail(job: JobRun, run: CompactionRun, monitor: RunMonitor, error: RunError) -> None:
    """An orderly end: trying the same again would fail the same way, so the job ends too."""
    now = timezone.now()
    events: tuple[Event, ...] = ()
    with job.writing():
        if not close_run(run.pk, RunState.FAILED, now=now, code=error.reason, sentence=str(error)):
            pass  # it had ended already
        elif has_next_rung(run, error):
            post_next_rung(run)
        else:
            events = note_failure(run, error, now=now)
    _log(monitor, events)
    raise JobFailed(str(error)) from error


def _stop(job: JobRun, run: CompactionRun) -> None:
    """The engine stopped because the monitor said so: a lost lease, a person's cancel, or a worker that ends."""
    now = timezone.now()
    try:
        job.check()
    except WorkerStopping:
        with job.writing():
            CompactionRun.objects.filter(pk=run.pk).update(state=RunState.QUEUED, stage=Stage.QUEUED, stage_at=now)
        raise
    except JobCancelled:
        pass
    with job.writing():
        close_run(run.pk, RunState.CANCELLED, now=now)
    raise JobCancelled


def _log(monitor: RunMonitor, events: tuple[Event, ...]) -> None:
    for event in events:
        monitor.record_event(event)
