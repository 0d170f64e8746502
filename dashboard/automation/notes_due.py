"""Whether notes of a session may be due, by stored figures alone: asked inside the transaction that records it.

The job that is posted then reads the conversation, and judges.
"""

from compaction.compactors.notes.schedule import DEFAULT_EXTRACTION_SETTINGS, compute_growth
from dashboard.automation.wishes import NotesWriter
from dashboard.jobs.post import JsonValue, post_job
from dashboard.models import AutomationSettings, Job, SessionNote, Team

JOB_KIND = "take_notes"


def may_be_due(team: Team, session_pk: int, context_tokens: int) -> bool:
    """Two queries at most, none for a small session."""
    settings = DEFAULT_EXTRACTION_SETTINGS
    if context_tokens < min(settings.first_tokens, settings.growth_tokens):
        return False
    if not AutomationSettings.objects.filter(team=team).exclude(notes_writer=NotesWriter.OFF).exists():
        return False
    notes = SessionNote.objects.filter(session=session_pk, agent_id="").order_by("-number")
    last_tokens = notes.values_list("context_tokens", flat=True).first()
    if last_tokens is None:
        return context_tokens >= settings.first_tokens
    return compute_growth(context_tokens, last_tokens) >= settings.growth_tokens


def post_notes(team: Team, session_pk: int, *, version: int) -> Job:
    """Once for every state of the session."""
    key = f"notes of session {session_pk} at version {version}"
    payload: dict[str, JsonValue] = {"session": session_pk}
    return post_job(JOB_KIND, key=key, team=team, payload=payload)
