"""Micro-compaction that an agent carries out itself: deletions for the server's cache, and the API's own clearing.

Nothing is stored: the state of the cache edits goes out with a plan and comes back with the next request.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from compaction.compactors.micro.api_context_editing import ContextEditingSettings, build_context_management
from compaction.compactors.micro.cache_edits import (
    CacheEditState,
    EditSettings,
    PinnedEdit,
    add_edits,
    plan_deletions,
    record_response,
    register_results,
)
from compaction.compactors.micro.clearing import apply_boundaries, list_clearable
from compaction.transcripts.api_messages import ApiMessage
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry, ThinkingBlock, ToolUseBlock
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import AgentSession

CONTEXT_EDITING_BETA = "context-management-2025-06-27"  # protocol constant: the header of `context_management`


@dataclass(frozen=True, kw_only=True)
class MicroWish:
    """`tool_names` are the tools of the request; empty: those that were used. `cache_read_tokens` and
    `cache_deleted_tokens` are of the answer since the state was made."""

    tool_names: Sequence[str] = ()
    idle_seconds: float | None = None
    state: CacheEditState = field(default_factory=CacheEditState)
    cache_read_tokens: int | None = None
    cache_deleted_tokens: int | None = None
    edit_settings: EditSettings = field(default_factory=EditSettings)
    native_settings: ContextEditingSettings = field(default_factory=ContextEditingSettings)


@dataclass(frozen=True, kw_only=True)
class MicroPlan:
    """`deletions` are new with this plan. `messages` is the request with references and edits; None for a stored
    session, whose request its own client makes."""

    state: CacheEditState
    result_count: int
    deletions: tuple[str, ...]
    deleted_tokens: int
    pinned: tuple[PinnedEdit, ...]
    is_drop_expected: bool
    messages: list[ApiMessage] | None
    context_management: dict[str, object] | None


def plan_for_session(session: AgentSession, wish: MicroWish) -> MicroPlan:
    """The main conversation as it is stored, since its last compaction."""
    entries = slice_context(follow_chain(apply_boundaries(read_thread(session, "").entries))).entries
    return plan_micro(entries, None, wish)


def plan_micro(entries: Sequence[Entry], messages: Sequence[ApiMessage] | None, wish: MicroWish) -> MicroPlan:
    state = wish.state
    if wish.cache_read_tokens is not None:
        state = record_response(
            state, cache_read_tokens=wish.cache_read_tokens, cache_deleted_tokens=wish.cache_deleted_tokens
        )
    state = plan_deletions(register_results(state, entries, wish.edit_settings), wish.edit_settings)
    deletions, is_drop_expected = state.pending, state.is_drop_expected
    edited = None
    if messages is not None:
        state, edited = add_edits(state, messages)
    sizes = {each.tool_use_id: each.tokens for each in list_clearable(entries, tools=wish.edit_settings.tools)}
    return MicroPlan(
        state=state,
        result_count=len(state.order),
        deletions=deletions,
        deleted_tokens=sum(sizes.get(tool_id, 0) for tool_id in deletions),
        pinned=state.pinned,
        is_drop_expected=is_drop_expected,
        messages=edited,
        context_management=build_context_management(
            entries,
            wish.tool_names or _list_used_tools(entries),
            idle_seconds=wish.idle_seconds,
            has_thinking=_has_thinking(entries),
            settings=wish.native_settings,
        ),
    )


def _list_used_tools(entries: Sequence[Entry]) -> list[str]:
    blocks = (block for entry in entries for block in (entry.message.content if entry.message else ()))
    return sorted({block.name for block in blocks if isinstance(block, ToolUseBlock)})


def _has_thinking(entries: Sequence[Entry]) -> bool:
    return any(
        isinstance(block, ThinkingBlock)
        for entry in entries
        for block in (entry.message.content if entry.message else ())
    )
