"""Reads a whole transcript, or one that is still being written, chunk by chunk; reading can be resumed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compaction.transcripts.entries import Entry, Item, SkippedLine
from compaction.transcripts.lines import LARGEST_LINE_BYTES, LinePosition, LineSplitter, RawLine
from compaction.transcripts.reader import read_line


@dataclass(frozen=True, slots=True)
class IncompleteTail:
    """The last line has no ending and does not read as JSON: a write under way, or a cut file."""

    line_number: int
    offset: int
    raw: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that was read, in file order."""

    items: tuple[Item, ...]
    tail: IncompleteTail | None = None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The lines that could be read."""
        return tuple(item for item in self.items if isinstance(item, Entry))

    @property
    def problems(self) -> tuple[SkippedLine, ...]:
        """The lines that could not be read, with number and reason."""
        return tuple(item for item in self.items if isinstance(item, SkippedLine) and item.is_problem)


class TranscriptReader:
    """Reads a transcript chunk by chunk; chunks may be cut anywhere, even inside a character."""

    def __init__(
        self,
        position: LinePosition | None = None,
        *,
        largest_line_bytes: int = LARGEST_LINE_BYTES,
    ) -> None:
        self._splitter = LineSplitter(position, largest_line_bytes=largest_line_bytes)
        self.tail: IncompleteTail | None = None

    @property
    def position(self) -> LinePosition:
        """Where a later reader starts, so that nothing is lost or read twice."""
        return self._splitter.position

    def feed(self, chunk: bytes) -> list[Item]:
        """Return the items of the lines completed by this chunk."""
        items: list[Item] = []
        for line in self.split(chunk):
            items += read_line(line)
        return items

    def split(self, chunk: bytes) -> list[RawLine]:
        """Return the lines completed by this chunk, unread."""
        return self._splitter.feed(chunk)

    def close(self) -> Sequence[Item]:
        """Return the items of a last line without ending; an unreadable one becomes the tail, after the position."""
        position = self._splitter.position
        raw, size_bytes = self._splitter.peek(), self._splitter.waiting_bytes
        if not size_bytes:
            return ()
        items = read_line(RawLine(position.line_count + 1, position.offset, raw, size_bytes))
        if any(isinstance(item, SkippedLine) and item.is_problem for item in items):
            self.tail = IncompleteTail(position.line_count + 1, position.offset, raw, size_bytes)
            return ()
        self._splitter.finish()
        return items


def read_transcript(data: bytes | Iterable[bytes]) -> Transcript:
    """Return all of a transcript; never raises for what the bytes hold."""
    reader = TranscriptReader()
    items: list[Item] = []
    for chunk in (data,) if isinstance(data, bytes) else data:
        items.extend(reader.feed(chunk))
    items.extend(reader.close())
    return Transcript(tuple(items), reader.tail)
