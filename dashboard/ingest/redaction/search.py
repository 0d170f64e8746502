"""Where in bytes the secrets are: one pass stops at what gives secrets away, and the exact patterns run only there."""

import re
from collections.abc import Callable, Iterator
from functools import partial

from dashboard.ingest.redaction import commands, encoded, key_bodies, plain_view
from dashboard.ingest.redaction.assignments import WORDS, read_assignment
from dashboard.ingest.redaction.forms import COOKIE, FORMS, URL_GUARD, URL_STARTS
from dashboard.ingest.redaction.marks import Span
from dashboard.ingest.redaction.stops import Stops

_Tries = tuple[tuple[int, int, "re.Pattern[bytes]"], ...]  # the number of the form, the literal's length, the pattern
Reader = Callable[
    [bytes, int], tuple[list[Span], int]
]  # the text and a place to the spans and the end of what was read


def _tries_by_expression() -> dict[bytes, _Tries]:
    tries: dict[bytes, _Tries] = {}
    for rank, form in enumerate(FORMS):
        if form is COOKIE:
            continue  # found with the words of telling names
        for literal in form.literals:
            expression = re.escape(literal) + form.after
            tries[expression] = (*tries.get(expression, ()), (rank, len(literal), re.compile(form.pattern)))
    return tries


def _find_unencoded(data: bytes) -> list[Span]:
    return _find(data, decodes=False)[0]


def _list_readers() -> Iterator[tuple[bytes, Reader]]:
    """What is found with more than one pattern: keys without a first line, commands, base64."""
    for number, expression in enumerate(key_bodies.EXPRESSIONS):
        yield expression, partial(key_bodies.read_key_body, number)
    for number, expression in enumerate(commands.EXPRESSIONS):
        yield expression, partial(commands.read_command, number)
    for number, expression in enumerate(encoded.EXPRESSIONS):
        yield expression, partial(encoded.read_encoded, number, _find_unencoded)


_BY_EXPRESSION = _tries_by_expression()
_TRIES = tuple(_BY_EXPRESSION.values())
_URL_GUARD = re.compile(URL_GUARD)
_URL_NUMBERS = frozenset(
    number for number, expression in enumerate(_BY_EXPRESSION) if expression in map(re.escape, URL_STARTS)
)
READERS: tuple[tuple[bytes, Reader], ...] = tuple(_list_readers())
_FIRST_READER = len(_TRIES)
_FIRST_ENCODED = _FIRST_READER + len(key_bodies.EXPRESSIONS) + len(commands.EXPRESSIONS)
_FIRST_WORD = _FIRST_READER + len(READERS)
_FIRST_HIDDEN = _FIRST_WORD + len(WORDS)
_STOPS = Stops((*_BY_EXPRESSION, *(expression for expression, _ in READERS)), WORDS, plain_view.EXPRESSIONS)


def find_known(data: bytes) -> list[Span]:
    """The forms of the table; of two that find the same bytes the one that comes first names them."""
    spans, hidden = _find(data, decodes=True)
    if hidden:
        for view in plain_view.make_views(data, hidden):
            spans += map(view.map_back, _find(view.data, decodes=True)[0])
    return spans


def _find(data: bytes, *, decodes: bool) -> tuple[list[Span], list[int]]:
    """The spans, and where colour codes and escaped letters may be part of a secret.

    What is found is read once: a literal in the last match of its own form is passed over, or many in one value would
    be quadratic. One that reaches beyond it is not: key blocks may share their dashes.
    """
    found: list[tuple[int, Span]] = []
    hidden: list[int] = []
    stops = _STOPS.find(data)
    if not stops:
        return [], hidden
    done: dict[int, int] = {}  # by form or other kind of place: up to where it was read
    for at, number in stops:
        if number < _FIRST_READER:
            found += _try_forms(data, at, number, done)
            continue
        if number >= _FIRST_HIDDEN:
            if plain_view.may_hide(number - _FIRST_HIDDEN, data, at):
                hidden.append(at)
            continue
        rank = len(FORMS) + number
        if at < done.get(rank, 0):
            continue
        if number >= _FIRST_WORD:
            span, done[rank] = read_assignment(data, at)
            if span:
                found.append((rank, span))
        elif decodes or number < _FIRST_ENCODED:
            spans, done[rank] = READERS[number - _FIRST_READER][1](data, at)
            found += ((rank, span) for span in spans)
    found.sort()
    return [span for _, span in found], hidden


def _try_forms(data: bytes, at: int, number: int, done: dict[int, int]) -> Iterator[tuple[int, Span]]:
    if number in _URL_NUMBERS and not _URL_GUARD.match(data, at):
        return
    for rank, length, pattern in _TRIES[number]:
        if at + length <= done.get(rank, 0):
            continue
        form = FORMS[rank]
        for back in form.back:
            match = pattern.match(data, at - back) if at >= back else None
            if match:
                done[rank] = match.end()
                yield rank, (*match.span("secret"), form.name)
