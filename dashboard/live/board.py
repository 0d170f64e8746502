"""What changed lately, read from the database once for every page that is open in this process."""

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from asgiref.sync import sync_to_async
from django.db import close_old_connections, connection

from dashboard.kept_query import KeptListQuery
from dashboard.live.wanted import Wanted
from dashboard.models import ChangeCounter, SessionChange, Team

MOST_REMEMBERED = 2000  # changed sessions of a team


@dataclass(frozen=True)
class News:
    """For one page. `is_all`: more changed than is remembered, so everything on it is to be asked for again."""

    teams: Mapping[str, int]  # how far the page knows now, by slug
    sessions: Mapping[int, int]
    is_all: bool = False

    def spell(self) -> dict[str, object]:
        return {"teams": dict(self.teams), "sessions": dict(self.sessions), "all": self.is_all}


@dataclass
class TeamChanges:
    """`complete_from`: every change after this number is in `numbers`."""

    count: int = 0
    complete_from: int = 0
    numbers: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Read:
    count: int
    changes: list[tuple[int, int]]  # session, number; the newest ones
    complete_from: int


class Board:
    """Asked at most every `pause_seconds`, however many ask."""

    def __init__(self, *, pause_seconds: float) -> None:
        self.pause_seconds = pause_seconds
        self._teams: dict[int, TeamChanges] = {}
        self._looked_at: dict[int, float] = {}
        self._looking: asyncio.Task[None] | None = None

    async def look(self, team_pks: Collection[int], *, at_once: bool = False) -> None:
        """Reads what changed, unless that was done a moment ago. Raises DatabaseError."""
        while self._looking is not None and not self._looking.done():
            if self._looking.get_loop() is not asyncio.get_running_loop():
                break  # of a loop that was stopped in the middle of it
            await asyncio.wait({self._looking})
        fresh_from = time.monotonic() - (0 if at_once else self.pause_seconds)
        stale = [pk for pk in team_pks if self._looked_at.get(pk, 0.0) <= fresh_from]
        if stale:
            self._looking = asyncio.ensure_future(self._read(stale))
            await self._looking

    async def _read(self, team_pks: list[int]) -> None:
        began_at = time.monotonic()
        known = {pk: self._teams[pk].count if pk in self._teams else None for pk in team_pks}
        found = await sync_to_async(read_changes, thread_sensitive=True)(known)
        for pk, read in found.items():
            self._take(pk, read)
        for pk in team_pks:
            self._looked_at[pk] = began_at

    def _take(self, team_pk: int, read: _Read) -> None:
        kept = self._teams.setdefault(team_pk, TeamChanges(complete_from=read.complete_from))
        if read.count < kept.count or read.complete_from > kept.count:  # another database, or a gap
            kept.numbers.clear()
            kept.complete_from = read.complete_from
        kept.count = read.count
        kept.numbers.update(read.changes)
        if len(kept.numbers) > 2 * MOST_REMEMBERED:
            newest = sorted(kept.numbers.items(), key=lambda pair: pair[1])[-MOST_REMEMBERED:]
            kept.complete_from = newest[0][1]
            kept.numbers = dict(newest)

    def find_number(self, session_pk: int, teams: Collection[Team]) -> int:
        """Of the session's last change, as far as it is remembered."""
        return max((self._numbers_of(team).get(session_pk, 0) for team in teams), default=0)

    def find_count(self, team: Team) -> int:
        return self._teams[team.pk].count if team.pk in self._teams else 0

    def find_news(self, wanted: Wanted, told: Mapping[str, int], teams: Collection[Team]) -> News | None:
        """None when there is nothing to tell. `told` is how far the page knows; only `teams` exist for it."""
        counts, sessions, is_all = dict(told), dict[int, int](), False
        for team in teams:
            since, kept = told.get(team.slug), self._teams.get(team.pk)
            if since is None or kept is None or kept.count == since:
                continue
            counts[team.slug] = kept.count
            if not kept.complete_from <= since < kept.count:
                is_all = True
            elif wanted.sessions:
                numbers = kept.numbers
                sessions |= {pk: numbers[pk] for pk in wanted.sessions if numbers.get(pk, 0) > since}
        is_news = bool(sessions) or is_all or (wanted.is_wide and counts != told)
        return News(counts, sessions, is_all) if is_news else None

    def forget(self) -> None:
        self._teams.clear()
        self._looked_at.clear()

    def _numbers_of(self, team: Team) -> Mapping[int, int]:
        return self._teams[team.pk].numbers if team.pk in self._teams else {}


_COUNTS = KeptListQuery("team_id", lambda ours: ChangeCounter.objects.filter(ours).values_list("team_id", "number"))


def read_counts(teams: Collection[Team]) -> dict[str, int]:
    """For a page that is drawn, by slug: read before the page's numbers, so that nothing falls between the two."""
    counts: dict[int, int] = dict(_COUNTS.read([team.pk for team in teams]))
    return {team.slug: counts.get(team.pk, 0) for team in teams}


def read_changes(known: Mapping[int, int | None]) -> dict[int, _Read]:
    """By team. One query while nothing changed, one more for each team that did."""
    try:
        counts = dict(ChangeCounter.objects.filter(team_id__in=known).values_list("team_id", "number"))
        return {pk: _read_team(pk, counts.get(pk, 0), before) for pk, before in known.items()}
    finally:
        if not connection.in_atomic_block:
            close_old_connections()  # no request ends here that would do it


def _read_team(team_pk: int, count: int, before: int | None) -> _Read:
    since = before if before is not None and before <= count else 0
    if since == count:
        return _Read(count, [], since)
    newest = SessionChange.objects.filter(team_id=team_pk, number__gt=since, number__lte=count).order_by("-number")
    changes = list(newest.values_list("session_id", "number")[:MOST_REMEMBERED])
    is_cut = len(changes) == MOST_REMEMBERED
    return _Read(count, changes, changes[-1][1] if is_cut else since)
