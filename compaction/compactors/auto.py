"""The automatic chain of one turn: micro-compaction first, then guards, breaker, line, session notes, full compaction.

Everything comes in as values and goes out as values; only the thread's own memory is changed, as cleanup says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from compaction.compactors.breaker import list_breaker_events
from compaction.compactors.micro.clearing import CLEARABLE_TOOLS
from compaction.compactors.micro.steps import MicroSteps, run_micro_steps
from compaction.compactors.notes.from_notes import compact_from_notes
from compaction.compactors.notes.template import DEFAULT_TEMPLATE, SessionNotes
from compaction.compactors.outcome import ChainPosition, CompactionOutcome, Trigger
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full
from compaction.compactors.summary.fork_request import ParentRequest
from compaction.compactors.summary.plain_request import SummaryModels
from compaction.compactors.thread_state import ThreadMemory
from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, classify_usage
from compaction.context.tokens import measure_context
from compaction.errors import AutomaticRunsPaused, CompactionCancelled, NotesNotUsable, NothingToCompact, RunError
from compaction.llm.cache_ttl import DEFAULT_TTL
from compaction.transcripts.chain import slice_context
from compaction.transcripts.entries import Entry

# Sources that compact or take notes themselves: a compaction inside them would wait for itself.
GUARDED_SOURCES = frozenset({"compact", "session_memory"})


class Decision(StrEnum):
    """How the chain ended."""

    DISABLED = "disabled"
    GUARDED = "guarded"
    BREAKER_OPEN = "breaker open"
    LINE_NOT_KNOWN = "line not known"
    BELOW_LINE = "below the line"
    FROM_NOTES = "compacted from notes"
    FULL = "compacted in full"
    NOTHING_NEW = "nothing new"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class ChainTracking:
    """Compactions in a row: which run was the last, and how many turns ago."""

    previous_run_id: str | None = None
    turns_since: int = 0

    def note_turn(self) -> "ChainTracking":
        """One more turn went by."""
        return replace(self, turns_since=self.turns_since + 1)

    def find_position(self, source: str | None) -> ChainPosition:
        """Where the next run stands."""
        if self.previous_run_id is None:
            return ChainPosition(source=source)
        return ChainPosition(True, self.turns_since, self.previous_run_id, source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is known when a turn is about to be sent. `is_too_long`: the main call was refused, so no line is asked.

    `cache_ttl_seconds` is the TTL in force; `can_edit_cache` whether results can be deleted from a warm cache.
    """

    now: datetime
    policy: Policy
    lines: Thresholds | None
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
    tracking: ChainTracking = field(default_factory=ChainTracking)

    @property
    def trigger(self) -> Trigger:
        """Automatic, or autonomous where no person is there."""
        return Trigger.AUTONOMOUS if self.is_autonomous else Trigger.AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainResult:
    """What became of the turn. `entries` are the ones to go on with: the input itself when nothing was done."""

    decision: Decision
    entries: Sequence[Entry]
    used_tokens: int
    micro: MicroSteps
    tracking: ChainTracking
    outcome: CompactionOutcome | None = None
    failure: RunError | None = None
    notes_refusal: RunError | None = None


def run_chain(entries: Sequence[Entry], turn: Turn, memory: ThreadMemory, outside: RunPorts) -> ChainResult:
    """One turn's chain over the active branch of one thread. Never raises a RunError: a failure is in the result.

    Below every line the input comes back as it is, unless the cache went cold or edits of it are due.
    """
    is_guarded = turn.source in GUARDED_SOURCES
    context = slice_context(entries)
    size = measure_context(context, memory.token_cache)
    used_tokens = size.tokens if size.is_measured else size.tokens + turn.prefix_tokens
    micro = MicroSteps()
    if not is_guarded and turn.policy.is_compaction_enabled and turn.policy.is_micro_enabled:
        micro = run_micro_steps(entries, turn, memory, used_tokens=used_tokens)
    for step in micro.outcomes:
        outside.monitor.note_event(step.event)
    entries, used_tokens = micro.apply(entries), max(0, used_tokens - micro.saved_tokens)
    result = ChainResult(
        decision=Decision.BELOW_LINE,
        entries=entries,
        used_tokens=used_tokens,
        micro=micro,
        tracking=turn.tracking.note_turn(),
    )
    held = _find_hold(result, turn, memory)
    if held is not None:
        paused = AutomaticRunsPaused(memory.breaker.failures) if held is Decision.BREAKER_OPEN else None
        return replace(result, decision=held, failure=paused)
    return _compact(result, turn, memory, outside)


def _find_hold(result: ChainResult, turn: Turn, memory: ThreadMemory) -> Decision | None:
    """Why there is to be no compaction: switches, guard, breaker, line, the first of them that holds."""
    policy = turn.policy
    is_allowed = policy.compacts_when_too_long if turn.is_too_long else policy.compacts_by_itself
    holds = {
        Decision.DISABLED: not is_allowed,
        Decision.GUARDED: turn.source in GUARDED_SOURCES,
        Decision.BREAKER_OPEN: memory.breaker.is_open,
    }
    if not turn.is_too_long:
        holds[Decision.LINE_NOT_KNOWN] = turn.lines is None
        holds[Decision.BELOW_LINE] = not classify_usage(turn.lines, result.used_tokens).is_above_auto
    return next((decision for decision, is_held in holds.items() if is_held), None)


def _compact(result: ChainResult, turn: Turn, memory: ThreadMemory, outside: RunPorts) -> ChainResult:
    request = _make_request(turn)
    entries = result.entries
    before = memory.breaker
    try:
        outcome, refusal = _try_notes(entries, turn, request, outside)
        decision = Decision.FROM_NOTES if outcome is not None else Decision.FULL
        outcome = outcome or compact_full(entries, request, outside)
    except RunError as error:
        memory.breaker = before.note_failure(error, turn.trigger)
        ended = replace(result, failure=error, decision=_name_end(error))
    else:
        memory.clean_up()
        ended = replace(
            result,
            decision=decision,
            entries=outcome.entries,
            outcome=outcome,
            notes_refusal=refusal,
            tracking=ChainTracking(turn.run_id or outcome.boundary.uuid),
        )
    last = entries[-1] if entries else None
    thread = {"session_id": last.session_id if last else None, "agent_id": last.agent_id if last else None}
    for event in list_breaker_events(before, memory.breaker, **thread):
        outside.monitor.note_event(event)
    return ended


def _try_notes(
    entries: Sequence[Entry], turn: Turn, request: CompactionRequest, outside: RunPorts
) -> tuple[CompactionOutcome | None, RunError | None]:
    """The outcome from notes, or why they would not do."""
    if not turn.policy.is_session_memory_enabled:
        return None, None
    try:
        return compact_from_notes(entries, turn.notes, request, outside, template=turn.notes_template), None
    except (NotesNotUsable, NothingToCompact) as error:
        return None, error


def _make_request(turn: Turn) -> CompactionRequest:
    return CompactionRequest(
        trigger=turn.trigger,
        now=turn.now,
        transcript_path=turn.transcript_path,
        parent=turn.parent,
        models=turn.models,
        line_tokens=turn.lines.auto.tokens if turn.lines is not None and turn.lines.is_auto_on else None,
        prefix_tokens=turn.prefix_tokens,
        position=turn.tracking.find_position(turn.source),
    )


def _name_end(error: RunError) -> Decision:
    if isinstance(error, CompactionCancelled):
        return Decision.CANCELLED
    return Decision.NOTHING_NEW if isinstance(error, NothingToCompact) else Decision.FAILED
