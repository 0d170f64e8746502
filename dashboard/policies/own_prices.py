"""A team's own prices: what agreed rates make of calls, breaks and runs, checked and spelled as policies store them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from compaction.errors import BadPolicy
from compaction.llm.names import LONGEST_NAME, read_model_name
from compaction.llm.prices import Price, Rates

OWN_PRICE_SOURCE = "the team's own price"
LARGEST_RATE_USD = Decimal(10_000)  # per million tokens
MOST_PRICES = 50
RATE_NAMES = ("input", "output", "write_5m", "write_1h", "read")
NEEDED_RATES = 2  # a price without input or output is none

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/\[\]-]*", re.ASCII)

TypedPrices = Mapping[str, Sequence[str]]  # model -> rates as typed, in the order of RATE_NAMES; empty: none
StoredPrices = Mapping[str, Sequence[str | None]]  # base name of a model -> rates


@dataclass(frozen=True)
class PriceFault:
    """A value that cannot be used: the field to mark, a sentence, and the model where it is of one."""

    field: str
    sentence: str
    model: str = ""


def find_price_faults(typed: TypedPrices) -> Iterator[PriceFault]:
    """Yield everything that is wrong, so that a person can correct it at once."""
    if len(typed) > MOST_PRICES:
        yield PriceFault("own_prices", f"At most {MOST_PRICES} prices, not {len(typed)}.")
    for model, rates in typed.items():
        if not is_model_name(model):
            sentence = f"{model[:60]} is not the name of a model." if model else "Name the model."
            yield PriceFault("model", sentence, model)
        for place, (name, rate) in enumerate(zip(RATE_NAMES, rates, strict=True)):
            if not rate:
                if place < NEEDED_RATES:
                    yield PriceFault(name, "Enter dollars per million tokens.", model)
                continue
            figure = read_usd(rate)
            if figure is None or figure > LARGEST_RATE_USD:
                yield PriceFault(name, f"A number of dollars from 0 to {LARGEST_RATE_USD:,}.", model)


def clean_prices(typed: Mapping[str, Sequence[str | None]]) -> dict[str, list[str | None]]:
    """Return prices as they are stored. Raises BadPolicy for the first that cannot be used."""
    given = {model: [rate or "" for rate in rates] for model, rates in typed.items()}
    fault = next(find_price_faults(given), None)
    if fault is not None:
        raise BadPolicy(
            "own_prices", f"{fault.model}, {fault.field}: {fault.sentence}" if fault.model else fault.sentence
        )
    return {
        read_model_name(model).base: [_spell_rate(rate) for rate in rates] for model, rates in sorted(given.items())
    }


def read_prices(stored: StoredPrices) -> dict[str, Price]:
    """Return prices as `find_team_price` takes them."""
    return {model: _read_price(model, rates) for model, rates in stored.items()}


def spell_rates(price: Price) -> dict[str, str]:
    """Return the rates of a price by name, empty where there is none."""
    rates = price.rates
    figures = (
        rates.input_mtok_usd,
        rates.output_mtok_usd,
        rates.write_5m_mtok_usd,
        rates.write_1h_mtok_usd,
        rates.read_mtok_usd,
    )
    return {name: "" if rate is None else f"{rate:f}" for name, rate in zip(RATE_NAMES, figures, strict=True)}


def describe_price(rates: Sequence[str | None] | None) -> str:
    """Describe a stored price in the history of a policy."""
    if rates is None:
        return "list price"
    named = zip(RATE_NAMES, rates, strict=True)
    return ", ".join(f"{name.replace('_', ' ')} ${rate}" for name, rate in named if rate is not None)


def is_model_name(model: str) -> bool:
    return len(model) <= LONGEST_NAME and _MODEL.fullmatch(model) is not None


def read_usd(text: str) -> Decimal | None:
    """Return dollars as people write them; None for what is no number from 0 on."""
    try:
        figure = Decimal(text.strip().removeprefix("$").replace(",", ""))
    except InvalidOperation:
        return None
    return figure if figure.is_finite() and figure >= 0 else None


def _spell_rate(rate: str) -> str | None:
    figure = read_usd(rate)
    return None if figure is None else f"{figure.normalize():f}"


def _read_price(model: str, rates: Sequence[str | None]) -> Price:
    input_rate, output_rate, *cached = (None if rate is None else Decimal(rate) for rate in rates)
    if input_rate is None or output_rate is None:
        raise ValueError(f"the price of {model} has no input or output rate")
    return Price(model, Rates(input_rate, output_rate, *cached), OWN_PRICE_SOURCE)
