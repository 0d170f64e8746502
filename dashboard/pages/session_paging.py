"""Pages of sessions by place instead of number: as quick at any depth, and steady while sessions come and change.

A place is the values a session is sorted by. Few matches are found first and then sorted; many are walked in the order
of the sort's index, of which only as much is read as a page takes.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache, reduce
from operator import attrgetter, or_
from typing import Any

from django.db import connection
from django.db.models import OrderBy, Q, QuerySet
from django.db.models.functions import Coalesce

from dashboard import access
from dashboard.access import Actor
from dashboard.kept_query import Open
from dashboard.models import AgentSession
from dashboard.pages.listed_session import ListedSession, ListQuery, read_listed, write_query
from dashboard.pages.session_filters import SessionFilters, SortName
from dashboard.pages.session_search import TextSearch

FEW = 1000  # matches that are found first and then sorted
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_USD_DIGITS = 8
_PART = "(-?[0-9]{1,18}|n|x([0-9a-f]{2}){0,1600})"  # a number, nothing, or a text in hexadecimal UTF-8
_PLACE = re.compile(rf"{_PART}(\.{_PART})*", re.ASCII)

Place = tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    is_falling: bool = True
    is_text: bool = False  # never missing; its order is the database's own, which Python does not know
    is_optional: bool = False  # of a first column: sessions without a value come last, in both directions

    def encode(self, value: object) -> int | str | None:
        """As a whole number or a text, so that a place can be written into a URL and compared."""
        if isinstance(value, datetime):
            return (value - _EPOCH) // timedelta(microseconds=1)
        if isinstance(value, Decimal):
            return int(value.scaleb(_USD_DIGITS))
        return value if isinstance(value, int | str) else None

    def parse(self, part: str) -> int | str | None:
        """Return a part of a written place. Raises ValueError for one that this column cannot have."""
        if part.startswith("x") is not self.is_text:
            raise ValueError(part)
        if self.is_text:
            text = bytes.fromhex(part[1:]).decode()
            if "\x00" in text:
                raise ValueError(part)
            return text
        return None if part == "n" else int(part)

    def decode(self, number: int | str | None) -> object:
        if number is None or isinstance(number, str):
            return number
        if self.name.endswith(("_at", "_until")):
            return _EPOCH + timedelta(microseconds=number)
        return Decimal(number).scaleb(-_USD_DIGITS) if self.name.endswith("_usd") else number

    def beyond(self, number: int | str | None, *, forwards: bool) -> Q | None:
        """What comes after this value; nothing comes after or before a missing one, which stands alone in its rank."""
        if number is None:
            return None
        comparison = "lt" if self.is_falling is forwards else "gt"
        return Q(**{f"{self.name}__{comparison}": self.decode(number)})

    def same(self, number: int | str | None) -> Q:
        return Q(**{f"{self.name}__isnull": True}) if number is None else Q(**{self.name: self.decode(number)})

    def given(self) -> Q:
        """Every session that has a value here."""
        return Q(**{f"{self.name}__isnull": False})


_ID = Column("id")
SORTS: dict[SortName, tuple[Column, ...]] = {
    SortName.ACTIVE: (Column("last_at"), _ID),
    SortName.RISK: (Column("risk_rank"), Column("percent_left", is_falling=False), _ID),
    SortName.LOST: (Column("lost_usd"), _ID),
    SortName.SPEND: (Column("spent_usd"), _ID),
    SortName.PROJECT: (Column("project", is_falling=False, is_text=True), Column("last_at"), _ID),
    SortName.DEVELOPER: (Column("developer", is_falling=False, is_text=True), Column("last_at"), _ID),
    SortName.COMPACTIONS: (Column("compaction_count"), _ID),
    SortName.FORECAST: (Column("calls_left", is_falling=False, is_optional=True), _ID),
    SortName.HIT_RATE: (Column("hit_rate_ppm", is_optional=True), _ID),
    SortName.WARM: (Column("warm_until", is_optional=True), _ID),
}


def find_columns(filters: SessionFilters) -> tuple[Column, ...]:
    """Return what a list is sorted by; reversed, an index is walked from its other end."""
    columns = SORTS[filters.sort]
    if not filters.is_reversed:
        return columns
    return tuple(replace(column, is_falling=not column.is_falling) for column in columns)


class BadPlace(Exception):
    """Not a place of this sort."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins (`forwards`) or ends, that place itself left out."""

    place: Place
    forwards: bool = True

    @classmethod
    def read(cls, text: str, sort: SortName, *, forwards: bool) -> "Cursor":
        if not _PLACE.fullmatch(text):
            raise BadPlace(text)
        columns, parts = SORTS[sort], text.split(".")
        if len(parts) != len(columns):
            raise BadPlace(text)
        try:
            place = tuple(column.parse(part) for column, part in zip(columns, parts, strict=True))
            for column, number in zip(columns, place, strict=True):
                column.decode(number)
        except (OverflowError, ValueError) as error:
            raise BadPlace(text) from error
        return cls(place, forwards)


