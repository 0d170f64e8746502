"""Compaction from session notes: no model call, the notes stand for what they cover, the rest stays as it is."""

from collections.abc import Sequence
from dataclasses import replace

from compaction.compactors.assembly import Replacement, assemble_outcome
from compaction.compactors.hooks import run_post_hooks
from compaction.compactors.notes.kept_tail import DEFAULT_KEEP_SETTINGS, KeepSettings, find_keep_start
from compaction.compactors.notes.schedule import find_wait_seconds
from compaction.compactors.notes.template import DEFAULT_TEMPLATE, SessionNotes, cut_notes, is_template_only
from compaction.compactors.outcome import CompactionKind, CompactionOutcome, RestoredContext, Summary
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.run_events import list_run_events
from compaction.compactors.selections import require_new_messages
from compaction.compactors.summary.message import make_summary_entry, write_summary_text
from compaction.errors import (
    CompactionCancelled,
    NotesBeingWritten,
    NotesEmpty,
    NotesMissing,
    NotesNotEnough,
    NotesPositionLost,
    NothingToCompact,
)
from compaction.events import ThresholdExceeded
from compaction.ports import Stage
from compaction.transcripts.chain import ContextSlice, is_boundary, slice_context
from compaction.transcripts.entries import Entry

NOTES_LABEL = "from the notes taken during the session"


def compact_from_notes(
    entries: Sequence[Entry],
    notes: SessionNotes | None,
    request: CompactionRequest,
    outside: RunPorts,
    *,
    template: str = DEFAULT_TEMPLATE,
    settings: KeepSettings = DEFAULT_KEEP_SETTINGS,
) -> CompactionOutcome:
    """The outcome; or NothingToCompact, or a NotesNotUsable that says why. `outside.summarizer` is not asked.

    The caller waits for an extraction under way (find_wait_seconds) before it comes here.
    """
    if outside.monitor.is_cancelled():
        raise CompactionCancelled
    context = slice_context(entries)
    require_new_messages(context)
    usable = check_notes(notes, request, template=template)
    start = find_keep_start(context, usable.last_entry_uuid, settings)
    if start is None:
        raise NotesPositionLost
    if not any(entry.message is not None and not is_boundary(entry) for entry in context.entries[:start]):
        raise NothingToCompact("All that was said has to be kept beside the notes, so nothing would be saved.")
    outcome = _assemble(entries, context, start, usable, request=request, outside=outside)
    if outcome.is_above_line:
        _report_threshold(outcome, outside)
        raise NotesNotEnough(outcome.expected_tokens, outcome.line_tokens or 0)
    outside.monitor.enter_stage(Stage.DONE)
    outcome = replace(outcome, events=tuple(list_run_events(outcome, context.entries, request.position)))
    for event in outcome.events:
        outside.monitor.note_event(event)
    return outcome


def check_notes(
    notes: SessionNotes | None, request: CompactionRequest, *, template: str = DEFAULT_TEMPLATE
) -> SessionNotes:
    """The notes, if they can be used; raises a NotesNotUsable otherwise."""
    if notes is None or not notes.text.strip():
        raise NotesMissing
    wait_seconds = find_wait_seconds(notes, request.now)
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
    outside: RunPorts,
) -> CompactionOutcome:
    kept = context.entries[start:]
    summary = Summary(cut_notes(notes.text), label=NOTES_LABEL)
    text = write_summary_text(
        summary, request.trigger, transcript_path=request.transcript_path, has_kept_after=bool(kept)
    )
    outside.monitor.enter_stage(Stage.RESTORING)
    restored = outside.restore(entries, kept, now=request.now)
    outside.monitor.enter_stage(Stage.POST_HOOKS)
    session_id = next((entry.session_id for entry in reversed(entries) if entry.session_id), None)
    hook_items = run_post_hooks(outside.hooks, request.trigger, summary=summary.text, session_id=session_id)
    return assemble_outcome(
        Replacement(
            kind=CompactionKind.SESSION_MEMORY,
            trigger=request.trigger,
            now=request.now,
            context=context,
            kept=kept,
            summary=summary,
            summary_entry=make_summary_entry(text),
            restored=RestoredContext(restored.items + hook_items),
            user_context=request.custom_instructions,
            prefix_tokens=request.prefix_tokens,
            line_tokens=request.line_tokens,
        )
    )


def _report_threshold(outcome: CompactionOutcome, outside: RunPorts) -> None:
    outside.monitor.note_event(
        ThresholdExceeded(
            session_id=outcome.boundary.session_id,
            agent_id=outcome.boundary.agent_id,
            post_tokens=outcome.expected_tokens,
            line_tokens=outcome.line_tokens or 0,
        )
    )
