"""Decides whether a call lost its cache, was expected to rebuild it, or neither; for one call or a whole thread.

Judging is a pure function of the previous baseline and the call. After a call that arrives late, the thread is judged
again from the baseline before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter

import msgspec

from compaction.cache.baseline import Baseline, add_expected_causes, build_baseline, list_expected_causes
from compaction.cache.causes import Cause, Grade
from compaction.cache.costs import compute_excess_usd
from compaction.cache.diagnosis import Explanation, Finding, compute_gap_seconds, explain_loss
from compaction.cache.policy import DEFAULT_POLICY, CachePolicy
from compaction.timeline.calls import CONVERSATION_START, Call


class CacheOutcome(StrEnum):
    """What happened to the cache at one call."""

    BREAK = "break"
    EXPECTED = "expected rebuild"
    NOTHING = "nothing"


# Causes that make a lower read expected, the weightiest first.
EXPECTED_CAUSES = (Cause.COMPACTED, Cause.MICRO_COMPACTED, Cause.DELETION_ANNOUNCED, Cause.REWOUND)
_NOTHING = CacheOutcome.NOTHING  # asked for at every call: Python 3.11 finds it ten times slower in the enumeration


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


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """The judgement of one call. `lost_usd` is None when a price is unknown; `baseline` is for the next call."""

    call_id: str
    outcome: CacheOutcome
    baseline: Baseline | None
    loss: Loss | None = None
    rebuild: Cause | None = None
    explanation: Explanation | None = None
    gap_seconds: float | None = None
    ttl_in_force: str | None = None
    lost_usd: Decimal | None = None
    parent_call_id: str | None = None  # the judged call it continues, where known

    @property
    def primary(self) -> Finding | None:
        """The primary cause of a break."""
        return self.explanation.primary if self.explanation else None

    @property
    def cause(self) -> Cause | None:
        """The cause of a break, or what made a rebuild expected."""
        return self.primary.cause if self.primary else self.rebuild


def judge_call(
    previous: Baseline | None,
    call: Call,
    policy: CachePolicy = DEFAULT_POLICY,
    *,
    parent_call_id: str | None = None,
) -> Verdict:
    """Judge one call against its thread's baseline; the verdict carries the baseline for the next one.

    `parent_call_id`: the judged call it continues, where known.
    """
    if previous is not None and previous.call_id == call.call_id:
        return Verdict(call.call_id, _NOTHING, previous)
    expected = list_expected_causes(call)
    if not policy.judges(call.model, call.query_source, call.usage):
        # Where no line records a compaction, the call that wrote its summary does.
        if call.query_source == "compact" and call.usage.output_tokens:
            expected |= {Cause.COMPACTED}
        return Verdict(call.call_id, _NOTHING, add_expected_causes(previous, expected))
    baseline = build_baseline(previous, call)
    if previous is None:
        return Verdict(
            call.call_id, CacheOutcome.EXPECTED, baseline, rebuild=Cause.FIRST_CALL, parent_call_id=parent_call_id
        )
    loss = compute_loss(previous, call, policy)
    if loss is None:
        return Verdict(call.call_id, _NOTHING, baseline, parent_call_id=parent_call_id)
    rebuild = _find_expected(previous, call, expected, parent_call_id)
    explanation = explain_loss(previous, call) if rebuild is None else None
    if explanation is not None and explanation.primary.grade is Grade.UNKNOWN and _is_shortened(previous, call, policy):
        rebuild, explanation = Cause.PROMPT_SHORTENED, None
    return Verdict(
        call_id=call.call_id,
        outcome=CacheOutcome.BREAK if rebuild is None else CacheOutcome.EXPECTED,
        baseline=baseline,
        loss=loss,
        rebuild=rebuild,
        explanation=explanation,
        gap_seconds=compute_gap_seconds(previous, call),
        ttl_in_force=previous.ttl,
        lost_usd=compute_excess_usd(
            call.usage,
            call.model,
            call.at,
            recreated_tokens=loss.recreated_tokens,
            team_price=policy.find_price(call.model),
        ),
        parent_call_id=parent_call_id,
    )


def judge_thread(
    calls: Iterable[Call],
    policy: CachePolicy = DEFAULT_POLICY,
    *,
    baseline: Baseline | None = None,
    parents: Mapping[str, str] | None = None,
) -> tuple[Verdict, ...]:
    """Judge the calls of one thread in the order they were made, whatever order they come in.

    To judge the end of a thread, pass the `baseline` before it and the judged parents of the whole thread.
    """
    ordered = sorted(calls, key=attrgetter("at", "position", "call_id"))
    parents = find_judged_parents(ordered, policy) if parents is None else parents
    verdicts = []
    for call in ordered:
        verdict = judge_call(baseline, call, policy, parent_call_id=parents.get(call.call_id))
        baseline = verdict.baseline
        verdicts.append(verdict)
    return tuple(verdicts)


def find_judged_parents(calls: Sequence[Call], policy: CachePolicy) -> dict[str, str]:
    """Return the nearest judged ancestor of each call, by call id."""
    parents = {call.call_id: call.parent_call_id for call in calls if call.parent_call_id is not None}
    if not parents:
        return {}
    skipped = {call.call_id for call in calls if not policy.judges(call.model, None, call.usage)}
    if not skipped:
        return parents
    judged = {}
    for call_id, parent in parents.items():
        seen = {call_id}
        above: str | None = parent
        while above in skipped and above not in seen:
            seen.add(above)
            above = parents.get(above)
        if above is not None and above not in seen:
            judged[call_id] = above
    return judged


def compute_loss(previous: Baseline, call: Call, policy: CachePolicy = DEFAULT_POLICY) -> Loss | None:
    """Return the loss by either rule. The first alone misses a second miss right after a first: the read stays low."""
    read_tokens = call.usage.cache_read_tokens
    if read_tokens >= previous.cached_tokens:
        return None
    rules = []
    if policy.is_below(read_tokens, previous.read_tokens):
        rules.append(LossRule.READ_FELL)
    if policy.is_below(read_tokens, previous.cached_tokens):
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


def _find_expected(
    previous: Baseline, call: Call, expected: frozenset[Cause], parent_call_id: str | None
) -> Cause | None:
    """Return the weightiest cause that makes a rebuild expected."""
    causes = previous.expected_causes | expected
    if _deletes_more(previous, call):
        causes |= {Cause.DELETION_ANNOUNCED}
    if _is_rewound(previous, call, parent_call_id):
        causes |= {Cause.REWOUND}
    return next((cause for cause in EXPECTED_CAUSES if cause in causes), None)


def _deletes_more(previous: Baseline, call: Call) -> bool:
    """Return whether the response counts more tokens as deleted, or the request deletes results besides those of the
    previous one, whose deletions it must repeat: the server restores those that are no longer sent."""
    if call.usage.cache_deleted_tokens > previous.deleted_tokens:
        return True
    if previous.fingerprint is None or call.fingerprint is None:
        return False
    return previous.fingerprint.deletions < call.fingerprint.deletions


def _is_shortened(previous: Baseline, call: Call, policy: CachePolicy) -> bool:
    """Return whether less was sent than the cache held: what was removed from the prompt could not be read."""
    return call.usage.prompt_tokens < previous.cached_tokens - policy.loss_tokens


def _is_rewound(previous: Baseline, call: Call, parent_call_id: str | None) -> bool:
    """Return whether the call continues from elsewhere. A new start counts only with a shorter prompt: some transcripts
    attach whole conversations to a new root."""
    if parent_call_id == CONVERSATION_START:
        return call.usage.prompt_tokens < previous.cached_tokens
    return parent_call_id is not None and parent_call_id != previous.call_id
