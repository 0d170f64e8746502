"""Looking for words in what one session says: segment by segment, without making entries of lines that lack them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from compaction.timeline.observations import Observation
from compaction.timeline.order import order_observations
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


@dataclass(frozen=True)
class FoundStretch:
    """Some of the lines that say the words, from a number on; `total` is how many there are in all. `before` and
    `after` are the neighbours of the line that was asked for among all that were found, whatever the stretch."""

    entries: tuple[FoundEntry, ...]
    first: int
    total: int
    size: int
    place: int | None = None
    before: str = ""
    after: str = ""

    @property
    def last(self) -> int:
        return self.first + len(self.entries) - 1

    @property
    def previous(self) -> int:
        return max(1, self.first - self.size)

    @property
    def next(self) -> int | None:
        return self.last + 1 if self.last < self.total else None


def find_entries(session: AgentSession, words: str, *, limit: int, first: int = 1, reached: str = "") -> FoundStretch:
    """In the order of the conversation; case does not matter. Where a line that was `reached` is among them, the
    stretch it is in."""
    lines: dict[str, tuple[Observation, str]] = {}
    for fact, content in _list_candidates(session, words.casefold()):
        entry = next(iter(read_transcript(content).entries), None)
        excerpt = _cut_out("\n".join(_list_texts(entry)), words) if entry else ""
        if excerpt:
            lines[fact.id] = (fact, excerpt)
    ordered = order_observations(fact for fact, _ in lines.values())
    place = next((number for number, fact in enumerate(ordered) if fact.id == reached), None) if reached else None
    start = min(first, max(1, len(ordered))) - 1 if place is None else place // limit * limit
    return FoundStretch(
        entries=tuple(_make_found(fact, lines[fact.id][1]) for fact in ordered[start : start + limit]),
        first=start + 1,
        total=len(ordered),
        size=limit,
        place=None if place is None else place + 1,
        before=ordered[place - 1].id if place else "",
        after=ordered[place + 1].id if place is not None and place + 1 < len(ordered) else "",
    )


def _make_found(fact: Observation, excerpt: str) -> FoundEntry:
    return FoundEntry(fact.id, fact.type, fact.agent_id or "", fact.at, excerpt)


def _list_candidates(session: AgentSession, wanted: str) -> Iterator[tuple[Observation, bytes]]:
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
