"""Messages in, compacted messages out, without a model and without storing anything: clear results, quote, or both."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from compaction.compactors.auto import Decision, MicroSteps, Turn, run_auto
from compaction.compactors.extractive.summarizer import ExtractiveSummarizer
from compaction.compactors.micro.by_size import DEFAULT_SIZE_SETTINGS, clear_by_size
from compaction.compactors.micro.clearing import MicroOutcome, list_clearable
from compaction.compactors.outcome import CompactionOutcome, Trigger
from compaction.compactors.restore.restorer import ContextRestorer
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full
from compaction.compactors.thread_state import ThreadState
from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, classify_usage
from compaction.context.tokens import estimate_tokens
from compaction.errors import NothingToCompact, RunError
from compaction.ports import Monitor, Summarizer, SummaryAnswer, SummaryRequest
from compaction.transcripts.api_messages import read_messages, write_messages
from compaction.transcripts.entries import Entry
from dashboard.agents.checks import Question, draw_question_lines, measure_question
from dashboard.ingest.audit_rows import AuditReport, audit_compaction
from dashboard.models import Team
from dashboard.policies.in_force import find_policy


class CompactionOff(RunError):
    """The team lets nothing be compacted by itself, and the conversation cannot go on as it is."""

    reason = "compaction_off"

    def __init__(self) -> None:
        super().__init__(
            "The conversation no longer fits, and the team's thresholds do not allow automatic compaction. "
            "Request a full compaction."
        )


class CompactKind(StrEnum):
    """What is wanted. `auto`: whatever the chain finds due, which may be nothing."""

    AUTO = "auto"
    MICRO = "micro"
    FULL = "full"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is to be done with an agent's messages. `is_too_long`: its last call was refused, so no line is asked."""

    question: Question
    kind: CompactKind = CompactKind.AUTO
    instructions: str | None = None
    is_too_long: bool = False
    is_autonomous: bool = True


@dataclass(frozen=True, kw_only=True)
class Compacted:
    """What to go on with. `decision` says what was done, in the engine's words."""

    decision: str
    messages: list[dict[str, object]]
    before_tokens: int
    after_tokens: int
    lines: Thresholds | None
    outcome: CompactionOutcome | None = None
    cleared: tuple[MicroOutcome, ...] = ()
    audit: AuditReport | None = None


@dataclass(frozen=True)
class Conversation:
    """What an agent sent, as the engine takes it: its size and its lines go by what the agent told."""

    question: Question
    entries: tuple[Entry, ...]
    before_tokens: int
    lines: Thresholds | None
    policy: Policy

    @property
    def prefix_tokens(self) -> int:
        """System and tools: told, or what the measured size holds beyond the messages."""
        if self.question.usage is None:
            return self.question.prefix_tokens
        return max(0, self.before_tokens - estimate_tokens(self.entries))


def read_conversation(team: Team, question: Question) -> Conversation:
    """Raises BadPolicy for values that make no lines."""
    lines, policy = draw_question_lines(find_policy(team), question)
    entries = read_messages(question.messages, model=question.model, usage=question.usage)
    before_tokens, _ = measure_question(question, entries)
    return Conversation(question, entries, before_tokens, lines, policy)


def compact_at_once(talk: Conversation, wish: Wish, *, may_summarise: bool, now: datetime) -> Compacted | None:
    """None where a summary is due that is not to be written here: always for `full`, for `auto` where clearing does not
    do. Raises a RunError with a sentence, NothingToCompact among them."""
    work = _Work(talk, wish, now, ExtractiveSummarizer() if may_summarise else _NoSummarizer())
    try:
        match wish.kind:
            case CompactKind.MICRO:
                return work.clear()
            case CompactKind.FULL:
                return work.summarise() if may_summarise else None
            case CompactKind.AUTO:
                return work.follow_chain()
    except _SummaryDue:
        return None


class _SummaryDue(Exception):
    """Found while the chain was followed. No RunError, which the chain would take for its failure."""


