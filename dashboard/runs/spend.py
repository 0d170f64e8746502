"""A team's money for its own compactions, by UTC day: held back before a call, settled after it, never above the cap.

Every change is one conditional update of one row: whoever comes second sees what the first one took.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from django.db.models import DecimalField, F, Func, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest, Round

from dashboard.models import DaySpend, Team
from dashboard.runs.choices import RunRefused

_PLACES = 8  # of every dollar column
NOTHING = Decimal(0)


@dataclass(frozen=True)
class Spend:
    """One day of a team."""

    day: date
    spent_usd: Decimal
    reserved_usd: Decimal

    @property
    def taken_usd(self) -> Decimal:
        return self.spent_usd + self.reserved_usd


class CapReached(RunRefused):
    """The day's cap leaves no room; the figures say by how much."""

    def __init__(self, spend: Spend, *, cap_usd: Decimal, wanted_usd: Decimal) -> None:
        held = f" and ${spend.reserved_usd:.2f} is held back for runs under way" if spend.reserved_usd else ""
        super().__init__(
            "cap_reached",
            f"This may cost up to ${wanted_usd:.2f}. The team's cap is ${cap_usd:.2f} a day (UTC), of which "
            f"${spend.spent_usd:.2f} is spent{held}. Wait for the next day, choose a smaller model, "
            "or have an admin raise the cap.",
            cap_usd=cap_usd,
            spent_usd=spend.spent_usd,
            reserved_usd=spend.reserved_usd,
            wanted_usd=wanted_usd,
        )


def find_day(at: datetime) -> date:
    return at.astimezone(UTC).date()


def read_spend(team: Team, now: datetime) -> Spend:
    """The UTC day of this moment."""
    day = find_day(now)
    row = DaySpend.objects.filter(team=team, day=day).first()
    return Spend(day, row.spent_usd, row.reserved_usd) if row else Spend(day, NOTHING, NOTHING)


def reserve(team: Team, amount_usd: Decimal, cap_usd: Decimal, *, now: datetime) -> None:
    """Hold this much of the day back, or raise CapReached with the figures. Nothing is written for nothing."""
    if amount_usd <= 0:
        return
    row, _ = DaySpend.objects.get_or_create(team=team, day=find_day(now))
    taken = _round(F("spent_usd") + F("reserved_usd") + Value(amount_usd))
    free = DaySpend.objects.annotate(taken=taken).filter(pk=row.pk, taken__lte=cap_usd)
    if not free.update(reserved_usd=_round(F("reserved_usd") + Value(amount_usd))):
        raise CapReached(read_spend(team, now), cap_usd=cap_usd, wanted_usd=amount_usd)


def settle(team: Team, *, now: datetime, released_usd: Decimal, spent_usd: Decimal = NOTHING) -> None:
    """Give back what was held, and note what was paid of it: it may be more, where an estimate was too low."""
    if not released_usd and not spent_usd:
        return
    row, _ = DaySpend.objects.get_or_create(team=team, day=find_day(now))
    left = Greatest(_round(F("reserved_usd") - Value(released_usd)), Value(NOTHING), output_field=_dollars())
    DaySpend.objects.filter(pk=row.pk).update(reserved_usd=left, spent_usd=_round(F("spent_usd") + Value(spent_usd)))


def _round(sum_usd: Combinable) -> Func:
    """SQLite adds dollars as floats: without this, twenty additions and twenty subtractions leave a residue."""
    return Round(sum_usd, precision=_PLACES, output_field=_dollars())


def _dollars() -> "DecimalField[Decimal, Decimal]":
    return DecimalField(max_digits=18, decimal_places=_PLACES)
