"""What a call cost, bucket by bucket, in Decimal dollars, and the table the price comes from.

A bucket without a known price gives None: no number instead of a wrong one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal

from msgspec import structs

from compaction.llm.prices import Price, get_billed_price
from compaction.transcripts.entries import Iteration, Usage

_MILLION = Decimal(1_000_000)
_NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call cost by bucket, with the price table and the modifiers that were applied."""

    input_usd: Decimal
    write_5m_usd: Decimal
    write_1h_usd: Decimal
    read_usd: Decimal
    output_usd: Decimal
    web_search_usd: Decimal
    source: str
    modifiers: tuple[str, ...] = ()

    @property
    def total_usd(self) -> Decimal:
        """All buckets together."""
        cached = self.write_5m_usd + self.write_1h_usd + self.read_usd
        return self.input_usd + cached + self.output_usd + self.web_search_usd


def compute_cost(usage: Usage, model: str, at: datetime | None, *, team_price: Price | None = None) -> Cost | None:
    """Return what a call cost; None when a part of it has no known price. `team_price` overrides every table.

    With `iterations` the cost is the sum over them, each by its own model and prompt length.
    """
    day = at.astimezone(UTC).date() if at else date.max
    terms = (usage.service_tier, usage.speed, usage.inference_geo)
    main_price = get_billed_price(model, day, team_price, terms)
    total: Cost | None = None
    for sampled_by, sampling in _list_samplings(usage, model):
        # An adviser's sampling names a model of its own; the team's price is not for that one.
        price = main_price if sampled_by == model else get_billed_price(sampled_by, day, None, terms)
        cost = None if price is None else _price_sampling(sampling, price)
        if cost is None:
            return None
        total = cost if total is None else _add_costs(total, cost)
    return _add_searches(total, usage, main_price)


def compute_total_usd(
    usage: Usage, model: str, at: datetime | None, *, team_price: Price | None = None
) -> Decimal | None:
    """Return the total of `compute_cost` without the buckets, for pricing every call of every session."""
    if usage.iterations or usage.web_search_requests:
        cost = compute_cost(usage, model, at, team_price=team_price)
        return None if cost is None else cost.total_usd
    day = date.max if at is None else at.date() if at.tzinfo is UTC else at.astimezone(UTC).date()
    price = get_billed_price(model, day, team_price, (usage.service_tier, usage.speed, usage.inference_geo))
    written, long_tokens, read = usage.cache_creation_tokens, usage.cache_creation_1h_tokens, usage.cache_read_tokens
    rates = price.get_rates(usage.input_tokens + written + read) if price is not None else None
    if rates is None:
        return None
    total = usage.input_tokens * rates.input_mtok_usd + usage.output_tokens * rates.output_mtok_usd
    # A loop over the three takes twice as long.
    if read:
        if rates.read_mtok_usd is None:
            return None
        total += read * rates.read_mtok_usd
    if long_tokens:
        if rates.write_1h_mtok_usd is None:
            return None
        total += long_tokens * rates.write_1h_mtok_usd
    if short_tokens := max(written - long_tokens, usage.cache_creation_5m_tokens):
        if rates.write_5m_mtok_usd is None:
            return None
        total += short_tokens * rates.write_5m_mtok_usd
    return total / _MILLION


def _list_samplings(usage: Usage, model: str) -> Iterator[tuple[str, Iteration | Usage]]:
    if not usage.iterations:
        yield model, usage
        return
    messages = [position for position, sampled in enumerate(usage.iterations) if sampled.type == "message"]
    # An output estimated from the text is in the top-level usage only: what it adds belongs to the last message.
    missing = usage.output_tokens - sum(usage.iterations[position].output_tokens for position in messages)
    for position, iteration in enumerate(usage.iterations):
        sampling = iteration
        if missing > 0 and messages and position == messages[-1]:
            sampling = structs.replace(iteration, output_tokens=iteration.output_tokens + missing)
        yield iteration.model or model, sampling


def _price_sampling(sampling: Iteration | Usage, price: Price) -> Cost | None:
    prompt_tokens = sampling.input_tokens + sampling.cache_creation_tokens + sampling.cache_read_tokens
    rates = price.get_rates(prompt_tokens)
    if rates is None:
        return None
    # Creation without a split, or with a split that does not add up, is a 5-minute write for the rest.
    write_5m_tokens = max(
        sampling.cache_creation_tokens - sampling.cache_creation_1h_tokens, sampling.cache_creation_5m_tokens
    )
    write_5m = _multiply(write_5m_tokens, rates.write_5m_mtok_usd)
    write_1h = _multiply(sampling.cache_creation_1h_tokens, rates.write_1h_mtok_usd)
    read = _multiply(sampling.cache_read_tokens, rates.read_mtok_usd)
    if write_5m is None or write_1h is None or read is None:
        return None
    return Cost(
        input_usd=sampling.input_tokens * rates.input_mtok_usd / _MILLION,
        write_5m_usd=write_5m,
        write_1h_usd=write_1h,
        read_usd=read,
        output_usd=sampling.output_tokens * rates.output_mtok_usd / _MILLION,
        web_search_usd=_NOTHING,
        source=price.source,
        modifiers=price.modifiers,
    )


def _multiply(tokens: int, rate: Decimal | None) -> Decimal | None:
    if tokens == 0:
        return _NOTHING
    return None if rate is None else tokens * rate / _MILLION


def _add_costs(one: Cost, other: Cost) -> Cost:
    return Cost(
        input_usd=one.input_usd + other.input_usd,
        write_5m_usd=one.write_5m_usd + other.write_5m_usd,
        write_1h_usd=one.write_1h_usd + other.write_1h_usd,
        read_usd=one.read_usd + other.read_usd,
        output_usd=one.output_usd + other.output_usd,
        web_search_usd=one.web_search_usd + other.web_search_usd,
        source=one.source if one.source == other.source else f"{one.source}; {other.source}",
        modifiers=one.modifiers,
    )


def _add_searches(cost: Cost | None, usage: Usage, price: Price | None) -> Cost | None:
    if cost is None or usage.web_search_requests == 0:
        return cost
    if price is None or price.web_search_usd is None:
        return None
    return replace(cost, web_search_usd=usage.web_search_requests * price.web_search_usd)