class _NoSummarizer:
    def summarize(self, _request: SummaryRequest, _monitor: Monitor) -> SummaryAnswer:
        raise _SummaryDue


@dataclass(frozen=True)
class _Work:
    talk: Conversation
    wish: Wish
    now: datetime
    summarizer: Summarizer

    @property
    def outside(self) -> RunPorts:
        return RunPorts(self.summarizer, restore=ContextRestorer())

    def clear(self) -> Compacted:
        """A person or program that asks does not wait for a line or for a saving that is worth it."""
        tools = self.talk.question.clearable_tools
        settings = replace(DEFAULT_SIZE_SETTINGS, min_saved_tokens=1, tools=tools)
        outcome = clear_by_size(
            self.talk.entries, used_tokens=self.talk.before_tokens, warning_tokens=0, now=self.now, settings=settings
        )
        if outcome is None:
            results = list_clearable(self.talk.entries, tools=tools)
            tokens = sum(result.tokens for result in results)
            raise NothingToCompact(
                f"There are {len(results):,} tool results that could be cleared, {tokens:,} tokens in all; the last "
                f"{settings.kept_results}, and {settings.target_tokens:,} tokens, are kept, so nothing would be saved."
            )
        return self._tell_cleared(outcome.entries, MicroSteps((outcome,)), "cleared")

    def summarise(self) -> Compacted:
        request = CompactionRequest(
            trigger=Trigger.AUTONOMOUS if self.wish.is_autonomous else Trigger.MANUAL,
            now=self.now,
            custom_instructions=self.wish.instructions,
            threshold_tokens=self.talk.lines.auto.tokens if self.talk.lines else None,
            prefix_tokens=self.talk.prefix_tokens,
        )
        outcome = compact_full(self.talk.entries, request, self.outside)
        return self._tell_outcome("compacted in full", outcome)

    def follow_chain(self) -> Compacted:
        turn = Turn(
            now=self.now,
            policy=self.talk.policy,
            thresholds=self.talk.lines,
            is_too_long=self.wish.is_too_long,
            is_autonomous=self.wish.is_autonomous,
            prefix_tokens=self.talk.prefix_tokens,
            clearable_tools=self.talk.question.clearable_tools,
        )
        result = run_auto(self.talk.entries, turn, ThreadState(), self.outside)
        if result.failure is not None:
            raise result.failure
        if result.decision is Decision.DISABLED and self._is_stuck(result.used_tokens):
            raise CompactionOff
        if result.outcome is not None:
            return self._tell_outcome(result.decision.value, result.outcome, cleared=result.micro.outcomes)
        decision = "cleared" if result.micro.outcomes else result.decision.value
        return self._tell_cleared(tuple(result.entries), result.micro, decision)

    def _is_stuck(self, used_tokens: int) -> bool:
        """Whether the next call would be refused: then "nothing is done" is no answer to go on with."""
        return self.wish.is_too_long or classify_usage(self.talk.lines, used_tokens).is_at_blocking

    def _tell_outcome(
        self, decision: str, outcome: CompactionOutcome, *, cleared: tuple[MicroOutcome, ...] = ()
    ) -> Compacted:
        told = self._tell(decision, outcome.entries, after_tokens=outcome.expected_tokens, cleared=cleared)
        return replace(told, outcome=outcome, audit=audit_compaction(self.talk.entries, outcome.entries))

    def _tell(
        self, decision: str, entries: tuple[Entry, ...], *, after_tokens: int, cleared: tuple[MicroOutcome, ...]
    ) -> Compacted:
        return Compacted(
            decision=decision,
            messages=write_messages(entries, self.talk.question.messages),
            before_tokens=self.talk.before_tokens,
            after_tokens=after_tokens,
            lines=self.talk.lines,
            cleared=cleared,
        )

    def _tell_cleared(self, entries: tuple[Entry, ...], steps: MicroSteps, decision: str) -> Compacted:
        after_tokens = max(0, self.talk.before_tokens - steps.saved_tokens)
        return self._tell(decision, entries, after_tokens=after_tokens, cleared=steps.outcomes)
