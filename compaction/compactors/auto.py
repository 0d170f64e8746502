"""Decides at the start of a turn whether and how to compact: clear results first, then notes, then a full compaction.

Switches, guarded sources, the breaker and the threshold come before a compaction. Only the state of the thread is
modified; everything else is a value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from compaction.compactors.breaker import list_breaker_events
from compaction.compactors.micro.by_idle import DEFAULT_IDLE_SETTINGS, clear_by_idle_time
from compaction.compactors.micro.by_size import DEFAULT_SIZE_SETTINGS, clear_by_size
from compaction.compactors.micro.cache_edits import plan_deletions, register_results
from compaction.compactors.micro.clearing import CLEARABLE_TOOLS, MicroOutcome
from compaction.compactors.notes.from_notes import compact_from_notes
from compaction.compactors.notes.template import DEFAULT_TEMPLATE, SessionNotes
from compaction.compactors.outcome import CompactionOutcome, RecompactionInfo, Trigger
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full
from compaction.compactors.summary.fork_request import ParentRequest
from compaction.compactors.summary.plain_request import SummaryModels
from compaction.compactors.thread_state import ThreadState
from compaction.context.cache_ttl import DEFAULT_TTL
from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, classify_usage
from compaction.context.tokens import add_margin, measure_context
from compaction.errors import AutomaticRunsPaused, CompactionCancelled, NotesNotUsable, NothingToCompact, RunError
from compaction.transcripts.chain import slice_context
from compaction.transcripts.entries import Entry

# Sources that compact or take notes themselves: a compaction inside them would wait for itself.
GUARDED_SOURCES = frozenset({"compact", "session_memory"})


class Decision(StrEnum):
    """How the automatic chain ended."""

    DISABLED = "disabled"
    GUARDED = "guarded"
    BREAKER_OPEN = "breaker open"
    THRESHOLD_NOT_KNOWN = "line not known"
    BELOW_THRESHOLD = "below the line"
    FROM_NOTES = "compacted from notes"
    FULL = "compacted in full"
    NOTHING_NEW = "nothing new"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class RecompactionTracker:
    """The last compaction run of a thread, and the turns since."""

    previous_run_id: str | None = None
    turns_since: int = 0

    def count_turn(self) -> "RecompactionTracker":
        """Return the tracker after one more turn."""
        return replace(self, turns_since=self.turns_since + 1)

    def build_info(self, source: str | None) -> RecompactionInfo:
        """Return the details that the next run records."""
        if self.previous_run_id is None:
            return RecompactionInfo(source=source)
        return RecompactionInfo(
            is_recompaction=True,
            turns_since_previous=self.turns_since,
            previous_run_id=self.previous_run_id,
            source=source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn that is about to be sent. `is_too_long`: the main call was refused, so the threshold is not checked.

    `cache_ttl_seconds` is the cache lifetime in force; `can_edit_cache` whether results can be deleted from a warm
    cache.
    """

    now: datetime
    policy: Policy
    thresholds: Thresholds | None
    source: str = "repl_main_thread"
    run_id: str | None = None
    is_too_long: bool = False
    is_autonomous: bool = False
    can_edit_cache: bool = False
    cache_ttl_seconds: int = DEFAULT_TTL.seconds
    clearable_tools: frozenset[str] | None = CLEARABLE_TOOLS  # None: of any tool
    notes: SessionNotes | None = None
    notes_template: str = DEFAULT_TEMPLATE
    transcript_path: str | None = None
    parent: ParentRequest | None = None
    models: SummaryModels = field(default_factory=SummaryModels)
    prefix_tokens: int = 0
    tracker: RecompactionTracker = field(default_factory=RecompactionTracker)

    @property
    def trigger(self) -> Trigger:
        """The trigger of a run in this turn."""
        return Trigger.AUTONOMOUS if self.is_autonomous else Trigger.AUTO


