"""Filters of the page Compactions: period, kind, retained and so on, as they stand in a URL."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from enum import StrEnum
from urllib.parse import urlencode

from dashboard.models import CompactionKind, Team
from dashboard.pages.periods import Period
from dashboard.pages.session_filters import LONGEST_VALUE, Chip


class Performer(StrEnum):
    """Who compacted."""

    CLIENT = "client"
    PLIMSOLL = "plimsoll"


class RetainedBand(StrEnum):
    """Compactions by the percentage that they retained."""

    BELOW_60 = "below_60"
    FROM_60_TO_80 = "60_to_80"
    FROM_80 = "80_or_more"
    NOT_MEASURED = "not_measured"


LOW_PERCENT, HIGH_PERCENT = 60, 80
# The lower end and the end that is left out, in percent.
BAND_PERCENTS: Mapping[RetainedBand, tuple[int, int]] = {
    RetainedBand.BELOW_60: (0, LOW_PERCENT),
    RetainedBand.FROM_60_TO_80: (LOW_PERCENT, HIGH_PERCENT),
    RetainedBand.FROM_80: (HIGH_PERCENT, 101),
}
ALL_KINDS = "all"
UNKNOWN = "unknown"  # a trigger that was not recorded

# The choices of each filter with their labels; an empty value filters nothing.
CHOICES: Mapping[str, Mapping[str, str]] = {
    "retained": {
        RetainedBand.BELOW_60: "below 60%",
        RetainedBand.FROM_60_TO_80: "60% to 80%",
        RetainedBand.FROM_80: "80% and more",
        RetainedBand.NOT_MEASURED: "not measured",
    },
    "trigger": {
        "auto": "auto",
        "manual": "manual",
        "autonomous": "autonomous",
        "api": "context editing",
        UNKNOWN: "not recorded",
    },
    "by": {Performer.CLIENT: "the client", Performer.PLIMSOLL: "Plimsoll"},
    "mid_task": {"yes": "mid-task", "no": "between tasks", UNKNOWN: "not known"},
    "agent": {"claude_code": "Claude Code", "other": "another agent"},
    "kind": {CompactionKind.MICRO: "micro-compactions", CompactionKind.FAILED: "failed", ALL_KINDS: "all kinds"},
}
_TEXTS = ("project", "developer")
_LABELS = {"from": "period", "mid_task": "mid-task"}


@dataclass(frozen=True, slots=True)
class CompactionFilters:
    """Empty values filter nothing, but without a kind only full compactions are listed."""

    team: Team
    period: Period
    retained: str = ""
    trigger: str = ""
    by: str = ""
    mid_task: str = ""
    agent: str = ""
    kind: str = ""
    project: str = ""
    developer: str = ""
    is_team_named: bool = False

    @classmethod
    def parse(cls, query: Mapping[str, str], team: Team, *, zone: tzinfo, now: datetime) -> "CompactionFilters":
        """Ignores values that no filter offers."""
        chosen = {name: value for name in CHOICES if (value := query.get(name, "")) in CHOICES[name]}
        texts = {name: query.get(name, "").replace("\x00", "").strip()[:LONGEST_VALUE] for name in _TEXTS}
        period = Period.read(query, zone=zone, now=now)
        return cls(team=team, period=period, is_team_named=bool(query.get("team")), **chosen, **texts)

    @property
    def fields(self) -> dict[str, str]:
        """Names and values as they stand in a URL."""
        named = {"team": self.team.slug if self.is_team_named else "", **self.period.fields}
        named |= {name: str(getattr(self, name)) for name in (*_TEXTS, *CHOICES)}
        return {name: value for name, value in named.items() if value}

    @property
    def query(self) -> str:
        """The canonical query string: the same for the same filters."""
        return urlencode(self.fields)

    @property
    def chips(self) -> list[Chip]:
        """The filters in force, but for the team and the usual period."""
        labels = {"from": self.period.words}
        fields = self.fields
        return [
            Chip(
                _LABELS.get(name, name),
                labels.get(name) or CHOICES.get(name, {}).get(value, value),
                self._build_query_without(name),
            )
            for name in ("from", *_TEXTS, *CHOICES)
            if (value := fields.get(name))
        ]

    @property
    def query_of_all(self) -> str:
        """The query string without any filter."""
        usual = Period.of_days(30, zone=self.period.zone, now=self.period.now)
        return CompactionFilters(self.team, usual, is_team_named=self.is_team_named).query

    def build_days_query(self, days: int) -> str:
        return replace(self, period=Period.of_days(days, zone=self.period.zone, now=self.period.now)).query

    @property
    def kinds(self) -> tuple[CompactionKind, ...]:
        return tuple(CompactionKind) if self.kind == ALL_KINDS else (CompactionKind(self.kind or CompactionKind.FULL),)

    def includes(self, performer: Performer) -> bool:
        """Return whether compactions by the client or by Plimsoll can match."""
        return not self.by or self.by == performer

    def _build_query_without(self, name: str) -> str:
        removed = {"from", "to"} if name == "from" else {name}
        return urlencode({key: value for key, value in self.fields.items() if key not in removed})
