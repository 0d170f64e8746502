"""What could have been avoided of the breaks of a thread, in dollars: only where something on offer would have held.

A pause above an hour outlives every lifetime on offer, so nothing is avoidable then. A pause that only the 1-hour
lifetime bridges is avoidable net of what that lifetime costs more: all writes of the thread at its price, each charged
once. Other breaks with an avoidable cause are avoidable whole, as keeping the request the same costs nothing.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from compaction.cache.breaks import CacheOutcome, Verdict
from compaction.cache.causes import CAUSES, Cause
from compaction.cache.costs import NOTHING_USD, find_surcharge_usd
from compaction.cache.policy import DEFAULT_POLICY, CachePolicy
from compaction.context.cache_ttl import CacheTtl
from compaction.timeline.calls import Call


def compute_avoidable(
    calls: Sequence[Call], verdicts: Sequence[Verdict], policy: CachePolicy = DEFAULT_POLICY
) -> Mapping[str, Decimal | None]:
    """Return the avoidable dollars of each break of a thread that something on offer would have prevented, by call id.

    `verdicts` are those of `judge_thread` on the same calls. None: a price is not known. 0: the 1-hour lifetime would
    have held, and cost as much as it saved.
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
    """Return whether 5 minutes had run out, whatever else happened besides."""
    gap_seconds = verdict.gap_seconds or 0
    has_expired = verdict.ttl_in_force == CacheTtl.FIVE_MINUTES and gap_seconds > CacheTtl.FIVE_MINUTES.seconds
    return has_expired or verdict.cause is Cause.TTL_EXPIRED_5M


def _charge_hour(
    calls: Sequence[Call], verdicts: Sequence[Verdict], bridged: set[str], policy: CachePolicy
) -> dict[str, Decimal | None]:
    """Return the loss of each bridged break less the surcharge of the writes up to it; what a loss cannot pay is left
    to the next one, and writes after the last pause are paid by the last losses.

    So the sum over a thread is what switching it to the 1-hour lifetime would have saved, or 0 where it would not have
    paid. A break without a known price is None and the count starts again after it.
    """
    by_id = {call.call_id: call for call in calls}
    net: dict[str, Decimal | None] = {}
    owed: Decimal | None = NOTHING_USD
    for verdict in verdicts:
        if verdict.baseline is None or verdict.baseline.call_id != verdict.call_id:
            continue  # not judged: beside the conversation, or of a model that caches otherwise
        is_bridged = verdict.call_id in bridged
        # With the longer lifetime the lost prefix is read and not written.
        saved_tokens = verdict.loss.recreated_tokens if is_bridged and verdict.loss else 0
        call = by_id[verdict.call_id]
        surcharge_usd = find_surcharge_usd(
            call.usage, call.model, call.at, unwritten_tokens=saved_tokens, team_price=policy.find_price(call.model)
        )
        owed = None if owed is None or surcharge_usd is None else owed + surcharge_usd
        if is_bridged:
            net[verdict.call_id], owed = _pay(verdict.lost_usd, owed)
    for call_id, amount in reversed(net.items()):
        if amount is not None and owed is not None:
            net[call_id], owed = _pay(amount, owed)
    return net


def _pay(amount: Decimal | None, owed: Decimal | None) -> tuple[Decimal | None, Decimal]:
    """Return what is left of an amount, and of the debt that it pays."""
    if amount is None or owed is None:
        return None, NOTHING_USD
    paid = min(amount, owed)
    return amount - paid, owed - paid
