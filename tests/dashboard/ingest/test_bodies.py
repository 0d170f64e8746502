import gzip
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.ingest.bodies import TRANSCRIPT_LINES, BodyRefused, unpack_body
from dashboard.ingest.file_tail import PIECE_LINES
from dashboard.ingest.observed import MOST_PROBLEMS, Piece, Rules, merge_prepared
from dashboard.ingest.transcripts import MANY_UNREADABLE, MOST_UNREADABLE, prepare
from dashboard.ingest.uploads import cut_at_lines
from tests.dashboard.ingest.conversation import make_conversation

RULES = Rules(keeps_content=True, digest_key=b"k" * 32)
LINE = b'{"type":"user","uuid":"u1","sessionId":"s1"}\n'


def test_gzip_and_plain_bodies_are_read() -> None:
    assert unpack_body(LINE, "") == LINE
    assert unpack_body(LINE, "identity") == LINE
    assert unpack_body(gzip.compress(LINE), "GZIP") == LINE
    assert unpack_body(gzip.compress(LINE) + gzip.compress(LINE), "gzip") == LINE * 2


@pytest.mark.parametrize(
    ("data", "encoding", "status"),
    [
        pytest.param(LINE, "br", 415, id="another encoding"),
        pytest.param(gzip.compress(gzip.compress(LINE)), "gzip, gzip", 415, id="gzip twice"),
        pytest.param(b"not gzip at all", "gzip", 400, id="no gzip"),
        pytest.param(gzip.compress(LINE)[:-6], "gzip", 400, id="half a gzip"),
        pytest.param(b"x" * 1001, "", 413, id="too large"),
        pytest.param(gzip.compress(b"x" * 1001), "gzip", 413, id="too large inside"),
    ],
)
def test_bad_bodies_are_refused_with_a_status_and_a_sentence(data: bytes, encoding: str, status: int) -> None:
    with pytest.raises(BodyRefused) as refused:
        unpack_body(data, encoding, limit_bytes=1000)
    assert refused.value.status == status
    assert str(refused.value).endswith(".")


def test_a_gzip_bomb_is_stopped_at_the_limit() -> None:
    bomb = gzip.compress(bytes(256 * 1024 * 1024), compresslevel=1)
    tracemalloc.start()
    with pytest.raises(BodyRefused):
        unpack_body(bomb, "gzip", limit_bytes=16 * 1024 * 1024)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * 1024 * 1024


def test_a_gzip_of_millions_of_lines_is_stopped_at_the_limit() -> None:
    bomb = gzip.compress(b"x\n" * (30 * 1024 * 1024), compresslevel=1)
    tracemalloc.start()
    with pytest.raises(BodyRefused, match=r"^The body has more than 100,000 lines\. ") as refused:
        unpack_body(bomb, "gzip", most_lines=TRANSCRIPT_LINES)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused.value.status == 413
    assert peak < 10 * 1024 * 1024


def test_many_unreadable_lines_are_counted_and_the_first_of_them_kept() -> None:
    same = prepare(Piece(b"x\n" * 5_000 + LINE, "words", "s"), RULES)
    assert (same.line_count, same.problem_count, len(same.problems), same.drops) == (5_001, 5_000, MOST_PROBLEMS, {})
    assert [len(session.lines) for session in same.sessions] == [2]
    others = prepare(Piece(b"".join(b"x%d\n" % number for number in range(5_000)) + LINE, "words", "s"), RULES)
    assert (others.line_count, others.problem_count, len(others.problems)) == (5_001, 5_000, MOST_PROBLEMS)
    assert others.drops == {MANY_UNREADABLE: 5_000 - MOST_UNREADABLE}
    assert [len(session.lines) for session in others.sessions] == [MOST_UNREADABLE + 1]
    merged = merge_prepared([same, others])
    assert (merged.problem_count, len(merged.problems)) == (10_000, MOST_PROBLEMS)


def test_unreadable_line_is_kept_in_every_session_that_has_it() -> None:
    lines = b'{"type":"user","uuid":"a","sessionId":"s1"}\nx\n{"type":"user","uuid":"b","sessionId":"s2"}\nx\n'
    prepared = prepare(Piece(lines, "two sessions"), RULES)
    assert [len(session.lines) for session in prepared.sessions] == [2, 2]


