"""News: whether anything was said since the last compaction. Without news there is nothing to compact."""

from collections.abc import Iterable

from compaction.errors import NothingToCompact
from compaction.transcripts.chain import ContextSlice, is_boundary
from compaction.transcripts.entries import Entry
from compaction.transcripts.flatten import is_synthetic_error
from compaction.transcripts.user_lines import UserLineKind, classify_entry


def require_new_messages(context: ContextSlice) -> None:
    """Raises NothingToCompact when the conversation is empty or nothing was said since its boundary."""
    if not any(_is_spoken(entry) for entry in context.entries):
        raise NothingToCompact("The conversation is empty, so there is nothing to compact.")
    kept = context.kept_uuids
    if context.boundary is not None and not has_messages(entry for entry in context.entries if entry.uuid not in kept):
        raise NothingToCompact


def has_messages(entries: Iterable[Entry]) -> bool:
    """Whether somebody says something here that no summary has told yet."""
    return any(_is_spoken(entry) and not entry.is_compact_summary and not entry.is_meta for entry in entries)


def list_selectable(context: ContextSlice) -> tuple[Entry, ...]:
    """What can be summarised or kept: all but the boundary, and lines that are no part of the conversation."""
    return tuple(
        entry for entry in context.entries if not is_boundary(entry) and (entry.uuid or entry.message is not None)
    )


def _is_spoken(entry: Entry) -> bool:
    if entry.type not in ("user", "assistant") or entry.message is None or is_synthetic_error(entry):
        return False
    line = classify_entry(entry)
    if line is None or entry.is_compact_summary:
        return bool(entry.message.content)
    return line.starts_turn or line.kind is UserLineKind.TOOL_RESULT
