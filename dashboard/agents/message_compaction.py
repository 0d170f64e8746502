"""Messages in, compacted messages out, without a model and without storing anything: clear results, quote, or both."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from compaction.compactors.auto import Turn, run_chain
from compaction.compactors.auto_micro import MicroSteps
from compaction.compactors.cleanup import ThreadMemory
from compaction.compactors.extractive import ExtractiveSummarizer
from compaction.compactors.full import compact_full
from compaction.compactors.losses import LossReport, find_losses
from compaction.compactors.micro import MicroOutcome, find_clearable
from compaction.compactors.micro_size import DEFAULT_SIZE_SETTINGS, clear_by_size
from compaction.compactors.outcome import Outcome, Trigger
from compaction.compactors.restore import ContextRestorer
from compaction.compactors.run import CompactionRequest, Outside
from compaction.context.policy import Policy
from compaction.context.thresholds import Lines
from compaction.context.tokens import estimate_tokens
from compaction.errors import NothingToCompact
from compaction.transcripts.entries import Entry
from compaction.transcripts.messages import read_messages, write_messages
from dashboard.agents.checks import Question, draw_question_lines, measure_question
from dashboard.models import Team
from dashboard.policies.in_force import find_policy


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
    lines: Lines | None
    outcome: Outcome | None = None
    cleared: tuple[MicroOutcome, ...] = ()
    losses: LossReport | None = None


def compact_messages(team: Team, wish: Wish, *, now: datetime) -> Compacted:
    """Raises a RunError with a sentence, NothingToCompact among them; BadPolicy for values that make no lines."""
    question = wish.question
    settings = find_policy(team)
    lines, policy = draw_question_lines(settings, question)
    entries = read_messages(question.messages, model=question.model, usage=question.usage)
    before_tokens, _ = measure_question(question, entries)
    work = _Work(wish, entries, before_tokens, lines, policy, now)
    match wish.kind:
        case CompactKind.MICRO:
            return work.clear()
        case CompactKind.FULL:
            return work.summarise()
        case CompactKind.AUTO:
            return work.follow_chain()


def compact_at_once(team: Team, wish: Wish, *, with_model: bool, now: datetime) -> Compacted | None:
    """None where a model is to write a summary: always for `full`, for `auto` only where clearing does not do."""
    if with_model and wish.kind is CompactKind.FULL:
        return None
    compacted = compact_messages(team, wish, now=now)
    return None if with_model and compacted.outcome is not None else compacted


@dataclass(frozen=True)
class _Work:
    wish: Wish
    entries: tuple[Entry, ...]
    before_tokens: int
    lines: Lines | None
    policy: Policy
    now: datetime

    @property
    def outside(self) -> Outside:
        return Outside(ExtractiveSummarizer(), restore=ContextRestorer())

    @property
    def prefix_tokens(self) -> int:
        """System and tools: told, or what the measured size holds beyond the messages."""
        if self.wish.question.usage is None:
            return self.wish.question.prefix_tokens
        return max(0, self.before_tokens - estimate_tokens(self.entries))

    def clear(self) -> Compacted:
        """A person or program that asks does not wait for a line or for a saving that is worth it."""
        tools = self.wish.question.clearable_tools
        settings = replace(DEFAULT_SIZE_SETTINGS, least_saved_tokens=1, tools=tools)
        outcome = clear_by_size(
            self.entries, used_tokens=self.before_tokens, warning_tokens=0, now=self.now, settings=settings
        )
        if outcome is None:
            results = find_clearable(self.entries, tools=tools)
            tokens = sum(result.tokens for result in results)
            raise NothingToCompact(
                f"There are {len(results):,} tool results that could be cleared, {tokens:,} tokens in all; the last "
                f"{settings.kept_results}, and {settings.target_tokens:,} tokens, stay, so nothing would be saved."
            )
        return self._tell_cleared(outcome.entries, MicroSteps((outcome,)), "cleared")

    def summarise(self) -> Compacted:
        request = CompactionRequest(
            trigger=Trigger.AUTONOMOUS if self.wish.is_autonomous else Trigger.MANUAL,
            now=self.now,
            custom_instructions=self.wish.instructions,
            line_tokens=self.lines.auto.tokens if self.lines else None,
            prefix_tokens=self.prefix_tokens,
        )
        outcome = compact_full(self.entries, request, self.outside)
        return self._tell_outcome("compacted in full", outcome)

    def follow_chain(self) -> Compacted:
        turn = Turn(
            now=self.now,
            policy=self.policy,
            lines=self.lines,
            is_too_long=self.wish.is_too_long,
            is_autonomous=self.wish.is_autonomous,
            prefix_tokens=self.prefix_tokens,
            clearable_tools=self.wish.question.clearable_tools,
        )
        result = run_chain(self.entries, turn, ThreadMemory(), self.outside)
        if result.failure is not None:
            raise result.failure
        if result.outcome is not None:
            return self._tell_outcome(result.decision.value, result.outcome, cleared=result.micro.outcomes)
        decision = "cleared" if result.micro.outcomes else result.decision.value
        return self._tell_cleared(tuple(result.entries), result.micro, decision)

    def _tell_outcome(self, decision: str, outcome: Outcome, *, cleared: tuple[MicroOutcome, ...] = ()) -> Compacted:
        told = self._tell(decision, outcome.entries, after_tokens=outcome.expected_tokens, cleared=cleared)
        return replace(told, outcome=outcome, losses=find_losses(self.entries, outcome.entries))

    def _tell(
        self, decision: str, entries: tuple[Entry, ...], *, after_tokens: int, cleared: tuple[MicroOutcome, ...]
    ) -> Compacted:
        return Compacted(
            decision=decision,
            messages=write_messages(entries, self.wish.question.messages),
            before_tokens=self.before_tokens,
            after_tokens=after_tokens,
            lines=self.lines,
            cleared=cleared,
        )

    def _tell_cleared(self, entries: tuple[Entry, ...], steps: MicroSteps, decision: str) -> Compacted:
        after_tokens = max(0, self.before_tokens - steps.saved_tokens)
        return self._tell(decision, entries, after_tokens=after_tokens, cleared=steps.outcomes)
