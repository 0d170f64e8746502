"""The transcript of a session over the API: page by page, for those who may read content."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from django.shortcuts import get_object_or_404
from ninja import Field, Query, Router, Schema

from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.pages.transcript_page import PAGE_SIZE, ShownEntry, TranscriptAsked, read_transcript_page

router = Router(tags=["sessions"])
LineName = Annotated[str, Field(max_length=200)]


class TranscriptWanted(Schema):
    agent: LineName = Field("", description="The sub-agent; empty: the main conversation.")
    entry: LineName = Field("", description="The page that contains this line, in any conversation.")
    call: LineName = Field("", description="The page where the response of this call begins.")
    after: LineName = Field("", description="`next` of a page.")
    before: LineName = Field("", description="`previous` of a page.")
    limit: int = Field(PAGE_SIZE, ge=1, le=200, description="Number of lines; results are returned with their call.")


class SaidOut(Schema):
    """Long text is truncated; `length` is its full length in characters."""

    text: str
    length: int


class ResultOut(Schema):
    entry_uuid: str
    said: SaidOut
    tokens: int
    is_error: bool
    at: datetime | None


class LinePartOut(Schema):
    """`kind` is text, thinking, summary, attachment, mark (for what is no text), call or result."""

    kind: str
    tokens: int = Field(description="Estimated.")
    said: SaidOut | None = None
    tool: str = ""
    about: str = ""
    fields: list[tuple[str, SaidOut]] = []
    result: ResultOut | None = None
    is_error: bool = False


class TranscriptLineOut(Schema):
    uuid: str
    kind: str
    who: str
    at: datetime | None
    model: str
    tokens: int = Field(description="Estimated.")
    parts: list[LinePartOut]
    is_stored: bool
    compaction_id: int | None = Field(description="For a boundary: its compaction.")


class ConversationOut(Schema):
    agent_id: str
    name: str
    line_count: int


class TranscriptOut(Schema):
    agent_id: str
    threads: list[ConversationOut]
    entries: list[TranscriptLineOut]
    first: int
    last: int
    total: int
    previous: str | None
    next: str | None


@router.get(
    "/sessions/{int:session_id}/lines",
    summary="Get transcript",
    response={200: TranscriptOut, 403: Problem, 404: Problem},
)
def read_session_transcript(request: ApiRequest, session_id: int, wanted: Query[TranscriptWanted]) -> dict[str, Any]:
    """The conversation in order. Results are nested in their calls. Without stored content, lines have no parts."""
    if request.auth.key is not None:
        access.require_anywhere(request.auth, Act.READ_OWN_CONTENT)  # whatever the session: the key's scope decides
    session = get_object_or_404(access.sessions(request.auth).select_related("team"), pk=session_id)
    access.require_content(request.auth, session)
    asked = TranscriptAsked(wanted.agent, wanted.entry, wanted.call, wanted.after, wanted.before)
    page = read_transcript_page(session, asked, size=wanted.limit)
    return asdict(page) | {"entries": [_describe(entry) for entry in page.entries]}


def _describe(entry: ShownEntry) -> dict[str, Any]:
    return asdict(entry.view) | {"compaction_id": entry.divider.row.id if entry.divider else None}
