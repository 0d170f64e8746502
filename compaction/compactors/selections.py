"""Selects what a compaction summarises: the full conversation, everything from a message on, or everything up to it.

The check for new messages is here; where a conversation may be cut is in transcripts.rounds, the compaction in run.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from compaction.compactors.outcome import CompactionOutcome, CompactorKind
from compaction.compactors.run import CompactionRequest, RunPorts, Selection, run_compaction
from compaction.compactors.summary.too_long import SummaryRange
from compaction.errors import NothingToCompact, PivotNotFound
from compaction.transcripts.chain import ContextSlice, is_boundary
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.flatten import is_synthetic_error
from compaction.transcripts.rounds import find_split_point
from compaction.transcripts.user_lines import UserLineKind, classify_entry

QUOTE_CHARACTERS = 300  # enough of the first message for a reader to find it


def compact_full(entries: Sequence[Entry], request: CompactionRequest, ports: RunPorts) -> CompactionOutcome:
    """Summarise the whole conversation, including a previous summary.

    `entries` is the active branch of one thread. Raises a RunError: NothingToCompact, BlockedByHook,
    CompactionCancelled, SummarizerUnavailable, ConversationTooLong, or a BadSummary.
    """
    return run_compaction(entries, _select_all, request, ports, kind=CompactorKind.FULL)


def compact_from(
    entries: Sequence[Entry], pivot_uuid: str, request: CompactionRequest, ports: RunPorts
) -> CompactionOutcome:
    """Summarise the pivot and everything after it; earlier messages are kept verbatim before the summary."""
    select = partial(_select_from, pivot_uuid=pivot_uuid)
    return run_compaction(entries, select, request, ports, kind=CompactorKind.FROM)


def compact_up_to(
    entries: Sequence[Entry], pivot_uuid: str, request: CompactionRequest, ports: RunPorts
) -> CompactionOutcome:
    """Summarise everything before the pivot; the pivot and later messages are kept verbatim after the summary."""
    select = partial(_select_up_to, pivot_uuid=pivot_uuid)
    return run_compaction(entries, select, request, ports, kind=CompactorKind.UP_TO)


def require_new_messages(context: ContextSlice) -> None:
    """Raise NothingToCompact when the conversation is empty or has no new message since its last boundary."""
    if not any(_is_conversation(entry) for entry in context.entries):
        raise NothingToCompact("The conversation is empty, so there is nothing to compact.")
    preserved = context.kept_uuids
    new_entries = (entry for entry in context.entries if entry.uuid not in preserved)
    if context.boundary is not None and not has_messages(new_entries):
        raise NothingToCompact


def has_messages(entries: Iterable[Entry]) -> bool:
    """Return whether there is a message of the user or the model, other than summaries and meta lines."""
    return any(_is_conversation(entry) and not entry.is_compact_summary and not entry.is_meta for entry in entries)


def list_selectable(context: ContextSlice) -> tuple[Entry, ...]:
    """Return the entries that can be summarised or kept: no boundaries and no lines outside the conversation."""
    return tuple(
        entry for entry in context.entries if not is_boundary(entry) and (entry.uuid or entry.message is not None)
    )


def _select_all(context: ContextSlice) -> Selection:
    require_new_messages(context)
    return Selection(CompactorKind.FULL, SummaryRange(list_selectable(context)))


def _select_from(context: ContextSlice, *, pivot_uuid: str) -> Selection:
    before, after = _split_at_pivot(context, pivot_uuid)
    if not has_messages(after):
        raise NothingToCompact("From the chosen message on, there are no messages to summarise.")
    return Selection(
        CompactorKind.FROM, SummaryRange((*before, *after)), kept_before=before, starts_at=_quote_first_message(after)
    )


def _select_up_to(context: ContextSlice, *, pivot_uuid: str) -> Selection:
    before, after = _split_at_pivot(context, pivot_uuid)
    if not has_messages(before):
        raise NothingToCompact("Before the chosen message, everything is already summarised.")
    return Selection(CompactorKind.UP_TO, SummaryRange(before, kept_after=after))


def _split_at_pivot(context: ContextSlice, pivot_uuid: str) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Return the entries before and after the cut, which is the nearest split point at or before the pivot."""
    require_new_messages(context)
    entries = list_selectable(context)
    pivot = next((index for index, entry in enumerate(entries) if entry.uuid == pivot_uuid), None)
    if pivot is None:
        raise PivotNotFound
    cut = find_split_point(entries, pivot)
    return entries[:cut], entries[cut:]


def _quote_first_message(entries: Sequence[Entry]) -> str | None:
    """Return the beginning of the first message that has text, a tool result or a tool request."""
    for entry in entries:
        for block in entry.message.content if entry.message else ():
            match block:
                case TextBlock() if block.text.strip():
                    return block.text.strip()[:QUOTE_CHARACTERS]
                case ToolResultBlock() if block.text.strip():
                    return block.text.strip()[:QUOTE_CHARACTERS]
                case ToolUseBlock():
                    return f"{block.name} {block.input_json}"[:QUOTE_CHARACTERS]
    return None


def _is_conversation(entry: Entry) -> bool:
    """Return whether an entry is a message of the user or the model, not machine text or a synthetic error."""
    if entry.type not in ("user", "assistant") or entry.message is None or is_synthetic_error(entry):
        return False
    line = classify_entry(entry)
    if line is None or entry.is_compact_summary:
        return bool(entry.message.content)
    return line.starts_turn or line.kind is UserLineKind.TOOL_RESULT
