"""Metrics in one pass: the calls and compactions of a transcript without making an entry of every line.

It gives the same calls as `collect_calls` over all entries; content is decoded only where output must be estimated.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from compaction.transcripts.calls import (
    Call,
    count_written_characters,
    fill_call,
    find_call_id,
    make_call,
    settle_output,
)
from compaction.transcripts.entries import SYNTHETIC_MODEL, Entry, Usage
from compaction.transcripts.lines import Line, LineSplitter, Position
from compaction.transcripts.reader import (
    LineHead,
    count_head_characters,
    decode_head,
    drop_content,
    make_entry,
    read_line,
)
from compaction.transcripts.skipped import Item, SkippedLine
from compaction.transcripts.usage import make_usage

# The rest of what a metrics-only reading wants whole: boundaries and durations, older summaries, costs.
KEPT_TYPES = frozenset({"system", "SummaryMessage", "cost-state"})


@dataclass(slots=True)
class _Found:
    """A call so far: when it began, its lines, what was written without a stop reason, and its last line."""

    started_at: datetime | None
    last: LineHead | Entry
    last_line_number: int = 0
    line_count: int = 0
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Scan:
    """What a metrics-only reading gives; `position` is where to resume."""

    calls: tuple[Call, ...]
    kept_entries: tuple[Entry, ...]
    problems: tuple[SkippedLine, ...]
    type_counts: Counter[str]
    position: Position


@dataclass(slots=True)
class Scanner:
    """Feed it chunks cut anywhere, then ask for the result. It holds on to numbers and names, never to content."""

    position: Position = field(default_factory=Position)
    _splitter: LineSplitter = field(init=False)
    _found: dict[str, _Found] = field(default_factory=dict)
    _kept: list[Entry] = field(default_factory=list)
    _problems: list[SkippedLine] = field(default_factory=list)
    _type_counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._splitter = LineSplitter(self.position)

    def feed(self, chunk: bytes) -> None:
        """Read the lines that this chunk completes."""
        for line in self._splitter.feed(chunk):
            head = None if line.is_dropped else decode_head(line.raw)
            if head is not None:
                self._note_head(head, line)
            else:
                self._note_items(read_line(line))

    def result(self) -> Scan:
        """Everything seen in complete lines so far."""
        calls = tuple(_make_call(call_id, found) for call_id, found in self._found.items())
        problems = tuple(self._problems)
        return Scan(calls, tuple(self._kept), problems, Counter(self._type_counts), self._splitter.position)

    def _note_head(self, head: LineHead, line: Line) -> None:
        self._type_counts[head.type] += 1
        if head.type in KEPT_TYPES:
            self._kept.append(make_entry(head, line))
        message = head.message
        if head.type != "assistant" or message is None or message.usage is None or message.model == SYNTHETIC_MODEL:
            return
        call_id = message.id or head.request_id or head.uuid
        if call_id is None:
            return
        found = self._find_call(call_id, head.timestamp, head, line.number)
        if message.stop_reason is None:
            found.characters += count_head_characters(head)
        drop_content(head)

    def _note_items(self, items: Iterable[Item]) -> None:
        """Lines the fast decoder refused: rare, so they are read the long way."""
        for item in items:
            if isinstance(item, SkippedLine):
                self._problems += [item] if item.is_problem else []
                continue
            self._type_counts[item.type] += 1
            if item.type in KEPT_TYPES:
                self._kept.append(item)
            call_id = find_call_id(item)
            if call_id is None or item.message is None:
                continue
            found = self._find_call(call_id, item.at, item, item.line_number)
            if item.message.stop_reason is None:
                found.characters += count_written_characters(item.message.content)

    def _find_call(self, call_id: str, at: datetime | None, last: LineHead | Entry, line_number: int) -> _Found:
        """The call of this id with this line as its last."""
        found = self._found.get(call_id)
        if found is None:
            found = self._found[call_id] = _Found(at, last)
        found.last = last
        found.last_line_number = line_number
        found.line_count += 1
        return found


def _make_call(call_id: str, found: _Found) -> Call:
    """As `make_call` does from an entry, straight from the head of the last line."""
    last = found.last
    if isinstance(last, Entry):
        return make_call(
            call_id,
            last,
            started_at=found.started_at,
            line_count=found.line_count,
            written_characters=found.characters,
        )
    message = last.message
    usage = make_usage(message.usage) if message and message.usage else Usage()
    stop_reason = message.stop_reason if message else None
    output_tokens = settle_output(usage, stop_reason, found.characters)
    return fill_call(
        call_id,
        usage,
        output_tokens,
        output_tokens > usage.output_tokens,
        message.model if message else None,
        found.started_at,
        last.timestamp,
        found.line_count,
        stop_reason,
        message.miss_reason if message else None,
        last.request_id,
        last.session_id,
        last.agent_id,
        last.is_sidechain is True,
        last.version,
        last.uuid,
        found.last_line_number,
    )
