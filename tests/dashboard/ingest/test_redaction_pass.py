"""The one pass finds what every pattern finds when it is run over the whole text."""

import itertools
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.ingest.redaction import FORMS, Form, Redactor, plain_view
from dashboard.ingest.redaction.assignments import WORDS, read_assignment
from dashboard.ingest.redaction.forms import COOKIE
from dashboard.ingest.redaction.marks import Span, put_marks
from dashboard.ingest.redaction.search import READERS
from dashboard.ingest.redaction.stops import WINDOW
from tests.dashboard.ingest.everyday_secrets import EVERYDAY
from tests.dashboard.ingest.planted_secrets import PLANTED

REDACTOR = Redactor.default()
MOST_ROUNDS = 4
PATTERNS = [(form, re.compile(form.pattern)) for form in FORMS if form is not COOKIE]
READ = [(re.compile(rb"(?=" + expression + rb")"), read) for expression, read in READERS]
HIDDEN = [re.compile(rb"(?=(" + expression + rb"))") for expression in plain_view.EXPRESSIONS]
ANY_CASE = [re.compile(rb"(?i)(?=" + word + rb")") for word in WORDS]


def _matches_everywhere(pattern: "re.Pattern[bytes]", data: bytes) -> "Iterator[re.Match[bytes]]":
    match = pattern.search(data)
    while match:
        yield match
        match = pattern.search(data, match.start() + 1)


def _literal_end(form: Form, data: bytes, start: int) -> int:
    places = ((literal, start + back) for literal, back in itertools.product(form.literals, form.back))
    return max(at + len(literal) for literal, at in places if data.startswith(literal, at))


def _search_whole(data: bytes) -> Iterator[Span]:
    for form, pattern in PATTERNS:
        done = 0
        for match in _matches_everywhere(pattern, data):
            if _literal_end(form, data, match.start()) > done:
                done = match.end()
                yield (*match.span("secret"), form.name)
    for word in ANY_CASE:
        done = 0
        for stop in word.finditer(data):
            if stop.start() >= done:
                span, done = read_assignment(data, stop.start())
                if span:
                    yield span


def _read_whole(data: bytes) -> Iterator[Span]:
    for expression, read in READ:
        done = 0
        for stop in expression.finditer(data):
            if stop.start() >= done:
                spans, done = read(data, stop.start())
                yield from spans


def _search_all(data: bytes) -> Iterator[Span]:
    yield from (*_search_whole(data), *_read_whole(data))
    hidden = sorted(
        match.end(1) - 1
        for number, expression in enumerate(HIDDEN)
        for match in expression.finditer(data)
        if plain_view.may_hide(number, data, match.end(1) - 1)
    )
    for view in plain_view.make_views(data, hidden):
        yield from map(view.map_back, (*_search_whole(view.data), *_read_whole(view.data)))


def _redact_slowly(data: bytes) -> tuple[bytes, dict[str, int]]:
    counts: dict[str, int] = {}
    for _ in range(MOST_ROUNDS):
        spans = list(_search_all(data))
        if not spans:
            break
        data, found = put_marks(data, spans)
        for name, count in found.items():
            counts[name] = counts.get(name, 0) + count
    return data, counts


_LITERALS = [literal.decode() for form in FORMS for literal in form.literals]
_LITERALS += [
    "curl -u a:",
    "mysql -p",
    "\x1b[31m",
    "\\u001b[0m",
    "\\u0067hp_",
    "-----END RSA PRIVATE KEY",
    "Z2hwX",
    "b3BlbnNzaC1rZXktdjE",
]
_BODIES = st.text("abcdefABCDEF0123456789_-+/=.%", max_size=70)
_JOINTS = st.sampled_from(
    ["", " ", "\n", '"', "'", "=", ": ", "\\", "/", "@", "é", "--token ", "PASSWORD=", "Api_Key: ", "Bearer "]
)
_SECRETS = st.sampled_from([*(planted.text for planted in PLANTED), *(everyday.text for everyday in EVERYDAY)])


@st.composite
def _spoilt(draw: st.DrawFn) -> str:
    """A planted secret with one character changed: a near miss, or another secret."""
    text = draw(_SECRETS)
    at = draw(st.integers(0, len(text) - 1))
    return text[:at] + draw(st.sampled_from("aZ0_-+/=. ")) + text[at + 1 :]


_TEXTS = st.lists(
    st.tuples(st.one_of(_SECRETS, _spoilt(), st.sampled_from(_LITERALS), _BODIES), _JOINTS).map("".join), max_size=12
).map("".join)


@settings(max_examples=400, deadline=None)
@given(_TEXTS, st.integers(0, 2))
def test_one_pass_agrees_with_every_pattern_over_the_whole_text(text: str, depth: int) -> None:
    for _ in range(depth):
        text = json.dumps({"content": text}, ensure_ascii=False)
    redacted = REDACTOR.redact(text.encode())
    assert (redacted.data, dict(redacted.counts)) == _redact_slowly(text.encode())


@pytest.mark.parametrize("name", ["discord-token", "terraform-token", "age-secret-key", "private-key", "password"])
def test_a_secret_across_the_bound_of_two_windows_is_found(name: str) -> None:
    planted = next(planted for planted in PLANTED if planted.form == name)
    for cut in range(len(planted.text[:80])):
        before = b" " * (WINDOW - cut)
        redacted = REDACTOR.redact(before + planted.text.encode() + b" end")
        alone = REDACTOR.redact(b" " + planted.text.encode() + b" end")
        assert redacted.data[len(before) :] == alone.data[1:]
        assert redacted.counts == alone.counts == {name: 1}


def test_a_coloured_option_behind_a_sign_is_found() -> None:
    redacted = REDACTOR.redact(b"run=\x1b[31m--token kX9qLm42ZtPw7")
    assert redacted.data == b"run=\x1b[31m--token [redacted:token]"


def test_a_token_with_a_colour_across_the_bound_of_two_windows_is_found() -> None:
    token = next(planted.text for planted in PLANTED if planted.form == "github-token")
    text = f"{token[:20]}\x1b[1m\x1b[31m{token[20:]}".encode()
    for cut in range(len(text)):
        redacted = REDACTOR.redact(b" " * (WINDOW - cut) + text + b" end")
        assert redacted.counts == {"github-token": 1}, cut


@pytest.mark.parametrize(
    "token",
    [
        "whsec_2+gxHpVZlJKx0sjavZyjsG634UiG/lMh",
        "sntrys_0639f4/5d410afb5f2db032839669107579d7dad45932b1",
        "glc_eyJv/joiMTIzNDU2Iiwibi+6InRlc3QiLCJrIjoiYWJj",
    ],
)
def test_a_sign_early_in_a_base64_token_does_not_hide_it(token: str) -> None:
    assert token.encode() not in REDACTOR.redact(f"it is {token} here".encode()).data


def test_key_blocks_that_share_dashes_are_both_found() -> None:
    block = next(planted.text for planted in PLANTED if planted.form == "private-key")
    body = block.split("\n")[1]
    assert body.encode() not in REDACTOR.redact(f"-----BEGIN PRIVATE KEY-{block}".encode()).data


def test_threads_do_not_disturb_each_other() -> None:
    texts = [f"{planted.text}\n".encode() * 20 for planted in PLANTED]
    alone = [REDACTOR.redact(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            assert list(pool.map(REDACTOR.redact, texts)) == alone
