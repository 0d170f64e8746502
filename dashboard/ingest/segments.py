"""Segments: many lines packed into one row, facts and content apart, each compressed. No Django here."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

import zstandard

from compaction.timeline.observations import LineKind, Observation, pack_observations, unpack_observations
from dashboard.ingest.observed import ObservedLine
from dashboard.ingest.redaction.marks import MARK_START, MARKS

# Large enough to compress well, small enough that a line is found and a growing tail rewritten in a millisecond.
SEGMENT_BYTES = 256 * 1024
_LEVEL = 3
_FACTS_LEVEL = 1  # facts get no smaller by more of it
# Names of rules counted in one text: far more than there are, but what is sent as redacted may hold made-up marks.
_MOST_RULES, _MOST_COUNTS = 200, 1_000
_LARGEST_CONTENT = 1024 * 1024 * 1024  # one line may be large; a forged frame must not claim more

DayMarks: TypeAlias = Mapping[tuple[date, str], int]  # day and rule -> marks


@dataclass(frozen=True, slots=True)
class Segment:
    """The columns of a segment's row, but for its session and number; and its marks, which are rows of their own."""

    facts: bytes
    content: bytes | None
    entry_count: int
    raw_bytes: int
    redacted_count: int
    last_at: datetime | None
    marks: DayMarks

    def to_columns(self) -> dict[str, Any]:
        """Return the values of the row."""
        return {
            "facts": self.facts,
            "content": self.content,
            "entry_count": self.entry_count,
            "raw_bytes": self.raw_bytes,
            "redacted_count": self.redacted_count,
            "last_at": self.last_at,
        }


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
    redacted_count = sum([fact.is_redacted for fact in facts])
    kept = None if contents.count(None) == len(contents) else [content or b"" for content in contents]
    return Segment(
        facts=_COMPRESSORS.of_facts.compress(pack_observations(facts)),
        content=None if kept is None else compress(b"\n".join(kept)),
        entry_count=len(facts),
        raw_bytes=sum([fact.size_bytes for fact in facts]),
        redacted_count=redacted_count,
        last_at=max([fact.at for fact in facts if fact.at], default=None),
        marks=count_line_marks(lines) if redacted_count and kept is not None else {},
    )


def count_line_marks(lines: Sequence[ObservedLine]) -> DayMarks:
    """Count the marks in lines that were redacted, by the day of the line. A line without a time is as old as the one
    before it, the first ones as old as the one behind them. Lines that came with marks in them are not counted, nor
    are system prompts, which are stored once for many lines and counted there."""
    counts: Counter[tuple[date, str]] = Counter()
    at = next((line.fact.at for line in lines if line.fact.at), None) or datetime.now(UTC)
    for line in lines:
        at = line.fact.at or at
        is_prompt = line.fact.kind is LineKind.SHAPE and line.fact.shape is not None
        if line.fact.is_redacted and line.content and not is_prompt:
            day = at.astimezone(UTC).date()
            for rule, count in count_marks(line.content).items():
                counts[day, rule] += count
    return dict(counts.most_common(_MOST_COUNTS))


def count_marks(text: bytes) -> dict[str, int]:
    """Count the marks in a text by the name of their rule."""
    names = Counter(mark[len(MARK_START) : -1].decode() for mark in MARKS.findall(text))
    return dict(names.most_common(_MOST_RULES))


def read_segment_facts(facts: bytes | memoryview) -> list[Observation]:
    return unpack_observations(expand(facts))


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
