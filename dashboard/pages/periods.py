"""Stretches of whole days in a person's time zone: as they stand in an address, the one before, and days in SQL."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateField, F, Func
from django.db.models.functions import TruncDate
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

USUAL_DAYS = (7, 30, 90)
DEFAULT_DAYS = 30
MOST_DAYS = 366
_DAY = timedelta(days=1)
FIRST_DATE, LAST_DATE = date(2000, 1, 1), date(2100, 1, 1)


@dataclass(frozen=True, slots=True)
class Period:
    """From the midnight before `first` to the midnight after `last`; `now` cuts the one before to the same length."""

    first: date
    last: date
    zone: tzinfo
    now: datetime
    is_custom: bool = False

    @classmethod
    def of_days(cls, days: int, *, zone: tzinfo, now: datetime) -> "Period":
        """The last `days` days, today the last of them."""
        today = timezone.localdate(now, zone)
        return cls(today - (days - 1) * _DAY, today, zone, now)

    @classmethod
    def between(cls, first: date, last: date, *, zone: tzinfo, now: datetime) -> "Period":
        """Both days included, in either order; what is too long loses its oldest days."""
        first, last = sorted((first, last))
        return cls(max(first, last - (MOST_DAYS - 1) * _DAY), last, zone, now, is_custom=True)

    @classmethod
    def read(cls, query: Mapping[str, str], *, zone: tzinfo, now: datetime) -> "Period":
        """`from` and `to` go before `days`; what is no date and no usual length is left out."""
        first, last = read_date(query.get("from", "")), read_date(query.get("to", ""))
        if first or last:
            today = timezone.localdate(now, zone)
            last = last or max(today, first or today)
            chosen = cls.between(first or last, last, zone=zone, now=now)
            usual = (cls.of_days(days, zone=zone, now=now) for days in USUAL_DAYS)
            return next((each for each in usual if (each.first, each.last) == (chosen.first, chosen.last)), chosen)
        days = query.get("days", "")
        return cls.of_days(int(days) if days in map(str, USUAL_DAYS) else DEFAULT_DAYS, zone=zone, now=now)

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def start_at(self) -> datetime:
        return _find_midnight(self.first, self.zone)

    @property
    def end_at(self) -> datetime:
        """The first moment after it."""
        return _find_midnight(self.last + _DAY, self.zone)

    @property
    def before(self) -> "Period":
        """The same number of days right before it."""
        back = self.days * _DAY
        return Period(self.first - back, self.last - back, self.zone, self.now - back, self.is_custom)

    @property
    def so_far_at(self) -> datetime:
        """Where it ends, or now: a period that is not over is held against as much of the one before."""
        return min(self.end_at, max(self.now, self.start_at))

    @property
    def words(self) -> str:
        if not self.is_custom:
            return f"last {self.days} days"
        if self.first == self.last:
            return f"{self.first:%Y-%m-%d}"
        return f"{self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}"

    @property
    def fields(self) -> dict[str, str]:
        """As it stands in an address; nothing for the usual one."""
        if self.is_custom:
            return {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return {} if self.days == DEFAULT_DAYS else {"days": str(self.days)}

    def list_days(self) -> list[date]:
        return [self.first + number * _DAY for number in range(self.days)]


def read_periods(query: Mapping[str, str], *, zone: tzinfo, now: datetime) -> tuple[Period, Period, bool]:
    """Two to compare, and whether the first is the one right before the second: so where none is named."""
    second = Period.read({"days": str(min(USUAL_DAYS)), **query}, zone=zone, now=now)
    named = {"from": query.get("other_from", ""), "to": query.get("other_to", "")}
    if not any(read_date(text) for text in named.values()):
        return second.before, second, True
    first = Period.read(named, zone=zone, now=now)
    return first, second, (first.first, first.last) == (second.before.first, second.before.last)


def read_date(text: str) -> date | None:
    """None for anything that is no date of this century."""
    try:
        found = date.fromisoformat(text[:10])
    except ValueError:
        return None
    return found if FIRST_DATE <= found <= LAST_DATE else None


class LocalDay(Func):
    """The day of a moment in the period's zone, worked out by the database itself: Django would have SQLite call
    Python for every row."""

    output_field = DateField()

    def __init__(self, column: str, period: Period) -> None:
        super().__init__(F(column))
        self.column, self.period = column, period

    def as_sqlite(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,  # noqa: ARG002 (Django's signature)
        **context: Any,  # noqa: ARG002
    ) -> tuple[str, tuple[Any, ...]]:
        moment, _ = compiler.compile(self.source_expressions[0])
        stretches = list(_list_offsets(self.period))
        *changing, (_, last_minutes) = stretches
        cases = " ".join(f"WHEN {moment} < %s THEN date({moment}, %s)" for _ in changing)
        parameters = [text for until, minutes in changing for text in (_spell(until), f"{minutes:+} minutes")]
        final = f"{last_minutes:+} minutes"
        if not cases:
            return f"date({moment}, %s)", (final,)
        return f"CASE {cases} ELSE date({moment}, %s) END", (*parameters, final)

    def as_postgresql(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,  # noqa: ARG002 (Django's signature)
        **context: Any,  # noqa: ARG002
    ) -> tuple[str, tuple[Any, ...]]:
        truncated = TruncDate(self.source_expressions[0], tzinfo=self.period.zone)
        sql, parameters = compiler.compile(truncated)
        return sql, tuple(parameters)


def _list_offsets(period: Period) -> Iterator[tuple[datetime, int]]:
    """Stretches of one offset from UTC: when each ends, and its minutes. Clocks change once or twice a year."""
    at, end = period.start_at, period.end_at
    while at < end:
        offset, until = _find_offset(at, period.zone), at
        while until < end and _find_offset(until, period.zone) == offset:
            until = min(until + _DAY, end)
        if _find_offset(until, period.zone) != offset:
            until = _find_change(max(at, until - _DAY), until, period.zone)
        yield until, offset
        at = until


def _find_change(low: datetime, high: datetime, zone: tzinfo) -> datetime:
    """The minute within which the offset changes: the first with the new one."""
    offset = _find_offset(low, zone)
    while high - low > timedelta(minutes=1):
        middle = low + timedelta(minutes=(high - low) // timedelta(minutes=2))
        low, high = (middle, high) if _find_offset(middle, zone) == offset else (low, middle)
    return high


def _find_offset(at: datetime, zone: tzinfo) -> int:
    offset = at.astimezone(zone).utcoffset()
    return 0 if offset is None else offset // timedelta(minutes=1)


def _find_midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, datetime.min.time(), zone).astimezone(UTC)


def _spell(at: datetime) -> str:
    """As SQLite keeps moments."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
