"""Untouched lines come back byte for byte, changed and new ones as compact JSON that reads back the same."""

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from msgspec.structs import replace

from compaction.errors import LineNotKept
from compaction.transcripts.entries import Entry, Message, TextBlock, ToolResultBlock, Usage
from compaction.transcripts.payloads import Attachment, Boundary, MicroBoundary, PreservedSegment
from compaction.transcripts.transcript import TranscriptReader, read_transcript
from compaction.transcripts.writer import write_entry, write_items
from tests.compaction.making import make_line, result, say
from tests.compaction.recorded import each_recorded, read_recorded


def read_back(entry: Entry) -> Entry:
    (read,) = read_transcript(write_entry(entry)).entries
    return read


@each_recorded()
@pytest.mark.recorded_data
def test_recorded_entries_written_anew_read_back_the_same(path: Path) -> None:
    for entry in read_recorded(path).entries:
        assert replace(read_back(entry.changed()), raw=None) == replace(entry, raw=None)
        assert read_back(entry.changed()).fields.keys() == entry.fields.keys()


def test_a_changed_tool_result_keeps_everything_else_of_its_line() -> None:
    entry = say([result("t1", "long output")], parentUuid="u0", toolUseResult={"stdout": "long output"}, slug="s")
    assert entry.message is not None
    cleared = ToolResultBlock("t1", (TextBlock("[cleared]"),))
    written = orjson.loads(write_entry(entry.changed(message=replace(entry.message, content=(cleared,)))))
    assert written["message"]["content"] == [{"tool_use_id": "t1", "type": "tool_result", "content": "[cleared]"}]
    assert (written["parentUuid"], written["slug"], written["toolUseResult"]) == ("u0", "s", {"stdout": "long output"})


def test_entries_made_here_are_written_compactly() -> None:
    at = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
    boundary = Boundary(
        "manual", 190_531, 3_364, 0.031, 40, PreservedSegment("h", "t", "a"), ("Monitor",), "x", 187_167
    )
    made = [
        Entry("system", "compact_boundary", "b", logical_parent_uuid="u", at=at, payload=boundary),
        Entry("system", "microcompact_boundary", "m", at=at, payload=MicroBoundary("auto", 9, 8, ("t",), ("u",))),
        Entry("attachment", uuid="f", at=at, payload=Attachment("file", ("text",), "user")),
        Entry(
            "user",
            uuid="s",
            is_compact_summary=True,
            message=Message("user", (TextBlock("Summary: é"),), is_plain=True),
        ),
        Entry("assistant", uuid="a", message=Message("assistant", (TextBlock("x"),), "msg_1", "m", Usage(1, 2, 3, 3))),
    ]
    for entry in made:
        assert replace(read_back(entry), raw=None) == entry
        assert b": " not in write_entry(replace(entry, message=None))
    assert orjson.loads(write_entry(made[3]))["message"]["content"] == "Summary: é"


def test_half_characters_become_their_escape() -> None:
    line = write_entry(Entry("user", uuid="u", message=Message("user", (TextBlock("\ud83d"),))))
    assert rb"\ud83d" in line
    assert line.decode()


def test_a_line_made_here_never_joins_an_unended_one() -> None:
    read = read_transcript(make_line("user", uuid="u")[:-1])
    data = b"".join(write_items([*read.items, Entry("user", uuid="new")]))
    assert data == make_line("user", uuid="u") + b'{"type":"user","uuid":"new"}\n'


def test_a_transcript_with_a_dropped_line_is_not_written_back() -> None:
    reader = TranscriptReader(largest_line_bytes=10)
    items = tuple(reader.feed(make_line("user", uuid="u")))
    with pytest.raises(LineNotKept, match="Line 1 has 27 bytes and was not kept"):
        b"".join(write_items(items))
