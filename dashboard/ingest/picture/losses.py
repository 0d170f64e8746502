"""Rows of cache breaks and expected rebuilds, with the evidence a page needs to explain them."""

from collections.abc import Mapping, Sequence

from compaction.cache.avoidable import compute_avoidable
from compaction.cache.break_places import BreakLocation, locate_losses
from compaction.cache.breaks import CacheOutcome, Verdict
from compaction.cache.causes import Grade
from compaction.cache.diagnosis import Explanation
from compaction.cache.policy import CachePolicy
from compaction.timeline.calls import Call
from dashboard.ingest.picture.columns import Row, fit, fit_count, fit_id, fit_usd

KINDS = {CacheOutcome.BREAK: "break", CacheOutcome.EXPECTED: "expected"}


def draw_losses(
    agent_id: str, calls: Mapping[str, Call], verdicts: Sequence[Verdict], policy: CachePolicy
) -> dict[str, Row]:
    """By call id. The first call of a thread rebuilds nothing: it has no row."""
    avoidable = compute_avoidable(list(calls.values()), verdicts, policy)
    rows: dict[str, Row] = {}
    judged = list(verdicts)
    places = locate_losses(calls, judged)
    numbers = {call_id: number for number, call_id in enumerate(calls, 1)}
    previous = ""
    for verdict in judged:
        if verdict.outcome in KINDS and verdict.loss is not None:
            row = draw_loss(calls[verdict.call_id], verdict, places.get(verdict.call_id))
            if verdict.call_id in avoidable:
                saved_usd = avoidable[verdict.call_id]
                row |= {"is_avoidable": saved_usd != 0, "avoidable_usd": fit_usd(saved_usd)}
            place: Row = {"agent_id": agent_id, "call_number": numbers[verdict.call_id], "previous_call_id": previous}
            rows[fit_id(verdict.call_id)] = row | place
        if verdict.baseline is not None:
            previous = fit_id(verdict.baseline.call_id)
    return rows


def draw_loss(call: Call, verdict: Verdict, broken_at: BreakLocation | None) -> Row:
    primary, loss, cause = verdict.primary, verdict.loss, verdict.cause
    if loss is None or cause is None:
        raise ValueError(verdict.call_id)  # a break or rebuild has both
    return {
        "kind": KINDS[verdict.outcome],
        "at": call.at,
        "model": fit(call.model, 200),
        "cause": cause.value,
        "grade": (primary.grade if primary else Grade.CLIENT).value,
        "detail": fit(primary.detail if primary else "", 1000),
        "evidence": _spell_evidence(verdict.explanation, broken_at),
        "is_avoidable": False,
        "gap_seconds": verdict.gap_seconds,
        "ttl": verdict.ttl_in_force or "",
        "expected_tokens": fit_count(loss.expected_tokens),
        "read_tokens": fit_count(loss.read_tokens),
        "lost_tokens": fit_count(max(0, loss.lost_tokens)),
        "recreated_tokens": fit_count(loss.recreated_tokens),
        "lost_usd": fit_usd(verdict.lost_usd),
        "avoidable_usd": None,
    }


def _spell_evidence(explanation: Explanation | None, broken_at: BreakLocation | None) -> Row:
    told: Row = {} if broken_at is None else {"place": broken_at.place.value}
    if explanation is None:
        return told
    told |= {
        "further": [[found.cause.value, found.grade.value, found.detail] for found in explanation.further],
        "conflicts": [conflict.sentence for conflict in explanation.conflicts],
        "unproven": [condition.value for condition in explanation.unproven],
    }
    prediction = explanation.prediction
    if prediction is not None:
        told["predicted"] = {
            "low": prediction.low_tokens,
            "high": prediction.high_tokens,
            "observed": prediction.observed_tokens,
            "tolerance": prediction.tolerance_tokens,
            "agrees": prediction.agrees,
        }
    return told
