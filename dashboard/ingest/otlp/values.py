"""What an OTLP export holds, whichever encoding it came in: log records, metric points and spans as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

Value = str | int | float | bool | bytes | list["Value"] | dict[str, "Value"] | None
Attributes = Mapping[str, Value]
Item = TypeVar("Item", "LogRecord", "Point", "Span")

MOST_ITEMS = 10_000
DEEPEST_VALUE = 64
LONGEST_TEXT = 1024 * 1024
CUT_MARK = "… [cut]"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_NANOSECONDS = 4_102_444_800 * 10**9  # the year 2100: what is later is not a time


class Undecodable(ValueError):
    """The body is not an export of this kind; the message is for people."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One event. `name` is what it calls itself, its program's prefix included."""

    name: str
    at_nanoseconds: int
    attributes: Attributes
    resource: Attributes


@dataclass(frozen=True, slots=True)
class Point:
    """One figure of a sum; figures of other kinds of metrics are only counted."""

    name: str
    started_nanoseconds: int
    at_nanoseconds: int
    value: float
    is_delta: bool
    attributes: Attributes
    resource: Attributes


@dataclass(frozen=True, slots=True)
class Span:
    """One finished operation. Ids are lower-case hexadecimal."""

    name: str
    trace_id: str
    span_id: str
    started_nanoseconds: int
    ended_nanoseconds: int
    attributes: Attributes
    resource: Attributes


@dataclass(slots=True)
class Export(Generic[Item]):
    """The items of one export; those beyond MOST_ITEMS are left out and counted, those of other kinds counted alone."""

    items: list[Item] = field(default_factory=list)
    left_out: int = 0
    other_count: int = 0

    def add(self, item: Item) -> None:
        if len(self.items) < MOST_ITEMS:
            self.items.append(item)
        else:
            self.left_out += 1


def read_moment(nanoseconds: int) -> datetime | None:
    """Microseconds are all a datetime holds; 0 means that nobody knows."""
    if not 0 < nanoseconds < _LATEST_NANOSECONDS:
        return None
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def fit_text(text: str) -> str:
    """Without NUL and halves of characters, cut with a mark where it is too long."""
    if len(text) > LONGEST_TEXT:
        text = text[:LONGEST_TEXT] + CUT_MARK
    if "\x00" in text:
        text = text.replace("\x00", "")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
