"""Partial compaction around a pivot: everything from it on, or everything before it, becomes the summary."""

from collections.abc import Sequence
from functools import partial

from compaction.compactors.cuts import find_cut
from compaction.compactors.news import has_messages, list_selectable, require_new_messages
from compaction.compactors.outcome import CompactionKind, CompactionOutcome
from compaction.compactors.run import CompactionRequest, RunPorts, Selection, run_compaction
from compaction.compactors.summary.too_long import SummaryRange
from compaction.errors import NothingToCompact, PivotNotFound
from compaction.transcripts.chain import ContextSlice
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock

QUOTE_CHARACTERS = 300  # enough of the first message to find it again


def compact_from(
    entries: Sequence[Entry], pivot_uuid: str, request: CompactionRequest, outside: RunPorts
) -> CompactionOutcome:
    """The pivot and all after it summarised; what is before stays, word for word, in front of the summary."""
    select = partial(_select_from, pivot_uuid=pivot_uuid)
    return run_compaction(entries, select, request, outside, kind=CompactionKind.FROM)


def compact_up_to(
    entries: Sequence[Entry], pivot_uuid: str, request: CompactionRequest, outside: RunPorts
) -> CompactionOutcome:
    """All before the pivot summarised; the pivot and what follows stays, word for word, behind the summary."""
    select = partial(_select_up_to, pivot_uuid=pivot_uuid)
    return run_compaction(entries, select, request, outside, kind=CompactionKind.UP_TO)


def _select_from(context: ContextSlice, *, pivot_uuid: str) -> Selection:
    before, after = _divide(context, pivot_uuid)
    if not has_messages(after):
        raise NothingToCompact("From the chosen message on there is nothing to summarise.")
    return Selection(
        CompactionKind.FROM, SummaryRange((*before, *after)), kept_before=before, starts_at=_quote_first(after)
    )


def _select_up_to(context: ContextSlice, *, pivot_uuid: str) -> Selection:
    before, after = _divide(context, pivot_uuid)
    if not has_messages(before):
        raise NothingToCompact("Before the chosen message there is nothing that is not summarised already.")
    return Selection(CompactionKind.UP_TO, SummaryRange(before, kept_after=after))


def _divide(context: ContextSlice, pivot_uuid: str) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Before and after the pivot; moved back as far as needed so that nothing that belongs together is parted."""
    require_new_messages(context)
    entries = list_selectable(context)
    index = next((place for place, entry in enumerate(entries) if entry.uuid == pivot_uuid), None)
    if index is None:
        raise PivotNotFound
    cut = find_cut(entries, index)
    return entries[:cut], entries[cut:]


def _quote_first(entries: Sequence[Entry]) -> str | None:
    """How the first message begins, for a reader who has to find it."""
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
