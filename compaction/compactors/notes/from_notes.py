"""Compacts from session notes, without a model call: the notes replace what they cover, later entries are kept.

What is kept beside the notes is decided here: everything they do not cover, and enough before that to continue from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.compactors.assembly import Replacement, assemble_outcome
from compaction.compactors.hooks import run_post_hooks
from compaction.compactors.notes.schedule import compute_wait_seconds
from compaction.compactors.notes.template import DEFAULT_TEMPLATE, SessionNotes, cut_notes, is_template_only
from compaction.compactors.outcome import CompactionOutcome, CompactorKind, Summary
from compaction.compactors.restore.items import RestoredContext
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.run_events import build_threshold_event, list_run_events
from compaction.compactors.selections import require_new_messages
from compaction.compactors.summary.message import build_summary_entry, build_summary_text
from compaction.context.tokens import add_margin, count_entry_tokens
from compaction.errors import (
    CompactionCancelled,
    NotesBeingWritten,
    NotesEmpty,
    NotesMissing,
    NotesNotEnough,
    NotesPositionLost,
    NothingToCompact,
)
from compaction.ports import Stage
from compaction.transcripts.chain import ContextSlice, is_boundary, slice_context
from compaction.transcripts.entries import Entry, TextBlock
from compaction.transcripts.rounds import find_split_point
from compaction.transcripts.user_lines import classify_entry

NOTES_LABEL = "from the notes taken during the session"


@dataclass(frozen=True, slots=True)
class KeepSettings:
    """The client's figures: the minimum to keep beside notes, and the size at which no earlier entry is added."""

    min_tokens: int = 10_000
    min_text_messages: int = 5
    max_tokens: int = 40_000


DEFAULT_KEEP_SETTINGS = KeepSettings()


def compact_from_notes(
    entries: Sequence[Entry],
    notes: SessionNotes | None,
    request: CompactionRequest,
    ports: RunPorts,
    *,
    template: str = DEFAULT_TEMPLATE,
    settings: KeepSettings = DEFAULT_KEEP_SETTINGS,
) -> CompactionOutcome:
    """Return the outcome, or raise NothingToCompact or a NotesNotUsable. `ports.summarizer` is not called.

    The caller waits for a running extraction (compute_wait_seconds) before calling this.
    """
    if ports.monitor.is_cancelled():
        raise CompactionCancelled
    context = slice_context(entries)
    require_new_messages(context)
    usable_notes = require_usable_notes(notes, request, template=template)
    start = compute_kept_start(context, usable_notes.last_entry_uuid, settings)
    if start is None:
        raise NotesPositionLost
    if not any(entry.message is not None and not is_boundary(entry) for entry in context.entries[:start]):
        raise NothingToCompact("All messages have to be kept beside the notes, so nothing would be saved.")
    outcome = _assemble(entries, context, start, usable_notes, request=request, ports=ports)
    if outcome.is_above_threshold:
        ports.monitor.record_event(build_threshold_event(outcome))
        raise NotesNotEnough(outcome.expected_tokens, outcome.threshold_tokens or 0)
    ports.monitor.enter_stage(Stage.DONE)
    outcome = replace(outcome, events=tuple(list_run_events(outcome, context.entries, request.recompaction)))
    for event in outcome.events:
        ports.monitor.record_event(event)
    return outcome


def require_usable_notes(
    notes: SessionNotes | None, request: CompactionRequest, *, template: str = DEFAULT_TEMPLATE
) -> SessionNotes:
    """Return the notes, or raise a NotesNotUsable."""
    if notes is None or not notes.text.strip():
        raise NotesMissing
    wait_seconds = compute_wait_seconds(notes, request.now)
    if wait_seconds > 0:
        raise NotesBeingWritten(wait_seconds)
    if is_template_only(notes.text, template):
        raise NotesEmpty
    return notes


def _assemble(
    entries: Sequence[Entry],
    context: ContextSlice,
    start: int,
    notes: SessionNotes,
    *,
    request: CompactionRequest,
    ports: RunPorts,
) -> CompactionOutcome:
    kept = context.entries[start:]
    summary = Summary(cut_notes(notes.text), label=NOTES_LABEL)
    text = build_summary_text(
        summary, request.trigger, transcript_path=request.transcript_path, has_kept_after=bool(kept)
    )
    ports.monitor.enter_stage(Stage.RESTORING)
    restored = ports.restore(entries, kept, now=request.now)
    ports.monitor.enter_stage(Stage.POST_HOOKS)
    session_id = next((entry.session_id for entry in reversed(entries) if entry.session_id), None)
    hook_items = run_post_hooks(ports.hooks, request.trigger, summary=summary.text, session_id=session_id)
    return assemble_outcome(
        Replacement(
            kind=CompactorKind.SESSION_MEMORY,
            trigger=request.trigger,
            now=request.now,
            context=context,
            kept=kept,
            summary=summary,
            summary_entry=build_summary_entry(text),
            restored=RestoredContext(restored.items + hook_items),
            user_context=request.custom_instructions,
            prefix_tokens=request.prefix_tokens,
            threshold_tokens=request.threshold_tokens,
        )
    )


def compute_kept_start(
    context: ContextSlice, last_entry_uuid: str | None, settings: KeepSettings = DEFAULT_KEEP_SETTINGS
) -> int | None:
    """Return the index of the first kept entry; None when the last entry covered by the notes is missing.

    Everything after the covered entry is kept whatever its size. Earlier entries are added until the minimum is met,
    but none before the last boundary and its summary. The start is then moved back to the nearest split point.
    """
    entries = context.entries
    covered = next((index for index, entry in enumerate(entries) if entry.uuid and entry.uuid == last_entry_uuid), None)
    if covered is None:
        return None
    floor = _compute_floor(entries)
    start = max(covered + 1, floor)
    size = _KeptSize(entries[start:])
    while start > floor and not size.is_enough(settings):
        if add_margin(size.tokens + count_entry_tokens(entries[start - 1])) > settings.max_tokens:
            break
        start -= 1
        size.add(entries[start])
    return find_split_point(entries, start)


class _KeptSize:
    """Tokens and messages with text of the entries kept so far."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.tokens = 0
        self._messages: set[str] = set()
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        self.tokens += count_entry_tokens(entry)
        if has_text(entry) and entry.message is not None:
            # Lines of one response are one message.
            self._messages.add(entry.message.id or entry.uuid or f"line {entry.line_number}")

    def is_enough(self, settings: KeepSettings) -> bool:
        tokens = add_margin(self.tokens)
        has_minimum = tokens >= settings.min_tokens and len(self._messages) >= settings.min_text_messages
        return has_minimum or tokens >= settings.max_tokens


def has_text(entry: Entry) -> bool:
    """Return whether the entry holds text of the user or the model, not only tool blocks."""
    if entry.type not in ("user", "assistant") or entry.message is None:
        return False
    line = classify_entry(entry)
    if line is not None:
        return bool(line.text)
    return any(isinstance(block, TextBlock) and block.text.strip() for block in entry.message.content)


def _compute_floor(entries: Sequence[Entry]) -> int:
    """Return the first index that may be kept: after the last boundary and its summary."""
    floor = 0
    for index, entry in enumerate(entries):
        if is_boundary(entry) or entry.is_compact_summary:
            floor = index + 1
    return floor
