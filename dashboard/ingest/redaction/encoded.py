"""Secrets in base64, as in the data of a Kubernetes Secret.

The start of a well-known token, header or name reads in one of three ways in base64. Only where one of them is found
is the text behind it decoded and searched.
"""

import base64
import bisect
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dashboard.ingest.redaction.forms import ANYWHERE, FORMS
from dashboard.ingest.redaction.marks import Span

_SHORTEST = 4
_NAMES = (
    b"pw: ",
    b"curl -",
    b"mysql",
    b"postgres",
    b"mongodb",
    b"redis://",
    b"amqp",
    b"Password",
    b"password",
    b"PASSWORD",
    b"passwd",
    b"secret",
    b"SECRET",
    b"token",
    b"TOKEN",
    b"api_key",
    b"API_KEY",
    b"apiKey",
)  # and what stands before a password in commands and addresses
_LONGER = (b"sk-ant-", b"sk-proj-", b"sk-or-v1-", b"xoxb-", b"xoxp-", b"eyJhbGciOi")  # of shorter literals
_TOO_COMMON = (b"Bearer ", b"Basic ", b"://", b":/\\", b":\\/", b":\\\\", b"key-", b"secret_", b".atlasv1.")
_BEFORE = 24
_ALPHABET = (string.ascii_letters + string.digits + "+/").encode()
_FULL_LINE = 60
_MOST_BYTES = 1 << 60
_MOST = 64 * 1024  # characters that are decoded in one go
_RUN = re.compile(rb"(?:[A-Za-z0-9+/\-_]|\\++/){1,65536}+")
_PART = re.compile(rb"[A-Za-z0-9+/\-_]++|\\++/")
_LINE_END = re.compile(rb"(?:\\+[rn]|[\r\n])++[ \t]*+(?:\d{1,6}(?:\t|\\+t|\\+u2192|\xe2\x86\x92))?+")
_START = re.compile(ANYWHERE + rb"[A-Za-z0-9+/\-_]{4}")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def _list_starts() -> Iterator[tuple[bytes, int]]:
    """Each start in base64, and how many characters before it a group of four begins."""
    literals = {literal for form in FORMS for literal in form.literals if literal not in _TOO_COMMON}
    for literal in sorted({*literals, *_NAMES, *_LONGER}):
        if len(literal) < _SHORTEST:
            continue
        for shift, (skipped, back) in enumerate(((0, 0), (2, 2), (3, 3))):
            coded = base64.b64encode(bytes(shift) + literal)
            yield coded[skipped : (shift + len(literal)) * 8 // 6], back


_STARTS = tuple(dict.fromkeys(_list_starts()))
EXPRESSIONS = tuple(re.escape(start) for start, _ in _STARTS)


@dataclass(frozen=True)
class _Text:
    """Base64 without its line ends and escapes, and where each of its pieces is in the data."""

    characters: bytes
    pieces: list[tuple[int, int, int]]  # start in the characters, start and end in the data

    def place(self, position: int) -> tuple[int, int]:
        """Start and end of a character in the data: of an escaped slash, with its backslashes."""
        start, data_start, data_end = self.pieces[bisect.bisect_right(self.pieces, (position, _MOST_BYTES, 0)) - 1]
        if self.characters[position : position + 1] == b"/" and data_end - data_start > 1 and start == position:
            return data_start, data_end
        return data_start + position - start, data_start + position - start + 1


def read_encoded(number: int, search: Callable[[bytes], list[Span]], data: bytes, at: int) -> tuple[list[Span], int]:
    """What a search finds in the decoded text, in places of the encoded one, and up to where it was decoded."""
    start = at - _STARTS[number][1]
    if start < 0 or not _START.match(data, start):
        return [], at
    start -= _count_before(data, start)
    text = _collect(data, start)
    length = len(text.characters) - (len(text.characters) % 4 == 1)
    decoded = base64.b64decode(text.characters[:length].translate(_URL_SAFE) + b"=" * (-length % 4))
    spans = []
    for begin, end, name in search(decoded):
        first, last = begin // 3 * 4, min(-(-end // 3) * 4, length) - 1
        if first <= last:
            spans.append((text.place(first)[0], text.place(last)[1], name))
    return spans, text.place(length - 1)[1]


def _count_before(data: bytes, start: int) -> int:
    """How much of the same base64 is read as well: the name before "token" may say that it is no secret."""
    before = data[max(0, start - _BEFORE) : start]
    outside = before.rstrip(_ALPHABET)
    count = len(before) - len(outside)
    return max(0, count - outside.endswith(b"\\")) // 4 * 4  # the n of an escape such as \\n is none of it


def _collect(data: bytes, start: int) -> _Text:
    """The base64 from here to the end of its line, and the next lines of a text that is broken into full lines."""
    characters, pieces, at = bytearray(), list[tuple[int, int, int]](), start
    while run := _RUN.match(data, at):
        for part in _PART.finditer(data, at, run.end()):
            pieces.append((len(characters), part.start(), part.end()))
            characters += b"/" if part[0].startswith(b"\\") else part[0]
        line_end = _LINE_END.match(data, run.end())
        if run.end() - at < _FULL_LINE or not line_end or len(characters) > _MOST:
            break
        at = line_end.end()
    return _Text(bytes(characters), pieces)
