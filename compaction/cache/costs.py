"""Dollars of the cache: what a loss cost over a read, 1-hour writes over 5-minute ones, and a whole call.

Each figure is the difference of two bills at the same prompt length, so that tiers and modifiers are those paid.
"""

from datetime import datetime
from decimal import Decimal

from compaction.context.call_costs import compute_total_usd
from compaction.llm.prices import Price
from compaction.transcripts.entries import Usage

NOTHING_USD = Decimal(0)


def find_excess_usd(
    usage: Usage, model: str | None, at: datetime | None, *, recreated_tokens: int, team_price: Price | None = None
) -> Decimal | None:
    """What writing these tokens again cost over reading them, at the write price paid; None when a price is unknown."""
    if recreated_tokens == 0:
        return NOTHING_USD
    paid = _strip_prompt(usage)
    from_1h = 0
    if paid.cache_creation_tokens:
        from_1h = recreated_tokens * paid.cache_creation_1h_tokens // paid.cache_creation_tokens
    read = Usage(
        input_tokens=paid.input_tokens,
        cache_creation_tokens=paid.cache_creation_tokens - recreated_tokens,
        cache_creation_5m_tokens=paid.cache_creation_5m_tokens - (recreated_tokens - from_1h),
        cache_creation_1h_tokens=paid.cache_creation_1h_tokens - from_1h,
        cache_read_tokens=paid.cache_read_tokens + recreated_tokens,
        service_tier=paid.service_tier,
        speed=paid.speed,
        inference_geo=paid.inference_geo,
    )
    return _subtract(paid, read, model, at, team_price)


def find_surcharge_usd(
    usage: Usage, model: str | None, at: datetime | None, *, unwritten_tokens: int = 0, team_price: Price | None = None
) -> Decimal | None:
    """Return what a call's 5-minute writes would have cost more as 1-hour ones, without those that it would not have
    made; None when a price is unknown."""
    paid = _strip_prompt(usage)
    short_tokens = max(0, paid.cache_creation_5m_tokens - unwritten_tokens)
    if short_tokens == 0:
        return NOTHING_USD
    # The prompt has the same length either way, so that both are billed at the same tier.
    short = paid.changed(
        cache_creation_tokens=short_tokens,
        cache_creation_5m_tokens=short_tokens,
        cache_creation_1h_tokens=0,
        cache_read_tokens=paid.prompt_tokens - short_tokens - paid.input_tokens,
    )
    long = short.changed(cache_creation_5m_tokens=0, cache_creation_1h_tokens=short_tokens)
    return _subtract(long, short, model, at, team_price)


def find_cost_usd(
    usage: Usage, model: str | None, at: datetime | None, *, team_price: Price | None = None
) -> Decimal | None:
    """What a whole call cost; None when a price is unknown."""
    return compute_total_usd(usage, model or "", at, team_price=team_price)


def _strip_prompt(usage: Usage) -> Usage:
    """The prompt side alone, with a split that adds up: creation without one is a 5-minute write."""
    from_1h = min(usage.cache_creation_1h_tokens, usage.cache_creation_tokens)
    return usage.changed(
        output_tokens=0,
        cache_creation_5m_tokens=usage.cache_creation_tokens - from_1h,
        cache_creation_1h_tokens=from_1h,
        web_search_requests=0,
        web_fetch_requests=0,
        iterations=(),
    )


def _subtract(
    paid: Usage, instead: Usage, model: str | None, at: datetime | None, team_price: Price | None
) -> Decimal | None:
    bill = find_cost_usd(paid, model, at, team_price=team_price)
    other = find_cost_usd(instead, model, at, team_price=team_price)
    return None if bill is None or other is None else bill - other
