"""The tiles of the overview: a team's numbers of today, each a link to the list it is counted from."""

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.models import Team
from dashboard.pages.fleet import Fleet, FleetNumbers, above_filters
from dashboard.pages.session_filters import ActiveWithin, SessionFilters, SortName
from dashboard.words import name_prices, say_percent, say_usd


@dataclass(frozen=True)
class Tile:
    """A number, what stands behind it, the list it is counted from, and the word of the glossary that explains it."""

    label: str
    figure: str
    detail: str
    url: str
    term: str
    style: str = ""


def list_tiles(team: Team, fleet: Fleet) -> list[Tile]:
    numbers, basis = fleet.numbers, name_prices(has_own=team.has_own_prices)
    today = SessionFilters(team=team.slug, active=ActiveWithin.TODAY)
    return [
        Tile(
            "Live sessions",
            f"{numbers.live_count:,}",
            f"{numbers.today_count:,} active today",
            list_url(SessionFilters(team=team.slug, active=ActiveWithin.LIVE)),
            "live",
        ),
        Tile(
            "Over a threshold",
            f"{numbers.above_count:,}",
            _say_nearest(numbers),
            list_url(above_filters(team)),
            "level",
            "bad" if numbers.above_count or numbers.soon_count else "",
        ),
        Tile(
            "Spend today",
            say_usd(numbers.spent_today_usd),
            _say_price(numbers, basis),
            list_url(replace(today, sort=SortName.SPEND)),
            basis,
        ),
        Tile(
            "Lost to cache breaks today",
            say_usd(numbers.lost_today_usd),
            _say_lost_share(numbers),
            _link_ledger(team, numbers),
            "cache break",
        ),
        Tile(
            "Cache hit rate today",
            "–" if numbers.hit_rate_today is None else say_percent(numbers.hit_rate_today),  # noqa: RUF001
            "no prompts yet" if numbers.hit_rate_today is None else "of all prompt tokens",
            list_url(today),
            "hit rate",
        ),
    ]


def _say_nearest(numbers: FleetNumbers) -> str:
    counts = ((numbers.past_auto_count, "past auto-compact"), (numbers.soon_count, "soon"))
    return ", ".join(f"{count:,} {words}" for count, words in counts if count) or "in the last 24 hours"


def list_url(filters: SessionFilters) -> str:
    return f"{reverse('sessions')}?{filters.query}"


def _link_ledger(team: Team, numbers: FleetNumbers) -> str:
    """The breaks of today, which sessions with breaks of any day would not be."""
    day = numbers.days[-1].day.isoformat()
    return f"{reverse('ledger')}?{urlencode({'team': team.slug, 'from': day, 'to': day})}"


def _say_price(numbers: FleetNumbers, basis: str) -> str:
    if numbers.spent_today_usd is None:
        return "no price"
    return f"{basis}, some calls unpriced" if numbers.has_unpriced_today else basis


def _say_lost_share(numbers: FleetNumbers) -> str:
    if numbers.lost_today_usd is None:
        return "no price"
    return "no spend yet" if numbers.lost_share is None else f"{say_percent(numbers.lost_share)} of spend"