@dataclass(frozen=True, slots=True)
class MicroSteps:
    """The clearings of a turn, and the number of deletions queued for the cache."""

    outcomes: tuple[MicroOutcome, ...] = ()
    queued_deletions: int = 0

    @property
    def saved_tokens(self) -> int:
        """Tokens saved, with the same margin as the size of the context."""
        return add_margin(sum(step.tokens_saved for step in self.outcomes))

    def apply(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return all entries with the cleared ones replaced; the same object when nothing was cleared."""
        if not self.outcomes:
            return entries
        cleared = {entry.uuid: entry for step in self.outcomes for entry in step.entries if entry.uuid}
        return tuple(cleared.get(entry.uuid, entry) if entry.uuid else entry for entry in entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoResult:
    """The result of a turn. `entries` are the ones to continue with: the input itself when nothing was done."""

    decision: Decision
    entries: Sequence[Entry]
    used_tokens: int
    micro: MicroSteps
    tracker: RecompactionTracker
    outcome: CompactionOutcome | None = None
    failure: RunError | None = None
    notes_refusal: RunError | None = None


def run_auto(entries: Sequence[Entry], turn: Turn, state: ThreadState, ports: RunPorts) -> AutoResult:
    """Run the automatic chain over the active branch of one thread. A RunError is returned in the result, not raised.

    Below all thresholds the input is returned unchanged, unless the cache went cold or cache edits are due.
    """
    is_guarded = turn.source in GUARDED_SOURCES
    context = slice_context(entries)
    size = measure_context(context, state.token_cache)
    used_tokens = size.tokens if size.is_measured else size.tokens + turn.prefix_tokens
    micro = MicroSteps()
    if not is_guarded and turn.policy.is_compaction_enabled and turn.policy.is_micro_enabled:
        micro = run_micro_steps(entries, turn, state, used_tokens=used_tokens)
    for step in micro.outcomes:
        ports.monitor.record_event(step.event)
    entries, used_tokens = micro.apply(entries), max(0, used_tokens - micro.saved_tokens)
    result = AutoResult(
        decision=Decision.BELOW_THRESHOLD,
        entries=entries,
        used_tokens=used_tokens,
        micro=micro,
        tracker=turn.tracker.count_turn(),
    )
    obstacle = _get_obstacle(result, turn, state)
    if obstacle is not None:
        paused = AutomaticRunsPaused(state.breaker.failures) if obstacle is Decision.BREAKER_OPEN else None
        return replace(result, decision=obstacle, failure=paused)
    return _compact(result, turn, state, ports)


def run_micro_steps(entries: Sequence[Entry], turn: Turn, state: ThreadState, *, used_tokens: int) -> MicroSteps:
    """Run the clearings that are due: by idle time or by cache edits, then by size. A warm cache is never rewritten."""
    context_entries: Sequence[Entry] = slice_context(entries).entries
    steps: list[MicroOutcome] = []
    by_idle = clear_by_idle_time(
        context_entries,
        now=turn.now,
        cache_ttl_seconds=turn.cache_ttl_seconds,
        settings=replace(DEFAULT_IDLE_SETTINGS, tools=turn.clearable_tools),
        cache=state.token_cache,
    )
    queued_deletions = 0
    if by_idle is not None:
        steps.append(by_idle)
        context_entries = by_idle.entries
    elif turn.can_edit_cache:
        queued_deletions = _queue_deletions(context_entries, state)
    saved_tokens = add_margin(sum(step.tokens_saved for step in steps))
    if turn.thresholds is not None and not queued_deletions:
        by_size = clear_by_size(
            context_entries,
            used_tokens=used_tokens - saved_tokens,
            warning_tokens=turn.thresholds.warning.tokens,
            now=turn.now,
            settings=replace(DEFAULT_SIZE_SETTINGS, tools=turn.clearable_tools),
            cache=state.token_cache,
        )
        if by_size is not None:
            steps.append(by_size)
    for step in steps:
        state.micro.record(step)
    return MicroSteps(tuple(steps), queued_deletions)


def _queue_deletions(entries: Sequence[Entry], state: ThreadState) -> int:
    before = register_results(state.cache_edits, entries)
    state.cache_edits = plan_deletions(before)
    return len(state.cache_edits.pending) - len(before.pending)


def _get_obstacle(result: AutoResult, turn: Turn, state: ThreadState) -> Decision | None:
    """Return the first reason against a compaction: switches, guarded source, breaker, threshold."""
    policy = turn.policy
    is_allowed = policy.compacts_when_too_long if turn.is_too_long else policy.compacts_by_itself
    obstacles = {
        Decision.DISABLED: not is_allowed,
        Decision.GUARDED: turn.source in GUARDED_SOURCES,
        Decision.BREAKER_OPEN: state.breaker.is_open,
    }
    if not turn.is_too_long:
        obstacles[Decision.THRESHOLD_NOT_KNOWN] = turn.thresholds is None
        reading = classify_usage(turn.thresholds, result.used_tokens)
        obstacles[Decision.BELOW_THRESHOLD] = not reading.is_above_auto
    return next((decision for decision, applies in obstacles.items() if applies), None)


def _compact(result: AutoResult, turn: Turn, state: ThreadState, ports: RunPorts) -> AutoResult:
    request = _build_request(turn)
    entries = result.entries
    before = state.breaker
    try:
        outcome, refusal = _try_notes(entries, turn, request, ports)
        decision = Decision.FROM_NOTES if outcome is not None else Decision.FULL
        outcome = outcome or compact_full(entries, request, ports)
    except RunError as error:
        state.breaker = before.after_failure(error, turn.trigger)
        result = replace(result, failure=error, decision=_classify_failure(error))
    else:
        state.reset_after_compaction()
        result = replace(
            result,
            decision=decision,
            entries=outcome.entries,
            outcome=outcome,
            notes_refusal=refusal,
            tracker=RecompactionTracker(turn.run_id or outcome.boundary.uuid),
        )
    last = entries[-1] if entries else None
    thread = {"session_id": last.session_id if last else None, "agent_id": last.agent_id if last else None}
    for event in list_breaker_events(before, state.breaker, **thread):
        ports.monitor.record_event(event)
    return result


def _try_notes(
    entries: Sequence[Entry], turn: Turn, request: CompactionRequest, ports: RunPorts
) -> tuple[CompactionOutcome | None, RunError | None]:
    """Return the outcome from notes, or the reason why they cannot be used."""
    if not turn.policy.is_session_memory_enabled:
        return None, None
    try:
        return compact_from_notes(entries, turn.notes, request, ports, template=turn.notes_template), None
    except (NotesNotUsable, NothingToCompact) as error:
        return None, error


def _build_request(turn: Turn) -> CompactionRequest:
    thresholds = turn.thresholds
    return CompactionRequest(
        trigger=turn.trigger,
        now=turn.now,
        transcript_path=turn.transcript_path,
        parent=turn.parent,
        models=turn.models,
        threshold_tokens=thresholds.auto.tokens if thresholds is not None and thresholds.is_auto_on else None,
        prefix_tokens=turn.prefix_tokens,
        recompaction=turn.tracker.build_info(turn.source),
    )


def _classify_failure(error: RunError) -> Decision:
    if isinstance(error, CompactionCancelled):
        return Decision.CANCELLED
    return Decision.NOTHING_NEW if isinstance(error, NothingToCompact) else Decision.FAILED
