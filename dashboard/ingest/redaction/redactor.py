"""Finding secrets in bytes and putting marks in their place.

A sieve is one pass of a regex that starts with a literal; the exact patterns run only where a sieve stops.
"""

import bisect
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from dashboard.ingest.redaction.forms import (
    ASSIGNED,
    COOKIE,
    IN_URL,
    WITH_DOT,
    WITH_HYPHEN,
    WITH_START,
    WITH_UNDERSCORE,
    WITH_X,
    Assigned,
    Form,
)
from dashboard.ingest.redaction.own_patterns import compile_own

MARK = b"[redacted:%s]"
_MARK_START = b"[redacted:"
_Span = tuple[int, int, str]
_TAIL = 3


@dataclass(frozen=True)
class _Try:
    name: str
    literal: bytes
    offset: int  # of the anchor in the literal
    back: int
    pattern: "re.Pattern[bytes]"


@dataclass(frozen=True)
class _Sieve:
    """Where to look closer: `find` stops at the anchor of a literal.

    `by_tail` has the tries whose literal ends with the anchor, under the three bytes that end there.
    """

    find: "re.Pattern[bytes]"
    by_tail: Mapping[bytes, tuple[_Try, ...]]
    others: tuple[_Try, ...]


def _sieve(anchor: bytes, find: bytes, forms: Iterable[Form], *, last: bool = False) -> _Sieve:
    by_tail: dict[bytes, tuple[_Try, ...]] = {}
    others: list[_Try] = []
    for form in forms:
        pattern = re.compile(form.pattern)
        for literal, back in itertools.product(form.literals, form.back):
            offset = literal.rindex(anchor) if last else literal.index(anchor)
            attempt = _Try(form.name, literal, offset, back, pattern)
            tail = literal[: offset + 1][-_TAIL:]
            if len(tail) == _TAIL:
                by_tail[tail] = (*by_tail.get(tail, ()), attempt)
            else:
                others.append(attempt)
    return _Sieve(re.compile(find), by_tail, tuple(others))


def _starting(*first: bytes) -> Iterator[Form]:
    return (form for form in WITH_START if form.literals[0].startswith(first))


# One pass each, and a regex that starts with a literal runs 20 times as fast as one that starts with a set. Ids of tool
# calls, messages and requests (_01...) and the hyphens of UUIDs are in every line: the sieves step over them. What
# follows the anchor is only looked at: a sieve that took it would miss the next anchor in it.
_SIEVES = (
    _sieve(
        b"_",
        rb"_(?:[A-Za-z0-9]{16}(?<!olu_01[A-Za-z0-9]{14})(?<!sg_01[A-Za-z0-9]{14})(?<!eq_01[A-Za-z0-9]{14})"
        rb"|(?<=[lgaekp][ksidtnw]_)(?:(?<=pl[ksi]_)|(?<=figd_)|(?<=[ae]t_)(?=[\w\-]{20})|(?<=kn_)|(?<=pw_)))",
        WITH_UNDERSCORE,
        last=True,
    ),
    _sieve(b"-", rb"-(?<=[^0-9a-f]-)(?=[\w\-]{16}|BEGIN)", WITH_HYPHEN, last=True),
    _sieve(b"x", rb"x(?=ox[a-z]-|keysib-)", WITH_X),
    _sieve(
        b".",
        rb"\.(?:(?=[\w\-]{6}\.[\w\-]{27})|(?<=[Gsbr9p]\.)(?:(?<=SG\.)|(?<=hv[sbr]\.)|(?<=a29\.)|(?<=dp\.))|atlasv1)",
        WITH_DOT,
    ),
    _sieve(b"A", rb"A(?=KIA|SIA|BIA|CCA|BSK|Iza|TATT|TBB|TCTT|A(?<=:AA))", _starting(b"A", b":")),
    _sieve(b"J", rb"J(?<=eyJ)(?=[\w\-]{8})", _starting(b"eyJ")),
    _sieve(b"dapi", rb"dapi(?=[0-9a-f]{8})", _starting(b"d")),
    _sieve(b"B", rb"B(?=earer |asic )", _starting(b"B")),
    _sieve(b"$", rb"\$(?=apr1\$|2[aby]\$|[56]\$)", _starting(b"$")),
    _sieve(
        b":",
        rb"://(?=[^\s/@\"'<>]{0,400}@|hooks\.slack|(?:\w{1,20}\.)?discord"
        rb"|[\w.\-]{1,80}\.(?:webhook\.office\.com|windows\.net))",
        IN_URL,
    ),
    _sieve(b":", rb":\\+/", IN_URL),
)
_TELLING = tuple(re.compile(word) for word in (rb"k(?:ey|en(?!s)|ie)", rb"cre[td]", rb"pass", rb"pwd", rb"auth"))

