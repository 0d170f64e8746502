"""What agents of any kind tell of their sessions."""

from typing import Any

from ninja import Query, Router, Schema, Status

from dashboard import access
from dashboard.access import Act
from dashboard.api.named_team import find_team
from dashboard.api.pushed_lines import PushPlace
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.ingest.agent_facts import SOURCE, prepare_items
from dashboard.ingest.agent_items import ItemRefused, describe_batch, read_batch
from dashboard.ingest.bodies import MIB, BodyRefused, unpack_body
from dashboard.ingest.intake import Origin, make_rules, store_together
from dashboard.policies.in_force import find_policy

router = Router(tags=["ingest"])

BODY_BYTES = 32 * MIB
GONE = "The session was deleted and is not imported again."
NOT_YOURS = "The session belongs to another account. Choose another id."
_USAGE = {"input_tokens": 12, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 4100, "output_tokens": 350}
_REQUEST = {
    "system": [{"type": "text", "text": "You sort mail.", "cache_control": {"type": "ephemeral"}}],
    "messages": [{"role": "user", "content": "Sort this."}],
}
EXAMPLE: dict[str, Any] = {
    "items": [
        {
            "type": "session",
            "session": "mail-7",
            "at": "2026-05-01T10:00:00Z",
            "title": "Morning mail",
            "folder": "/srv/mail",
        },
        {
            "type": "message",
            "session": "mail-7",
            "id": "m1",
            "at": "2026-05-01T10:00:00Z",
            "role": "user",
            "content": "Sort this.",
        },
        {
            "type": "call",
            "session": "mail-7",
            "id": "c1",
            "at": "2026-05-01T10:00:04Z",
            "model": "claude-opus-4-5",
            "usage": _USAGE,
            "request": _REQUEST,
        },
        {
            "type": "compaction",
            "session": "mail-7",
            "id": "k1",
            "at": "2026-05-01T11:00:00Z",
            "parent": "m1",
            "before_tokens": 161000,
            "after_tokens": 9000,
            "summary": "Mail was sorted.",
        },
    ]
}
_BODY = {
    "requestBody": {
        "required": True,
        "description": "At most 1,000 items and 32 MiB, plain or gzip.",
        "content": {"application/json": {"schema": describe_batch() | {"examples": [EXAMPLE]}, "example": EXAMPLE}},
    }
}


class ItemResult(Schema):
    index: int
    ok: bool
    detail: str | None = None


class ItemsTaken(Schema):
    """Items that are ok are committed. Sending them again is safe; duplicates are ignored."""

    ok: int
    refused: int
    results: list[ItemResult]


@router.post(
    "/ingest/items",
    summary="Send session items",
    response={
        200: ItemsTaken,
        400: Problem,
        403: Problem,
        404: Problem,
        413: Problem,
        415: Problem,
        422: Problem,
        503: Problem,
    },
    openapi_extra=_BODY,
)
def send_items(request: ApiRequest, place: Query[PushPlace]) -> ItemsTaken | Status[dict[str, str]]:
    """Sessions, prompts, calls, messages and compactions of any agent, in any order. Each item is accepted or rejected
    on its own. Ids are chosen by you and identify items that are sent again."""
    try:
        access.require_personal_sender(request.auth)
        origin = Origin(find_team(request, place.team, Act.INGEST), request.auth.sender, SOURCE)
        raws = read_batch(_read_body(request))
    except BodyRefused as refusal:
        return Status(refusal.status, {"detail": str(refusal)})
    except ItemRefused as refusal:
        return Status(422, {"detail": str(refusal)})
    policy = find_policy(origin.team)
    read = prepare_items(raws, make_rules(origin.team, policy))
    taken = store_together(origin, read.prepared, policy)
    kept = {recorded.external_id for recorded in taken.sessions}
    gone = {
        index: NOT_YOURS if session in taken.refused_sessions else GONE
        for index, session in read.sessions.items()
        if session not in kept
    }
    refusals = read.refusals | gone
    results = [
        ItemResult(index=index, ok=index not in refusals, detail=refusals.get(index)) for index in range(len(raws))
    ]
    return ItemsTaken(ok=len(raws) - len(refusals), refused=len(refusals), results=results)


def _read_body(request: ApiRequest) -> bytes:
    if (request.content_type or "").lower() != "application/json":
        raise BodyRefused(415, "Send JSON.")
    data = unpack_body(request.body, request.headers.get("Content-Encoding", ""), limit_bytes=BODY_BYTES)
    if not data.strip():
        raise BodyRefused(400, "The body is empty.")
    return data
