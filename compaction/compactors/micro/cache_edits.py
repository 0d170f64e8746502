"""Clears by cache edits: results are deleted from the server's cached prefix, the messages stay unchanged.

The state of a thread records the results seen, those deleted, and the deletions to send again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compaction.cache.policy import DEFAULT_POLICY
from compaction.compactors.micro.clearing import CLEARABLE_TOOLS, list_clearable
from compaction.transcripts.api_messages import ApiMessage, list_content_blocks
from compaction.transcripts.entries import Entry


@dataclass(frozen=True, slots=True)
class EditSettings:
    """The client's figures: the number of active results that triggers a deletion, and the number kept."""

    trigger_results: int = 12
    kept_results: int = 3
    tools: frozenset[str] = CLEARABLE_TOOLS


DEFAULT_EDIT_SETTINGS = EditSettings()


@dataclass(frozen=True, slots=True)
class PinnedEdit:
    """Deletions that were sent in one message and are sent there again while the cache holds."""

    message_index: int
    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CacheEditState:
    """State of the cache edits of one thread. `deleted_tokens` is the server's running total."""

    registered: frozenset[str] = frozenset()
    order: tuple[str, ...] = ()
    deleted: frozenset[str] = frozenset()
    pending: tuple[str, ...] = ()
    pinned: tuple[PinnedEdit, ...] = ()
    deleted_tokens: int = 0
    cache_read_tokens: int | None = None

    @property
    def active(self) -> tuple[str, ...]:
        """Results still in the cached prefix, oldest first."""
        return tuple(tool_id for tool_id in self.order if tool_id not in self.deleted)

    @property
    def is_drop_expected(self) -> bool:
        """Return whether break detection must expect a lower next read."""
        return bool(self.pending)


def register_results(
    state: CacheEditState, entries: Sequence[Entry], settings: EditSettings = DEFAULT_EDIT_SETTINGS
) -> CacheEditState:
    """Return the state with the results of these entries registered, each once, in order."""
    tool_ids = [result.tool_use_id for result in list_clearable(entries, tools=settings.tools)]
    new = tuple(dict.fromkeys(tool_id for tool_id in tool_ids if tool_id not in state.registered))
    return replace(state, registered=state.registered.union(new), order=state.order + new) if new else state


def plan_deletions(state: CacheEditState, settings: EditSettings = DEFAULT_EDIT_SETTINGS) -> CacheEditState:
    """Return the state with all but the last active results queued for deletion; unchanged if there are too few."""
    active = state.active
    to_delete = active[: max(0, len(active) - settings.kept_results)]
    if len(active) < settings.trigger_results or not to_delete:
        return state
    return replace(state, deleted=state.deleted.union(to_delete), pending=state.pending + to_delete)


def add_references(messages: Sequence[ApiMessage]) -> list[ApiMessage]:
    """Return the messages of a request with `cache_reference` on each tool result before the last cache marker."""
    last = max((index for index, message in enumerate(messages) if _has_marker(message)), default=-1)
    return [_add_reference(message) if index < last else message for index, message in enumerate(messages)]


def _has_marker(message: ApiMessage) -> bool:
    return any(isinstance(block, Mapping) and "cache_control" in block for block in list_content_blocks(message))


def _add_reference(message: ApiMessage) -> ApiMessage:
    blocks = list_content_blocks(message)
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


def add_edits(state: CacheEditState, messages: Sequence[ApiMessage]) -> tuple[CacheEditState, list[ApiMessage]]:
    """Return the messages with pinned deletions where they were and new ones in the last user message.

    The state returned has the new deletions pinned.
    """
    edited = add_references(messages)
    for pin in state.pinned:
        if pin.message_index < len(edited):
            edited[pin.message_index] = _add_block(edited[pin.message_index], pin.references)
    last_user = max((index for index, message in enumerate(edited) if message.get("role") == "user"), default=None)
    if not state.pending or last_user is None:
        return state, edited
    edited[last_user] = _add_block(edited[last_user], state.pending)
    pinned = (*state.pinned, PinnedEdit(last_user, state.pending))
    return replace(state, pending=(), pinned=pinned), edited


def build_edits_block(references: Sequence[str]) -> dict[str, object]:
    """Return the block that asks the server to delete these results."""
    edits = [{"type": "delete", "cache_reference": reference} for reference in references]
    return {"type": "cache_edits", "edits": edits}


def _add_block(message: ApiMessage, references: Sequence[str]) -> ApiMessage:
    blocks = list_content_blocks(message)
    # Tool results must come first in a message, so the edits follow right after them.
    result_count = sum(1 for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_result")
    content = [*blocks[:result_count], build_edits_block(references), *blocks[result_count:]]
    return {**message, "content": content}


def record_response(
    state: CacheEditState, *, cache_read_tokens: int, cache_deleted_tokens: int | None = None
) -> CacheEditState:
    """Return the state after a response: with the new baseline, or without deletions when the cached prefix is gone.

    A rebuilt cache holds the deleted results again, since the messages never changed: they count as active again.
    """
    deleted_tokens = state.deleted_tokens if cache_deleted_tokens is None else cache_deleted_tokens
    newly_deleted = max(0, deleted_tokens - state.deleted_tokens)
    previous = state.cache_read_tokens
    if previous is not None and _has_collapsed(previous - newly_deleted, cache_read_tokens):
        return replace(without_deletions(state), cache_read_tokens=cache_read_tokens)
    return replace(state, deleted_tokens=deleted_tokens, cache_read_tokens=cache_read_tokens)


def _has_collapsed(expected_tokens: int, read_tokens: int) -> bool:
    """Apply the rule for cache breaks to the read that was expected after the deletions."""
    return DEFAULT_POLICY.is_below(read_tokens, expected_tokens)


def without_deletions(state: CacheEditState) -> CacheEditState:
    """Return the state after the cache was lost: no deletions; registered results stay registered."""
    return replace(state, deleted=frozenset(), pending=(), pinned=(), deleted_tokens=0)