@dataclass(frozen=True, slots=True)
class Page:
    """`before` and `after` are places as text, empty where the list ends. `total` is known of few matches."""

    sessions: tuple[ListedSession, ...]
    before: str
    after: str
    total: int | None = None


@dataclass(frozen=True)
class SessionList:
    """Sessions of these teams that the actor may see, as filters and search cut them."""

    actor: Actor
    team_ids: Sequence[int]
    filters: SessionFilters
    search: TextSearch | None
    now: datetime

    def find_page(self, size: int, cursor: Cursor | None = None) -> Page:
        columns = find_columns(self.filters)
        forwards = cursor is None or cursor.forwards
        few, total = self._find_few()
        if few is None:
            found = self._read_walk(columns, size + 1, cursor)
        else:
            order = _find_own_order(columns, forwards=forwards)
            found = read_listed(self._pick(columns, size + 1, cursor, few), order=order) if total else []
        _sort(found, columns, forwards=forwards)
        has_more, kept = len(found) > size, found[:size]
        if not forwards:
            kept = kept[::-1]
        goes_back = cursor is not None if forwards else has_more
        goes_on = has_more if forwards else True
        first, last = (spell_place(columns, kept[0]), spell_place(columns, kept[-1])) if kept else ("", "")
        return Page(tuple(kept), first if goes_back else "", last if goes_on else "", total)

    @property
    def visible(self) -> QuerySet[AgentSession]:
        ours = access.sessions(self.actor)
        return ours.filter(team_id__in=self.team_ids) if self.filters.team else ours

    @property
    def matching(self) -> Q:
        columns = self.filters.match_columns(self.now)
        return columns & self.search.matching if self.search else columns

    def _find_few(self) -> tuple[QuerySet[AgentSession] | None, int | None]:
        """All matches and their number; None when there are many, or nothing is filtered."""
        if self.search and (ids := self.search.find_candidates(FEW)) is not None:
            found = self.visible.filter(self.matching, pk__in=ids).order_by().values_list("pk", flat=True)
            matches = list(found)
            return _by_ids(matches), len(matches)
        # SQLite would read row after row for a text; PostgreSQL has its index in the plan.
        narrowing = self.matching if connection.vendor == "postgresql" else self.filters.match_columns(self.now)
        if not narrowing:
            return None, None
        narrowed = self.visible.filter(narrowing).order_by()
        count = narrowed[: FEW + 1].count()
        if count > FEW:
            return None, None
        few = _by_ids(narrowed.values("pk"))
        if self.search is None:
            return few, count
        few = few.filter(self.search.matching)
        return few, few.count()

    def _pick(
        self, columns: Sequence[Column], size: int, cursor: Cursor | None, few: QuerySet[AgentSession]
    ) -> QuerySet[AgentSession]:
        chosen = few.filter(reduce(or_, _cut_stretches(columns, cursor))) if cursor else few
        return chosen.order_by(*order_unindexed(columns, forwards=cursor is None or cursor.forwards))[:size]

    def _read_walk(self, columns: Sequence[Column], size: int, cursor: Cursor | None) -> list[ListedSession]:
        first_page = None if cursor or self.matching else _write_first_page(columns, size, len(self.team_ids))
        if first_page is None:
            order = _find_own_order(columns, forwards=cursor is None or cursor.forwards)
            return read_listed(*self._walk(columns, size, cursor), order=order)
        return first_page.read(**{f"team_{number}": team_id for number, team_id in enumerate(self.team_ids)})

    def _walk(self, columns: Sequence[Column], size: int, cursor: Cursor | None) -> Iterator[QuerySet[AgentSession]]:
        """One stretch of one team at a time, which is a stretch of the sort's index."""
        order = _spell_order(columns, forwards=cursor is None or cursor.forwards)
        matching = self.visible.filter(self.matching).order_by(*order)
        for team_id in self.team_ids:
            for stretch in _cut_stretches(columns, cursor):
                yield matching.filter(stretch, team_id=team_id)[:size]


