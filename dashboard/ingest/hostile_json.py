"""JSON made to hurt, known before a parser spends time and memory on it: endless numbers, and values without number.

Cheap where there is nothing of the kind. No Django here.
"""

import re
from collections.abc import Iterator

MOST_DIGITS = 4_000
MOST_VALUES = 100_000  # each becomes an object of a hundred bytes and more when it is read
LONG_BYTES = 1024 * 1024
ENDLESS_BYTES = 256 * 1024  # less costs little, whatever number it holds
_STRIDE = 250
# A run of that many digits shows in every byte that is looked at while it lasts.
_TRACE = re.compile(rb"\d{%d}" % (MOST_DIGITS // _STRIDE))
_RUN = re.compile(rb"\d{%d}" % MOST_DIGITS)
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def holds_too_much(raw: bytes, *, most_values: int = MOST_VALUES) -> bool:
    """A long text is usual and cheap to read; a million small values and a number of a million digits are neither."""
    return (len(raw) >= ENDLESS_BYTES and holds_endless_number(raw)) or (
        len(raw) >= LONG_BYTES and holds_many_values(raw, most_values)
    )


def holds_endless_number(data: bytes) -> bool:
    """Whether there is a number of that many digits; texts may hold what they like."""
    if not _TRACE.search(data[::_STRIDE]) or not _RUN.search(data):
        return False
    return any(_RUN.search(data, start, end) for start, end in _find_gaps(data) if end - start >= MOST_DIGITS)


def holds_many_values(raw: bytes, most: int) -> bool:
    """Whether there are more of them; commas and brackets in texts are none."""
    if _count_marks(raw, 0, len(raw)) <= most:
        return False
    count = 0
    for start, end in _find_gaps(raw):
        count += _count_marks(raw, start, end)
        if count > most:
            return True
    return False


def _find_gaps(data: bytes) -> Iterator[tuple[int, int]]:
    """What lies between texts."""
    end = 0
    for text in _STRING.finditer(data):
        yield end, text.start()
        end = text.end()
    yield end, len(data)


def _count_marks(raw: bytes, start: int, end: int) -> int:
    return raw.count(b",", start, end) + raw.count(b"[", start, end) + raw.count(b"{", start, end)