HOSTILE = {
    "deep": b'{"type":"user","sessionId":"s","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "long number": b'{"type":"user","sessionId":"s","x":' + b"9" * 1_000_000 + b"}\n",
    "not a number": b'{"type":"user","sessionId":"s","x":NaN}\n',
    "lone surrogate": b'{"type":"user","sessionId":"s","uuid":"u","cwd":"\\ud800"}\n',
    "nul": b'{"type":"user","sessionId":"s\\u0000","uuid":"u\\u0000","cwd":"/a\\u0000b"}\n',
    "many keys": b'{"type":"user","sessionId":"s",' + b",".join(b'"k%d":1' % n for n in range(1_000_000)) + b"}\n",
    "nested gzip": gzip.compress(gzip.compress(LINE)),
    "huge tokens": json.dumps(
        {"type": "assistant", "sessionId": "s", "message": {"id": "m", "usage": {"output_tokens": 10**30}}}
    ).encode(),
    "negative tokens": json.dumps(
        {"type": "assistant", "sessionId": "s", "message": {"id": "m", "usage": {"output_tokens": -5}}}
    ).encode(),
    "wrong kinds": b'{"type":7,"uuid":[],"sessionId":{},"message":"x","timestamp":1e400}\n',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_lines_are_read_or_named_never_raised(name: str) -> None:
    prepared = prepare(Piece(HOSTILE[name], name, "s"), RULES)
    facts = [line.fact for session in prepared.sessions for line in session.lines]
    assert len(facts) + sum(prepared.drops.values()) >= 1
    assert all(fact.response is None or 0 <= fact.response.usage.output_tokens < 2**53 for fact in facts)


def test_line_of_too_many_values_is_dropped_and_named() -> None:
    """Also the last one, without an ending; a text may hold as many commas as it likes."""
    line = b'{"type":"user","sessionId":"s","message":{"role":"user","content":%b}}'
    values, text = line % (b"[%b0]" % (b"0," * 999_999)), line % (b'"%b"' % (b"a," * 999_999))
    prepared = prepare(Piece(b"\n".join((values, text, values)), "many", "s"), RULES)
    reason = "The line holds more than 100,000 values."
    assert [(problem.line_number, problem.reason) for problem in prepared.problems] == [(1, reason), (3, reason)]
    assert prepared.drops == {"line too long to keep": 2}
    assert [len(session.lines) for session in prepared.sessions] == [1]


@pytest.mark.parametrize(
    ("number", "reason"),
    [(b"NaN", "JSON has no number NaN."), (b"9" * 1_000_000, "A number on this line has more than 4,000 digits.")],
)
def test_line_with_a_number_that_nobody_can_read_is_counted_and_named(number: bytes, reason: str) -> None:
    """A text may hold as many digits as it likes."""
    line = b'{"type":"user","sessionId":"s","message":{"role":"user","content":%b}}\n'
    prepared = prepare(Piece(line % number + line % (b'"%b"' % (b"9" * 1_000_000)), "numbers", "s"), RULES)
    assert [(problem.line_number, problem.reason) for problem in prepared.problems] == [(1, reason)]
    assert prepared.line_count == 2


@pytest.mark.parametrize("year", ["0001", "1999", "2200", "9999"])
def test_time_that_is_none_is_forgotten_and_its_line_kept(year: str) -> None:
    talk = make_conversation()
    data = talk.data.replace(b'"timestamp":"2026', f'"timestamp":"{year}'.encode())
    (session,) = prepare(Piece(data, "odd", "s"), RULES).sessions
    assert len(session.lines) == len(talk.lines)
    assert {line.fact.at for line in session.lines} == {None}


@given(st.binary(max_size=400))
def test_any_bytes_are_prepared_without_an_error(data: bytes) -> None:
    prepared = prepare(Piece(data, "fuzz", "s"), RULES)
    assert prepared.line_count >= prepared.problem_count


@given(st.binary(max_size=200))
def test_pieces_are_the_whole_and_end_at_line_ends(data: bytes) -> None:
    pieces = list(cut_at_lines(data))
    assert b"".join(pieces) == data
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


def test_pieces_hold_so_many_lines_and_no_more() -> None:
    pieces = list(cut_at_lines(b"x\n" * (2 * PIECE_LINES) + b"half"))
    assert [piece.count(b"\n") for piece in pieces] == [PIECE_LINES, PIECE_LINES, 0]
    assert b"".join(pieces).endswith(b"x\nhalf")
