"""The tiles of the overview: a team's numbers of today, or of its last active days on a day without activity; each a
link to the list it is counted from."""

from dataclasses import dataclass, replace
from decimal import Decimal
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.models import Team
from dashboard.pages.active_days import ActiveDays
from dashboard.pages.fleet import Fleet, FleetNumbers, above_filters, since_filters
from dashboard.pages.session_filters import ABOVE, ActiveWithin, SessionFilters, SortName
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
    if fleet.quiet_days:
        return _list_quiet_tiles(team, fleet.quiet_days, basis)
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
            _say_nearest(numbers, "in the last 24 hours"),
            list_url(above_filters(team)),
            "level",
            "bad" if numbers.above_count or numbers.soon_count else "",
        ),
        Tile(
            "Spend today",
            say_usd(numbers.spent_today_usd),
            _say_price(numbers.spent_today_usd, basis, has_unpriced=numbers.has_unpriced_today),
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
            *_say_hit_rate(numbers.hit_rate_today),
            list_url(today),
            "hit rate",
        ),
    ]


def _list_quiet_tiles(team: Team, days: ActiveDays, basis: str) -> list[Tile]:
    listed = since_filters(team, days)
    latest = replace(listed, sort=SortName.ACTIVE)
    span = {"team": team.slug, "from": days.first.isoformat(), "to": days.last.isoformat()}
    return [
        Tile("Active sessions", f"{days.session_count:,}", "none active today", list_url(latest), "live"),
        Tile(
            "Over a threshold",
            f"{days.above_count:,}",
            _say_nearest(days, "when last active"),
            list_url(replace(listed, level=ABOVE)),
            "level",
            "bad" if days.above_count or days.soon_count else "",
        ),
        Tile(
            "Spend",
            say_usd(days.spent_usd),
            _say_price(days.spent_usd, basis, has_unpriced=days.has_unpriced),
            list_url(replace(listed, sort=SortName.SPEND)),
            basis,
        ),
        Tile(
            "Lost to cache breaks",
            say_usd(days.lost_usd),
            _say_lost_share(days),
            f"{reverse('ledger')}?{urlencode(span)}",
            "cache break",
        ),
        Tile("Cache hit rate", *_say_hit_rate(days.hit_rate), list_url(latest), "hit rate"),
    ]


def _say_nearest(numbers: FleetNumbers | ActiveDays, otherwise: str) -> str:
    counts = ((numbers.past_auto_count, "past auto-compact"), (numbers.soon_count, "soon"))
    return ", ".join(f"{count:,} {words}" for count, words in counts if count) or otherwise


def _say_hit_rate(rate: float | None) -> tuple[str, str]:
    if rate is None:
        return "–", "no prompts yet"  # noqa: RUF001 (the sign for nothing to say)
    return say_percent(rate), "of all prompt tokens"


def list_url(filters: SessionFilters) -> str:
    return f"{reverse('sessions')}?{filters.query}"


def _link_ledger(team: Team, numbers: FleetNumbers) -> str:
    """The breaks of today, which sessions with breaks of any day would not be."""
    day = numbers.days[-1].day.isoformat()
    return f"{reverse('ledger')}?{urlencode({'team': team.slug, 'from': day, 'to': day})}"


def _say_price(spent_usd: Decimal | None, basis: str, *, has_unpriced: bool) -> str:
    if spent_usd is None:
        return "no price"
    return f"{basis}, some calls unpriced" if has_unpriced else basis


def _say_lost_share(numbers: FleetNumbers | ActiveDays) -> str:
    lost_usd = numbers.lost_usd if isinstance(numbers, ActiveDays) else numbers.lost_today_usd
    if lost_usd is None:
        return "no price"
    return "no spend yet" if numbers.lost_share is None else f"{say_percent(numbers.lost_share)} of spend"
