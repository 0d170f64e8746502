"""What a team's own compactions may use and spend: key, models, fork, daily cap, own prices."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from compaction.context.prices import Price, Rates, price_of
from dashboard.models import SummarizerSettings, Team

OWN_PRICE_SOURCE = "the team's own price"


@dataclass(frozen=True)
class SummarizerChoice:
    """What is in force. `model` empty: the session's own; `small_model` empty: none, the larger one writes."""

    has_key: bool = False
    model: str = ""
    small_model: str = ""
    allows_fork: bool = True
    daily_cap_usd: Decimal = Decimal(5)
    own_prices: Mapping[str, Price] = field(default_factory=dict)

    def find_price(self, model: str, at: datetime) -> Price | None:
        """The team's own price goes before every table."""
        return self.own_prices.get(model) or price_of(model, at)


def find_settings(team: Team) -> SummarizerChoice:
    """One query."""
    row = SummarizerSettings.objects.filter(team=team).first()
    if row is None:
        return SummarizerChoice()
    return SummarizerChoice(
        has_key=row.key_sealed is not None,
        model=row.model,
        small_model=row.small_model,
        allows_fork=row.allows_fork,
        daily_cap_usd=row.daily_cap_usd,
        own_prices={model: _read_price(model, rates) for model, rates in row.own_prices.items()},
    )


def _read_price(model: str, rates: list[str]) -> Price:
    return Price(model, Rates(*(Decimal(rate) for rate in rates)), OWN_PRICE_SOURCE)
