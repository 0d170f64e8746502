"""Attachments of files: how much of the file each brings."""

import json

import pytest

from compaction.transcripts.attachments import Extent, classify_extent
from compaction.transcripts.transcript import read_transcript


def brought(**attachment: object) -> Extent | None:
    line = {"type": "attachment", "uuid": "a", "attachment": attachment}
    (entry,) = read_transcript(json.dumps(line).encode() + b"\n").entries
    return classify_extent(entry)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"numLines": 7, "totalLines": 7}, Extent.WHOLE),
        ({"numLines": 7, "totalLines": 90}, Extent.CUT),
        ({"numLines": 7}, None),
        ({"numLines": "7", "totalLines": 90}, None),
        ({}, None),
    ],
)
def test_lines_shown_are_held_against_all_of_them(counts: dict[str, object], expected: Extent | None) -> None:
    assert brought(type="file", filename="/a.py", content={"type": "text", "file": {"content": "x", **counts}}) is (
        expected
    )


def test_file_by_its_name_alone_is_only_named() -> None:
    assert brought(type="compact_file_reference", filename="/a.py") is Extent.NAMED


def test_client_that_says_it_cut_is_believed() -> None:
    assert brought(type="file", filename="/a.py", content="x", truncated=True) is Extent.CUT


def test_what_is_no_file_has_no_extent() -> None:
    assert brought(type="date", date="2026-11-02") is None
    (entry,) = read_transcript(b'{"type": "user", "uuid": "u", "message": {"content": "hi"}}\n').entries
    assert classify_extent(entry) is None
