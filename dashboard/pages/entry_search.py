"""Looking for words in what one session says: segment by segment, without making entries of lines that lack them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from compaction.cache.fact_order import order_facts
from compaction.cache.facts import LineFact
from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.entries import Entry, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.transcript import read_transcript
from dashboard.ingest.segments import read_segment_lines
from dashboard.models import AgentSession, EntrySegment

EXCERPT_CHARACTERS = 80  # on either side of what was found


@dataclass(frozen=True)
class FoundEntry:
    """A line that says the words, and where it says them first."""

    uuid: str
    type: str
    agent_id: str
    at: datetime | None
    excerpt: str


def find_entries(session: AgentSession, words: str, *, limit: int) -> tuple[list[FoundEntry], bool]:
    """In the order of the conversation, and whether there are more. Case does not matter."""
    lines: dict[str, tuple[LineFact, str]] = {}
    for fact, content in _list_candidates(session, words.casefold()):
        entry = next(iter(read_transcript(content).entries), None)
        excerpt = _cut_out("\n".join(_list_texts(entry)), words) if entry else ""
        if excerpt:
            lines[fact.id] = (fact, excerpt)
    ordered = order_facts(fact for fact, _ in lines.values())
    found = [
        FoundEntry(fact.id, fact.type, fact.agent_id or "", fact.at, lines[fact.id][1]) for fact in ordered[:limit]
    ]
    return found, len(ordered) > limit


def _list_candidates(session: AgentSession, wanted: str) -> Iterator[tuple[LineFact, bytes]]:
    """Lines whose JSON may hold the words: escapes can hide them, so lines with escapes are looked at whole."""
    rows = EntrySegment.objects.filter(session=session).exclude(content=None).order_by("number")
    for facts, content in rows.values_list("facts", "content").iterator(chunk_size=8):
        for line in read_segment_lines(facts, content):
            if line.content and (b"\\" in line.content or wanted in line.content.decode("utf-8", "replace").casefold()):
                yield line.fact, line.content


def _list_texts(entry: Entry) -> Iterator[str]:
    yield render_attachment(entry)
    for block in entry.message.content if entry.message else ():
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ThinkingBlock):
            yield block.thinking
        elif isinstance(block, ToolUseBlock):
            yield f"{block.name} {block.input_json}"
        elif isinstance(block, ToolResultBlock):
            yield block.text


def _cut_out(text: str, words: str) -> str:
    """The words with what stands around them; "" where they are not."""
    flat = " ".join(text.split())
    place = flat.lower().find(" ".join(words.lower().split()))
    if place < 0:
        return ""
    start, end = max(0, place - EXCERPT_CHARACTERS), place + len(words) + EXCERPT_CHARACTERS
    return f"{'…' if start else ''}{flat[start:end]}{'…' if end < len(flat) else ''}"
