"""Segments: many lines packed into one row, facts and content apart, each compressed. No Django here."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import zstandard

from compaction.cache.facts import LineFact, pack_facts, unpack_facts
from dashboard.ingest.observed import ObservedLine

# Large enough to compress well, small enough that a line is found and a growing tail rewritten in a millisecond.
SEGMENT_BYTES = 256 * 1024
_LEVEL = 3
_FACTS_LEVEL = 1  # facts get no smaller by more of it
_LARGEST_CONTENT = 1024 * 1024 * 1024  # one line may be large; a forged frame must not claim more


@dataclass(frozen=True, slots=True)
class Segment:
    """The columns of a segment's row, but for its session and number."""

    facts: bytes
    content: bytes | None
    entry_count: int
    raw_bytes: int
    redacted_count: int
    last_at: datetime | None


class _Compressors(threading.local):
    """One per thread, which none can share: making one takes longer than compressing a segment's facts."""

    def __init__(self) -> None:
        self.usual = zstandard.ZstdCompressor(level=_LEVEL)
        self.of_facts = zstandard.ZstdCompressor(level=_FACTS_LEVEL)


_COMPRESSORS = _Compressors()


def compress(data: bytes) -> bytes:
    return _COMPRESSORS.usual.compress(data)


def expand(data: bytes | memoryview) -> bytes:
    return zstandard.ZstdDecompressor().decompress(bytes(data), max_output_size=_LARGEST_CONTENT)


def pack_segment(lines: Sequence[ObservedLine]) -> Segment:
    facts = [line.fact for line in lines]
    contents = [line.content for line in lines]
    kept = None if contents.count(None) == len(contents) else [content or b"" for content in contents]
    return Segment(
        facts=_COMPRESSORS.of_facts.compress(pack_facts(facts)),
        content=None if kept is None else compress(b"\n".join(kept)),
        entry_count=len(facts),
        raw_bytes=sum([fact.size_bytes for fact in facts]),
        redacted_count=sum([fact.is_redacted for fact in facts]),
        last_at=max([fact.at for fact in facts if fact.at], default=None),
    )


def read_segment_facts(facts: bytes | memoryview) -> list[LineFact]:
    return unpack_facts(expand(facts))


def read_segment_lines(facts: bytes | memoryview, content: bytes | memoryview | None) -> list[ObservedLine]:
    known = read_segment_facts(facts)
    if content is None:
        return [ObservedLine(fact) for fact in known]
    lines = expand(content).split(b"\n")
    return [ObservedLine(fact, line) for fact, line in zip(known, lines, strict=True)]


def cut_lines(lines: Iterable[ObservedLine]) -> Iterator[list[ObservedLine]]:
    """Lines in stretches of about one segment; the last one may be short."""
    stretch: list[ObservedLine] = []
    size_bytes = 0
    for line in lines:
        stretch.append(line)
        size_bytes += line.fact.size_bytes
        if size_bytes >= SEGMENT_BYTES:
            yield stretch
            stretch, size_bytes = [], 0
    if stretch:
        yield stretch