@lru_cache(maxsize=64)
def _write_first_page(columns: tuple[Column, ...], size: int, team_count: int) -> ListQuery | None:
    """The list that is opened most, its SQL put together once: that takes longer than the database for the answer."""
    order = _spell_order(columns, forwards=True)
    teams = (AgentSession.objects.filter(team_id=Open(f"team_{number}")) for number in range(team_count))
    parts = (
        team.filter(stretch).order_by(*order)[:size] for team in teams for stretch in _cut_stretches(columns, None)
    )
    return write_query(*parts, order=_find_own_order(columns, forwards=True))


def sort_shown(actor: Actor, filters: SessionFilters, shown: Collection[int]) -> list[int]:
    """Return the sessions that still exist for the actor, in the order in which a list would have them now."""
    order = order_unindexed(find_columns(filters), forwards=True)
    return list(access.sessions(actor).filter(pk__in=shown).order_by(*order).values_list("pk", flat=True))


def order_unindexed(columns: Sequence[Column], *, forwards: bool) -> list[OrderBy]:
    """Written so that no index has this order: the database would walk it and test every session of the team."""
    return [
        OrderBy(
            Coalesce(column.name, column.name),
            descending=column.is_falling is forwards,
            nulls_last=True if column.is_optional and forwards else None,
            nulls_first=True if column.is_optional and not forwards else None,
        )
        for column in columns
    ]


def _spell_order(columns: Sequence[Column], *, forwards: bool) -> list[str]:
    return [f"{'-' if column.is_falling is forwards else ''}{column.name}" for column in columns]


def _find_own_order(columns: Sequence[Column], *, forwards: bool) -> Sequence[str]:
    """Return the order that the database must make of a page: with a text in it, which it compares in its own way."""
    return _spell_order(columns, forwards=forwards) if any(column.is_text for column in columns) else ()


def _by_ids(ids: Iterable[int] | QuerySet[AgentSession, Any]) -> QuerySet[AgentSession]:
    """Of sessions that were cut to what is visible already: told the team again, SQLite would walk through all of it
    instead of looking up these."""
    return AgentSession.objects.filter(pk__in=ids)


def _sort(found: list[ListedSession], columns: Sequence[Column], *, forwards: bool) -> None:
    if any(column.is_text for column in columns):
        return  # in order already
    if not columns[0].is_optional and len({column.is_falling for column in columns}) == 1:
        found.sort(key=attrgetter(*(column.name for column in columns)), reverse=columns[0].is_falling is forwards)
    else:
        found.sort(key=lambda session: _sort_key(columns, find_place(columns, session)), reverse=not forwards)


def find_place(columns: Sequence[Column], session: AgentSession | ListedSession) -> Place:
    return _encode(columns, [getattr(session, column.name) for column in columns])


def spell_place(columns: Sequence[Column], session: AgentSession | ListedSession) -> str:
    return ".".join(map(_spell_part, find_place(columns, session)))


def _spell_part(value: int | str | None) -> str:
    if isinstance(value, str):
        return f"x{value.encode().hex()}"
    return "n" if value is None else str(value)


def _cut_stretches(columns: Sequence[Column], cursor: Cursor | None) -> Iterator[Q]:
    """Everything beyond the place, nearest first: the same but for the last column, but for the last two, …

    Not compared as one row: SQLite looks up only the first column of it, and many sessions lost nothing. Sessions
    without a value are a stretch of their own, as databases differ in where an index has them.
    """
    first = columns[0]
    if cursor is None:
        yield from (first.given(), first.same(None)) if first.is_optional else (Q(),)
        return
    for count in reversed(range(len(columns))):
        beyond = columns[count].beyond(cursor.place[count], forwards=cursor.forwards)
        if beyond is not None:
            same = [column.same(number) for column, number in zip(columns[:count], cursor.place, strict=False)]
            yield Q(*same, beyond)
    if first.is_optional and cursor.forwards is not (cursor.place[0] is None):
        yield first.same(None) if cursor.forwards else first.given()


def _encode(columns: Sequence[Column], values: Sequence[object]) -> Place:
    return tuple(column.encode(value) for column, value in zip(columns, values, strict=True))


def _sort_key(columns: Sequence[Column], place: Place) -> tuple[tuple[bool, int], ...]:
    """What is missing comes last."""
    return tuple(
        (number is None, (-number if column.is_falling else number) if isinstance(number, int) else 0)
        for column, number in zip(columns, place, strict=True)
    )
