"""The cache health of a session: hit ratio, breaks by cause, dollars lost and avoidable, lifetimes and their worth."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from compaction.cache.avoidable import compute_avoidable
from compaction.cache.breaks import DEFAULT_POLICY, Outcome, Verdict, judge_thread, order_calls
from compaction.cache.calls import CacheCall, CachePolicy
from compaction.cache.causes import Cause
from compaction.cache.costs import NOTHING_USD, add_usd, find_cost_usd, find_premium_usd
from compaction.llm.cache_ttl import CacheTtl


@dataclass(frozen=True, slots=True)
class CauseTotal:
    """All breaks of one primary cause."""

    cause: Cause
    count: int
    recreated_tokens: int
    lost_usd: Decimal


@dataclass(frozen=True, slots=True)
class TierChange:
    """A call that wrote with another lifetime than the writes before it."""

    call_id: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class CacheSummary:
    """Dollars hold what has a known price; `unpriced_breaks` and `unpriced_calls` say how many have none."""

    calls: int
    input_tokens: int
    read_tokens: int
    written_5m_tokens: int
    written_1h_tokens: int
    breaks: int
    expected_rebuilds: int
    recreated_tokens: int
    lost_usd: Decimal
    avoidable_usd: Decimal
    rebuilt_usd: Decimal
    spent_usd: Decimal
    unpriced_breaks: int
    unpriced_calls: int
    by_cause: tuple[CauseTotal, ...]
    rebuilds: tuple[tuple[Cause, int], ...]
    tier_changes: tuple[TierChange, ...]
    unread_1h_tokens: int
    unread_1h_usd: Decimal

    @property
    def hit_ratio(self) -> float | None:
        """Tokens read from the cache over all tokens sent, as the client counts it."""
        return self.read_tokens / self.input_tokens if self.input_tokens else None

    @property
    def lost_share(self) -> float | None:
        """What breaks cost, as a share of all that was spent."""
        return float(self.lost_usd / self.spent_usd) if self.spent_usd else None


def summarise_thread(calls: Iterable[CacheCall], policy: CachePolicy = DEFAULT_POLICY) -> CacheSummary:
    """Judge and sum up one thread."""
    ordered = order_calls(calls)
    return summarise_verdicts(ordered, judge_thread(ordered, policy), policy)


def summarise_verdicts(
    calls: Sequence[CacheCall], verdicts: Sequence[Verdict], policy: CachePolicy = DEFAULT_POLICY
) -> CacheSummary:
    """Sum up the calls of one thread, in order, and the verdict on each."""
    breaks = [verdict for verdict in verdicts if verdict.outcome is Outcome.BREAK]
    expected = [verdict for verdict in verdicts if verdict.outcome is Outcome.EXPECTED]
    costs = [find_cost_usd(call.usage, call.model, call.at, team_price=policy.find_price(call.model)) for call in calls]
    unread = find_unread_1h_writes(calls, verdicts)
    written_1h = sum(call.usage.cache_creation_1h_tokens for call in calls)
    premiums = (
        find_premium_usd(call.usage, call.model, call.at, team_price=policy.find_price(call.model)) for call in unread
    )
    by_cause = _total_by_cause(breaks)
    return CacheSummary(
        calls=len(calls),
        input_tokens=sum(call.usage.prompt_tokens for call in calls),
        read_tokens=sum(call.usage.cache_read_tokens for call in calls),
        written_5m_tokens=sum(call.usage.cache_creation_tokens for call in calls) - written_1h,
        written_1h_tokens=written_1h,
        breaks=len(breaks),
        expected_rebuilds=len(expected),
        recreated_tokens=sum(total.recreated_tokens for total in by_cause),
        lost_usd=sum((total.lost_usd for total in by_cause), NOTHING_USD),
        avoidable_usd=add_usd(compute_avoidable(calls, verdicts, policy).values()),
        rebuilt_usd=add_usd(verdict.lost_usd for verdict in expected),
        spent_usd=add_usd(costs),
        unpriced_breaks=sum(verdict.lost_usd is None for verdict in breaks),
        unpriced_calls=sum(cost is None for cost in costs),
        by_cause=by_cause,
        rebuilds=_count_rebuilds(expected),
        tier_changes=find_tier_changes(calls),
        unread_1h_tokens=sum(call.usage.cache_creation_1h_tokens for call in unread),
        unread_1h_usd=add_usd(premiums),
    )


def add_summaries(summaries: Iterable[CacheSummary]) -> CacheSummary:
    """The health of a session from that of its threads, or of a team from that of its sessions."""
    parts = list(summaries)
    if not parts:
        return summarise_verdicts((), ())
    totals: dict[Cause, CauseTotal] = {}
    rebuilds: dict[Cause, int] = {}
    for part in parts:
        for total in part.by_cause:
            totals[total.cause] = _add_totals(totals.get(total.cause), total)
        for cause, count in part.rebuilds:
            rebuilds[cause] = rebuilds.get(cause, 0) + count
    summed: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in _COUNTED}
    summed |= {name: add_usd(getattr(part, name) for part in parts) for name in _PRICED}
    return CacheSummary(
        **summed,
        by_cause=_order_totals(totals.values()),
        rebuilds=tuple(sorted(rebuilds.items(), key=lambda item: (-item[1], item[0]))),
        tier_changes=tuple(change for part in parts for change in part.tier_changes),
    )


_COUNTED = (
    "calls", "input_tokens", "read_tokens", "written_5m_tokens", "written_1h_tokens", "breaks", "expected_rebuilds",
    "recreated_tokens", "unpriced_breaks", "unpriced_calls", "unread_1h_tokens",
)  # fmt: skip
_PRICED = ("lost_usd", "avoidable_usd", "rebuilt_usd", "spent_usd", "unread_1h_usd")


def find_unread_1h_writes(calls: Sequence[CacheCall], verdicts: Sequence[Verdict]) -> tuple[CacheCall, ...]:
    """Calls whose 1-hour writes never paid back: no later call read them after a pause that 5 minutes would not have
    outlived, before the prefix was lost or the thread ended."""
    unread = []
    is_paid_back = False
    later: CacheCall | None = None
    for call, verdict in zip(reversed(calls), reversed(verdicts), strict=True):
        if verdict.baseline is None or verdict.baseline.call_id != call.call_id:
            continue
        is_paid_back = is_paid_back or (later is not None and _reads_late(call, later))
        if call.usage.cache_creation_1h_tokens and not is_paid_back:
            unread.append(call)
        is_kept = verdict.outcome is Outcome.NOTHING
        is_paid_back, later = (is_paid_back, call) if is_kept else (False, None)
    return tuple(reversed(unread))


def _reads_late(call: CacheCall, later: CacheCall) -> bool:
    """Whether the next call read the cache after a pause that only the 1-hour lifetime bridges."""
    gap_seconds = (later.at - call.at).total_seconds()
    return gap_seconds > CacheTtl.FIVE_MINUTES.seconds and later.usage.cache_read_tokens > 0


def find_tier_changes(calls: Sequence[CacheCall]) -> tuple[TierChange, ...]:
    """Where a thread's writes went from 5 minutes to 1 hour or back, as when a plan's quota runs out."""
    changes = []
    before: str | None = None
    for call in calls:
        after = call.written_ttl
        if after is None:
            continue
        if before is not None and after != before:
            changes.append(TierChange(call.call_id, before, after))
        before = after
    return tuple(changes)


def _total_by_cause(breaks: Sequence[Verdict]) -> tuple[CauseTotal, ...]:
    totals: dict[Cause, CauseTotal] = {}
    for verdict in breaks:
        if verdict.primary is None or verdict.loss is None:
            continue
        cause = verdict.primary.cause
        one = CauseTotal(cause, 1, verdict.loss.recreated_tokens, verdict.lost_usd or NOTHING_USD)
        totals[cause] = _add_totals(totals.get(cause), one)
    return _order_totals(totals.values())


def _add_totals(one: CauseTotal | None, other: CauseTotal) -> CauseTotal:
    if one is None:
        return other
    return CauseTotal(
        one.cause,
        one.count + other.count,
        one.recreated_tokens + other.recreated_tokens,
        one.lost_usd + other.lost_usd,
    )


def _order_totals(totals: Iterable[CauseTotal]) -> tuple[CauseTotal, ...]:
    return tuple(sorted(totals, key=lambda total: (-total.lost_usd, -total.count, total.cause)))


def _count_rebuilds(expected: Sequence[Verdict]) -> tuple[tuple[Cause, int], ...]:
    counts: dict[Cause, int] = {}
    for verdict in expected:
        if verdict.rebuild is not None:
            counts[verdict.rebuild] = counts.get(verdict.rebuild, 0) + 1
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
