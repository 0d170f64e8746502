"""Computes how much of the cost of a thread's breaks was avoidable, in dollars.

A pause of more than an hour is longer than every available lifetime, so nothing is avoidable. A pause that only the
1-hour lifetime bridges is avoidable less the surcharge of that lifetime: all writes of the thread at its price, each
charged once. Other breaks with an avoidable cause are avoidable in full, as an unchanged request costs nothing.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from compaction.cache.breaks import CacheOutcome, Verdict
from compaction.cache.causes import CAUSES, Cause
from compaction.cache.costs import ZERO_USD, compute_surcharge_usd
from compaction.cache.policy import DEFAULT_POLICY, CachePolicy
from compaction.context.cache_ttl import CacheTtl
from compaction.timeline.calls import Call


def compute_avoidable(
    calls: Sequence[Call], verdicts: Sequence[Verdict], policy: CachePolicy = DEFAULT_POLICY
) -> Mapping[str, Decimal | None]:
    """Return the avoidable dollars of each preventable break of a thread, by call id.

    `verdicts` are those of `judge_thread` for the same calls. None means that a price is not known; 0 means that the
    1-hour lifetime would have prevented the break but cost as much as it saved.
    """
    avoidable = {
        verdict.call_id: verdict.lost_usd
        for verdict in verdicts
        if verdict.outcome is CacheOutcome.BREAK and _has_remedy(verdict)
    }
    bridged = {verdict.call_id for verdict in verdicts if verdict.call_id in avoidable and _needs_hour(verdict)}
    return avoidable | _charge_hour(calls, verdicts, bridged, policy) if bridged else avoidable


def _has_remedy(verdict: Verdict) -> bool:
    is_within_hour = verdict.gap_seconds is None or verdict.gap_seconds <= CacheTtl.ONE_HOUR.seconds
    return is_within_hour and verdict.cause is not None and CAUSES[verdict.cause].is_avoidable


def _needs_hour(verdict: Verdict) -> bool:
    """Return whether the 5-minute lifetime had expired, whatever else happened."""
    gap_seconds = verdict.gap_seconds or 0
    has_expired = verdict.ttl_in_force == CacheTtl.FIVE_MINUTES and gap_seconds > CacheTtl.FIVE_MINUTES.seconds
    return has_expired or verdict.cause is Cause.TTL_EXPIRED_5M


def _charge_hour(
    calls: Sequence[Call], verdicts: Sequence[Verdict], bridged: set[str], policy: CachePolicy
) -> dict[str, Decimal | None]:
    """Return the loss of each bridged break less the surcharge of the writes up to it. What exceeds a loss is charged
    to the next one; the surcharge of writes after the last pause is charged to the last losses.

    So the sum over a thread is what switching it to the 1-hour lifetime would have saved, or 0 where that would not
    have paid off. A break without a known price is None, and charging starts again after it.
    """
    by_id = {call.call_id: call for call in calls}
    net: dict[str, Decimal | None] = {}
    owed: Decimal | None = ZERO_USD
    for verdict in verdicts:
        if verdict.baseline is None or verdict.baseline.call_id != verdict.call_id:
            continue  # not judged: beside the conversation, or of a model that caches otherwise
        is_bridged = verdict.call_id in bridged
        # With the longer lifetime the lost prefix is read and not written.
        saved_tokens = verdict.loss.recreated_tokens if is_bridged and verdict.loss else 0
        call = by_id[verdict.call_id]
        surcharge_usd = compute_surcharge_usd(
            call.usage, call.model, call.at, unwritten_tokens=saved_tokens, team_price=policy.find_price(call.model)
        )
        owed = None if owed is None or surcharge_usd is None else owed + surcharge_usd
        if is_bridged:
            net[verdict.call_id], owed = _charge(verdict.lost_usd, owed)
    for call_id, amount in reversed(net.items()):
        if amount is not None and owed is not None:
            net[call_id], owed = _charge(amount, owed)
    return net


def _charge(amount: Decimal | None, owed: Decimal | None) -> tuple[Decimal | None, Decimal]:
    """Return what is left of an amount and of the surcharge that it pays."""
    if amount is None or owed is None:
        return None, ZERO_USD
    paid = min(amount, owed)
    return amount - paid, owed - paid
