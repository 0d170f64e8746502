"""Volatile text: times, dates, ids, git status and counters in places that should stay the same from call to call."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Volatile(StrEnum):
    """What changes without a change of the prompt."""

    TIME = "a time"
    DATE = "a date"
    UUID = "a unique id"
    GIT_STATUS = "git status"
    COUNTER = "a counter"


@dataclass(frozen=True, slots=True)
class VolatileText:
    """The kind and the position of volatile text in a block, without the text."""

    kind: Volatile
    start: int
    end: int


_PATTERNS = (
    (Volatile.UUID, re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)),
    (Volatile.TIME, re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}|\b[0-2]?\d:[0-5]\d:[0-5]\d\b")),
    (
        Volatile.DATE,
        re.compile(
            r"\b20\d{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\b"
            r"|\b(?:today(?:'s date)? is|current date:?)\s+\S+",
            re.IGNORECASE,
        ),
    ),
    (
        Volatile.GIT_STATUS,
        re.compile(
            r"\bgit\s?status:?[ \t]*\n|\bgitStatus:|\bCurrent branch: \S+"
            r"|^(?:[ MADRCU]{2}|\?\?) \S+\n(?:[ MADRCU]{2}|\?\?) ",
            re.MULTILINE,
        ),
    ),
    (
        Volatile.COUNTER,
        re.compile(
            r"\b(?:tokens? (?:used|left|remaining)|token usage|turns? so far"
            r"|(?:turn|request|message|step) (?:number|count))"
            r"\s*+(?:[:=#]\s*+)?\d[\d,.]*",
            re.IGNORECASE,
        ),
    ),
)


def find_volatile_text(text: str) -> Iterator[VolatileText]:
    """Yield each kind of volatile text once, where it occurs first; the date of a time is part of the time."""
    taken: list[tuple[int, int]] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if all(match.end() <= start or match.start() >= end for start, end in taken):
                taken.append(match.span())
                yield VolatileText(kind, *match.span())
                break
