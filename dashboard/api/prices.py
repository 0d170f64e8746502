"""A team's own prices: what it entered, and what they come to where a cache rate was left empty."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from ninja import Field, Router, Schema

from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import PERSON_ONLY, Input, Problem
from dashboard.policies.changes import LONGEST_NOTE, change_policy
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.policies.own_prices import RATE_NAMES, StoredPrices, spell_rates

router = Router(tags=["policy"])


class RatesInOut(Input):
    """Dollars per million tokens. An empty cache rate uses the same multiple of input as the model's list price,
    otherwise 1.25 times (5-minute writes), 2 times (1-hour writes) and 0.1 times (reads)."""

    input: Decimal
    output: Decimal
    write_5m: Decimal | None = None
    write_1h: Decimal | None = None
    read: Decimal | None = None


class PricesOut(Schema):
    version: int = Field(description="Policy version; 0 before the first change.")
    own_prices: dict[str, RatesInOut] = Field(description="As entered, by base model name.")
    rates: dict[str, RatesInOut] = Field(description="Effective rates, with empty rates filled in.")


class PricesIn(Input):
    base_version: int = Field(ge=0, description="The version you read. A newer one is not overwritten (409).")
    own_prices: dict[str, RatesInOut] = Field(description="All prices; omitted prices are deleted.")
    note: str = Field("", max_length=LONGEST_NOTE, examples=["agreed for 2027"])


REFUSALS = {403: Problem, 404: Problem}


@router.get("/teams/{slug}/prices", summary="Get prices", response={200: PricesOut, **REFUSALS})
def read_prices(request: ApiRequest, slug: str) -> dict[str, object]:
    """The team's own prices. They take precedence over list prices, including for stored calls."""
    return _describe(find_policy(access.require_team(request.auth, slug, Act.SEE)))


@router.put(
    "/teams/{slug}/prices",
    summary="Update prices",
    response={200: PricesOut, **REFUSALS, 409: Problem, 422: Problem},
    openapi_extra=PERSON_ONLY,
)
def change_prices(request: ApiRequest, slug: str, body: PricesIn) -> dict[str, object]:
    """Replaces all prices. Stored calls and cache breaks are recalculated in the background."""
    team = access.require_team(request.auth, slug, Act.MANAGE)
    wanted = replace(find_policy(team), own_prices=spell_entered(body.own_prices))
    who = acting_user(request)
    return _describe(change_policy(team, wanted, by=who, base_version=body.base_version, note=body.note))


def spell_entered(prices: Mapping[str, RatesInOut]) -> dict[str, tuple[str, ...]]:
    """Return prices as typed texts, as policies take them."""
    return {
        model: tuple("" if rate is None else str(rate) for rate in (getattr(rates, name) for name in RATE_NAMES))
        for model, rates in prices.items()
    }


def name_rates(stored: StoredPrices) -> dict[str, dict[str, str | None]]:
    """Return stored prices with the names of their rates."""
    return {model: dict(zip(RATE_NAMES, rates, strict=True)) for model, rates in stored.items()}


def _describe(settings: TeamSettings) -> dict[str, object]:
    filled = {model: spell_rates(price) for model, price in settings.prices.items()}
    return {"version": settings.version, "own_prices": name_rates(settings.own_prices), "rates": filled}
