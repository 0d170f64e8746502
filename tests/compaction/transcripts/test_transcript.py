"""The tolerant reader: any bytes, cut anywhere, every line kept, problems named."""

import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.transcripts.entries import Entry
from compaction.transcripts.lines import LinePosition, LineSplitter
from compaction.transcripts.transcript import TranscriptReader, read_transcript
from tests.compaction.making import make_line, write_back
from tests.compaction.recorded import each_recorded, read_recorded

USER = make_line("user", uuid="u1", message={"role": "user", "content": "hello"})
SUMMARY = make_line("summary", summary="A title", leafUuid="u1")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
known_keys = st.sampled_from(
    ["type", "subtype", "uuid", "parentUuid", "timestamp", "message", "isMeta", "attachment", "data", "compactMetadata"]
)
odd_lines = st.builds(
    lambda kind, fields: make_line(kind, **{key: value for key, value in fields.items() if key != "type"}),
    st.sampled_from(["user", "assistant", "system", "attachment", "progress", "summary", "api-request", "new-type"]),
    st.dictionaries(known_keys, json_values, max_size=5),
)
fragments = st.one_of(
    st.binary(max_size=30),
    odd_lines,
    st.sampled_from(
        [USER, SUMMARY, USER[:-1], b"\n", b"\r\n", b"// note\n", b"\x00\x00", b"\xef\xbb\xbf", b"\xf0\x9f", b"{"]
    ),
)
transcripts = st.lists(fragments, max_size=12).map(b"".join)


@settings(deadline=None)
@given(transcripts)
def test_any_bytes_are_read_and_written_back_unchanged(data: bytes) -> None:
    transcript = read_transcript(data)
    assert write_back(transcript) == data
    for entry in transcript.entries:
        assert entry.message is None or len(entry.message.content) >= 0
        assert len(entry.fields) >= 0


@settings(deadline=None)
@given(transcripts, st.lists(st.integers(0, 400), max_size=6))
def test_chunks_cut_anywhere_give_the_same_entries(data: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    reader = TranscriptReader()
    items = [item for start, stop in pairwise(places) for item in reader.feed(data[start:stop])]
    items += reader.close()
    whole = read_transcript(data)
    assert tuple(items) == whole.items
    assert reader.tail == whole.tail


@settings(deadline=None)
@given(transcripts, st.integers(0, 400))
def test_a_later_reader_resumes_where_the_first_one_stopped(data: bytes, cut: int) -> None:
    first = TranscriptReader()
    items = first.feed(data[:cut])
    second = TranscriptReader(first.position)
    items += second.feed(data[first.position.offset :])
    items += second.close()
    assert tuple(items) == read_transcript(data).items
    assert [item.line_number for item in items] == [item.line_number for item in read_transcript(data).items]


@each_recorded()
@pytest.mark.recorded_data
def test_recorded_transcripts_are_read_whole_and_written_back(path: Path) -> None:
    transcript = read_recorded(path)
    assert not transcript.problems
    assert transcript.tail is None
    assert write_back(transcript) == path.read_bytes()


def test_two_objects_on_one_line_are_two_entries_and_one_line() -> None:
    data = USER[:-1] + SUMMARY
    transcript = read_transcript(data)
    assert [entry.type for entry in transcript.entries] == ["user", "summary"]
    assert [entry.line_number for entry in transcript.entries] == [1, 1]
    assert [entry.raw for entry in transcript.entries] == [USER[:-1], SUMMARY]


def test_an_object_before_garbage_on_one_line_is_kept() -> None:
    transcript = read_transcript(USER[:-1] + b'{"type":"assis\n' + SUMMARY)
    assert [entry.type for entry in transcript.entries] == ["user", "summary"]
    assert [problem.line_number for problem in transcript.problems] == [1]
    assert transcript.problems[0].offset == len(USER) - 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"type":"user"', "Not valid JSON at character 16: Expecting ',' delimiter."),
        (b"[1, 2]", "The line holds JSON, but not an object."),
        (b'"text"', "The line holds JSON, but not an object."),
        (b"null", "The line holds JSON, but not an object."),
        (b"[" * 100_000, "The line is nested too deeply to read."),
        (b'{"type":"user","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "The line is nested too deeply to read."),
        (b'{"type":"user","x":[' + b"9" * 5_000 + b", NaN]}", "A number on this line is too long to read."),
        (b'{"type":"user","x":NaN,"message":{"content":"odd number"}}', "JSON has no number NaN."),
        (b"\xff\xfe", "Not valid JSON at character 1: Expecting value."),
    ],
)
def test_a_malformed_line_is_reported_with_number_and_reason(line: bytes, reason: str) -> None:
    transcript = read_transcript(USER + line + b"\n" + SUMMARY)
    assert [entry.type for entry in transcript.entries] == ["user", "summary"]
    assert [(problem.line_number, problem.reason) for problem in transcript.problems] == [(2, reason)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (rb'{"type":"user","message":{"content":"half \ud83d end"}}', "half ? end"),
        (b'{"type":"user","message":{"content":"bad \xff byte"}}', "bad ? byte"),
        (b'{"type":"user","message":{"content":"tab\there"}}', "tab\there"),
        (b'{"type":"user","message":{"content":"nul \\u0000 in"}}', "nul \x00 in"),
        (b'{"type":"user","x":' + b"9" * 400 + b',"message":{"content":"big"}}', "big"),
        (b'\x00\x00{"type":"user","message":{"content":"after nul"}}', "after nul"),
        (b'\xef\xbb\xbf{"type":"user","message":{"content":"marked"}}', "marked"),
        (b'{"type":"user","uuid":7,"timestamp":"soon","message":{"content":"odd kinds"}}', "odd kinds"),
    ],
)
def test_odd_lines_are_read_as_far_as_they_go(line: bytes, expected: str) -> None:
    transcript = read_transcript(line + b"\r\n")
    (entry,) = transcript.entries
    assert not transcript.problems
    assert entry.message is not None
    assert entry.message.content[0].text == expected  # type: ignore[union-attr]
    assert entry.uuid is None
    assert write_back(transcript) == line + b"\r\n"


