"""Micro-compaction by cache edits: results are deleted from the server's cached prefix, the messages stay as they are.

A state per thread: which results were seen, in which order, which are deleted, and which deletions must be sent again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compaction.cache.policy import DEFAULT_POLICY
from compaction.compactors.micro.clearing import (
    CLEARABLE_TOOLS,
    find_clearable,
)
from compaction.compactors.summary.request_messages import list_blocks
from compaction.transcripts.entries import Entry

Message = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class EditSettings:
    """The client's figures: how many active results make it worth while, and how many stay."""

    trigger_results: int = 12
    kept_results: int = 3
    tools: frozenset[str] = CLEARABLE_TOOLS


DEFAULT_EDIT_SETTINGS = EditSettings()


@dataclass(frozen=True, slots=True)
class PinnedEdit:
    """Deletions that were sent at one place and are sent there again while the cache holds."""

    message_index: int
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CacheEditState:
    """Everything the machine remembers. `deleted_tokens` is the server's running count of what was deleted."""

    registered: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    deleted: frozenset[str] = frozenset()
    pending: tuple[str, ...] = ()
    pinned: tuple[PinnedEdit, ...] = ()
    deleted_tokens: int = 0
    cache_read_tokens: int | None = None

    @property
    def active(self) -> tuple[str, ...]:
        """Results that are still in the cached prefix, oldest first."""
        return tuple(tool_id for tool_id in self.order if tool_id not in self.deleted)

    @property
    def is_drop_expected(self) -> bool:
        """Whether break detection must expect the next read to be lower."""
        return bool(self.pending)


def register_results(
    state: CacheEditState, entries: Sequence[Entry], settings: EditSettings = DEFAULT_EDIT_SETTINGS
) -> CacheEditState:
    """The state with all results of these entries known, each once, in the order met."""
    found = [result.tool_use_id for result in find_clearable(entries, tools=settings.tools)]
    new = tuple(dict.fromkeys(tool_id for tool_id in found if tool_id not in state.registered))
    return replace(state, registered=state.registered.union(new), order=state.order + new) if new else state


def plan_deletions(state: CacheEditState, settings: EditSettings = DEFAULT_EDIT_SETTINGS) -> CacheEditState:
    """The state with all but the last active results queued for deletion; unchanged while there are too few."""
    active = state.active
    chosen = active[: max(0, len(active) - settings.kept_results)]
    if len(active) < settings.trigger_results or not chosen:
        return state
    return replace(state, deleted=state.deleted.union(chosen), pending=state.pending + chosen)


def add_references(messages: Sequence[Message]) -> list[Message]:
    """The messages of a request with `cache_reference` on every tool result before the last cache breakpoint."""
    last = max((index for index, message in enumerate(messages) if _has_marker(message)), default=-1)
    return [_add_reference(message) if index < last else message for index, message in enumerate(messages)]


def _has_marker(message: Message) -> bool:
    return any(isinstance(block, Mapping) and "cache_control" in block for block in list_blocks(message))


def _add_reference(message: Message) -> Message:
    blocks = list_blocks(message)
    if not any(isinstance(block, Mapping) and block.get("type") == "tool_result" for block in blocks):
        return message
    return {
        **message,
        "content": [
            {**block, "cache_reference": block.get("tool_use_id")}
            if isinstance(block, Mapping) and block.get("type") == "tool_result"
            else block
            for block in blocks
        ],
    }


def add_edits(state: CacheEditState, messages: Sequence[Message]) -> tuple[CacheEditState, list[Message]]:
    """The messages with pinned deletions at their old places and new ones in the last user message, then pinned."""
    edited = add_references(messages)
    for pin in state.pinned:
        if pin.message_index < len(edited):
            edited[pin.message_index] = _add_block(edited[pin.message_index], pin.references)
    place = max((index for index, message in enumerate(edited) if message.get("role") == "user"), default=None)
    if not state.pending or place is None:
        return state, edited
    edited[place] = _add_block(edited[place], state.pending)
    pinned = (*state.pinned, PinnedEdit(place, state.pending))
    return replace(state, pending=(), pinned=pinned), edited


def make_edits_block(references: Sequence[str]) -> dict[str, object]:
    """The block that asks the server to delete these."""
    return {"type": "cache_edits", "edits": [{"type": "delete", "cache_reference": each} for each in references]}


def _add_block(message: Message, references: Sequence[str]) -> Message:
    blocks = list_blocks(message)
    # Tool results must come first in a message, so the edits stand right behind them.
    place = sum(1 for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_result")
    return {**message, "content": [*blocks[:place], make_edits_block(references), *blocks[place:]]}


def record_response(
    state: CacheEditState, *, cache_read_tokens: int, cache_deleted_tokens: int | None = None
) -> CacheEditState:
    """The state after a response: with the new baseline, or without deletions when the cached prefix is gone.

    A rebuilt cache holds the deleted results again, since the messages never changed: they count as active anew.
    """
    deleted_tokens = state.deleted_tokens if cache_deleted_tokens is None else cache_deleted_tokens
    newly_deleted = max(0, deleted_tokens - state.deleted_tokens)
    previous = state.cache_read_tokens
    if previous is not None and _has_collapsed(previous - newly_deleted, cache_read_tokens):
        return replace(drop_deletions(state), cache_read_tokens=cache_read_tokens)
    return replace(state, deleted_tokens=deleted_tokens, cache_read_tokens=cache_read_tokens)


def _has_collapsed(expected_tokens: int, read_tokens: int) -> bool:
    """Apply the rule for cache breaks to what was expected after the deletions."""
    return DEFAULT_POLICY.is_below(read_tokens, expected_tokens)


def drop_deletions(state: CacheEditState) -> CacheEditState:
    """The state when the cache is gone: nothing is deleted, nothing pinned; what was seen stays known."""
    return replace(state, deleted=frozenset(), pending=(), pinned=(), deleted_tokens=0)
