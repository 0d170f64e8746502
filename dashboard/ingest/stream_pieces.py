"""What comes through a pipe, cut into pieces of whole lines. No Django here."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from compaction.transcripts.lines import LineSplitter, RawLine
from dashboard.ingest.decoding import tell_too_long
from dashboard.ingest.file_tail import PIECE_LINES
from dashboard.ingest.looks import PIECE_BYTES
from dashboard.ingest.observed import Piece, Prepared

CHUNK_BYTES = 256 * 1024  # all lines of it are held, however short they are


def read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def cut_stream(chunks: Iterable[bytes], name: str) -> Iterator[Piece | Prepared]:
    """Pieces; a line that is too long for any reader becomes the report of it."""
    gathered: list[bytes] = []
    size_bytes, first_line_number = 0, 1
    for line in _split(chunks):
        if gathered and (size_bytes >= PIECE_BYTES or len(gathered) >= PIECE_LINES or line.is_dropped):
            yield Piece(b"".join(gathered), name, first_line_number=first_line_number)
            gathered, size_bytes = [], 0
        if line.is_dropped:
            yield tell_too_long(name, line.number, line.size_bytes)
            continue
        first_line_number = first_line_number if gathered else line.number
        gathered.append(line.raw)
        size_bytes += line.size_bytes
    if gathered:
        yield Piece(b"".join(gathered), name, first_line_number=first_line_number)


def _split(chunks: Iterable[bytes]) -> Iterator[RawLine]:
    splitter = LineSplitter()
    for chunk in chunks:
        yield from splitter.feed(chunk)
    if last := splitter.finish():
        yield last
