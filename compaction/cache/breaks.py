"""Breaks: whether a call lost its cache, was expected to rebuild it, or nothing happened; one call or a whole thread.

Judging is a pure function of the previous baseline and the call. Calls that arrive late are judged by judging the
thread again from the baseline before them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter

from compaction.cache.calls import (
    ANNOUNCED,
    CONVERSATION_START,
    Baseline,
    CacheCall,
    CachePolicy,
    announce,
    make_baseline,
    merge_calls,
)
from compaction.cache.causes import Cause, Grade
from compaction.cache.costs import find_excess_usd
from compaction.cache.evidence import Explanation, Finding, explain_loss, find_gap_seconds
from compaction.transcripts.frozen import Value

DEFAULT_POLICY = CachePolicy()


class Outcome(StrEnum):
    """What happened to the cache at one call."""

    BREAK = "break"
    EXPECTED = "expected rebuild"
    NOTHING = "nothing"


_NOTHING = Outcome.NOTHING  # asked for at every call: Python 3.11 finds it ten times slower in the enumeration


class LossRule(StrEnum):
    """How a loss shows: less read than last time, or less than last time's read and write together."""

    READ_FELL = "read fell"
    PREFIX_MISSED = "prefix missed"


@dataclass(frozen=True, slots=True)
class Loss:
    """How much of the prefix was gone, and how much of it was written again."""

    rules: tuple[LossRule, ...]
    expected_tokens: int
    read_tokens: int
    lost_tokens: int
    recreated_tokens: int


class Verdict(Value, frozen=True):
    """The judgement of one call. `lost_usd` is None when a price is unknown; `baseline` is for the next call."""

    call_id: str
    outcome: Outcome
    baseline: Baseline | None
    loss: Loss | None = None
    rebuild: Cause | None = None
    explanation: Explanation | None = None
    gap_seconds: float | None = None
    ttl_in_force: str | None = None
    lost_usd: Decimal | None = None

    @property
    def primary(self) -> Finding | None:
        """The primary cause of a break."""
        return self.explanation.primary if self.explanation else None

    @property
    def cause(self) -> Cause | None:
        """The cause of a break, or what made a rebuild expected."""
        return self.primary.cause if self.primary else self.rebuild


def judge(previous: Baseline | None, call: CacheCall, policy: CachePolicy = DEFAULT_POLICY) -> Verdict:
    """Judge one call against its thread's baseline; the verdict carries the baseline for the next one."""
    if previous is not None and previous.call_id == call.call_id:
        return Verdict(call.call_id, Outcome.NOTHING, previous)
    if not policy.judges(call.model, call.query_source, call.usage):
        # Where no line tells of a compaction, the call that wrote its summary does.
        compacted = (Cause.COMPACTED,) if call.query_source == "compact" and call.usage.output_tokens else ()
        return Verdict(call.call_id, Outcome.NOTHING, announce(previous, *call.announced, *compacted))
    baseline = make_baseline(previous, call)
    if previous is None:
        return Verdict(call.call_id, Outcome.EXPECTED, baseline, rebuild=Cause.FIRST_CALL)
    loss = find_loss(previous, call, policy)
    if loss is None:
        return Verdict(call.call_id, _NOTHING, baseline)
    rebuild = _find_announced(previous, call)
    explanation = explain_loss(previous, call) if rebuild is None else None
    if explanation is not None and explanation.primary.grade is Grade.UNKNOWN and _is_shortened(previous, call, policy):
        rebuild, explanation = Cause.PROMPT_SHORTENED, None
    return Verdict(
        call_id=call.call_id,
        outcome=Outcome.BREAK if rebuild is None else Outcome.EXPECTED,
        baseline=baseline,
        loss=loss,
        rebuild=rebuild,
        explanation=explanation,
        gap_seconds=find_gap_seconds(previous, call),
        ttl_in_force=previous.ttl,
        lost_usd=find_excess_usd(
            call.usage,
            call.model,
            call.at,
            recreated_tokens=loss.recreated_tokens,
            team_price=policy.find_price(call.model),
        ),
    )


def judge_thread(
    calls: Iterable[CacheCall], policy: CachePolicy = DEFAULT_POLICY, *, baseline: Baseline | None = None
) -> tuple[Verdict, ...]:
    """Judge the calls of one thread in the order they were made, whatever order they come in; each call once."""
    verdicts = []
    for call in order_calls(calls):
        verdict = judge(baseline, call, policy)
        baseline = verdict.baseline
        verdicts.append(verdict)
    return tuple(verdicts)


def order_calls(calls: Iterable[CacheCall]) -> tuple[CacheCall, ...]:
    """Calls in the order they were made, several reports of one call made one."""
    told = list(calls)
    if len({call.call_id for call in told}) < len(told):
        reports: dict[str, list[CacheCall]] = {}
        for call in told:
            reports.setdefault(call.call_id, []).append(call)
        told = [merge_calls(found) for found in reports.values()]
    return tuple(sorted(told, key=attrgetter("at", "position", "call_id")))


def find_loss(previous: Baseline, call: CacheCall, policy: CachePolicy = DEFAULT_POLICY) -> Loss | None:
    """The loss by either rule. The first alone misses a second miss right after a first: the read stays low."""
    read_tokens = call.usage.cache_read_tokens
    if read_tokens >= previous.cached_tokens:
        return None
    rules = []
    if _is_below(read_tokens, previous.read_tokens, policy):
        rules.append(LossRule.READ_FELL)
    if _is_below(read_tokens, previous.cached_tokens, policy):
        rules.append(LossRule.PREFIX_MISSED)
    if not rules:
        return None
    lost_tokens = previous.cached_tokens - read_tokens
    return Loss(
        rules=tuple(rules),
        expected_tokens=previous.cached_tokens,
        read_tokens=read_tokens,
        lost_tokens=lost_tokens,
        recreated_tokens=min(lost_tokens, call.usage.cache_creation_tokens),
    )


def _is_below(read_tokens: int, expected_tokens: int, policy: CachePolicy) -> bool:
    missing = expected_tokens - read_tokens
    return missing > policy.loss_tokens and missing * 100 > policy.loss_share_percent * expected_tokens


def _find_announced(previous: Baseline, call: CacheCall) -> Cause | None:
    known = {*previous.announced, *call.announced}
    if _deletes_more(previous, call):
        known.add(Cause.DELETION_ANNOUNCED)
    if _is_rewound(previous, call):
        known.add(Cause.REWOUND)
    return next((cause for cause in ANNOUNCED if cause in known), None)


def _deletes_more(previous: Baseline, call: CacheCall) -> bool:
    """Whether the answer counts more tokens as deleted, or the request deletes results from the cache that the last one
    did not, and those of the last one too: the server lets the others go when they are no longer sent."""
    if call.usage.cache_deleted_tokens > previous.deleted_tokens:
        return True
    if previous.fingerprint is None or call.fingerprint is None:
        return False
    return previous.fingerprint.deletions < call.fingerprint.deletions


def _is_shortened(previous: Baseline, call: CacheCall, policy: CachePolicy) -> bool:
    """Whether less was sent than the cache held: what was taken out of the prompt could not be read from it."""
    return call.usage.prompt_tokens < previous.cached_tokens - policy.loss_tokens


def _is_rewound(previous: Baseline, call: CacheCall) -> bool:
    """Whether the call continues from elsewhere. A new start is believed only of a shorter prompt: some transcripts
    hang whole conversations under a new root."""
    if call.parent_call_id == CONVERSATION_START:
        return call.usage.prompt_tokens < previous.cached_tokens
    return call.parent_call_id is not None and call.parent_call_id != previous.call_id
