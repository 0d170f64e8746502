"""Planted secrets vanish wherever they stand; everything else stays byte for byte; no text makes it slow."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.ingest.redaction import ASSIGNED, FORMS, BadPattern, Redactor, find_unusable
from dashboard.ingest.redaction.own_patterns import compile_own
from dashboard.ingest.transcripts import Redaction
from tests.dashboard.ingest.everyday_secrets import EVERYDAY
from tests.dashboard.ingest.planted_secrets import PLANTED, Planted

REDACTOR = Redactor.default()
DATA = Path(__file__).parents[4] / "shared" / "data"
SECOND = 1.0
MOST_FALSE = 0.01


def _line(content: object) -> str:
    return json.dumps({"type": "user", "uuid": "0f8fad5b-d9cb-469f-a165-70867728950e", "message": {"content": content}})


def _stated(planted: Planted) -> str:
    return planted.text if re.search(r"[=: \n]", planted.text) else f"SOME_VAR={planted.text}"


PLACES: dict[str, Callable[[Planted], str]] = {
    "plain text": lambda planted: f'here it is: {planted.text} and "more" text',
    "nothing else": lambda planted: planted.text,
    "JSON string": lambda planted: _line(f"here it is: {planted.text} and more"),
    "JSON in a JSON string": lambda planted: _line(json.dumps({"stdout": f"it is: {planted.text}\nnext"})),
    "JSON in JSON in JSON": lambda planted: _line(json.dumps({"out": json.dumps({"in": f"x\n{planted.text}\ty"})})),
    "escaped slashes": lambda planted: _line(f"here it is: {planted.text} and more").replace("/", "\\/"),
    ".env in a tool result": lambda planted: _line(
        [{"type": "tool_result", "content": f"DEBUG=1\n{_stated(planted)}\nHOST=0.0.0.0\n"}]
    ),
    "shell command": lambda planted: _line(
        [{"type": "tool_use", "input": {"command": f"curl -H \"X-Thing: {planted.text}\" 'https://example.com' && ls"}}]
    ),
}


def _visible(text: str) -> str:
    """Without the escapes of any depth, so that a secret cannot hide behind them."""
    return re.sub(r"\\+n", "\n", text).replace("\\", "")


@pytest.mark.parametrize("place", PLACES)
def test_planted_secrets_vanish(place: str) -> None:
    for planted in PLANTED:
        text = PLACES[place](planted)
        redacted = REDACTOR.redact(text.encode())
        seen = _visible(redacted.data.decode())
        assert not [part for part in planted.secret.split("\n") if part in seen], planted
        assert planted.form in redacted.counts, planted
        assert sum(redacted.counts.values()) == redacted.data.count(b"[redacted:") == 1, (planted, redacted.data)
        if text.startswith('{"type"'):
            assert json.loads(redacted.data).keys() == json.loads(text).keys()
        assert REDACTOR.redact(redacted.data).data == redacted.data


def test_nested_json_stays_json() -> None:
    for planted in PLANTED:
        line = _line(json.dumps({"stdout": f"it is: {planted.text}\nnext"}))
        inner = json.loads(json.loads(REDACTOR.redact(line.encode()).data)["message"]["content"])
        assert inner["stdout"].startswith("it is: "), planted.form
        assert inner["stdout"].endswith("\nnext"), planted.form


def test_every_form_is_planted_and_there_are_forty() -> None:
    names = {form.name for form in (*FORMS, *ASSIGNED)}
    assert names == {planted.form for planted in PLANTED}
    assert len(names) >= 40
    assert all(form.what and re.fullmatch(r"[a-z0-9-]+", form.name) for form in (*FORMS, *ASSIGNED))


def test_only_the_secret_changes() -> None:
    token = next(planted.secret for planted in PLANTED if planted.form == "github-token")
    redacted = REDACTOR.redact(f'{{"a": "é\\n{token}\\u00e9", "b": 1}}'.encode())
    assert redacted.data == '{"a": "é\\n[redacted:github-token]\\u00e9", "b": 1}'.encode()
    assert dict(redacted.counts) == {"github-token": 1}


def test_the_letter_of_an_escape_is_no_start_of_a_token() -> None:
    controls = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
    tokens = [planted.text for planted in PLANTED if planted.text[0] in controls and planted.text == planted.secret]
    assert tokens
    for token in tokens:
        text = controls[token[0]] + token[1:]
        assert json.loads(REDACTOR.redact(_line(text).encode()).data)["message"]["content"] == text


def test_key_block_in_numbered_lines_of_a_read_file() -> None:
    block = next(planted for planted in PLANTED if planted.form == "private-key")
    for arrow in ("\t", "→"):
        numbered = "\n".join(f"{n:6}{arrow}{line}" for n, line in enumerate(block.text.split("\n"), 1))
        for whole in (numbered, numbered.rsplit("\n", 1)[0]):
            for text in (whole, _line(whole), json.dumps({"content": whole}, ensure_ascii=False)):
                seen = _visible(REDACTOR.redact(text.encode()).data.decode())
                assert not [line for line in block.secret.split("\n") if line in seen]


@pytest.mark.parametrize(
    "text",
    [
        "toolu_01A2b3C4d5E6f7G8h9J0kLmN",
        "msg_01XFDUDYJgAACzvnptvVoYEL req_011CNxyzABCDEFGHJKMNPQRS",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
        '{"signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds+Kk1Q=="}',
        '{"input_tokens": 12345678, "cache_read_input_tokens": 123456789, "max_tokens": 32000}',
        "password: your_password_here, token=$GITHUB_TOKEN, api_key=<your key>, secret: process.env.SECRET",
        "const token = await getToken(request.headers['x-token'])",
        "def sign(self, secret_key: str, token: str | None = None) -> bytes:",
        "public_key=04ab12cd34ef56ab12cd34ef56ab12cd34ef56 cache_key=v1-abc-123-def-456",
        "https://example.com:8080/a@b and git@github.com:acme/app.git",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n",
        "claude-sonnet-4-5-20250929 task-based-worker-queue-implementation",
        "=== RUN TestDraw/a_chart\n    --- PASS: TestDraw/a_chart_2 (0.00s)\n--- PASS: TestDraw (0.01s)",
        "git config branch.x-secrets-y.merge=refs/heads/x-secrets-y2",
        "gpg --list-secret-keys 3AA5C34371567BD2 && gpg --export-secret-subkeys 3AA5C34371567BD2!",
    ],
)
def test_what_carries_meaning_stays(text: str) -> None:
    assert REDACTOR.redact(text.encode()).data == text.encode()
    assert REDACTOR.redact(_line(text).encode()).data == _line(text).encode()


def _real_files() -> list[Path]:
    return sorted(DATA.rglob("*.jsonl"))


@pytest.mark.skipif(not _real_files(), reason="no real transcripts in ../shared/data")
def test_real_transcripts_keep_their_lines() -> None:
    lines = [line for path in _real_files() for line in path.read_bytes().splitlines()]
    changed = [line for line in lines if REDACTOR.redact(line).counts]
    assert len(changed) <= MOST_FALSE * len(lines)


_FRAGMENTS = st.one_of(
    st.sampled_from(
        ["-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "a1B2c3D4e5F6g7H8", "[redacted:x]"]
    ),
    st.sampled_from(
        ["ghp_", "sk-", "eyJ", ".eyJ", "AKIA", "npm_", "Bearer ", "$2y$05$", "Cookie: ", "u0022", "n", "漢"]
    ),
    st.sampled_from(["password", "token", "key", "secret", "auth", "://", "é", "\x00", "\n", " ", "<", ">", "]"]),
    st.sampled_from(["=", ": ", '"', "'", "\\", "/", "@", ":"]),
    st.sampled_from(["\x1b[31m", "\x1b[0m", "\\u0067", "curl -u a:", "mysql -p", "value", " is ", "|\n  ", "pw: "]),
    st.sampled_from(
        ["-----END PRIVATE KEY-----", "b3BlbnNzaC1rZXktdjE", "Z2hwX", "MIIEvQIBADANBgkqhkiG9w0BAQ", "12345678"]
    ),
)
_SECRETS = st.sampled_from([*(planted.text for planted in PLANTED), *(everyday.text for everyday in EVERYDAY)])
_TEXTS = st.lists(st.one_of(_FRAGMENTS, _SECRETS, st.text(max_size=4)), max_size=25).map("".join)


@settings(max_examples=400, deadline=None)
@given(_TEXTS, st.sampled_from(["escaped", "as it is"]), st.integers(1, 3))
def test_any_json_stays_json_and_a_second_time_changes_nothing(text: str, escaped: str, depth: int) -> None:
    data = text
    for _ in range(depth):
        data = json.dumps({"content": data}, ensure_ascii=escaped == "escaped")
    once = REDACTOR.redact(data.encode("utf-8", "surrogatepass"))
    assert json.loads(once.data.decode("utf-8", "surrogatepass")).keys() == {"content"}
    assert REDACTOR.redact(once.data).data == once.data


def _hostile() -> Iterator[str]:
    starts = {literal.decode() for form in FORMS for literal in form.literals}
    yield from sorted(starts)
    yield from (start + "a" for start in sorted(starts))
    yield from ("password=", 'password="', "token:", "token: a1", "secret=a1b2", "key", "pass ", "--token ")
    yield from (f"{word}{'a' * 20}..=a1b2c3d4e5 " for word in ("secret", "password", "token", "api_key", "aws_secret"))
    yield from ("://a:", "://a:b", "://a.windows.net/", "://a:1b@", ":\\/\\/", "Cookie: ", "Bearer 1", "<password>")
    yield from ("eyJaaaaaaaa.", "eyJaaaaaaaa.eyJ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "M.aaaaaa.")
    yield from ("-----BEGIN PRIVATE KEY-----\nAAAAAAAA", "-", "_", ".", "\\", "\\\\", '\\"', "a", "A", "é")
    yield from ("ABSK/", "ATATT3=", "xoxa-a%", "eyJaaaaaaaa=", "sntrys_a/")
    yield from ('password="\\\\\\"', "password='\\\\", 'api_key="\\/', "\\u0041", "password=\\u0041")


def test_no_text_makes_it_slow() -> None:
    """Quadratic work on 40 kB takes minutes, linear work well below the limit."""
    one_value = [
        f'{name}="{fill * 39_990}!' for name in ("password", "token") for fill in ("a", "a1", "-", ".", "/", "1")
    ]
    for text in [*one_value, *(unit * (40_000 // len(unit.encode())) for unit in _hostile())]:
        data = text.encode()
        began = time.process_time()
        REDACTOR.redact(data + b'a1B2c3D4"')
        assert time.process_time() - began < SECOND, text[:40]


def test_numbers_of_json_stay_numbers() -> None:
    line = b'{"password": 1.25e10, "token": 12345678901, "n": 123456, "s": "123456"}'
    own = Redactor.with_own({"digits": r"[0-9]{6}"})
    assert own.redact(line).data == line.replace(b'"123456"', b'"[redacted:digits]"')


def test_a_broken_line_hides_nothing_of_a_teams_own_from_the_lines_behind_it() -> None:
    own = Redactor.with_own({"berth": r"berth-[0-9]{4}"})
    lines = b'{"id":"cut berth-1000\n{"a":"berth-2000","n":1}\n{"b":"berth-3000'
    assert own.redact(lines).data == (
        b'{"id":"cut [redacted:berth]\n{"a":"[redacted:berth]","n":1}\n{"b":"[redacted:berth]'
    )


def test_a_teams_own_pattern() -> None:
    own = Redactor.with_own({"acme-ticket": r"ACME-[0-9]{6,8}", "acme-host": r"[a-z]{1,20}\.corp\.acme\.com"})
    redacted = own.redact(b'{"a": "see ACME-123456 on build.corp.acme.com"}')
    assert redacted.data == b'{"a": "see [redacted:acme-ticket] on [redacted:acme-host]"}'
    assert dict(redacted.counts) == {"acme-ticket": 1, "acme-host": 1}
    assert own.redact(redacted.data).data == redacted.data


@settings(max_examples=150, deadline=None)
@given(_TEXTS)
def test_a_teams_own_pattern_keeps_json(text: str) -> None:
    own = Redactor.with_own({"anything": r"[^a-m]{3}.{2,9}", "quote": r"\W.n"})
    data = json.dumps({"content": text}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    json.loads(own.redact(data).data.decode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("name", "pattern", "why"),
    [
        ("a", "[", "not a valid RE2 expression"),
        ("a", "x?", "matches empty text"),
        ("a", "", "matches empty text"),
        ("a", "a|", "matches empty text"),
        ("a", "x+", "has an unbounded repeat"),
        ("a", "x{2,}", "has an unbounded repeat"),
        ("a", "x++y", "has an unbounded repeat"),
        ("a", "x{,9}y", "a repeat without a lower bound"),
        ("a", r"\Qx+\E", r"uses \Q, which is not supported"),
        ("a", "[[:alpha:]]x", "has a [ inside a class"),
        ("a", r"(?:[[:alpha:][]a+\x00]|a)", "has a [ inside a class"),
        ("a", r"(a)\1", "back-reference"),
        ("a", r"(?P<x>a)(?P=x)", "back-reference"),
        ("a", "(?=a)b", "uses (?=, which is not supported"),
        ("a", "(?<!a)b", "uses (?<!, which is not supported"),
        ("a", "(?x)(a{1,9}) {1,9}b", "uses (?x, which is not supported"),
        ("a", "(?:a{1,30}){1,30}b", "too large"),
        ("a", "a{1,1001}", "not a valid RE2 expression"),
        ("a", r"\b", "matches empty text"),
        ("a", "é", "non-ASCII characters"),
        ("a", "[" * 1_000_000, "more than 500 characters"),
        ("A b", "x", "lower-case letters"),
    ],
)
def test_a_bad_pattern_is_refused_with_a_sentence(name: str, pattern: str, why: str) -> None:
    with pytest.raises(BadPattern, match=re.escape(why)):
        Redactor.with_own({name: pattern})


@pytest.mark.parametrize(
    ("pattern", "unit"),
    [
        ("a{1,99}b{1,99}c", "a"),
        ("(?:a|aa){1,40}b", "a"),
        ("(?:a?){60}a{60}b", "a"),
        ("a.{1,150}b|a", "a"),
        ("[ab]{0,60}a[ab]{60}c", "abbabaab"),
    ],
)
def test_own_patterns_take_the_same_time_per_byte(pattern: str, unit: str) -> None:
    """Backtracking never ends on these texts. The allowance is that of a busy machine."""
    own = Redactor.with_own({"own": pattern})
    for size, seconds in ((45, SECOND), (16_000, 20 * SECOND), (64_000, 80 * SECOND)):
        began = time.thread_time()
        own.redact((unit * size)[:size].encode())
        assert time.thread_time() - began < seconds / 4, size


def test_accepted_patterns_have_bounded_matches() -> None:
    """Finding all matches is linear because no match is longer than the compiled pattern."""
    for pattern in ("[+*]{3}", r"\+\*a", "[]+*]x", r"[\]+]a", r"a\{2,\}", r"[\[a]x", "(?:ab?){1,9}"):
        compiled = compile_own("own", pattern)
        for character in (b"a", b"+", b"*", b"]", b"x"):
            assert all(end - start <= compiled.size for start, end in compiled.find(character * 2_000)), pattern


@given(st.text("[]^a+*\\:-{}1,|()", max_size=14))
def test_no_accepted_pattern_has_an_endless_match(pattern: str) -> None:
    """Whatever brackets, escapes and repeats are put together, RE2 reads them as the check does."""
    try:
        compiled = compile_own("own", pattern)
    except BadPattern:
        return
    for unit in ("a", "[", "]", "+", ":", pattern):
        text = (unit * 2_000)[:2_000].encode()
        assert all(end - start <= compiled.size for start, end in compiled.find(text)), pattern


@pytest.mark.parametrize("pattern", ["[a-z]", "a", "red", "e", ".", "[redact:]{1,9}", r"[^ \n]"])
@pytest.mark.parametrize("unit", ["a", "a b ", '"a",', "[redacted:x]", "red", "B-1 "])
def test_pattern_that_matches_much_makes_no_text_longer_than_twice(pattern: str, unit: str) -> None:
    own = Redactor.with_own({"a" * 40: pattern})
    text = (unit * 5_000).encode()
    once = own.redact(text)
    assert len(once.data) <= 2 * len(text)
    assert own.redact(once.data).data == once.data
    line = b'{"type":"user","message":{"content":"' + text.replace(b'"', b"'") + b'"}}'
    assert isinstance(json.loads(own.redact(line).data), dict)


def test_text_that_a_pattern_matches_everywhere_is_withheld_line_by_line() -> None:
    redaction = Redaction((("letters", "[a-z]"),))
    busy = b'{"content":"' + b"a b " * 90 + b'"}'
    lines, counts = redaction.redact_lines([b'{"N":"A"}', busy, b'{"N":"b"}'])
    assert lines == [b'{"N":"A"}', b'{"withheld":"[redacted:letters]"}', b'{"N":"[redacted:letters]"}']
    assert counts == {"letters": 2}


def test_own_pattern_beside_characters_of_several_bytes() -> None:
    own = Redactor.with_own({"badge": "(?i)b-[0-9]{3}", "two": "a..z"})
    assert (
        own.redact("é漢b-123é B-456漢 aéz".encode()).data.decode()
        == "é漢[redacted:badge]é [redacted:badge]漢 [redacted:two]"
    )


def test_patterns_are_bounded_together() -> None:
    with pytest.raises(BadPattern, match="together they compile to more than"):
        Redactor.with_own({f"own-{n}": "[a-z]{200}x" for n in range(6)})


def test_stored_patterns_that_cannot_be_used_are_named_and_left_out() -> None:
    stored = {"badge": "B-[0-9]{6}", "behind": "(?<=x)B-[0-9]{6}"}
    assert list(find_unusable(stored)) == ["behind"]
    assert Redactor.with_usable(stored).redact(b"xB-123456").data == b"x[redacted:badge]"
