"""Splits a stream of bytes into lines: chunks may end anywhere, memory per line is bounded, nothing is decoded."""

from dataclasses import dataclass
from io import BytesIO

import msgspec

# A request to the Messages API is at most 32 MB; a line holds a tool result twice (message and toolUseResult).
LARGEST_LINE_BYTES = 128 * 1024 * 1024
_LINE_FEED = ord("\n")


# A struct without cycles (gc=False), because one is made for every line.
class RawLine(msgspec.Struct, frozen=True, gc=False):
    """One line with its ending, where it starts in the file, and its size (larger than `raw` when it was dropped)."""

    number: int
    offset: int
    raw: bytes
    size_bytes: int

    @property
    def is_dropped(self) -> bool:
        """Return whether the line was too long to keep: only its size is known."""
        return self.size_bytes != len(self.raw)


@dataclass(frozen=True, slots=True)
class LinePosition:
    """Where reading can resume: the first byte not yet consumed, and how many lines lie before it."""

    offset: int = 0
    line_count: int = 0


class LineSplitter:
    """Collects chunks and returns whole lines; an unended line waits for the next chunk."""

    def __init__(self, position: LinePosition | None = None, *, largest_line_bytes: int = LARGEST_LINE_BYTES) -> None:
        self._position = position or LinePosition()
        self._offset = self._position.offset
        self._line_count = self._position.line_count
        self._largest = largest_line_bytes
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0

    @property
    def position(self) -> LinePosition:
        """The start of the line that has not ended yet."""
        return LinePosition(self._offset, self._line_count)

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of an unended line have arrived."""
        return self._waiting_bytes

    def feed(self, chunk: bytes) -> list[RawLine]:
        """Return the lines that this chunk completes."""
        lines: list[RawLine] = []
        number, offset, largest = self._line_count, self._offset, self._largest
        for piece in BytesIO(chunk):
            size_bytes = len(piece)
            if size_bytes <= largest and piece[-1] == _LINE_FEED and not self._waiting_bytes:
                number += 1
                lines.append(RawLine(number, offset, piece, size_bytes))
                offset += size_bytes
                continue
            self._line_count, self._offset = number, offset
            self._hold(piece)
            if piece[-1] == _LINE_FEED:
                lines.append(self._release())
            number, offset = self._line_count, self._offset
        self._line_count, self._offset = number, offset
        return lines

    def finish(self) -> RawLine | None:
        """Return the last line when it has no ending, or None; afterwards the position is after it."""
        return self._release() if self._waiting_bytes else None

    def peek(self) -> bytes:
        """Return what has arrived of the line that has not ended yet; empty when it is too long to keep."""
        return b"".join(self._pieces)

    def _hold(self, piece: bytes) -> None:
        self._waiting_bytes += len(piece)
        if self._waiting_bytes > self._largest:
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    def _release(self) -> RawLine:
        self._line_count += 1
        line = RawLine(self._line_count, self._offset, b"".join(self._pieces), self._waiting_bytes)
        self._offset += self._waiting_bytes
        self._pieces.clear()
        self._waiting_bytes = 0
        return line
