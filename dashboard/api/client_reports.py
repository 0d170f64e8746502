"""Hooks and status lines of coding agents."""

from collections.abc import Callable

from ninja import Query, Router, Schema, Status

from dashboard.access import Act
from dashboard.api.ingest import Name
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.ingest.bodies import MIB, BodyRefused, unpack_body
from dashboard.ingest.client_json import TooMany
from dashboard.ingest.client_reports import count_spool_drops, take_in_hooks, take_in_statuses
from dashboard.ingest.intake import Taken
from dashboard.models import Team, User

router = Router(tags=["ingest"])

BODY_BYTES = 4 * MIB
DROPPED_HEADER = "X-Plimsoll-Dropped"
_DIGITS = 9
_TYPES = ("application/json", "application/x-ndjson", "application/jsonl", "text/plain", "application/octet-stream", "")
_ANSWERS = {204: None, 400: Problem, 403: Problem, 404: Problem, 413: Problem, 415: Problem, 422: Problem, 503: Problem}


def _describe(what: str) -> dict[str, object]:
    return {
        "requestBody": {
            "required": True,
            "description": f"{what} One JSON object, a list of objects, or one per line; at most 4 MiB, plain or gzip.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    }


class ReportPlace(Schema):
    """Owner of the session; defaults come from the key."""

    team: Name | None = None


@router.post(
    "/ingest/hooks",
    summary="Send hook events",
    response=_ANSWERS,
    openapi_extra=_describe("Claude Code hook input."),
)
def send_hooks(request: ApiRequest, place: Query[ReportPlace]) -> Status[None] | Status[dict[str, str]]:
    """Hook events from `plimsoll hook` or an HTTP hook. The response is empty, because a client would interpret its
    content as instructions."""
    return _take_in(request, place, take_in_hooks)


@router.post(
    "/ingest/status",
    summary="Send status lines",
    response=_ANSWERS,
    openapi_extra=_describe("Claude Code status line input."),
)
def send_status(request: ApiRequest, place: Query[ReportPlace]) -> Status[None] | Status[dict[str, str]]:
    """Status lines: the window reported by the client, cache miss reasons, cache expiry, rate limits."""
    return _take_in(request, place, take_in_statuses)


def _take_in(
    request: ApiRequest, place: ReportPlace, take_in: Callable[[Team, User | None, bytes], Taken]
) -> Status[None] | Status[dict[str, str]]:
    try:
        team = find_team(request, place.team, Act.INGEST)
        taken = take_in(team, request.auth.sender, _read_body(request))
    except BodyRefused as refusal:
        return Status(refusal.status, {"detail": str(refusal)})
    except TooMany as refusal:
        return Status(413, {"detail": str(refusal)})
    if not taken.line_count or taken.problem_count == taken.line_count:
        return Status(422, {"detail": "The body has no valid JSON object."})
    count_spool_drops(team, request.auth.sender, _read_dropped(request))
    return Status(204, None)


def _read_body(request: ApiRequest) -> bytes:
    if (request.content_type or "").lower() not in _TYPES:
        raise BodyRefused(415, "Send JSON.")
    data = unpack_body(request.body, request.headers.get("Content-Encoding", ""), limit_bytes=BODY_BYTES)
    if not data.strip():
        raise BodyRefused(400, "The body is empty.")
    return data


def _read_dropped(request: ApiRequest) -> int:
    told = request.headers.get(DROPPED_HEADER, "")
    return int(told) if told.isascii() and told.isdigit() and len(told) <= _DIGITS else 0
