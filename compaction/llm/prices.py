"""Prices: what a model's tokens cost, bucket by bucket, in Decimal dollars, and the table each price comes from.

They come from `genai-prices`, imported in one function here and nowhere else; what it lacks is in the table below. A
model, a tier or a bucket without a known price gives None: no number instead of a wrong one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING

from compaction.llm.names import LONGEST_NAME, ModelName, Platform, read_model_name

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

_THOUSAND = Decimal(1_000)

# Modifiers of the published price list; they stack.
BATCH_FACTOR = Decimal("0.5")
US_ONLY_FACTOR = Decimal("1.1")
FIRST_VERSION_WITH_US_ONLY_PRICE = (4, 6)
# Fast mode: $10/$50 for Opus 5 and 4.8 and twice the price for Opus 5.5. No price is on record for any other model.
FAST_FACTORS: Mapping[str, Decimal] = {
    "claude-opus-5-5": Decimal(2),
    "claude-opus-5": Decimal(2),
    "claude-opus-4-8": Decimal(2),
}
# Terms of a call that a price is on record for. The API says "not_available" where a model has no choice of geography.
_KNOWN_TIERS = frozenset({None, "", "standard", "batch"})
_KNOWN_SPEEDS = frozenset({None, "", "standard", "fast"})
_KNOWN_GEOS = frozenset({None, "", "global", "not_available", "us"})


@dataclass(frozen=True, slots=True)
class Rates:
    """Dollars per million tokens of each bucket; None where no price is on record."""

    input_mtok_usd: Decimal
    output_mtok_usd: Decimal
    write_5m_mtok_usd: Decimal | None
    write_1h_mtok_usd: Decimal | None
    read_mtok_usd: Decimal | None

    def scale(self, factor: Decimal) -> "Rates":
        """Return all rates times a modifier."""
        return Rates(
            self.input_mtok_usd * factor,
            self.output_mtok_usd * factor,
            None if self.write_5m_mtok_usd is None else self.write_5m_mtok_usd * factor,
            None if self.write_1h_mtok_usd is None else self.write_1h_mtok_usd * factor,
            None if self.read_mtok_usd is None else self.read_mtok_usd * factor,
        )


@dataclass(frozen=True, slots=True)
class Price:
    """A model's price on a day: rates, higher rates for long prompts, and the table they come from."""

    model: str
    rates: Rates
    source: str
    long_prompt: tuple[tuple[int, Rates], ...] = ()
    known_up_to_tokens: int | None = None
    web_search_usd: Decimal | None = None
    modifiers: tuple[str, ...] = ()

    def get_rates(self, prompt_tokens: int) -> Rates | None:
        """Return the rates for a prompt of this length: above a tier's start, every token is billed at that tier."""
        if self.known_up_to_tokens is not None and prompt_tokens > self.known_up_to_tokens:
            return None
        chosen = self.rates
        for above_tokens, rates in self.long_prompt:
            if prompt_tokens > above_tokens:
                chosen = rates
        return chosen


def _row(*rates: str) -> Rates:
    return Rates(*(Decimal(rate) for rate in rates))


# input, output, 5m write, 1h write, read. Mythos has the price of the Fable of the same number (published list, and
# litellm for 5.1). Fable 5.2 is in no public table: Claude Code 2.1.325 charges these. Mythos 5.2: no price on record.
_OWN_TABLE: Mapping[str, tuple[Rates, str]] = {
    "claude-mythos-5": (_row("10", "50", "12.5", "20", "1"), "published price list"),
    "claude-mythos-5-1": (_row("10", "50", "12.5", "20", "0.25"), "published price list"),
    "claude-fable-5-2": (_row("8", "40", "10", "16", "0.20"), "Claude Code's own table"),
}
# Published: $10 per 1,000 searches, whatever the model.
_WEB_SEARCH_USD = Decimal("0.01")

# genai-prices 0.2.1 has today's $0.10 for all time; reads cost $0.20 until the price fell in October 2026.
_SONNET_5_5_READ_FELL_ON = date(2026, 10, 9)
_SONNET_5_5_OLD_READ = Decimal("0.20")

# Until this day prompts above 200k cost more on these models; the cloud platforms' own figures are not on record.
_LONG_PROMPT_PRICE_ENDED_ON = date(2026, 3, 13)
_LONG_PROMPT_MODELS = frozenset({"claude-opus-4-6", "claude-sonnet-4-6"})
_LONG_PROMPT_TOKENS = 200_000

_PROVIDERS: Mapping[Platform, str] = {
    Platform.ANTHROPIC: "anthropic",
    Platform.BEDROCK: "aws",
    Platform.VERTEX: "google",
}


NO_PRICES: Mapping[str, Price] = {}


def get_team_price(prices: Mapping[str, Price], model: str | None) -> Price | None:
    """Return a team's own price of a model, from its prices by the base names of models."""
    return prices.get(read_model_name(model).base) if prices and model else None


def get_list_price(model: str, at: datetime | None) -> Price | None:
    """Return the list price of a model at a time (None: the newest on record), or None when it is not known."""
    if len(model) > LONGEST_NAME:
        return None
    return _compute_price(model, at.astimezone(UTC).date() if at else date.max)


def get_billed_price(
    model: str, day: date, team_price: Price | None, terms: tuple[str | None, str | None, str | None]
) -> Price | None:
    """Return the price under a call's terms: service tier, speed and geography; None where one is not on record."""
    tier, speed, geo = terms
    # Only what is known goes into the cache: all of this comes from outside.
    if tier not in _KNOWN_TIERS or speed not in _KNOWN_SPEEDS or geo not in _KNOWN_GEOS or len(model) > LONGEST_NAME:
        return None
    return _scale_price(model, day, team_price, terms)


