"""How far a run is: its stages in order with the one it is in, for how long, and how much is written."""

from dataclasses import dataclass
from datetime import datetime

from compaction.ports import Stage
from dashboard.models import CompactionRun, RunKind, RunState, SummarizerName
from dashboard.words import say_seconds

# What people are told; hooks belong to the stage they run in.
_QUEUED, _PREPARING, _WRITING = "Waiting for a worker", "Reading the conversation", "Writing the summary"
_CHECKING, _RESTORING = "Checking the summary", "Bringing files, todos and plans back"
_CLEARING = "Clearing old tool results"
_STEP_OF_STAGE = {
    Stage.QUEUED: _QUEUED,
    Stage.PRE_HOOKS: _PREPARING,
    Stage.PREPARING: _PREPARING,
    Stage.SUMMARISING: _WRITING,
    Stage.VALIDATING: _CHECKING,
    Stage.RESTORING: _RESTORING,
    Stage.POST_HOOKS: _RESTORING,
    Stage.DONE: _RESTORING,
}
_STEPS = (_QUEUED, _PREPARING, _WRITING, _CHECKING, _RESTORING)
_MICRO_STEPS = (_QUEUED, _CLEARING)
_PAID = frozenset(name for name in SummarizerName if name.is_paid)
_LONG_WAIT_SECONDS = 15


@dataclass(frozen=True)
class ProgressStep:
    """`state`: done, current or open."""

    label: str
    state: str


@dataclass(frozen=True)
class RunProgress:
    """An open run at one moment."""

    steps: tuple[ProgressStep, ...]
    elapsed_seconds: int
    stage_seconds: int
    written_tokens: int
    is_stopping: bool
    note: str

    @property
    def current(self) -> str:
        return next((step.label for step in self.steps if step.state == "current"), "")

    @property
    def elapsed_words(self) -> str:
        return _say_clock(self.elapsed_seconds)


def tell_progress(run: CompactionRun, *, now: datetime) -> RunProgress:
    """`run` with its job."""
    is_micro = RunKind(run.kind).is_micro
    labels = _MICRO_STEPS if is_micro else _STEPS
    place = _find_place(run, labels)
    elapsed = max(0, int((now - run.created_at).total_seconds()))
    return RunProgress(
        steps=tuple(
            ProgressStep(label, "done" if index < place else "current" if index == place else "open")
            for index, label in enumerate(labels)
        ),
        elapsed_seconds=elapsed,
        stage_seconds=max(0, int((now - run.stage_at).total_seconds())),
        written_tokens=run.written_tokens,
        is_stopping=run.job is not None and run.job.cancel_requested_at is not None,
        note=_find_note(run, elapsed),
    )


def _find_place(run: CompactionRun, labels: tuple[str, ...]) -> int:
    if run.state == RunState.QUEUED:
        return 0
    if labels is _MICRO_STEPS:
        return 1
    label = _STEP_OF_STAGE.get(Stage(run.stage)) if run.stage in set(Stage) else None
    return max(1, labels.index(label)) if label else 1


def _find_note(run: CompactionRun, elapsed_seconds: int) -> str:
    if run.state == RunState.QUEUED and elapsed_seconds >= _LONG_WAIT_SECONDS:
        return f"No worker has taken it for {say_seconds(elapsed_seconds)}. It starts as soon as one is free."
    if run.stage == Stage.SUMMARISING and run.summarizer in _PAID and not run.written_tokens:
        return "The model has the conversation and has not answered yet."
    return ""


def _say_clock(seconds: int) -> str:
    """1:05, as a clock that ticks."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
