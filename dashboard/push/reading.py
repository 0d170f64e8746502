"""One look at one transcript: its new lines made ready to leave this machine, and the place behind them."""

import os
import time
from dataclasses import dataclass

from compaction.errors import AgentMetaUnreadable
from compaction.transcripts.subagents import read_agent_meta
from dashboard.ingest.decoding import LARGEST_META_BYTES, tell_too_long
from dashboard.ingest.file_tail import Limits, Place, take_look
from dashboard.ingest.observed import Piece, Prepared, Rules, merge_prepared
from dashboard.ingest.quiet_lines import is_young, read_quiet_line
from dashboard.ingest.transcript_folders import FoundFile, opened_file
from dashboard.ingest.transcripts import name_session, prepare, prepare_agent_meta
from dashboard.push.outbox import KnownFile

PIECE_BYTES = 4 * 1024 * 1024
_LIMITS = Limits(piece_bytes=PIECE_BYTES)


@dataclass(frozen=True, slots=True)
class Reading:
    prepared: Prepared
    known: KnownFile
    size_bytes: int = 0
    has_more: bool = False
    is_young: bool = False  # somebody may be writing to it this very moment


def read_on(found: FoundFile, known: KnownFile, rules: Rules) -> Reading:
    """Raises OSError for a file that cannot be read."""
    if found.is_meta:
        return _read_meta(found, rules)
    with opened_file(found.root, found.relative) as descriptor:
        look = take_look(descriptor, known.place, now_ns=time.time_ns(), limits=_LIMITS)
        half_line = b"" if look.has_more else read_quiet_line(descriptor, look.place)
    name = os.fsencode(found.path).decode("utf-8", "backslashreplace")
    parts = []
    if look.too_long_bytes:
        parts.append(tell_too_long(name, look.first_line_number, look.too_long_bytes))
    if look.data:
        parts.append(prepare(Piece(look.data, name, *name_session(name), look.first_line_number), rules))
    if half_line:
        # The place stays before it: with its ending, or another object behind it, it is sent once more.
        piece = Piece(half_line + b"\n", name, *name_session(name), look.place.line_count + 1)
        parts.append(prepare(piece, rules))
    is_read = not look.has_more and len(half_line) == look.place.half_line_bytes
    return Reading(
        merge_prepared(parts),
        KnownFile(look.place, is_read=is_read),
        size_bytes=len(look.data) + len(half_line),
        has_more=look.has_more,
        is_young=not look.has_more and is_young(max(found.modified_ns, look.place.modified_ns)),
    )


def _read_meta(found: FoundFile, rules: Rules) -> Reading:
    with opened_file(found.root, found.relative) as descriptor:
        status = os.fstat(descriptor)
        data = os.pread(descriptor, LARGEST_META_BYTES, 0)
    place = Place(inode=status.st_ino, size_bytes=status.st_size, modified_ns=status.st_mtime_ns, offset=status.st_size)
    session_id, agent_id = name_session(found.path)
    prepared = Prepared(found.path, ())
    is_whole = True
    try:
        meta = read_agent_meta(data)
    except AgentMetaUnreadable:
        is_whole = not is_young(status.st_mtime_ns)  # half of it may be on its way
        if is_whole:
            prepared = Prepared(found.path, (), drops={"sub-agent description unreadable": 1})
    else:
        if session_id is not None and agent_id is not None:
            prepared = prepare_agent_meta(session_id, agent_id, meta, rules)
    return Reading(prepared, KnownFile(place, is_read=is_whole), len(data), is_young=is_young(status.st_mtime_ns))
