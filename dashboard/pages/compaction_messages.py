"""What a compaction did to each message: kept word for word, told by the summary, put back beside it, or dropped."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compaction.context.tokens import count_entry_tokens
from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.chain import find_chain, follow_chain, slice_context
from compaction.transcripts.entries import Entry, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.payloads import Attachment

_LONGEST_WORDS = 160


class Fate(StrEnum):
    """Where a message went."""

    KEPT = "kept"
    SUMMARISED = "summarised"
    RESTORED = "restored"
    DROPPED = "dropped"


FATE_MEANINGS = {
    Fate.KEPT: "stayed word for word.",
    Fate.SUMMARISED: "covered by the summary only.",
    Fate.RESTORED: "an attachment of the same kind was restored.",
    Fate.DROPPED: "neither kept nor restored, and not a message that is summarised.",
}


@dataclass(frozen=True)
class SeenMessage:
    """One line of the conversation as the model sees it. `words` is content, all else is structure."""

    number: int
    entry_uuid: str
    at: datetime | None
    who: str
    tools: tuple[str, ...]
    tokens: int
    words: str


@dataclass(frozen=True)
class MessageFate(SeenMessage):
    """One line of the conversation before a compaction, and where it went."""

    fate: Fate


@dataclass(frozen=True)
class Sides:
    """What the model saw right before a boundary and right after it, up to the next answer."""

    before: tuple[Entry, ...]
    after: tuple[Entry, ...]
    gap_count: int = 0  # places where lines are missing in what it saw before


def split_at_boundary(entries: Sequence[Entry], boundary_uuid: str) -> Sides | None:
    """None where the boundary is not among the stored lines."""
    place = next((index for index, entry in enumerate(entries) if entry.uuid == boundary_uuid), None)
    if place is None:
        return None
    end = next((index for index in range(place, len(entries)) if entries[index].is_response), len(entries))
    chain = find_chain(entries[:place])
    context = slice_context(chain.entries)
    return Sides(
        context.entries,
        slice_context(follow_chain(entries[:end])).entries,
        chain.count_gaps(context),
    )


def trace_messages(sides: Sides) -> tuple[MessageFate, ...]:
    """Everything the model saw before, in order, with where it went."""
    stayed = {entry.uuid for entry in sides.after}
    put_back = {entry.payload.kind for entry in sides.after if isinstance(entry.payload, Attachment)}
    seen = tuple(entry for entry in sides.before if entry.message is not None or render_attachment(entry))
    return tell_fates(seen, lambda entry: _find_fate(entry, stayed, put_back))


def tell_fates(entries: Sequence[Entry], find_fate: Callable[[Entry], Fate]) -> tuple[MessageFate, ...]:
    """These entries in order, each with where it went."""
    return tuple(
        MessageFate(**vars(message), fate=find_fate(entry))
        for entry, message in zip(entries, tell_messages(entries), strict=True)
    )


def tell_messages(entries: Sequence[Entry]) -> tuple[SeenMessage, ...]:
    """These entries as lines of a list, numbered from one."""
    names = dict(_list_requests(entries))
    return tuple(
        SeenMessage(
            number=number,
            entry_uuid=entry.uuid or "",
            at=entry.at,
            who=name_speaker(entry),
            tools=tuple(_list_tools(entry, names)),
            tokens=count_entry_tokens(entry),
            words=quote_entry(entry),
        )
        for number, entry in enumerate(entries, 1)
    )


def count_fates(messages: Iterable[MessageFate]) -> tuple[tuple[Fate, int, int], ...]:
    """How many messages and tokens met each fate, in the order of the fates."""
    counts: Counter[Fate] = Counter()
    tokens: Counter[Fate] = Counter()
    for message in messages:
        counts[message.fate] += 1
        tokens[message.fate] += message.tokens
    return tuple((fate, counts[fate], tokens[fate]) for fate in Fate if counts[fate])


def quote_entry(entry: Entry, length: int = _LONGEST_WORDS) -> str:
    """How an entry begins, on one line."""
    text = " ".join(" ".join(_list_texts(entry)).split())
    return text if len(text) <= length else f"{text[:length]}…"


def _find_fate(entry: Entry, stayed: Collection[str | None], put_back: Collection[str]) -> Fate:
    if entry.uuid in stayed:
        return Fate.KEPT
    if isinstance(entry.payload, Attachment):
        return Fate.RESTORED if entry.payload.kind in put_back else Fate.DROPPED
    return Fate.SUMMARISED


def name_speaker(entry: Entry) -> str:
    """Whose line it is, as the lists of messages say it."""
    if isinstance(entry.payload, Attachment):
        return f"attachment {entry.payload.kind}"
    if entry.is_compact_summary:
        return "earlier summary"
    blocks = entry.message.content if entry.message else ()
    if any(isinstance(block, ToolResultBlock) for block in blocks):
        return "tool result"
    if entry.type == "assistant":
        return "assistant"
    return "client" if entry.is_meta else "user"


def _list_requests(entries: Iterable[Entry]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        for block in entry.message.content if entry.message else ():
            if isinstance(block, ToolUseBlock):
                yield block.id, block.name


def _list_tools(entry: Entry, names: dict[str, str]) -> Iterator[str]:
    for block in entry.message.content if entry.message else ():
        if isinstance(block, ToolUseBlock):
            yield block.name
        elif isinstance(block, ToolResultBlock):
            yield names.get(block.tool_use_id, "unknown")


def _list_texts(entry: Entry) -> Iterator[str]:
    if isinstance(entry.payload, Attachment):
        yield render_attachment(entry)
    for block in entry.message.content if entry.message else ():
        match block:
            case TextBlock() | ToolResultBlock():
                yield block.text
            case ThinkingBlock():
                yield block.thinking
            case ToolUseBlock():
                yield block.input_json
            case _:
                yield f"[{block.type}]"
