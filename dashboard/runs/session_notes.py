"""The notes of a conversation as the engine takes them. Who writes them lives in dashboard.automation."""

from dataclasses import replace
from datetime import datetime

from compaction.compactors.micro.clearing import apply_boundaries
from compaction.compactors.notes.from_notes import require_usable_notes
from compaction.compactors.notes.schedule import compute_wait_seconds
from compaction.compactors.notes.template import DEFAULT_TEMPLATE, SessionNotes
from compaction.compactors.outcome import Trigger
from compaction.compactors.run import CompactionRequest
from compaction.errors import NotesNotUsable
from compaction.transcripts.chain import follow_chain, slice_context
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import AgentSession, AutomationSettings, NotesExtraction, SessionNote
from dashboard.runs.basis import Basis

LOOK_AGAIN_SECONDS = 1.0  # while a compaction waits for notes


def find_note(session: AgentSession, agent_id: str = "") -> SessionNote | None:
    """The newest version."""
    return SessionNote.objects.filter(session=session, agent_id=agent_id).order_by("-number").first()


def read_notes(session: AgentSession, agent_id: str = "") -> SessionNotes | None:
    """None where none were ever taken, and none are being taken."""
    note = find_note(session, agent_id)
    under_way = NotesExtraction.objects.filter(session=session, agent_id=agent_id, job__finished_at=None).first()
    if note is None and under_way is None:
        return None
    return SessionNotes(
        text=note.text if note else "",
        last_entry_uuid=(note.last_entry_uuid or None) if note else None,
        written_at=note.written_at if note else None,
        extraction_started_at=under_way.started_at if under_way else None,
    )


def find_template(session: AgentSession) -> str:
    """The team's own sections, or the engine's."""
    row = AutomationSettings.objects.filter(team_id=session.team_id).values_list("notes_template", flat=True).first()
    return row or DEFAULT_TEMPLATE


def find_notes_wait(session: AgentSession, agent_id: str = "", *, since: datetime, now: datetime) -> float:
    """How many seconds a compaction that waits since then waits on for notes that are being taken."""
    notes = read_notes(session, agent_id)
    if notes is None:
        return 0
    return compute_wait_seconds(notes, now, waited_seconds=(now - since).total_seconds())


def has_notes_of_context(session: AgentSession, *, now: datetime) -> bool:
    """Whether a compaction could start from the notes: they say something, and what they end with is still seen."""
    notes, request = read_notes(session), CompactionRequest(trigger=Trigger.AUTO, now=now)
    try:
        usable = require_usable_notes(notes, request, template=find_template(session))
    except NotesNotUsable:
        return False
    entries = slice_context(follow_chain(apply_boundaries(read_thread(session, "").entries))).entries
    return any(entry.uuid == usable.last_entry_uuid for entry in entries)


def add_notes(basis: Basis) -> Basis:
    """The same with the session's notes: they are its summary. Whoever comes here has waited for newer ones: those
    that are there will do."""
    notes = read_notes(basis.session, basis.agent_id)
    if notes is not None and notes.text:
        notes = replace(notes, extraction_started_at=None)
    return replace(basis, notes=notes, notes_template=find_template(basis.session))
