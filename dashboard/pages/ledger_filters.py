"""What the ledger of cache breaks is asked for: period, filters and grouping, as they stand in a URL."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from compaction.cache.causes import CAUSES, Grade
from dashboard.models import Team
from dashboard.pages.ledger import GRADES, LossFilter, find_cause_note
from dashboard.pages.periods import Period
from dashboard.pages.session_filters import LONGEST_VALUE, Chip


class GroupName(StrEnum):
    """What breaks are added up by."""

    CAUSE = "cause"
    PROJECT = "project"
    DEVELOPER = "developer"
    MODEL = "model"
    DAY = "day"


_TEXTS = ("project", "developer", "model", "cause", "evidence")
_YES = "yes"
# What a list does with minor breaks, by the value in the URL; without one it folds them.
MINOR = {"show": "shown", "only": "only"}


@dataclass(frozen=True, slots=True)
class LedgerFilters:
    """Empty values filter nothing. A ledger is one team's: its slug stands in the address where it was chosen."""

    team: Team
    period: Period
    project: str = ""
    developer: str = ""
    model: str = ""
    cause: str = ""
    evidence: str = ""
    avoidable: bool = False
    minor: str = ""
    by: GroupName = GroupName.CAUSE
    is_team_named: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str], team: Team, *, zone: tzinfo, now: datetime) -> "LedgerFilters":
        given = {name: query.get(name, "").replace("\x00", "").strip()[:LONGEST_VALUE] for name in _TEXTS}
        by = query.get("by", "")
        return cls(
            team=team,
            period=Period.read(query, zone=zone, now=now),
            project=given["project"],
            developer=given["developer"],
            model=given["model"],
            cause=given["cause"] if given["cause"] in CAUSES else "",
            evidence=given["evidence"] if given["evidence"] in set(Grade) else "",
            avoidable=query.get("avoidable") == _YES,
            minor=query.get("minor", "") if query.get("minor") in MINOR else "",
            by=GroupName(by) if by in set(GroupName) else GroupName.CAUSE,
            is_team_named=bool(query.get("team")),
        )

    @property
    def fields(self) -> dict[str, str]:
        named = {"team": self.team.slug if self.is_team_named else "", **self.period.fields}
        named |= {name: getattr(self, name) for name in _TEXTS}
        named["avoidable"] = _YES if self.avoidable else ""
        named["minor"] = self.minor
        named["by"] = "" if self.by is GroupName.CAUSE else self.by.value
        return {name: value for name, value in named.items() if value}

    @property
    def query(self) -> str:
        """As it stands behind the question mark, the same for the same filters."""
        return urlencode(self.fields)

    @property
    def narrowing(self) -> dict[str, str]:
        """What a chip takes away: all but team, usual period and grouping."""
        words = {"from": self.period.words, "evidence": GRADES[Grade(self.evidence)][0] if self.evidence else ""}
        words["cause"] = find_cause_note(self.cause).title.rstrip(".") if self.cause else ""
        words |= {"avoidable": "only", "minor": MINOR.get(self.minor, "")}
        kept = self.fields
        return {name: words.get(name, kept[name]) for name in ("from", *_TEXTS, "avoidable", "minor") if name in kept}

    @property
    def chips(self) -> list[Chip]:
        return [Chip("period" if name == "from" else name, words, self._leave_out(name))
                for name, words in self.narrowing.items()]  # fmt: skip

    @property
    def query_of_all(self) -> str:
        """Without any filter."""
        bare = LedgerFilters(self.team, Period.of_days(30, zone=self.period.zone, now=self.period.now), by=self.by)
        return replace(bare, is_team_named=self.is_team_named).query

    def days_query(self, days: int) -> str:
        return replace(self, period=Period.of_days(days, zone=self.period.zone, now=self.period.now)).query

    def group_query(self, by: GroupName) -> str:
        return replace(self, by=by).query

    def narrow_to(self, key: str) -> "LedgerFilters | None":
        """Cut to one group; None where nothing stands for it, such as a project without a name."""
        if self.by is GroupName.DAY:
            day = date.fromisoformat(key)
            period = Period.between(day, day, zone=self.period.zone, now=self.period.now)
            return replace(self, period=period)
        named: dict[str, Any] = {self.by.value: key}
        return replace(self, **named) if key else None

    @property
    def minor_query(self) -> str:
        """With minor breaks in the list."""
        return replace(self, minor="show").query

    @property
    def listed(self) -> LossFilter:
        """What the list shows: minor breaks only where the URL asks for them."""
        return self.wanted if self.minor else replace(self.wanted, is_minor=False)

    @property
    def wanted(self) -> LossFilter:
        """What is added up and exported."""
        return LossFilter(
            team=self.team.slug,
            kind="break",
            cause=self.cause,
            since=self.period.start_at,
            until=self.period.end_at,
            project=self.project,
            developer=self.developer,
            model=self.model,
            grade=self.evidence,
            is_avoidable=True if self.avoidable else None,
            is_counted=True,
            is_minor=True if self.minor == "only" else None,
        )

    def _leave_out(self, name: str) -> str:
        left_out = {"from", "to"} if name == "from" else {name}
        return urlencode({key: value for key, value in self.fields.items() if key not in left_out})