_QUOTE = rb"\\*[\"']|\\+u002[27]"
_CHARACTER = rb"[\xc2-\xf4][\x80-\xbf]{1,3}|\\+/|\\+u(?!002[27])[0-9A-Fa-f]{4}"
# A quote after an even run of backslashes ends the JSON string itself and is never part of a value.
_QUOTED = (
    rb"(?:[!#-&(-\[\]-~]|(?!(?P=quote))[\"'](?<=')|(?!(?P=quote))\\(?:\\\\)*+[\"']|"
    + _CHARACTER
    + rb"|(?:\\\\)++(?![\\\"']))"
)
_PLAIN = rb"(?:[!#-%*+\-./0-9:=?@A-Z^_a-z~]|" + _CHARACTER + rb")"
_ASSIGNMENT = re.compile(
    rb"(?i:passw(?:or)?d|passphrase|pass|pwd|cret|ken|key|credentials?|auth)(?P<rest>[\w.\-]{0,24}+)"
    rb"(?:" + _QUOTE + rb")?+\]?+[ \t]{0,4}+(?P<sep>=>|:=|[:=>]|(?<=[ \t]))[ \t]{0,4}+"
    rb"(?:(?P<quote>" + _QUOTE + rb")(?:(?i:bearer|basic|token) )?+(?P<quoted>" + _QUOTED + rb"++)(?![ \t])"
    rb"|(?:(?i:bearer|basic|token) )?+(?P<plain>" + _PLAIN + rb"++)(?!\())"
)
_NAME_START = re.compile(rb"[A-Za-z0-9_.\-]*\Z")
_NETRC = re.compile(rb"(?:login|user|account)[ \t]+\S{1,64}[ \t]+\Z")
_NAMES = tuple((kind, re.compile(kind.names, re.DOTALL)) for kind in ASSIGNED)
_NOT_A_SECRET = re.compile(
    rb"(?i)\[redacted|[<$%{*]|x{4}|\.{2}|your|my[_\-]|example|change|placeholder|dummy|replace"
    rb"|process\.|os\.|env[.(]|import|self\.|this\.|https?:|file:|[./~]+/|/\w+/"
    rb"|[a-z_]++\.[a-z_.]++\Z|[\d.,:\-]++(?:e[+\-]?\d++)?\Z|[a-z][a-z_\-]*+\Z"
    rb"|(?:0x)?0+\Z|sha\d+[:\-]|passw\w*\Z"
)
_HALF_ESCAPE = re.compile(rb"(?P<run>\\+)(?P<unicode>u?)(?P<digits>(?:(?<=u)[0-9A-Fa-f]{1,3})?)\Z")
_STRING = re.compile(rb"\"(?:[^\"\\]++|\\.)*+\"", re.DOTALL)
_STRING_BOUND = re.compile(rb"[\"\\\x00-\x1f]")
_COOKIE_HEADER = re.compile(COOKIE.pattern)
_LONG = 64
_ROUNDS = 4  # a mark may uncover a secret that touched it: the second round finds it, and mostly nothing
_SHORTEST = min(kind.shortest for kind in ASSIGNED)


@dataclass(frozen=True)
class Redacted:
    data: bytes
    counts: Mapping[str, int]


_NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class Redactor:
    """Every form of the table, and a team's own patterns."""

    own: tuple[tuple[str, "re.Pattern[bytes]"], ...] = field(default=())

    @classmethod
    def default(cls) -> "Redactor":
        return cls()

    @classmethod
    def with_own(cls, patterns: Mapping[str, str]) -> "Redactor":
        """Names to regular expressions; raises BadPattern with a sentence."""
        return cls(tuple((name, compile_own(name, pattern)) for name, pattern in patterns.items()))

    def redact(self, data: bytes) -> Redacted:
        """One line, many lines or any text."""
        counts = Counter[str]()
        for _ in range(_ROUNDS):
            data, found = self._redact_once(data)
            if not found:
                break
            counts.update(found)
        return Redacted(data, MappingProxyType(dict(counts)) if counts else _NOTHING)

    def _redact_once(self, data: bytes) -> tuple[bytes, Counter[str] | None]:
        folded = data.lower()
        spans = [
            *_find_forms(data),
            *_find_assigned(data, folded),
            *_in_strings(data, self._find_own(data)),
        ]
        if not spans:
            return data, None
        pieces, counts, done = [], Counter[str](), 0
        for start, end, name in _apart(spans):
            pieces += [data[done:start], MARK % name.encode()]
            counts[name] += 1
            done = end
        pieces.append(data[done:])
        return b"".join(pieces), counts

    def _find_own(self, data: bytes) -> Iterator[_Span]:
        for name, pattern in self.own:
            for match in pattern.finditer(data):
                start, end = _whole(data, *match.span())
                if end > start and not _in_mark(data, start, end):
                    yield start, end, name


