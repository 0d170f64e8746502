"""The last days on which a team had calls: what the overview shows on a day without activity."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from itertools import islice

from django.db.models import Count, Q

from dashboard import access
from dashboard.access import Actor
from dashboard.ingest.hour_sums import list_newest_hours, read_sums
from dashboard.models import LEVELS, Team

MOST_DAYS = 7
_WARNING, _AUTO = LEVELS.index("warning"), LEVELS.index("auto-compact")


@dataclass(frozen=True, slots=True)
class ActiveDays:
    """At most seven days with calls and the numbers of their sessions; hours are summed over exactly these days."""

    first: date
    last: date
    day_count: int
    session_count: int
    above_count: int
    past_auto_count: int
    soon_count: int
    spent_usd: Decimal | None  # None where no call has a price
    lost_usd: Decimal | None
    has_unpriced: bool
    hit_rate: float | None

    @property
    def label(self) -> str:
        count = f"{self.day_count} active days" if self.day_count > 1 else "active day"
        return f"Last {count}: {format_day_range(self.first, self.last)}"

    @property
    def lost_share(self) -> Decimal | None:
        return self.lost_usd / self.spent_usd if self.spent_usd and self.lost_usd is not None else None


def count_active_days(actor: Actor, team: Team, *, zone: tzinfo) -> ActiveDays | None:
    """Return the last active days of a team; None if it has no call with a time."""
    hours = list_newest_hours(access.team_hours(actor), team, limit=MOST_DAYS * 24)
    days = list(islice(dict.fromkeys(hour_at.astimezone(zone).date() for hour_at in hours), MOST_DAYS))
    if not days:
        return None
    first, last = days[-1], days[0]
    start_at = datetime.combine(first, datetime.min.time(), zone)
    until_at = datetime.combine(last + timedelta(days=1), datetime.min.time(), zone)
    counts = (
        access.sessions(actor)
        .filter(team=team, last_at__gte=start_at)
        .aggregate(
            session_count=Count("pk"),
            above_count=Count("pk", filter=Q(level_rank__gte=_WARNING)),
            past_auto_count=Count("pk", filter=Q(level_rank__gte=_AUTO)),
            soon_count=Count("pk", filter=Q(is_soon=True)),
        )
    )
    unpriced = access.sessions(actor).filter(team=team, last_at__gte=start_at, unpriced_count__gt=0)
    wanted = Q(team_id=team.pk, hour_at__gte=start_at, hour_at__lt=until_at)
    sums = read_sums(access.team_hours(actor), access.session_hours(actor), wanted)
    spent, lost, prompts, read = (sum(row[column] for row in sums) for column in range(1, 5))
    has_price = bool(spent or not prompts)
    return ActiveDays(
        first,
        last,
        len(days),
        **counts,
        spent_usd=Decimal(spent) if has_price else None,
        lost_usd=Decimal(lost) if has_price else None,
        has_unpriced=unpriced.exists(),
        hit_rate=read / prompts if prompts else None,
    )


def format_day_range(first: date, last: date) -> str:
    """Return the range as people write it: 3-14 Nov, 28 Oct - 3 Nov, 30 Dec 2025 - 2 Jan 2026."""
    if first == last:
        return f"{first.day} {first:%b}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}-{last.day} {last:%b}"
    if first.year == last.year:
        return f"{first.day} {first:%b} - {last.day} {last:%b}"
    return f"{first.day} {first:%b %Y} - {last.day} {last:%b %Y}"
