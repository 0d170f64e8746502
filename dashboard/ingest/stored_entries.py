"""The content of a session read back: entries of a thread in the order of the conversation, where content is stored."""

from dataclasses import dataclass

from compaction.cache.fact_order import order_facts, split_facts
from compaction.cache.facts import LineFact
from compaction.transcripts.entries import Entry
from compaction.transcripts.transcript import read_transcript
from dashboard.ingest.segments import read_segment_lines
from dashboard.models import AgentSession, EntrySegment


@dataclass(frozen=True)
class StoredThread:
    """One thread's facts in order, and its entries; no entries where no content is stored."""

    facts: tuple[LineFact, ...]
    entries: tuple[Entry, ...]


def read_thread(session: AgentSession, agent_id: str = "") -> StoredThread:
    """All lines of the session are unpacked to find those of one thread: segments hold them as they came."""
    contents: dict[str, bytes] = {}
    facts: dict[str, LineFact] = {}
    rows = EntrySegment.objects.filter(session=session).order_by("number").values_list("facts", "content")
    for packed, content in rows:
        for line in read_segment_lines(packed, content):
            facts[line.fact.id] = line.fact
            if line.content:
                contents[line.fact.id] = line.content
    threads = split_facts(order_facts(facts.values()))
    ordered = tuple(threads.get(agent_id or None, ()))
    lines = [contents[fact.id] for fact in ordered if fact.id in contents]
    return StoredThread(ordered, read_transcript(b"\n".join(lines)).entries)