def _find_forms(data: bytes) -> Iterator[_Span]:
    for sieve in _SIEVES:
        done = 0
        for stop in sieve.find.finditer(data):
            at = stop.start()
            if at < done:
                continue
            tries = sieve.by_tail.get(data[max(0, at + 1 - _TAIL) : at + 1], ())
            span = _look_closer(data, at, tries) or _look_closer(data, at, sieve.others)
            if span:
                done = span[1]
                yield span


def _look_closer(data: bytes, at: int, tries: tuple[_Try, ...]) -> _Span | None:
    for attempt in tries:
        literal_at = at - attempt.offset
        start = literal_at - attempt.back
        if start >= 0 and data.startswith(attempt.literal, literal_at):
            match = attempt.pattern.match(data, start)
            if match:
                return (*match.span("secret"), attempt.name)
    return None


def _find_assigned(data: bytes, folded: bytes) -> Iterator[_Span]:
    for word in _TELLING:
        done = 0
        for stop in word.finditer(folded):
            if stop.start() < done:
                continue
            cookie = _COOKIE_HEADER.match(data, stop.start())
            if cookie:
                yield (*cookie.span("secret"), COOKIE.name)
                done = cookie.end()
                continue
            match = _ASSIGNMENT.match(data, stop.start())
            if not match:
                continue
            group = "plain" if match["plain"] is not None else "quoted"
            start, end = match.span(group)
            name = _judge(data, match, group)
            if name:
                yield start, end, name
            if name or end - start > _LONG:  # a long value is read once, or many names in one value would be quadratic
                done = end


def _judge(data: bytes, match: "re.Match[bytes]", group: str) -> str | None:
    """The form that an assignment belongs to, if its name tells and its value is strong enough to be a secret."""
    value, end = match[group], match.end("rest")
    if len(value) < _SHORTEST or _NOT_A_SECRET.match(value) or _MARK_START in value:
        return None
    before = data[max(0, match.start() - 40) : match.start()]
    start = _NAME_START.search(before)
    head = start[0] if start else b""
    outside = before[: len(before) - len(head)]
    if outside.endswith(b"\\"):
        head = head[1:]  # the letter of an escape such as \n
    if outside.endswith(_MARK_START) or not _may_stand(match["sep"], head, outside):
        return None
    name = (head + data[match.start() : end]).lower().lstrip(b"-.")
    for kind, names in _NAMES:
        if names.fullmatch(name):
            return kind.name if _is_strong(value, kind) else None
    return None


def _may_stand(sep: bytes, head: bytes, outside: bytes) -> bool:
    """Between a name and its value: a colon or an equals sign; a space after an option, `>` after a tag's name."""
    if sep == b">":
        return outside.endswith(b"<")
    return bool(sep) or head.startswith(b"--") or _NETRC.search(outside) is not None


def _is_strong(value: bytes, kind: Assigned) -> bool:
    if len(value) < kind.shortest:
        return False
    sample = value[:_LONG]
    letters, digits = any(chr(byte).isalpha() for byte in sample), any(48 <= byte <= 57 for byte in sample)
    if not digits and not (kind.name == "password" and not sample.isalpha()):
        return False
    if not letters:
        return False
    counts = Counter(sample)
    bits = -sum(n / len(sample) * math.log2(n / len(sample)) for n in counts.values())
    return bits >= kind.bits


def _apart(spans: list[_Span]) -> Iterator[_Span]:
    """In order; where two overlap they become one under the name of the one that starts first (the longer of two)."""
    spans.sort(key=lambda span: (span[0], -span[1]))
    start, end, name = spans[0]
    for next_start, next_end, next_name in spans[1:]:
        if next_start < end:
            end = max(end, next_end)
        else:
            yield start, end, name
            start, end, name = next_start, next_end, next_name
    yield start, end, name


def _in_strings(data: bytes, spans: Iterator[_Span]) -> Iterator[_Span]:
    """Of JSON only what lies in strings: a team's pattern for digits must not put a mark where a number stood."""
    first = next(spans, None)
    if first is None or data.lstrip()[:1] not in (b"{", b"["):
        yield from () if first is None else (first, *spans)
        return
    strings = [match.span() for match in _STRING.finditer(data)]
    starts = [start for start, _ in strings]
    for span in (first, *spans):
        at = bisect.bisect_right(starts, span[0]) - 1
        if at >= 0 and span[0] > starts[at] and span[1] < strings[at][1]:
            yield span


def _in_mark(data: bytes, start: int, end: int) -> bool:
    mark = data.rfind(_MARK_START, max(0, start - _LONG), end)
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
