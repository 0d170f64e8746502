"""One line of a transcript as a person reads it: text open, thinking and tool calls folded, boundaries as dividers."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from compaction.context.composition import get_file_path
from compaction.context.tokens import count_block_tokens, count_entry_tokens, count_text_tokens
from compaction.timeline.observations import LineKind, Observation
from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.entries import (
    Block,
    DocumentBlock,
    Entry,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from compaction.transcripts.json_fields import get_text
from compaction.transcripts.payloads import OlderSummary
from dashboard.pages.compaction_messages import name_speaker

LONGEST_TEXT = 20_000  # characters shown of one; the download has it whole
_LONGEST_ABOUT = 120
_ABOUT_KEYS = ("command", "pattern", "url", "query", "description", "prompt", "subject", "skill", "path", "file_path")
DIVIDERS = frozenset({LineKind.BOUNDARY, LineKind.MICRO, LineKind.OLDER_SUMMARY})


@dataclass(frozen=True)
class ShownText:
    """A text, or the beginning of a long one; `length` is all of it, in characters."""

    text: str
    length: int

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.length


@dataclass(frozen=True)
class SaidPart:
    """Text, thinking, a summary, what an attachment says, or a mark for what is no text."""

    kind: str
    said: ShownText
    tokens: int


@dataclass(frozen=True)
class ResultPart:
    """What a tool answered, and the line it came in."""

    entry_uuid: str
    tool: str
    said: ShownText
    tokens: int
    is_error: bool
    at: datetime | None
    kind: str = "result"


@dataclass(frozen=True)
class CallPart:
    """A tool request with its input, field by field; the result stands inside where it is on the same page."""

    tool: str
    about: str
    fields: tuple[tuple[str, ShownText], ...]
    tokens: int
    result: ResultPart | None
    kind: str = "call"


Part: TypeAlias = SaidPart | ResultPart | CallPart


@dataclass(frozen=True)
class EntryView:
    """One line. `kind` is that of its fact; dividers say what a compaction did instead of words."""

    uuid: str
    kind: str
    who: str
    at: datetime | None
    model: str
    tokens: int
    parts: tuple[Part, ...]
    is_stored: bool

    @property
    def is_divider(self) -> bool:
        return self.kind in DIVIDERS


def view_entries(facts: Sequence[Observation], entries: Mapping[str, Entry]) -> tuple[EntryView, ...]:
    """In order; a line that is nothing but results of calls shown here stands inside them."""
    tools = {
        block.id: block.name
        for entry in entries.values()
        for block in _blocks(entry)
        if isinstance(block, ToolUseBlock)
    }
    results = {
        block.tool_use_id: _view_result(fact, block, tools[block.tool_use_id])
        for fact in facts
        for block in _blocks(entries.get(fact.id))
        if isinstance(block, ToolResultBlock) and block.tool_use_id in tools
    }
    views = (_view_entry(fact, entries.get(fact.id), results) for fact in facts)
    return tuple(view for view in views if view is not None)


def cut_text(text: str) -> ShownText:
    return ShownText(text[:LONGEST_TEXT], len(text))


def _blocks(entry: Entry | None) -> Sequence[Block]:
    return entry.message.content if entry is not None and entry.message is not None else ()


def _view_entry(fact: Observation, entry: Entry | None, results: Mapping[str, ResultPart]) -> EntryView | None:
    parts = tuple(_list_parts(fact, entry, results)) if entry is not None else ()
    if entry is not None and not parts and _blocks(entry):
        return None
    return EntryView(
        uuid=fact.id,
        kind=fact.kind.value,
        who=_name_line(fact, entry),
        at=fact.at,
        model=(entry.message.model or "") if entry is not None and entry.message is not None else "",
        tokens=count_entry_tokens(entry) if entry is not None else 0,
        parts=parts,
        is_stored=entry is not None,
    )


def _name_line(fact: Observation, entry: Entry | None) -> str:
    if entry is None:
        return fact.type
    return "summary" if entry.is_compact_summary else name_speaker(entry)


def _list_parts(fact: Observation, entry: Entry, results: Mapping[str, ResultPart]) -> Iterator[Part]:
    if isinstance(entry.payload, OlderSummary):
        yield _say("summary", entry.payload.text)
    if attached := render_attachment(entry):
        yield _say("attachment", attached)
    for block in _blocks(entry):
        match block:
            case TextBlock() if block.text.strip():
                yield _say("summary" if entry.is_compact_summary else "text", block.text)
            case TextBlock():
                pass
            case ThinkingBlock():
                yield SaidPart("thinking", cut_text(block.thinking), count_block_tokens(block))
            case ToolUseBlock():
                yield _view_call(block, results.get(block.id))
            case ToolResultBlock():
                if block.tool_use_id not in results:
                    yield _view_result(fact, block, "")
            case _:
                yield SaidPart("mark", cut_text(_name_block(block)), count_block_tokens(block))


def _say(kind: str, text: str) -> SaidPart:
    return SaidPart(kind, cut_text(text), count_text_tokens(text))


def _view_call(request: ToolUseBlock, result: ResultPart | None) -> CallPart:
    return CallPart(
        tool=request.name,
        about=_say_about(request),
        fields=tuple((name, cut_text(_write_value(value))) for name, value in request.input.items()),
        tokens=count_block_tokens(request),
        result=result,
    )


def _say_about(request: ToolUseBlock) -> str:
    """The file, the command or whatever says best what the call is for, on one line."""
    named = get_file_path(request) or next((text for key in _ABOUT_KEYS if (text := get_text(request.input, key))), "")
    words = " ".join(named.split())
    return words if len(words) <= _LONGEST_ABOUT else f"{words[:_LONGEST_ABOUT]}…"


def _write_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _view_result(fact: Observation, block: ToolResultBlock, tool: str) -> ResultPart:
    marks = (f"[{_name_block(part)}]" for part in block.parts if not isinstance(part, TextBlock))
    text = "\n".join((*((block.text,) if block.text else ()), *marks))
    return ResultPart(fact.id, tool, cut_text(text), count_block_tokens(block), block.is_error, fact.at)


def _name_block(block: Block) -> str:
    match block:
        case ImageBlock() | DocumentBlock():
            kind = get_text(block.source, "media_type")
            return f"{block.type}, {kind}" if kind else block.type
        case _:
            return block.type
