"""Rows of calls: tokens, dollars and provenance of each."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from compaction.context.call_costs import compute_total_usd
from compaction.llm.prices import Price, get_team_price
from compaction.timeline.calls import Call
from dashboard.ingest.picture.columns import LARGEST_COUNT, Row, fit, fit_count, fit_id, fit_usd


def draw_calls(agent_id: str, calls: Sequence[Call], prices: Mapping[str, Price]) -> dict[str, Row]:
    """By call id, in the order of the thread. `prices`: the team's own."""
    return {fit_id(call.call_id): draw_call(agent_id, number, call, prices) for number, call in enumerate(calls, 1)}


def draw_call(agent_id: str, number: int, call: Call, prices: Mapping[str, Price]) -> Row:
    usage = call.usage
    long_tokens = min(usage.cache_creation_1h_tokens, usage.cache_creation_tokens)
    counts: tuple[int, ...] = (
        usage.input_tokens,
        usage.cache_read_tokens,
        usage.cache_creation_tokens - long_tokens,
        long_tokens,
        usage.output_tokens,
        usage.context_tokens,
    )
    if max(counts) > LARGEST_COUNT:
        counts = tuple(map(fit_count, counts))
    input_tokens, read_tokens, write_5m_tokens, write_1h_tokens, output_tokens, context_tokens = counts
    return {
        "agent_id": agent_id,
        "number": number,
        "request_id": fit_id(call.request_id),
        "at": call.started_at,
        "ended_at": call.ended_at,
        "turn": call.turn,
        "model": fit(call.model, 200),
        "client_version": fit(call.client_version, 60),
        "query_source": fit(call.query_source, 80),
        "stop_reason": fit(call.stop_reason, 60),
        "input_tokens": input_tokens,
        "read_tokens": read_tokens,
        "write_5m_tokens": write_5m_tokens,
        "write_1h_tokens": write_1h_tokens,
        "output_tokens": output_tokens,
        "is_output_estimated": call.is_output_estimated,
        "context_tokens": context_tokens,
        "cost_usd": price_call(call, prices),
        "duration_seconds": call.duration_seconds,
        "ttft_seconds": call.ttft_seconds,
        "provenance": dict(call.provenance),
        "added": fit(", ".join(call.added), 60),
        "miss_reason": fit(call.api_reason, 60),
        "cleared_tokens": fit_count(call.cleared_tokens),
    }


def price_call(call: Call, prices: Mapping[str, Price]) -> Decimal | None:
    """Return what a call costs at the team's own price, else at the list price; None when neither is known."""
    own = get_team_price(prices, call.model)
    return fit_usd(compute_total_usd(call.usage, call.model or "", call.started_at, team_price=own))
