"""Clears tool results without a model: clearable tools, how a result is cleared, the boundary line, and listeners.

Which results to clear is decided in by_size, by_idle and cache_edits; the API's own clearing is in
api_context_editing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID, uuid5

from msgspec import structs

from compaction.context.tokens import ResultCache, count_block_tokens, count_part_tokens
from compaction.events import MicroCompacted
from compaction.transcripts.client_protocol import (
    CLEARED_RESULT,
    MEMORY_ATTACHMENTS,
    MICRO_BOUNDARY,
    MICRO_BOUNDARY_TEXT,
    ToolName,
)
from compaction.transcripts.entries import Entry, Message, TextBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.payloads import Attachment, MicroBoundary

CLEARED_PARTS = (TextBlock(CLEARED_RESULT),)
# The client's list: results that can be fetched again, or that only confirm what was done.
CLEARABLE_TOOLS = frozenset(
    {
        ToolName.READ, ToolName.BASH, ToolName.GREP, ToolName.GLOB, ToolName.WEB_SEARCH, ToolName.WEB_FETCH,
        ToolName.EDIT, ToolName.WRITE,
    }
)  # fmt: skip
_NAMESPACE = UUID("0f1d2f0a-6a3c-5f0c-9a53-5b8d7f4f3e52")  # any fixed one: it only separates our uuids from others


class MicroKind(StrEnum):
    """Why results were cleared."""

    SIZE = "size"
    IDLE = "idle"


class ClearableResult(NamedTuple):
    """A result that may be cleared, its tokens, and the index of its entry."""

    tool_use_id: str
    tool: str
    tokens: int
    entry_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroOutcome:
    """What was cleared. `entries` are all entries after clearing, `originals` the changed ones before it."""

    kind: MicroKind
    entries: tuple[Entry, ...]
    boundary: Entry
    originals: tuple[Entry, ...]
    cleared_tool_ids: tuple[str, ...]
    cleared_attachment_uuids: tuple[str, ...]
    pre_tokens: int
    tokens_saved: int
    event: MicroCompacted

    def undo(self) -> tuple[Entry, ...]:
        """Return the entries as they were before the clearing."""
        originals = {entry.uuid: entry for entry in self.originals}
        return tuple(originals.get(entry.uuid, entry) for entry in self.entries)


def list_clearable(
    entries: Sequence[Entry], *, tools: frozenset[str] | None = CLEARABLE_TOOLS, cache: ResultCache | None = None
) -> tuple[ClearableResult, ...]:
    """Return every uncleared result of these tools (None: of any tool), oldest first."""
    requested: dict[str, str] = {}
    results: list[ClearableResult] = []
    for index, entry in enumerate(entries):
        message = entry.message
        if message is None:
            continue
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                if tools is None or block.name in tools:
                    requested[block.id] = block.name
            elif isinstance(block, ToolResultBlock) and block.tool_use_id in requested and not is_cleared(block):
                tool = requested[block.tool_use_id]
                results.append(ClearableResult(block.tool_use_id, tool, _count_result(block, cache), index))
    return tuple(results)


def _count_result(result: ToolResultBlock, cache: ResultCache | None) -> int:
    if cache is not None or len(result.parts) != 1:
        return count_block_tokens(result, cache)
    return count_part_tokens(result.parts[0])


def is_cleared(result: ToolResultBlock) -> bool:
    """Return whether this result was cleared before."""
    return len(result.parts) == 1 and isinstance(result.parts[0], TextBlock) and result.parts[0].text == CLEARED_RESULT


def clear_results(entries: Sequence[Entry], results: Iterable[ClearableResult]) -> list[Entry]:
    """Return the entries with these results cleared. Unchanged entries are the same objects."""
    cleared = list(entries)
    for result in results:
        entry = cleared[result.entry_index]
        if entry.message is not None:
            cleared[result.entry_index] = entry.changed(message=_clear_message(entry.message, result.tool_use_id))
    return cleared


def _clear_message(message: Message, tool_use_id: str) -> Message:
    blocks = list(message.content)
    for index, block in enumerate(blocks):
        if isinstance(block, ToolResultBlock) and block.tool_use_id == tool_use_id:
            blocks[index] = ToolResultBlock(tool_use_id, CLEARED_PARTS, block.is_error)
    return structs.replace(message, content=tuple(blocks))


def clear_memory(entries: Sequence[Entry], *, before: int) -> list[Entry]:
    """Return the entries with memory attachments before this index cleared."""
    cleared = list(entries)
    for index, entry in enumerate(entries[:before]):
        payload = entry.payload
        if isinstance(payload, Attachment) and payload.kind in MEMORY_ATTACHMENTS:
            cleared[index] = _clear_attachment(entry, payload)
    return cleared


def _clear_attachment(entry: Entry, payload: Attachment) -> Entry:
    if tuple(payload.rendered) == (CLEARED_RESULT,):
        return entry
    fields = {
        **entry.fields,
        "attachment": {"type": payload.kind, "content": CLEARED_RESULT},
        "rendered": [{"content": CLEARED_RESULT}],
    }
    return entry.changed(payload=replace(payload, rendered=(CLEARED_RESULT,)), fields=fields)


def apply_boundaries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return a transcript as the model saw it: with everything cleared that the client's micro-compactions cleared."""
    original = tuple(entries)
    boundaries = [entry.payload for entry in original if isinstance(entry.payload, MicroBoundary)]
    tool_ids = {tool_id for boundary in boundaries for tool_id in boundary.compacted_tool_ids}
    uuids = {uuid for boundary in boundaries for uuid in boundary.cleared_attachment_uuids}
    results = list_clearable(original, tools=None) if tool_ids else ()
    return tuple(
        _clear_attachment(entry, entry.payload)
        if entry.uuid in uuids and isinstance(entry.payload, Attachment)
        else entry
        for entry in clear_results(original, (result for result in results if result.tool_use_id in tool_ids))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearingPlan:
    """The results to clear, the tokens of all clearable results, and the context size before."""

    kind: MicroKind
    results: Sequence[ClearableResult]
    total_tokens: int
    pre_tokens: int

    @property
    def saved_tokens(self) -> int:
        """Tokens of the results to clear."""
        return sum(result.tokens for result in self.results)


def clear_planned(entries: Sequence[Entry], plan: ClearingPlan, now: datetime) -> MicroOutcome:
    """Clear the planned results and the memory attachments before the last of them, and add the boundary line."""
    tool_ids = tuple(result.tool_use_id for result in plan.results)
    cleared = clear_results(entries, plan.results)
    after = tuple(clear_memory(cleared, before=plan.results[-1].entry_index))
    originals = tuple(old for old, new in zip(entries, after, strict=True) if old is not new)
    attachment_uuids = tuple(entry.uuid for entry in originals if entry.type == "attachment" and entry.uuid)
    payload = MicroBoundary(
        trigger="auto",
        pre_tokens=plan.pre_tokens,
        tokens_saved=plan.saved_tokens,
        compacted_tool_ids=tool_ids,
        cleared_attachment_uuids=attachment_uuids,
    )
    boundary = build_micro_boundary(entries, payload, now)
    return MicroOutcome(
        kind=plan.kind,
        entries=after,
        boundary=boundary,
        originals=originals,
        cleared_tool_ids=tool_ids,
        cleared_attachment_uuids=attachment_uuids,
        pre_tokens=plan.pre_tokens,
        tokens_saved=plan.saved_tokens,
        event=MicroCompacted(
            session_id=boundary.session_id,
            agent_id=boundary.agent_id,
            kind=plan.kind,
            tools_compacted=len(plan.results),
            attachments_cleared=len(attachment_uuids),
            total_uncompacted_tokens=plan.total_tokens,
            tokens_after=plan.total_tokens - plan.saved_tokens,
        ),
    )


def build_micro_boundary(entries: Sequence[Entry], payload: MicroBoundary, now: datetime) -> Entry:
    """Return the line to append as a child of the last line. Earlier lines stay unchanged."""
    last = next((entry for entry in reversed(entries) if entry.uuid is not None), entries[-1])
    seed = f"{last.session_id}/{last.uuid}/{','.join(payload.compacted_tool_ids)}"
    return Entry(
        "system",
        subtype=MICRO_BOUNDARY,
        uuid=str(uuid5(_NAMESPACE, seed)),
        parent_uuid=last.uuid,
        at=now,
        session_id=last.session_id,
        agent_id=last.agent_id,
        is_sidechain=last.is_sidechain,
        version=last.version,
        cwd=last.cwd,
        git_branch=last.git_branch,
        payload=payload,
        fields={
            "userType": "external",
            "isSidechain": last.is_sidechain,
            "content": MICRO_BOUNDARY_TEXT,
            "isMeta": False,
            "level": "info",
        },
    )


@dataclass(slots=True)
class MicroTracker:
    """Whether a micro-compaction occurred in a thread, and the listeners to notify of one."""

    has_occurred: bool = False
    _listeners: list[Callable[[MicroOutcome], None]] = field(default_factory=list)

    def subscribe(self, listener: Callable[[MicroOutcome], None]) -> Callable[[], None]:
        """Add a listener and return the function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def record(self, outcome: MicroOutcome) -> None:
        """Set the flag and call every listener in order of subscription."""
        self.has_occurred = True
        for listener in tuple(self._listeners):
            listener(outcome)

    def reset(self) -> None:
        """Clear the flag, as after a full compaction. Listeners stay subscribed."""
        self.has_occurred = False
