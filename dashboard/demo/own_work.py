"""Plimsoll's own compactions and notes in the demo: asked for as their developers would, done by a worker.

Only what needs no model: the demo calls nobody and costs nothing.
"""

from datetime import datetime

from dashboard import access
from dashboard.automation.note_versions import ask_for_notes, find_open_job
from dashboard.models import AgentSession, CompactionRun, RunKind, User
from dashboard.runs.choices import RunChoices
from dashboard.runs.session_notes import find_note
from dashboard.runs.start import start_run


def ask_for_run(session: AgentSession, kind: RunKind, owner: User, *, now: datetime) -> None:
    """Once, however often the demo is begun."""
    if not CompactionRun.objects.filter(session=session).exists():
        start_run(access.person(owner), session, RunChoices(kind=kind), source="page", now=now)


def ask_for_first_notes(session: AgentSession, owner: User, *, now: datetime) -> None:
    if find_note(session) is None and find_open_job(session) is None:
        ask_for_notes(access.person(owner), session, now=now)
