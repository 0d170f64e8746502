"""Decides when session notes are due, and how long to wait for notes that are being written."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.activity.tool_calls import read_activity
from compaction.compactors.notes.template import SessionNotes
from compaction.context.tokens import measure_context
from compaction.transcripts.chain import ContextSlice, slice_context
from compaction.transcripts.entries import Entry

WAIT_SECONDS = 15  # the client's limit for waiting for a running extraction
STALE_SECONDS = 60  # after this the client treats an extraction as dead


@dataclass(frozen=True, slots=True)
class ExtractionSettings:
    """When notes are due. The figures are our defaults: the client's come from its server."""

    first_tokens: int = 10_000
    growth_tokens: int = 5_000
    tool_calls: int = 3


DEFAULT_EXTRACTION_SETTINGS = ExtractionSettings()


@dataclass(frozen=True, slots=True)
class ExtractionMark:
    """The last entry covered by the last extraction, and the context size at that time."""

    entry_uuid: str
    context_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionNeed:
    """Whether notes are due, and the figures behind the decision."""

    context_tokens: int
    growth_tokens: int
    tool_calls_since: int
    last_turn_tool_calls: int
    is_due: bool


def compute_extraction_need(
    entries: Sequence[Entry],
    last: ExtractionMark | None = None,
    *,
    settings: ExtractionSettings = DEFAULT_EXTRACTION_SETTINGS,
) -> ExtractionNeed:
    """Return whether notes are due now. `entries` is the active branch of one thread."""
    context = slice_context(entries)
    tokens = measure_context(context).tokens
    activity = read_activity(context.entries)
    last_turn_calls = sum(1 for action in activity.tool_calls if action.turn == activity.last_turn)
    if last is None:
        growth, calls_since = tokens, len(activity.tool_calls)
        is_due = tokens >= settings.first_tokens
    else:
        growth = compute_growth(tokens, last.context_tokens)
        calls_since = _count_calls_since(context, last.entry_uuid)
        has_enough_calls = calls_since >= settings.tool_calls or last_turn_calls == 0
        is_due = growth >= settings.growth_tokens and has_enough_calls
    return ExtractionNeed(
        context_tokens=tokens,
        growth_tokens=growth,
        tool_calls_since=calls_since,
        last_turn_tool_calls=last_turn_calls,
        is_due=is_due,
    )


def compute_growth(tokens: int, last_tokens: int) -> int:
    """Return by how much the context grew. A smaller context was compacted since, so all of it counts as growth."""
    return tokens - last_tokens if tokens >= last_tokens else tokens


def compute_wait_seconds(notes: SessionNotes, now: datetime, *, waited_seconds: float = 0) -> float:
    """Return how much longer to wait for a running extraction: 0 when there is none, it is stale, or time is up."""
    if notes.extraction_started_at is None:
        return 0
    running_seconds = (now - notes.extraction_started_at).total_seconds()
    if running_seconds >= STALE_SECONDS or running_seconds < 0:
        return 0
    return max(0.0, min(WAIT_SECONDS - waited_seconds, STALE_SECONDS - running_seconds))


def _count_calls_since(context: ContextSlice, entry_uuid: str) -> int:
    """Count the tool requests after this entry, or all of them when the entry is missing."""
    last_index = next((index for index, entry in enumerate(context.entries) if entry.uuid == entry_uuid), -1)
    return sum(1 for action in read_activity(context.entries[last_index + 1 :]).tool_calls if action.use.id)
