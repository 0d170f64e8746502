"""Finding secrets in bytes and putting marks in their place.

One pass stops at the literals and words that give secrets away; the exact patterns run only there.
"""

import bisect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dashboard.ingest.redaction.assignments import WORDS, read_assignment
from dashboard.ingest.redaction.forms import COOKIE, FORMS
from dashboard.ingest.redaction.marks import MARK_START, Span, put_marks
from dashboard.ingest.redaction.own_patterns import OwnPattern, compile_all, compile_usable
from dashboard.ingest.redaction.stops import Stops

_Tries = tuple[tuple[int, int, "re.Pattern[bytes]"], ...]  # the number of the form, the literal's length, the pattern


def _tries_by_expression() -> dict[bytes, _Tries]:
    tries: dict[bytes, _Tries] = {}
    for rank, form in enumerate(FORMS):
        if form is COOKIE:
            continue  # found with the words of telling names
        for literal in form.literals:
            expression = re.escape(literal) + form.after
            tries[expression] = (*tries.get(expression, ()), (rank, len(literal), re.compile(form.pattern)))
    return tries


_BY_EXPRESSION = _tries_by_expression()
_TRIES = tuple(_BY_EXPRESSION.values())
_STOPS = Stops(tuple(_BY_EXPRESSION), WORDS)

_HALF_ESCAPE = re.compile(rb"(?P<run>\\+)(?P<unicode>u?)(?P<digits>(?:(?<=u)[0-9A-Fa-f]{1,3})?)\Z")
# No string reaches over a line end: one that a broken line leaves open must not turn those behind it inside out.
_STRING = re.compile(rb"\"(?P<inside>(?:[^\"\\\n]++|\\[^\n])*+)\"?")
_STRING_BOUND = re.compile(rb"[\"\\\x00-\x1f]")
_LONG = 64
_ROUNDS = 4  # a mark may uncover a secret that touched it: the second round finds it, and mostly nothing


@dataclass(frozen=True)
class Redacted:
    data: bytes
    counts: Mapping[str, int]


_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Redactor:
    """Every form of the table, and a team's own patterns."""

    own: tuple[OwnPattern, ...] = ()

    @classmethod
    def default(cls) -> "Redactor":
        return cls()

    @classmethod
    def with_own(cls, patterns: Mapping[str, str]) -> "Redactor":
        """Names to regular expressions; raises BadPattern with a sentence."""
        return cls(compile_all(patterns))

    @classmethod
    def with_usable(cls, patterns: Mapping[str, str]) -> "Redactor":
        """Redactor for stored patterns, without those that cannot be used any more."""
        return cls(compile_usable(patterns))

    def redact(self, data: bytes) -> Redacted:
        """One line, many lines or any text."""
        spans = self._find(data)
        if not spans:
            return Redacted(data, _NOTHING)
        counts = Counter[str]()
        for _ in range(_ROUNDS):
            data, found = put_marks(data, spans)
            counts.update(found)
            spans = self._find(data)
            if not spans:
                break
        return Redacted(data, MappingProxyType(dict(counts)))

    def _find(self, data: bytes) -> list[Span]:
        spans = _find_known(data)
        return [*spans, *_in_strings(data, self._find_own(data))] if self.own else spans

    def _find_own(self, data: bytes) -> Iterator[Span]:
        for pattern in self.own:
            for match_start, match_end in pattern.find(data):
                start, end = _whole(data, match_start, match_end)
                if end > start and not _in_mark(data, start, end):
                    yield start, end, pattern.name


def _find_known(data: bytes) -> list[Span]:
    """The forms of the table; of two that find the same bytes the one that comes first names them.

    What is found is read once: a literal in the last match of its own form is passed over, or many in one value would
    be quadratic. One that reaches beyond it is not: key blocks may share their dashes.
    """
    found: list[tuple[int, Span]] = []
    done: dict[int, int] = {}
    for at, number in _STOPS.find(data):
        if number < len(_TRIES):
            found += _try_forms(data, at, number, done)
            continue
        rank = len(FORMS) + number
        if at >= done.get(rank, 0):
            span, done[rank] = read_assignment(data, at)
            if span:
                found.append((rank, span))
    found.sort()
    return [span for _, span in found]


def _try_forms(data: bytes, at: int, number: int, done: dict[int, int]) -> Iterator[tuple[int, Span]]:
    for rank, length, pattern in _TRIES[number]:
        if at + length <= done.get(rank, 0):
            continue
        form = FORMS[rank]
        for back in form.back:
            match = pattern.match(data, at - back) if at >= back else None
            if match:
                done[rank] = match.end()
                yield rank, (*match.span("secret"), form.name)


def _in_strings(data: bytes, spans: Iterator[Span]) -> Iterator[Span]:
    """Of JSON only what lies in strings: a team's pattern for digits must not put a mark where a number stood."""
    first = next(spans, None)
    if first is None or data.lstrip()[:1] not in (b"{", b"["):
        yield from () if first is None else (first, *spans)
        return
    strings = [match.span("inside") for match in _STRING.finditer(data)]
    starts = [start for start, _ in strings]
    for span in (first, *spans):
        at = bisect.bisect_right(starts, span[0]) - 1
        if at >= 0 and span[1] <= strings[at][1]:
            yield span


def _in_mark(data: bytes, start: int, end: int) -> bool:
    mark = data.rfind(MARK_START, max(0, start - _LONG), end)
    return mark >= 0 and data.find(b"]", mark, mark + _LONG) >= start


def _whole(data: bytes, start: int, end: int) -> tuple[int, int]:
    """The part of a team's match that may go: whole characters, no quote, no escape."""
    while start > 0 and 0x80 <= data[start] <= 0xBF:
        start -= 1
    while end < len(data) and 0x80 <= data[end] <= 0xBF:
        end += 1
    escape = _HALF_ESCAPE.search(data[max(0, start - _LONG) : start])
    if escape and len(escape["run"]) % 2:
        start += 5 - len(escape["digits"]) if escape["unicode"] or data[start : start + 1] == b"u" else 1
        start -= len(escape["unicode"])
    bound = _STRING_BOUND.search(data, start, end)
    return start, bound.start() if bound else end
