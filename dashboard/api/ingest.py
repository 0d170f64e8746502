"""Telemetry from programs."""

from collections.abc import Mapping
from typing import Annotated

from ninja import Field, Query, Router, Schema, Status

from dashboard import access
from dashboard.access import Act
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.ingest.bodies import TRANSCRIPT_LINES, BodyRefused, unpack_body
from dashboard.ingest.intake import Origin
from dashboard.ingest.uploads import NothingReadable, Upload, UploadResult, take_in_upload

router = Router(tags=["ingest"])

Name = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]

_LINES = {
    "requestBody": {
        "required": True,
        "description": "Transcript lines, one JSON object each; at most 64 MiB and 100,000 lines, plain or gzip.",
        "content": {"application/x-ndjson": {"schema": {"type": "string", "format": "binary"}}},
    }
}
_TYPES = ("application/x-ndjson", "application/jsonl", "application/json", "application/octet-stream", "text/plain", "")


class TranscriptPlace(Schema):
    """Where the lines belong; omitted values must be in the lines themselves."""

    team: Name | None = Field(None, description="Slug of the team; required if you can send to several.")
    session: Name | None = Field(None, description="Session id, as in its file name.")
    agent: Name | None = Field(None, description="Sub-agent id, for lines of a sub-agent's file.")
    name: Name = Field("lines", description="File name shown in reports. Session and sub-agent can be derived from it.")
    line: int = Field(1, ge=1, le=2**53, description="Line number of the first line in its file, shown in reports.")


class SessionTaken(Schema):
    id: int = Field(alias="session_pk")
    session: str = Field(alias="external_id")
    version: int
    is_new: bool
    new_calls: int
    new_breaks: int
    new_compactions: int
    lines_crossed: list[str]

    @staticmethod
    def resolve_new_calls(recorded: object) -> int:
        return len(getattr(recorded, "new_calls", ()))

    @staticmethod
    def resolve_new_breaks(recorded: object) -> int:
        return len(getattr(recorded, "new_breaks", ()))

    @staticmethod
    def resolve_new_compactions(recorded: object) -> int:
        return len(getattr(recorded, "new_compactions", ()))


class LineProblemOut(Schema):
    line_number: int
    reason: str


class TranscriptTaken(Schema):
    """Everything counted here is committed. Sending the same lines again is safe; duplicates are ignored."""

    lines: int
    new_lines: int
    redactions: int
    problem_count: int
    problems: list[LineProblemOut] = Field(description="The first 100 lines that could not be parsed.")
    drops: dict[str, int] = Field(description="Dropped lines, by reason.")
    sessions: list[SessionTaken]


@router.post(
    "/ingest/transcripts",
    summary="Send transcript lines",
    response={
        200: TranscriptTaken,
        400: Problem,
        403: Problem,
        404: Problem,
        413: Problem,
        415: Problem,
        422: Problem,
        503: Problem,
    },
    openapi_extra=_LINES,
)
def send_transcript(request: ApiRequest, place: Query[TranscriptPlace]) -> Status[Mapping[str, object]]:
    """Lines of a Claude Code transcript, in any order and split at any line end."""
    try:
        access.require_personal_sender(request.auth)
        origin = Origin(find_team(request, place.team, Act.INGEST), request.auth.sender, "api")
        upload = Upload(place.name, read_lines(request), place.session, place.agent, place.line)
        result = take_in_upload(origin, upload)
    except BodyRefused as refusal:
        return Status(refusal.status, {"detail": str(refusal)})
    except NothingReadable as refusal:
        return Status(422, {"detail": str(refusal)})
    return Status(200, spell_result(result))


def read_lines(request: ApiRequest) -> bytes:
    kind = (request.content_type or "").lower()
    if kind not in _TYPES:
        raise BodyRefused(415, "Send the lines as application/x-ndjson.")
    data = unpack_body(request.body, request.headers.get("Content-Encoding", ""), most_lines=TRANSCRIPT_LINES)
    if not data.strip():
        raise BodyRefused(400, "The body is empty.")
    return data


def spell_result(result: UploadResult) -> dict[str, object]:
    return {
        "lines": result.line_count,
        "new_lines": result.new_line_count,
        "redactions": result.redaction_count,
        "problem_count": result.problem_count,
        "problems": result.problems,
        "drops": dict(result.drops),
        "sessions": list(result.sessions.values()),
    }
