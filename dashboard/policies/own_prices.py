"""A team's own prices: what agreed rates make of calls, breaks and runs, checked and spelled as policies store them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from compaction.errors import BadPolicy
from compaction.llm.names import LONGEST_NAME, read_model_name
from compaction.llm.prices import Price, Rates, get_list_price

OWN_PRICE_SOURCE = "the team's own price"
FILLED_PRICE_SOURCE = "the team's own price, with empty cache rates as multiples of input"
LARGEST_RATE_USD = Decimal(10_000)  # per million tokens
MOST_PRICES = 50
RATE_NAMES = ("input", "output", "write_5m", "write_1h", "read")
NEEDED_RATES = 2  # a price without input or output is none
# What a cache rate is of the input rate where neither the team nor the list says.
USUAL_MULTIPLES: Mapping[str, Decimal] = {"write_5m": Decimal("1.25"), "write_1h": Decimal(2), "read": Decimal("0.1")}

_SMALLEST_USD = Decimal("0.000001")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?", re.ASCII)
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
    named: dict[str, str] = {}  # base name -> the first name of it
    for model, rates in typed.items():
        if not is_model_name(model):
            sentence = f"{model[:60]} is not a model name." if model else "Enter the model's name."
            yield PriceFault("model", sentence, model)
        elif (first := named.setdefault(read_model_name(model).base, model)) != model:
            yield PriceFault("model", f"{first} and {model} are the same model. Remove one of them.", model)
        for place, (name, rate) in enumerate(zip(RATE_NAMES, rates, strict=True)):
            if not rate:
                if place < NEEDED_RATES:
                    yield PriceFault(name, "Enter dollars per million tokens.", model)
                continue
            figure = read_usd(rate)
            if figure is None or figure > LARGEST_RATE_USD:
                expected = f"Enter a number of dollars from 0 to {LARGEST_RATE_USD:,}."
                yield PriceFault(name, explain_bad_usd(rate, expected), model)


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
    """Return prices as `get_team_price` takes them, empty cache rates filled with multiples of the input rate."""
    return {model: _read_price(model, rates) for model, rates in stored.items()}


def spell_rates(price: Price) -> dict[str, str]:
    """Return the rates of a price by name, empty where there is none."""
    rates = price.rates
    cached = (rates.write_5m_mtok_usd, rates.write_1h_mtok_usd, rates.read_mtok_usd)
    figures = (rates.input_mtok_usd, rates.output_mtok_usd, *cached)
    return {name: "" if rate is None else spell_usd(rate) for name, rate in zip(RATE_NAMES, figures, strict=True)}


def spell_usd(figure: Decimal) -> str:
    return f"{figure.normalize():f}"


def find_list_price(model: str) -> Price | None:
    """Return the newest list price of the model that a team's own price is for."""
    return get_list_price(read_model_name(model).base, None)


def find_multiples(model: str) -> dict[str, Decimal]:
    """Return what each cache rate is of the input rate: as on the list price of the model, else the usual multiples."""
    listed = find_list_price(model)
    if listed is None or not listed.rates.input_mtok_usd:
        return dict(USUAL_MULTIPLES)
    rates = listed.rates
    cached = {"write_5m": rates.write_5m_mtok_usd, "write_1h": rates.write_1h_mtok_usd, "read": rates.read_mtok_usd}
    return {
        name: USUAL_MULTIPLES[name] if rate is None else rate / rates.input_mtok_usd for name, rate in cached.items()
    }


def take_multiple(input_usd: Decimal, multiple: Decimal) -> Decimal:
    """Return a cache rate that was left empty."""
    return (input_usd * multiple).quantize(_SMALLEST_USD)


def describe_price(rates: Sequence[str | None] | None) -> str:
    """Describe a stored price in the history of a policy."""
    if rates is None:
        return "list price"
    named = zip(RATE_NAMES, rates, strict=True)
    words = [f"{name.replace('_', ' ')} ${rate}" for name, rate in named if rate is not None]
    return ", ".join([*words, "the rest as multiples of input"] if None in rates else words)


def is_model_name(model: str) -> bool:
    return len(model) <= LONGEST_NAME and _MODEL.fullmatch(model) is not None


def read_usd(text: str) -> Decimal | None:
    """Return dollars as people write them; None for what is no number from 0 on."""
    plain = text.strip().removeprefix("$")
    if _has_misplaced_comma(plain):
        return None
    try:
        figure = Decimal(plain.replace(",", ""))
    except InvalidOperation:
        return None
    return figure if figure.is_finite() and figure >= 0 else None


def explain_bad_usd(text: str, expected: str) -> str:
    """Return the sentence for dollars that cannot be used: what was expected, unless a comma is the reason."""
    if _has_misplaced_comma(text.strip().removeprefix("$")):
        return "Use a point for decimals, as in 1.5. Commas only separate thousands, as in 1,500."
    return expected


def _has_misplaced_comma(text: str) -> bool:
    """Return whether a comma may be meant for the decimal point."""
    return "," in text and _THOUSANDS.fullmatch(text) is None


def _spell_rate(rate: str) -> str | None:
    figure = read_usd(rate)
    return None if figure is None else spell_usd(figure)


def _read_price(model: str, rates: Sequence[str | None]) -> Price:
    """Return a stored price without holes: an empty cache rate would leave calls that use it without any cost."""
    given = {name: Decimal(rate) for name, rate in zip(RATE_NAMES, rates, strict=True) if rate is not None}
    if "input" not in given or "output" not in given:
        raise ValueError(f"the price of {model} has no input or output rate")
    if len(given) == len(RATE_NAMES):
        return Price(model, Rates(*(given[name] for name in RATE_NAMES)), OWN_PRICE_SOURCE)
    filled = {name: take_multiple(given["input"], multiple) for name, multiple in find_multiples(model).items()} | given
    return Price(model, Rates(*(filled[name] for name in RATE_NAMES)), FILLED_PRICE_SOURCE)
