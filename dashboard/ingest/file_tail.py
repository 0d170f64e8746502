"""The end of a growing file: its new whole lines, however it was cut, rewritten or truncated since the last look.

It knows bytes alone: no Django, no JSON. The caller opens the file and keeps the place between two looks.
"""

import os
from dataclasses import dataclass, replace
from hashlib import sha256
from io import BytesIO
from itertools import islice

from compaction.transcripts.lines import LARGEST_LINE_BYTES

PIECE_BYTES = 8 * 1024 * 1024
PIECE_LINES = 20_000  # lines of transcripts have a kilobyte and more: only short ones reach this
MARK_BYTES = 4096
# A file's clock ticks every few milliseconds and moves before its size does: a younger time proves nothing.
SETTLED_AFTER_NS = 1_000_000_000
_HALF_MARK_DIGITS = 32


@dataclass(frozen=True, slots=True)
class Place:
    """How far a file was read, and how to tell that it is still the same file."""

    device: int = 0  # told, never compared: some file systems get another number at every start of the machine
    inode: int = 0
    size_bytes: int = 0
    modified_ns: int = 0
    offset: int = 0  # the start of the first line that was not delivered
    line_count: int = 0
    mark: str = ""  # digests of the first and of the last bytes that were read
    searched_to: int = 0  # no line seems to end between `offset` and here: saves searching a huge line at every look

    @property
    def mark_bytes(self) -> int:
        return min(MARK_BYTES, self.offset)

    @property
    def half_line_bytes(self) -> int:
        return max(0, self.size_bytes - self.offset)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look gave: whole lines (none, when nothing ended), and the place behind them."""

    place: Place
    data: bytes = b""
    first_line_number: int = 1
    too_long_bytes: int = 0  # of a line that no reader takes: it was stepped over
    is_again: bool = False  # another file than before under this name: it is read from its first byte
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    piece_bytes: int = PIECE_BYTES
    piece_lines: int = PIECE_LINES
    line_bytes: int = LARGEST_LINE_BYTES


def take_look(descriptor: int, known: Place, *, now_ns: int, limits: Limits | None = None) -> Look:
    """The next piece: as many whole lines as fit into it, or one line that is longer."""
    status = os.fstat(descriptor)
    head, tail = _read_ends(descriptor, known)
    is_touched = known.size_bytes == status.st_size and known.modified_ns != status.st_mtime_ns
    is_settled = status.st_mtime_ns < now_ns - SETTLED_AFTER_NS
    is_again = known.mark != "" and (
        known.inode != status.st_ino
        or known.offset > status.st_size
        or known.mark != _digest_ends(head, tail)
        or (is_touched and is_settled)  # an edit between the two ends cannot be seen otherwise
    )
    if is_again:
        known, head, tail = Place(), b"", b""
    elif known.mark and is_touched:
        return Look(known)  # written to this very moment; the size will tell more
    here = replace(
        known,
        device=status.st_dev,
        inode=status.st_ino,
        size_bytes=status.st_size,
        modified_ns=status.st_mtime_ns,
    )
    limits = limits or Limits()
    data, end = _read_lines(descriptor, here, limits)
    if end == here.offset:
        return Look(replace(here, searched_to=status.st_size), is_again=is_again)
    if data:
        data, line_count = take_lines(data, limits.piece_lines)
        end = here.offset + len(data)
    else:
        line_count = 1
    place = replace(here, offset=end, line_count=here.line_count + line_count)
    ends = ((head + data)[:MARK_BYTES], (tail + data)[-MARK_BYTES:]) if data else _read_ends(descriptor, place)
    return Look(
        replace(place, mark=_digest_ends(*ends)),
        data,
        first_line_number=here.line_count + 1,
        too_long_bytes=0 if data else end - here.offset,
        is_again=is_again,
        has_more=end < status.st_size,
    )


def read_half_line(descriptor: int, place: Place) -> bytes:
    """What stands behind the last line end, unless it is too long for any reader."""
    if place.half_line_bytes > LARGEST_LINE_BYTES:
        return b""
    return _read_exactly(descriptor, place.half_line_bytes, place.offset)


def _read_lines(descriptor: int, here: Place, limits: Limits) -> tuple[bytes, int]:
    """Whole lines and where they end. No lines: none ends before the file does, or one that is too long."""
    waiting_bytes = here.size_bytes - here.offset
    chunk = _read_exactly(descriptor, min(limits.piece_bytes, waiting_bytes), here.offset)
    if cut := chunk.rfind(b"\n") + 1:
        return chunk[:cut], here.offset + cut
    if len(chunk) < limits.piece_bytes:
        return b"", here.offset
    search_from = max(here.offset + len(chunk), min(here.searched_to, here.size_bytes))
    end = _find_line_end(descriptor, search_from, here.size_bytes, limits.piece_bytes)
    if end is None:
        return b"", here.offset
    if end - here.offset > limits.line_bytes:
        return b"", end
    line = _read_exactly(descriptor, end - here.offset, here.offset)
    return (line, end) if line.endswith(b"\n") else (b"", here.offset)  # else: truncated between the two readings


def take_lines(data: bytes, most: int) -> tuple[bytes, int]:
    """The first lines, and how many these are: each costs hundreds of bytes when it is read, however short it is.

    Reading lines finds their ends in a third of the time that counting line feeds takes."""
    sizes = list(map(len, islice(BytesIO(data), most)))
    return data[: sum(sizes)], len(sizes)


def _find_line_end(descriptor: int, start: int, end: int, step_bytes: int) -> int | None:
    for at in range(start, end, step_bytes):
        found = _read_exactly(descriptor, min(step_bytes, end - at), at).find(b"\n")
        if found >= 0:
            return at + found + 1
    return None


def _read_ends(descriptor: int, place: Place) -> tuple[bytes, bytes]:
    """The first bytes, and the last ones before the place."""
    head = _read_exactly(descriptor, place.mark_bytes, 0)
    return head, _read_exactly(descriptor, place.mark_bytes, place.offset - place.mark_bytes)


def _digest_ends(head: bytes, tail: bytes) -> str:
    return "".join(sha256(end).hexdigest()[:_HALF_MARK_DIGITS] for end in (head, tail))


def _read_exactly(descriptor: int, count: int, offset: int) -> bytes:
    """Fewer bytes only where the file ends."""
    first = os.pread(descriptor, count, offset)
    if len(first) == count or not first:
        return first
    parts = [first]
    missing = count - len(first)
    while missing and (part := os.pread(descriptor, missing, offset + count - missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)