@lru_cache(maxsize=4096)
def _scale_price(
    model: str, day: date, team_price: Price | None, terms: tuple[str | None, str | None, str | None]
) -> Price | None:
    price = team_price or _compute_price(model, day)
    factors = _list_factors(read_model_name(model), *terms)
    if price is None or factors is None:
        return None
    factor = Decimal(1)
    for modifier in factors.values():
        factor *= modifier
    return replace(
        price,
        rates=price.rates.scale(factor),
        long_prompt=tuple((above, rates.scale(factor)) for above, rates in price.long_prompt),
        modifiers=tuple(f"{name} x{modifier}" for name, modifier in factors.items()),
    )


def _list_factors(name: ModelName, tier: str | None, speed: str | None, geo: str | None) -> dict[str, Decimal] | None:
    factors: dict[str, Decimal] = {}
    if tier == "batch":
        factors["batch"] = BATCH_FACTOR
    if speed == "fast":
        if name.platform is not Platform.ANTHROPIC or name.base not in FAST_FACTORS:
            return None
        factors["fast"] = FAST_FACTORS[name.base]
    # Models before 4.6 cost the same everywhere; on Bedrock the region is part of the name and of its price.
    has_us_price = name.version is not None and name.version >= FIRST_VERSION_WITH_US_ONLY_PRICE
    if geo == "us" and has_us_price and name.platform is Platform.ANTHROPIC:
        factors["US only"] = US_ONLY_FACTOR
    return factors


@lru_cache(maxsize=4096)
def _compute_price(model: str, day: date) -> Price | None:
    name = read_model_name(model)
    if name.version is None:
        return None
    if name.base in _OWN_TABLE:
        # Cloud platforms add to the price in ways that are not on record for these models.
        rates, source = _OWN_TABLE[name.base]
        if name.platform is not Platform.ANTHROPIC:
            return None
        return Price(name.base, rates, source, web_search_usd=_WEB_SEARCH_USD)
    price = _get_genai_price(name, day)
    return None if price is None else _correct_price(price, name, day)


def _correct_price(price: Price, name: ModelName, day: date) -> Price:
    is_corrected = name.base == "claude-sonnet-5-5" and name.platform is Platform.ANTHROPIC
    if is_corrected and day < _SONNET_5_5_READ_FELL_ON:
        return replace(price, rates=replace(price.rates, read_mtok_usd=_SONNET_5_5_OLD_READ))
    if name.base in _LONG_PROMPT_MODELS and day < _LONG_PROMPT_PRICE_ENDED_ON and not price.long_prompt:
        return replace(price, known_up_to_tokens=_LONG_PROMPT_TOKENS)
    return price


def _get_genai_price(name: ModelName, day: date) -> Price | None:
    # Imported here because it takes 0.3 s (0.8 s without bytecode): the hook forwarder and the status line never need
    # a price and should not wait for it.
    from genai_prices import __version__ as version  # noqa: PLC0415
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    provider = _PROVIDERS[name.platform]
    try:
        _, info = get_snapshot().find_provider_model(_format_for_provider(name), None, provider, None)
    except LookupError:
        return None
    # It matches by prefix: claude-opus-4-10 would be found as claude-opus-4-1.
    matched = read_model_name(info.id.replace("regional.", "", 1))
    if matched.base != name.base:
        return None
    return _convert_price(info, name, day, f"genai-prices {version} ({provider})")


def _format_for_provider(name: ModelName) -> str:
    dated = f"-{name.dated}" if name.dated else ""
    if name.platform is not Platform.BEDROCK:
        return name.base + dated
    region = "us" if name.is_regional else "global"
    return f"{region}.anthropic.{name.base}{dated}-v1:0"


def _convert_price(info: "ModelInfo", name: ModelName, day: date, source: str) -> Price | None:
    prices = info.get_prices(datetime.combine(day, time.min, UTC))
    fields = ("input_mtok", "output_mtok", "cache_write_mtok", "cache_write_1h_mtok", "cache_read_mtok")
    bases: list[Decimal | None] = []
    tiers: dict[int, list[Decimal | None]] = {}
    for index, field in enumerate(fields):
        value = getattr(prices, field)
        bases.append(getattr(value, "base", value))
        for tier in getattr(value, "tiers", ()):
            tiers.setdefault(tier.start, [None] * len(fields))[index] = tier.price
    rates = _build_rates(bases)
    if rates is None:
        return None
    # A bucket without a tier costs the same at every length.
    filled = [
        (start, [base if rate is None else rate for rate, base in zip(row, bases, strict=True)])
        for start, row in tiers.items()
    ]
    searches = prices.web_searches_kcount
    return Price(
        model=name.base,
        rates=rates,
        source=source,
        long_prompt=tuple((start, found) for start, row in sorted(filled) if (found := _build_rates(row)) is not None),
        # Beyond its window a model without a tier had another price that is not on record.
        known_up_to_tokens=None if tiers else info.context_window,
        web_search_usd=searches / _THOUSAND if isinstance(searches, Decimal) else None,
    )


def _build_rates(row: list[Decimal | None]) -> Rates | None:
    input_rate, output_rate, write_5m, write_1h, read = row
    if input_rate is None or output_rate is None:
        return None
    return Rates(input_rate, output_rate, write_5m, write_1h, read)
