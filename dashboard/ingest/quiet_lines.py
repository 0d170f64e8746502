"""A last line without an ending: whether it is whole, and, in a file that is followed, whether it still grows.

No Django."""

import time

from compaction.transcripts.entries import Entry
from compaction.transcripts.lines import RawLine
from compaction.transcripts.reader import read_line
from dashboard.ingest.file_tail import Place, read_half_line
from dashboard.ingest.hostile_json import holds_too_much

QUIET_SECONDS = 2.0  # after this a last line without an ending is read if it is whole


def read_quiet_line(descriptor: int, place: Place) -> bytes:
    """The line, once it is whole JSON and nobody has written for a while. Empty otherwise."""
    if not place.half_line_bytes or is_young(place.modified_ns):
        return b""
    data = read_half_line(descriptor, place)
    return data if is_whole(data) else b""


def is_whole(data: bytes) -> bool:
    """Whether a line lacks nothing but its ending: other programs leave out the last one. A line that is being written
    may end like an object and be half of one."""
    if not data or holds_too_much(data):
        return False
    return all(isinstance(item, Entry) for item in read_line(RawLine(1, 0, data, len(data))))


def is_young(modified_ns: int) -> bool:
    """A time ahead of our clock is no reason to wait for ever."""
    return 0 <= time.time_ns() - modified_ns < QUIET_SECONDS * 1e9