def test_wrong_kinds_and_absurd_numbers_count_as_absent() -> None:
    usage = {"input_tokens": -3, "output_tokens": 2**60, "cache_read_input_tokens": "x", "cache_creation": 4,
             "cache_creation_input_tokens": 7, "iterations": [{"type": "message", "input_tokens": 9}, 5]}  # fmt: skip
    (entry,) = read_transcript(make_line("assistant", message={"id": 3, "model": "m", "usage": usage})).entries
    assert entry.message is not None
    assert entry.message.id is None
    read = entry.message.usage
    assert read is not None
    assert (read.input_tokens, read.output_tokens, read.cache_read_tokens) == (0, 0, 0)
    assert (read.cache_creation_tokens, read.cache_creation_5m_tokens) == (7, 7)
    assert [iteration.input_tokens for iteration in read.iterations] == [9]


def test_comments_and_blank_lines_are_kept_and_no_problem() -> None:
    data = b"// shared session\n\n  \r\n" + USER
    transcript = read_transcript(data)
    assert [item.kind for item in transcript.items if not isinstance(item, Entry)] == ["comment", "blank", "blank"]
    assert not transcript.problems
    assert write_back(transcript) == data


def test_unknown_types_are_kept() -> None:
    transcript = read_transcript(make_line("weather") * 2 + make_line("") + b"{}\n" + USER)
    assert [entry.type for entry in transcript.entries] == ["weather", "weather", "", "", "user"]


def test_a_truncated_last_line_is_the_tail_and_reading_resumes_before_it() -> None:
    reader = TranscriptReader()
    assert len(reader.feed(USER + SUMMARY[:10])) == 1
    assert not reader.close()
    assert reader.tail is not None
    assert (reader.tail.line_number, reader.tail.offset, reader.tail.raw) == (2, len(USER), SUMMARY[:10])
    assert reader.position == LinePosition(len(USER), 1)


def test_a_last_line_that_lacks_only_its_ending_is_an_entry() -> None:
    transcript = read_transcript(USER + SUMMARY[:-1])
    assert [entry.type for entry in transcript.entries] == ["user", "summary"]
    assert transcript.tail is None


def test_a_line_beyond_the_limit_is_dropped_and_named() -> None:
    reader = TranscriptReader(largest_line_bytes=200)
    long_line = make_line("user", message={"content": "x" * 500})
    items = [
        item for start in range(0, 2_000, 64) for item in reader.feed((USER + long_line + SUMMARY)[start : start + 64])
    ]
    assert [type(item).__name__ for item in items] == ["Entry", "SkippedLine", "Entry"]
    assert items[1].raw == b""
    assert items[1].reason == f"The line has {len(long_line):,} bytes, more than is kept of one line."  # type: ignore[union-attr]
    assert items[2].line_number == 3


def test_an_unended_line_holds_no_more_than_the_limit() -> None:
    splitter = LineSplitter(largest_line_bytes=1_000)
    for _ in range(100):
        assert not splitter.feed(b"y" * 900)
    assert splitter.waiting_bytes == 90_000
    assert splitter.peek() == b""


@pytest.mark.parametrize("piece", [b"{}", b"{", b'{"a":', b"[", b"\x00", b'"', b"\\", b"1 ", b"\n", b"\xff"])
def test_hostile_bytes_take_linear_time(piece: bytes) -> None:
    """Four times the bytes may take at most twelve times as long; quadratic reading would take sixteen and more."""
    small, large = piece * (15_000 // len(piece)), piece * (60_000 // len(piece))
    assert _time_reading(large) < 12 * _time_reading(small) + 0.05


def _time_reading(data: bytes) -> float:
    best = 60.0
    for _ in range(3):
        started = time.process_time()  # unlike wall-clock time, the same on a busy machine
        read_transcript(data)
        best = min(best, time.process_time() - started)
    return best


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 3_000), st.sampled_from(["content", "toolUseResult"]))
def test_no_depth_of_nesting_raises(depth: int, place: str) -> None:
    nested = b"[" * depth + b"]" * depth
    line = b'{"type":"user","message":{"content":%s},"toolUseResult":%s}\n' % (
        nested if place == "content" else b'"x"',
        nested if place == "toolUseResult" else b"{}",
    )
    for entry in read_transcript(line).entries:
        assert entry.message is not None
        assert len(entry.message.content) >= 0
        assert len(entry.fields) >= 0
