r"""A text as a person reads it: without colour codes, and with letters that JSON spelled as escapes (\u0067hp_...).

Made only of the stretches around codes and escapes that may be within a secret. Places are mapped back to the text.
"""

import bisect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dashboard.ingest.redaction.marks import Span

# The longest sets a colour of 24 bits (38;2;255;100;10); programs such as grep add a code that clears the line (K).
_CODE = rb"\[[0-9;]{0,16}[mK]"
_COLOUR = rb"(?:(?:\x1b|\\{1,8}(?:u001[bB]|x1[bB]|033))" + _CODE + rb"){1,3}"
_LETTER = rb"u00(?:2[dD]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA]|5[fF])"
# For the pass: a colour code within a word, beside the sign between a name and its value, and an escaped letter.
EXPRESSIONS = (
    rb"[^;\[][A-Za-z0-9_.\-]{3}" + _COLOUR + rb"[A-Za-z0-9_.\-]{3}",
    rb"[:=] ?" + _COLOUR + rb"(?:\\{0,3}[\"'])?[A-Za-z0-9_\-]{6}",
    rb"[A-Za-z]" + _COLOUR + rb"[:=] ?[A-Za-z0-9_\-]{6}",
    rb"\\" + _LETTER,
)
_BESIDE_A_SIGN = (1, 2)  # of the expressions: worth a look only near a telling name
_TELLING = re.compile(rb"(?i)k(?:ey|en|ie)|cre[td]|pass|pwd|auth|pw|://")
_NAME_BEFORE, _NAME_AFTER = 120, 24  # bytes around the place in which the name is, as in "x=" and a coloured --token
_HIDDEN = re.compile(rb"(?:\x1b|\\++(?:u001[bB]|x1[bB]|033))" + _CODE + rb"|\\++(?P<letter>" + _LETTER + rb")")
_BEFORE, _AFTER = 200, 400  # bytes around a code in which the rest of the secret is looked for, and up to a blank


@dataclass(frozen=True)
class PlainView:
    data: bytes
    _places: tuple[tuple[int, int, int], ...]  # of each kept stretch: start in the view, start and end in the text

    def map_back(self, span: Span) -> Span:
        """The bytes of the text that a span of the view stands for, with whole escapes."""
        start, end, name = span
        return self._place(start)[0], self._place(end - 1)[1], name

    def _place(self, position: int) -> tuple[int, int]:
        view_start, start, end = self._places[bisect.bisect_right(self._places, (position, 1 << 60, 0)) - 1]
        if end - start > 1 and self.data[view_start : view_start + 1] and self._is_escape(start, end, view_start):
            return start, end
        return start + position - view_start, start + position - view_start + 1

    def _is_escape(self, start: int, end: int, view_start: int) -> bool:
        following = bisect.bisect_right(self._places, (view_start, 1 << 60, 0))
        view_end = self._places[following][0] if following < len(self._places) else len(self.data)
        return end - start > view_end - view_start


def may_hide(number: int, text: bytes, at: int) -> bool:
    """Return whether a secret may be at the place of an expression: where a sign is, a telling name is near."""
    begin, end = max(0, at - _NAME_BEFORE), at + _NAME_AFTER
    return number not in _BESIDE_A_SIGN or _TELLING.search(text, begin, end) is not None


def make_views(text: bytes, at: Iterable[int]) -> Iterator[PlainView]:
    """Views of the stretches around these places, each from a blank to a blank."""
    for start, end in _list_stretches(text, at):
        yield _make_view(text, start, end)


def _list_stretches(text: bytes, at: Iterable[int]) -> Iterator[tuple[int, int]]:
    start, end = 0, -1
    for place in at:
        if place < end - _BEFORE:
            continue
        begin = max(0, end, text.rfind(b" ", max(0, end), max(0, place - _BEFORE)) + 1)
        stop = text.find(b" ", place + _AFTER)
        stop = stop if stop >= 0 else len(text)
        if end >= 0 and begin > end:
            yield start, end
            start = begin
        elif end < 0:
            start = begin
        end = stop
    if end >= 0:
        yield start, end


def _make_view(text: bytes, start: int, end: int) -> PlainView:
    pieces, places, length, done = list[bytes](), list[tuple[int, int, int]](), 0, start
    for hidden in _HIDDEN.finditer(text, start, end):
        if hidden.start() > done:
            pieces.append(text[done : hidden.start()])
            places.append((length, done, hidden.start()))
            length += hidden.start() - done
        if hidden["letter"]:
            pieces.append(bytes.fromhex(hidden["letter"][3:].decode()))
            places.append((length, *hidden.span()))
            length += 1
        done = hidden.end()
    if end > done:
        pieces.append(text[done:end])
        places.append((length, done, end))
    return PlainView(b"".join(pieces), tuple(places))
