"""Putting marks in place of secrets: of the known forms, and of what a team's own patterns match."""

import bisect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dashboard.ingest.redaction.marks import MARK, MARK_START, MARKS, Span, put_marks
from dashboard.ingest.redaction.own_patterns import OwnPattern, compile_all, compile_usable
from dashboard.ingest.redaction.search import find_known

_HALF_ESCAPE = re.compile(rb"(?P<run>\\+)(?P<unicode>u?)(?P<digits>(?:(?<=u)[0-9A-Fa-f]{1,3})?)\Z")
# No string reaches over a line end: one that a broken line leaves open must not turn those behind it inside out.
_STRING = re.compile(rb"\"(?P<inside>(?:[^\"\\\n]++|\\[^\n])*+)\"?")
_STRING_BOUND = re.compile(rb"[\"\\\x00-\x1f]")
_LONG = 64
# A team's pattern may match so often: ordinary text has far fewer badges, and marks at most double it.
_MOST_MATCHES, _BYTES_PER_MATCH = 100, 8
_MOST_STRETCHES, _BYTES_PER_STRETCH = 8, 64
_ROUNDS = 4  # a mark may uncover a secret that touched it: the second round finds it, and mostly nothing


@dataclass(frozen=True)
class Redacted:
    data: bytes
    counts: Mapping[str, int]
    is_withheld: bool = False  # a team's pattern matched so much of it that nothing was kept


class _TooManyMatches(Exception):
    """Of a team's pattern, whose name it carries."""


_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Redactor:
    """Every form of the table, and a team's own patterns. `disabled` names the rules, of both, that leave no mark."""

    own: tuple[OwnPattern, ...] = ()
    disabled: frozenset[str] = frozenset()

    @classmethod
    def default(cls) -> "Redactor":
        return cls()

    @classmethod
    def with_own(cls, patterns: Mapping[str, str], disabled: Iterable[str] = ()) -> "Redactor":
        """Names to regular expressions; raises BadPattern with a sentence."""
        return cls(compile_all(patterns), frozenset(disabled))

    @classmethod
    def with_usable(cls, patterns: Mapping[str, str], disabled: Iterable[str] = ()) -> "Redactor":
        """Redactor for stored patterns, without those that cannot be used any more."""
        return cls(compile_usable(patterns), frozenset(disabled))

    def redact(self, data: bytes) -> Redacted:
        """One line, many lines or any text."""
        try:
            own = list(_in_strings(data, self._find_own(data)))
        except _TooManyMatches as error:
            return _withhold(data, str(error))
        spans = [*self._find_enabled(data), *own]
        counts = Counter[str]()
        for _ in range(_ROUNDS):
            if not spans:
                break
            data, found = put_marks(data, spans)
            counts.update(found)
            # A team's patterns look at the original text only: they could match the marks.
            spans = self._find_enabled(data)
        return Redacted(data, MappingProxyType(dict(counts)) if counts else _NOTHING)

    def _find_enabled(self, data: bytes) -> list[Span]:
        spans = find_known(data)
        return [span for span in spans if span[2] not in self.disabled] if self.disabled else spans

    def _find_own(self, data: bytes) -> Iterator[Span]:
        for pattern in self.own:
            if pattern.name in self.disabled:
                continue
            for match_start, match_end in _find_stretches(pattern, data):
                start, end = _whole(data, match_start, match_end)
                if end > start:
                    yield start, end, pattern.name


def _find_stretches(pattern: OwnPattern, data: bytes) -> Iterator[tuple[int, int]]:
    """Matches outside marks that text from outside brings along, up to a quote or an escape; those that touch are one.

    Raises _TooManyMatches: marks are longer than what they stand for, and each takes time to place."""
    most_matches = _MOST_MATCHES + len(data) // _BYTES_PER_MATCH
    most_stretches = _MOST_STRETCHES + len(data) // _BYTES_PER_STRETCH
    count, start, end = 0, -1, -1
    for number, (match_start, match_end) in enumerate(_find_outside_marks(pattern, data), 1):
        if match_start == end and not _STRING_BOUND.search(data, match_start, match_end):
            end = match_end
        else:
            if end >= 0:
                yield start, end
            count += 1
            bound = _STRING_BOUND.search(data, match_start, match_end)
            start, end = match_start, bound.start() if bound else match_end
        if number > most_matches or count > most_stretches:
            raise _TooManyMatches(pattern.name)
    if end >= 0:
        yield start, end


def _find_outside_marks(pattern: OwnPattern, data: bytes) -> Iterator[tuple[int, int]]:
    if MARK_START not in data:
        yield from pattern.find(data)
        return
    done = 0
    for bound, after in (*(mark.span() for mark in MARKS.finditer(data)), (len(data), 0)):
        yield from ((done + start, done + end) for start, end in pattern.find(data[done:bound]))
        done = after


def _withhold(data: bytes, name: str) -> Redacted:
    """As many lines as there were, each a mark; lines of JSON stay JSON."""
    mark = MARK % name.encode()
    lines = [b'{"withheld":"%s"}' % mark if line[:1] == b"{" else mark for line in data.split(b"\n")]
    return Redacted(b"\n".join(lines), MappingProxyType({name: len(lines)}), is_withheld=True)


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
    return start, end
