"""The notes of a session: read, edited, and taken now."""

from datetime import datetime
from decimal import Decimal

from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Field, Router, Schema, Status

from dashboard import access
from dashboard.access import Act
from dashboard.api.listing import find_session
from dashboard.api.request import ApiRequest
from dashboard.api.run_schemas import RunRefusal
from dashboard.api.schemas import Problem
from dashboard.automation.note_versions import ask_for_notes, edit_notes
from dashboard.models import AgentSession
from dashboard.pages.notes_page import NotesPage, read_notes_page

router = Router(tags=["sessions"])
MAY_RUN = {403: Problem, 404: Problem, 409: RunRefusal, 422: Problem}


class NoteVersionOut(Schema):
    number: int
    writer: str = Field(description="extractive, claude or person.")
    edited_by: str
    written_at: datetime
    cost_usd: Decimal
    context_tokens: int = Field(description="Size of the conversation when they were taken.")


class NotesOut(Schema):
    """`number` is 0 and there is no text before notes are taken. Send it as `base_number` when you edit them."""

    number: int
    text: str | None = Field(description="Null without content access.")
    last_entry_uuid: str = Field(description="Last entry covered by the notes.")
    is_under_way: bool = Field(description="Newer notes are being taken.")
    refusal: str = Field(description="Why the last attempt failed; otherwise empty.")
    versions: list[NoteVersionOut] = Field(description="Newest first.")


class NotesIn(Schema):
    text: str = Field(max_length=200_000)
    base_number: int | None = Field(None, ge=1, description="The version you edited. A newer one is not overwritten.")


@router.get(
    "/sessions/{int:session_id}/notes",
    summary="Get session notes",
    response={200: NotesOut, 403: Problem, 404: Problem, 422: Problem},
)
def read_session_notes(request: ApiRequest, session_id: int, number: int | None = None) -> dict[str, object]:
    """The newest version, or the one requested."""
    return _describe(read_notes_page(request.auth, find_session(request, session_id), number=number))


@router.put("/sessions/{int:session_id}/notes", summary="Update session notes", response={200: NotesOut, **MAY_RUN})
def edit_session_notes(request: ApiRequest, session_id: int, body: NotesIn) -> dict[str, object]:
    """Saves a new version with your text; earlier versions are kept. It covers the same entries as the previous one."""
    session = _find_own(request, session_id)
    edit_notes(request.auth, session, body.text, base_number=body.base_number, now=timezone.now())
    return _describe(read_notes_page(request.auth, session))


@router.post("/sessions/{int:session_id}/notes", summary="Take session notes", response={202: NotesOut, **MAY_RUN})
def take_session_notes(request: ApiRequest, session_id: int) -> Status[dict[str, object]]:
    """Takes notes now, whether due or not. A worker starts within seconds."""
    session = _find_own(request, session_id)
    ask_for_notes(request.auth, session, now=timezone.now())
    return Status(202, _describe(read_notes_page(request.auth, session)))


def _find_own(request: ApiRequest, session_id: int) -> AgentSession:
    """A key that may only run compactions sees what it may run."""
    act = Act.SEE if request.auth.key is None else Act.RUN_OWN
    access.require_anywhere(request.auth, act)
    return get_object_or_404(access.sessions(request.auth, act).select_related("team"), pk=session_id)


def _describe(page: NotesPage) -> dict[str, object]:
    return {
        "number": page.shown.number if page.shown else 0,
        "text": page.text or None,
        "last_entry_uuid": page.last_entry_uuid,
        "is_under_way": page.is_under_way,
        "refusal": page.refusal,
        "versions": [
            {
                "number": each.number,
                "writer": each.writer,
                "edited_by": each.by,
                "written_at": each.at,
                "cost_usd": each.cost_usd,
                "context_tokens": each.context_tokens,
            }
            for each in page.versions
        ],
    }
