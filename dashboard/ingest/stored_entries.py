"""The content of a session read back: entries of a thread in the order of the conversation, where content is stored.

A thread is read whole, or its places first and then only the segments that hold the lines somebody looks at.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from compaction.timeline.observations import Observation
from compaction.timeline.order import order_observations, split_by_thread
from compaction.transcripts.entries import Entry
from compaction.transcripts.transcript import read_transcript
from dashboard.ingest.segments import read_segment_facts, read_segment_lines
from dashboard.models import AgentSession, EntrySegment


@dataclass(frozen=True)
class StoredThread:
    """One thread's facts in order, and its entries; no entries where no content is stored."""

    facts: tuple[Observation, ...]
    entries: tuple[Entry, ...]


def read_thread(session: AgentSession, agent_id: str = "") -> StoredThread:
    """All lines of the session are unpacked to find those of one thread: segments hold them as they came."""
    contents: dict[str, bytes] = {}
    facts: dict[str, Observation] = {}
    rows = EntrySegment.objects.filter(session=session).order_by("number").values_list("facts", "content")
    for packed, content in rows:
        for line in read_segment_lines(packed, content):
            facts[line.fact.id] = line.fact
            if line.content:
                contents[line.fact.id] = line.content
    threads = split_by_thread(order_observations(facts.values()))
    ordered = tuple(threads.get(agent_id or None, ()))
    lines = [contents[fact.id] for fact in ordered if fact.id in contents]
    return StoredThread(ordered, read_transcript(b"\n".join(lines)).entries)


@dataclass(frozen=True)
class LinePlaces:
    """Where every line stands: threads in order ("" is the main conversation), segments by line, the first line of
    each call."""

    threads: Mapping[str, list[Observation]]
    segments: Mapping[str, int]
    calls: Mapping[str, str]


def read_places(session: AgentSession) -> LinePlaces:
    """No content is unpacked, and of each fact only what gives it its place is held."""
    facts: dict[str, Observation] = {}
    segments: dict[str, int] = {}
    calls: dict[str, str] = {}
    rows = EntrySegment.objects.filter(session=session).order_by("number").values_list("number", "facts")
    for number, packed in rows.iterator(chunk_size=8):
        for fact in read_segment_facts(packed):
            if fact.has_content or fact.id not in segments:
                segments[fact.id] = number
            facts[fact.id] = _cut_to_place(fact)
            if fact.response is not None and fact.has_content:
                calls.setdefault(fact.response.call_id, fact.id)
    threads = split_by_thread(order_observations(facts.values()))
    return LinePlaces({name or "": ordered for name, ordered in threads.items()}, segments, calls)


def _cut_to_place(fact: Observation) -> Observation:
    return Observation(
        *(fact.id, fact.kind, fact.type, fact.parent, fact.at, fact.agent_id, fact.is_sidechain),
        name=fact.name,
        has_content=fact.has_content,
    )


def read_entries(session: AgentSession, places: LinePlaces, line_ids: Collection[str]) -> dict[str, Entry]:
    """These lines by id, from the segments that hold them; lines without content are left out."""
    wanted = frozenset(line_ids)
    found: dict[str, Entry] = {}
    numbers = sorted({places.segments[line_id] for line_id in wanted})
    rows = EntrySegment.objects.filter(session=session, number__in=numbers).exclude(content=None).order_by("number")
    for packed, content in rows.values_list("facts", "content").iterator(chunk_size=1):
        lines = {line.fact.id: line.content for line in read_segment_lines(packed, content) if line.content}
        found |= dict(_read_each((line_id, lines[line_id]) for line_id in wanted & lines.keys()))
    return found


def _read_each(lines: Iterable[tuple[str, bytes]]) -> Iterable[tuple[str, Entry]]:
    for line_id, content in lines:
        for entry in read_transcript(content).entries:
            yield line_id, entry
