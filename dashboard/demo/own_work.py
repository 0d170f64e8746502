"""Plimsoll's own compactions and notes in the demo: asked for as their developers would, done by a worker.

Only what needs no model: the demo calls nobody and costs nothing.
"""

import contextlib
from datetime import datetime

from compaction.compactors.selections import list_selectable
from dashboard import access
from dashboard.automation.note_versions import ask_for_notes, find_open_job
from dashboard.models import AgentSession, CompactionRun, RunKind, User
from dashboard.runs.basis import read_basis
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.session_notes import find_note
from dashboard.runs.start import start_run


def ask_for_run(session: AgentSession, kind: RunKind, owner: User, *, now: datetime) -> None:
    """Once, however often the demo is begun."""
    if not CompactionRun.objects.filter(session=session).exists():
        choices = RunChoices(kind=kind, pivot_uuid=_find_middle(session) if kind.needs_pivot else "")
        start_run(access.person(owner), session, choices, source="page", now=now)


def ask_for_first_notes(session: AgentSession, owner: User, *, now: datetime) -> None:
    if find_note(session) is None and find_open_job(session) is None:
        ask_for_notes(access.person(owner), session, now=now)


def ask_for_run_from_notes(session: AgentSession, owner: User, *, now: datetime) -> bool:
    """False while the notes are taken."""
    if find_note(session) is None:
        return find_open_job(session) is None
    with contextlib.suppress(RunRefused):  # somebody compacts it at this very moment
        ask_for_run(session, RunKind.NOTES, owner, now=now)
    return True


def _find_middle(session: AgentSession) -> str:
    """The message that a partial compaction starts from or ends at."""
    messages = [entry for entry in list_selectable(read_basis(session).context) if entry.uuid and entry.message]
    return messages[len(messages) // 2].uuid or ""
