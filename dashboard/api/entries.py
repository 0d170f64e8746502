"""What one session says: search in its stored lines, for those who may read content."""

from datetime import datetime
from typing import Annotated

from django.core.exceptions import PermissionDenied
from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema

from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.pages.entry_search import find_entries

router = Router(tags=["sessions"])


class EntriesAsked(Schema):
    text: Annotated[str, Field(max_length=200)] = Field(
        "", description="Search text; case-insensitive. Empty: everything, from the beginning."
    )
    first: int = Field(1, ge=1, le=10**9, description="Number of the first match to list: `next` of a page.")
    limit: int = Field(50, ge=1, le=200)


class EntryFound(Schema):
    uuid: str
    type: str
    agent_id: str = Field(description="Empty: the main conversation.")
    at: datetime | None
    excerpt: str


class EntriesFound(Schema):
    """In the order of the conversation."""

    entries: list[EntryFound]
    total: int = Field(description="Total number of matching lines.", examples=[123])
    next: int | None = Field(description="Pass as `first` for the next page; null at the end.", examples=[51])
    has_more: bool


@router.get(
    "/sessions/{int:session_id}/entries",
    summary="Search session content",
    response={200: EntriesFound, 403: Problem, 404: Problem},
)
def search_session_entries(request: ApiRequest, session_id: int, asked: Query[EntriesAsked]) -> dict[str, object]:
    """Messages, tool calls and results that contain the text. Empty if the team stores no content."""
    if request.auth.key is not None:
        access.require_anywhere(request.auth, Act.READ_OWN_CONTENT)  # whatever the session: the key's scope decides
    session = get_object_or_404(access.sessions(request.auth).select_related("team"), pk=session_id)
    if not access.reads_content(request.auth, session):
        raise PermissionDenied("You need permission to read the content of this session.")
    found = find_entries(session, asked.text, limit=asked.limit, first=asked.first)
    return {
        "entries": found.entries,
        "total": found.total,
        "next": found.next,
        "has_more": found.next is not None,
    }
