"""What a list of sessions is asked for: filters and sort, as they stand in a URL. Values nobody offers are dropped."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from urllib.parse import urlencode

from django.db.models import Q
from django.utils import timezone

from dashboard.models import LEVELS, Team
from dashboard.pages.live_state import match_live

ABOVE = "above"  # any line reached
SOON = "soon"  # a few calls or turns from the auto-compact line
LONGEST_VALUE = 200
MOST_WORDS = 8
LEAST_LETTERS = 3  # of one word at least: the index of the search knows nothing shorter
_FIRST_LINE = LEVELS.index("warning")
_FIRST_YEAR = 2000  # of days to filter by


class ActiveWithin(StrEnum):
    """How long ago something may have arrived."""

    LIVE = "live"
    HOUR = "hour"
    TODAY = "today"
    DAY = "day"
    WEEK = "week"


class SortName(StrEnum):
    """The closed list of sorts: each has its index."""

    ACTIVE = "active"
    RISK = "risk"
    LOST = "lost"
    SPEND = "spend"
    PROJECT = "project"
    DEVELOPER = "developer"
    COMPACTIONS = "compactions"
    FORECAST = "forecast"
    HIT_RATE = "hit_rate"
    WARM = "warm"


ACTIVE_WORDS = {
    ActiveWithin.LIVE: "live",
    ActiveWithin.HOUR: "in the last hour",
    ActiveWithin.TODAY: "today",
    ActiveWithin.DAY: "in the last 24 hours",
    ActiveWithin.WEEK: "in the last 7 days",
}
SORT_WORDS = {
    SortName.ACTIVE: "last active",
    SortName.RISK: "risk",
    SortName.LOST: "lost to cache breaks",
    SortName.SPEND: "spend",
    SortName.PROJECT: "project",
    SortName.DEVELOPER: "developer",
    SortName.COMPACTIONS: "compactions",
    SortName.FORECAST: "until auto-compact",
    SortName.HIT_RATE: "hit rate",
    SortName.WARM: "cache warm",
}
# What a list in this order says of itself: as it is by itself, and the other way round.
ORDER_WORDS = {
    SortName.ACTIVE: ("newest first", "oldest first"),
    SortName.RISK: ("closest to a threshold first", "furthest from a threshold first"),
    SortName.LOST: ("highest loss first", "lowest loss first"),
    SortName.SPEND: ("highest spend first", "lowest spend first"),
    SortName.PROJECT: ("by project, A to Z", "by project, Z to A"),
    SortName.DEVELOPER: ("by developer, A to Z", "by developer, Z to A"),
    SortName.COMPACTIONS: ("most compactions first", "fewest compactions first"),
    SortName.FORECAST: ("fewest calls until auto-compact first", "most calls until auto-compact first"),
    SortName.HIT_RATE: ("highest hit rate first", "lowest hit rate first"),
    SortName.WARM: ("cache warm longest first", "cache cold longest first"),
}
# A to Z, and the fewest calls; all others begin with the most.
RISING = frozenset({SortName.PROJECT, SortName.DEVELOPER, SortName.FORECAST})
_REVERSED = "_reversed"
LEVEL_CHOICES = (ABOVE, SOON, *reversed(LEVELS))
LEVEL_WORDS = {ABOVE: "over a threshold", SOON: "close to auto-compact"} | {
    level: "unknown" if level == "not known" else level for level in LEVELS
}


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter in force; the query is the list without it."""

    label: str
    value: str
    query_without: str


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """Empty values filter nothing. `team` is a slug; chips show its name, where it is given."""

    text: str = ""
    team: str = ""
    project: str = ""
    model: str = ""
    developer: str = ""
    level: str = ""
    active: str = ""
    has_breaks: bool = False
    sort: SortName = SortName.ACTIVE
    team_name: str = ""
    since: str = ""  # a day, such as 2026-05-10: active on it or after it
    is_reversed: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "SessionFilters":
        given = {name: _clean(query.get(name, "")) for name in (*_TEXTS, "level", "active", "sort")}
        sort, is_reversed = given["sort"].removesuffix(_REVERSED), given["sort"].endswith(_REVERSED)
        is_sort = sort in SORT_WORDS
        return cls(
            **{name: given[name] for name in _TEXTS},
            level=given["level"] if given["level"] in LEVEL_CHOICES else "",
            active=given["active"] if given["active"] in ACTIVE_WORDS else "",
            has_breaks=query.get("breaks") == "yes",
            sort=SortName(sort) if is_sort else SortName.ACTIVE,
            since=_read_day(query.get("since", "")),
            is_reversed=is_sort and is_reversed,
        )

    @property
    def query(self) -> str:
        """As it stands behind the question mark, the same for the same filters."""
        return urlencode(self.fields)

    @property
    def fields(self) -> dict[str, str]:
        named = {name: getattr(self, name) for name in (*_TEXTS, "level", "active", "since")}
        named["breaks"] = "yes" if self.has_breaks else ""
        named["sort"] = "" if self.sort is SortName.ACTIVE and not self.is_reversed else self.sort_value
        return {name: value for name, value in named.items() if value}

    @property
    def is_searching(self) -> bool:
        return is_searchable(self.text)

    @property
    def sort_value(self) -> str:
        """As it stands in the address."""
        return f"{self.sort.value}{_REVERSED if self.is_reversed else ''}"

    @property
    def order_words(self) -> str:
        return ORDER_WORDS[self.sort][self.is_reversed]

    @property
    def is_rising(self) -> bool:
        return (self.sort in RISING) is not self.is_reversed

    def sort_query(self, sort: SortName) -> str:
        """The query of a column's heading: the sort of the column, or the other way round where it has that sort."""
        return replace(self, sort=sort, is_reversed=self.sort is sort and not self.is_reversed).query

    def name_team(self, teams: Iterable[Team]) -> "SessionFilters":
        """With the name of the team, if it is one of these."""
        name = next((team.name for team in teams if team.slug == self.team), "")
        return replace(self, team_name=name) if name else self

    @property
    def chips(self) -> list[Chip]:
        names = {"team": self.team_name} if self.team_name else {}
        shown = [(name, name, names.get(name) or getattr(self, name)) for name in _TEXTS[1:] if getattr(self, name)]
        if self.is_searching:
            shown.insert(0, ("text", "contains", self.text))
        if self.level:
            shown.append(("level", "level", LEVEL_WORDS[self.level]))
        if self.active:
            shown.append(("active", "active", ACTIVE_WORDS[ActiveWithin(self.active)]))
        if self.since:
            shown.append(("since", "active since", format_day(date.fromisoformat(self.since))))
        if self.has_breaks:
            shown.append(("breaks", "cache breaks", "one or more"))
        fields = self.fields
        return [
            Chip(label, value, urlencode({key: text for key, text in fields.items() if key != name}))
            for name, label, value in shown
        ]

    def match_columns(self, now: datetime) -> Q:
        """All but team and text; answered by the index session_by_filter alone, but for the few that are live."""
        wanted = Q(**{name: getattr(self, name) for name in ("project", "model", "developer") if getattr(self, name)})
        if self.level == ABOVE:
            wanted &= Q(level_rank__gte=_FIRST_LINE)
        elif self.level == SOON:
            wanted &= Q(is_soon=True)
        elif self.level:
            wanted &= Q(level_rank=LEVELS.index(self.level))
        if self.active == ActiveWithin.LIVE:
            wanted &= match_live(now)
        elif self.active:
            wanted &= Q(last_at__gte=find_start(ActiveWithin(self.active), now))
        if self.since:
            midnight = datetime.combine(date.fromisoformat(self.since), time())
            wanted &= Q(last_at__gte=timezone.make_aware(midnight))
        return wanted & Q(break_count__gt=0) if self.has_breaks else wanted


_TEXTS = ("text", "team", "project", "model", "developer")
_LENGTHS = {ActiveWithin.HOUR: timedelta(hours=1), ActiveWithin.DAY: timedelta(days=1)}


def find_start(within: ActiveWithin, now: datetime) -> datetime:
    """Today begins at midnight of the person's time zone."""
    if within is ActiveWithin.TODAY:
        return timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    return now - _LENGTHS.get(within, timedelta(days=7))


def format_day(day: date) -> str:
    return f"{day.day} {day:%b %Y}"


def _read_day(text: str) -> str:
    """Empty for what is no day that a database can compare."""
    try:
        day = date.fromisoformat(text[:20])
    except ValueError:
        return ""
    return day.isoformat() if day.year >= _FIRST_YEAR else ""


def is_searchable(text: str) -> bool:
    return any(len(word) >= LEAST_LETTERS for word in text.split()[:MOST_WORDS])


def _clean(text: str) -> str:
    return text.replace("\x00", "").strip()[:LONGEST_VALUE]
