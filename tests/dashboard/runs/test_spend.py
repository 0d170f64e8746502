"""The day's cap: held before, settled after, and never passed however many come at once."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connections

from dashboard.models import DaySpend, Team
from dashboard.runs.spend import CapReached, read_spend, reserve, settle
from tests.builders import make_team

NOON = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
CAP = Decimal(5)


@pytest.fixture
def team(db: None) -> Team:
    return make_team("Harbour", owner="alice")


def test_refusal_carries_the_numbers(team: Team) -> None:
    reserve(team, Decimal("3.5"), CAP, now=NOON)
    settle(team, now=NOON, released_usd=Decimal("1.5"), spent_usd=Decimal("1.25"))
    with pytest.raises(CapReached) as refused:
        reserve(team, Decimal("1.76"), CAP, now=NOON)
    assert refused.value.figures == {
        "cap_usd": CAP,
        "spent_usd": Decimal("1.25"),
        "reserved_usd": Decimal(2),
        "wanted_usd": Decimal("1.76"),
    }
    assert "$5.00 a day (UTC), of which $1.25 is spent and $2.00 is held back" in refused.value.sentence
    reserve(team, Decimal("1.75"), CAP, now=NOON)  # to the cent
    assert read_spend(team, NOON).taken_usd == CAP


def test_days_are_utc_days(team: Team) -> None:
    reserve(team, CAP, CAP, now=datetime(2026, 11, 16, 23, 59, tzinfo=UTC))
    reserve(team, CAP, CAP, now=datetime(2026, 11, 17, 0, 0, tzinfo=UTC))
    late_in_lisbon = (NOON + timedelta(hours=12)).astimezone(UTC)
    assert read_spend(team, late_in_lisbon).reserved_usd == CAP
    assert DaySpend.objects.count() == 2


def test_nothing_is_held_for_what_costs_nothing(team: Team) -> None:
    reserve(team, Decimal(0), Decimal(0), now=NOON)
    assert not DaySpend.objects.exists()


def test_many_small_sums_leave_no_residue(team: Team) -> None:
    """SQLite adds dollars as floats."""
    for _ in range(30):
        reserve(team, Decimal("0.1"), Decimal(3), now=NOON)
    for _ in range(30):
        settle(team, now=NOON, released_usd=Decimal("0.1"), spent_usd=Decimal("0.07"))
    found = read_spend(team, NOON)
    assert (found.reserved_usd, found.spent_usd) == (Decimal(0), Decimal("2.1"))


def test_more_may_be_paid_than_was_held(team: Team) -> None:
    reserve(team, Decimal(1), CAP, now=NOON)
    settle(team, now=NOON, released_usd=Decimal(1), spent_usd=Decimal("1.2"))
    found = read_spend(team, NOON)
    assert (found.reserved_usd, found.spent_usd) == (Decimal(0), Decimal("1.2"))


@pytest.mark.django_db(transaction=True)
def test_twenty_at_once_take_what_the_cap_holds_and_no_more() -> None:
    team = make_team("Harbour", owner="alice")

    def take(_number: int) -> bool:
        try:
            reserve(team, Decimal("0.75"), CAP, now=NOON)
        except CapReached:
            return False
        finally:
            connections.close_all()
        return True

    with ThreadPoolExecutor(20) as pool:
        taken = sum(pool.map(take, range(20)))
    assert taken == 6
    assert read_spend(team, NOON).reserved_usd == Decimal("4.5")
