"""The lines of a session as they are stored: reading their facts, and adding lines or better readings of them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compaction.timeline.observations import Observation, with_stored_content
from dashboard.ingest.observed import ObservedLine
from dashboard.ingest.redaction_counts import count_segments
from dashboard.ingest.segments import (
    SEGMENT_BYTES,
    cut_lines,
    pack_segment,
    read_segment_facts,
    read_segment_lines,
)
from dashboard.models import AgentSession, EntrySegment


@dataclass(frozen=True)
class StoredLines:
    """Facts by id, where each is, and the last segment, which may still grow."""

    facts: dict[str, Observation] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)  # id -> segment number
    last_number: int = 0
    last_bytes: int = 0


def read_stored_lines(session: AgentSession | None) -> StoredLines:
    """Without content: a long session's facts are a few hundred kilobytes."""
    if session is None:
        return StoredLines()
    facts: dict[str, Observation] = {}
    places: dict[str, int] = {}
    rows = list(
        EntrySegment.objects.filter(session=session).order_by("number").values_list("number", "raw_bytes", "facts")
    )
    for number, _, packed in rows:
        for fact in read_segment_facts(packed):
            facts[fact.id] = fact
            places[fact.id] = number
    last_number, last_bytes, _ = rows[-1] if rows else (0, 0, b"")
    return StoredLines(facts, places, last_number, last_bytes)


def append_lines(session: AgentSession, stored: StoredLines, news: Mapping[str, ObservedLine]) -> None:
    """New lines go to the end, the last segment filled up first; better readings go where the line stands."""
    improved = {name: line for name, line in news.items() if name in stored.places}
    _replace_lines(session, stored, improved)
    fresh = [line for name, line in news.items() if name not in stored.places]
    number, was_redacted = stored.last_number, False
    if fresh and number and stored.last_bytes < SEGMENT_BYTES:
        row = EntrySegment.objects.get(session=session, number=number)
        lines = read_segment_lines(row.facts, row.content)
        was_redacted = row.redacted_count > 0
        row.delete()
        number -= 1
        fresh = [*lines, *fresh]
    segments = {place: pack_segment(stretch) for place, stretch in enumerate(cut_lines(fresh), number + 1)}
    EntrySegment.objects.bulk_create(
        EntrySegment(session=session, number=place, **segment.to_columns()) for place, segment in segments.items()
    )
    replaced = [number + 1] if was_redacted else []
    count_segments(session, {place: segment.marks for place, segment in segments.items()}, replaced=replaced)


def _replace_lines(session: AgentSession, stored: StoredLines, improved: Mapping[str, ObservedLine]) -> None:
    by_segment: dict[int, set[str]] = defaultdict(set)
    for name in improved:
        by_segment[stored.places[name]].add(name)
    for number, names in by_segment.items():
        row = EntrySegment.objects.get(session=session, number=number)
        lines = [
            _improve(line, improved[line.fact.id]) if line.fact.id in names else line
            for line in read_segment_lines(row.facts, row.content)
        ]
        replace_segment(session, row, lines)


def replace_segment(session: AgentSession, row: EntrySegment, lines: Sequence[ObservedLine]) -> None:
    """Store other lines in the place of a segment's, and count their marks."""
    was_redacted = row.redacted_count > 0
    segment = pack_segment(lines)
    for column, value in segment.to_columns().items():
        setattr(row, column, value)
    row.save()
    count_segments(session, {row.number: segment.marks}, replaced=[row.number] if was_redacted else [])


def _improve(stored: ObservedLine, better: ObservedLine) -> ObservedLine:
    """A better reading takes no content away: only retention does."""
    if better.content is not None or not stored.fact.has_content:
        return better
    return ObservedLine(with_stored_content(better.fact, stored.fact), stored.content)
