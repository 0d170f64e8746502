"""Versions of a conversation's notes: kept, edited by people, and asked for by them."""

from collections.abc import Mapping
from datetime import datetime

from django.db import IntegrityError, transaction

from compaction.compactors.notes.template import ALL_NOTES_TOKENS
from compaction.context.tokens import count_text_tokens
from dashboard import access
from dashboard.access import Actor
from dashboard.automation.notes_due import JOB_KIND
from dashboard.ingest.redaction_counts import count_note
from dashboard.jobs.post import URGENT, post_job
from dashboard.models import AgentSession, Job, NotesExtraction, SessionNote
from dashboard.runs.basis import read_basis
from dashboard.runs.choices import RunRefused
from dashboard.runs.session_notes import find_note
from dashboard.runs.texts import redact_text

PERSON = "person"
MOST_VERSIONS = 50  # of those that a program wrote; what people wrote stays


def keep_version(note: SessionNote, redactions: Mapping[str, int]) -> None:
    """Raises IntegrityError where somebody else has written this number. `redactions`: marks that the text got."""
    note.save(force_insert=True)
    count_note(note, redactions)
    same = SessionNote.objects.filter(session=note.session, agent_id=note.agent_id)
    same.filter(number__lte=note.number - MOST_VERSIONS).exclude(writer=PERSON).delete()


def edit_notes(
    actor: Actor, session: AgentSession, text: str, *, base_number: int | None, now: datetime
) -> SessionNote:
    """The next version, in a person's words; it covers what the one before it does.

    `base_number` is the one that was edited: a newer one is not overwritten unseen. Raises RunRefused with what is in
    the way; too low a role, or no right to read the words, is PermissionDenied.
    """
    access.require_run(actor, session)
    access.require_content(actor, session)
    newest = find_note(session)
    if newest is None:
        raise RunRefused("no_notes", "This session has no notes yet. Take notes first, then edit them.")
    if base_number is not None and base_number != newest.number:
        raise _tell_of_newer(newest)
    cleaned, redactions = redact_text(session.team, text)
    draft = SessionNote(
        team=session.team,
        session=session,
        number=newest.number + 1,
        text=_check_text(cleaned, newest),
        last_entry_uuid=newest.last_entry_uuid,
        context_tokens=newest.context_tokens,
        written_at=now,
        writer=PERSON,
        edited_by=actor.user,
        edited_by_name=actor.user.username if actor.user else "terminal",
    )
    try:
        with transaction.atomic():
            keep_version(draft, redactions)
    except IntegrityError:
        raise _tell_of_newer(find_note(session) or newest) from None
    return draft


def ask_for_notes(actor: Actor, session: AgentSession, *, now: datetime) -> Job:
    """Notes now, whether they are due or not. Raises RunRefused; too low a role is PermissionDenied."""
    access.require_run(actor, session)
    newest, basis = find_note(session), read_basis(session)
    if newest is not None and newest.last_entry_uuid == basis.last_entry_uuid:
        raise RunRefused("nothing_new", f"Nothing new since version {newest.number} of the notes.")
    if find_open_job(session) is not None:
        raise RunRefused("extraction_under_way", "Notes of this session are already being taken.")
    with transaction.atomic():
        return post_job(
            JOB_KIND,
            key=f"notes of session {session.pk} asked for at {now.isoformat()}",
            team=session.team,
            payload={"session": session.pk, "is_asked": True},
            priority=URGENT,
        )


def find_open_job(session: AgentSession) -> Job | None:
    """A job that takes notes of it right now, or was asked to by a person and waits for a worker."""
    rows = NotesExtraction.objects.filter(session=session, agent_id="", job__finished_at=None)
    extraction = rows.select_related("job").first()
    if extraction is not None:
        return extraction.job
    waiting = Job.objects.filter(kind=JOB_KIND, team=session.team_id, finished_at=None, payload__session=session.pk)
    return waiting.filter(payload__is_asked=True).first()


def _check_text(text: str, newest: SessionNote) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise RunRefused("empty_notes", "Notes cannot be empty. Nothing was saved.")
    tokens = count_text_tokens(text)
    if tokens > ALL_NOTES_TOKENS:
        raise RunRefused("notes_too_long", f"The notes have {tokens:,} tokens; the limit is {ALL_NOTES_TOKENS:,}.")
    if text == newest.text:
        raise RunRefused("no_change", f"Version {newest.number} is identical. Nothing was saved.")
    return text


def _tell_of_newer(newest: SessionNote) -> RunRefused:
    by = newest.edited_by_name or "Plimsoll"
    return RunRefused(
        "edited_meanwhile",
        f"{by} saved version {newest.number} in the meantime. Review it first; nothing was overwritten.",
        number=newest.number,
    )
