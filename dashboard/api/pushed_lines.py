"""What `plimsoll watch` on a developer's machine asks and sends."""

import base64
from datetime import datetime

from ninja import Field, Query, Router, Schema, Status

from dashboard import access
from dashboard.access import Act
from dashboard.api.ingest import Name
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import Problem
from dashboard.backup import find_restoration
from dashboard.ingest.bodies import BodyRefused, unpack_body
from dashboard.ingest.intake import Origin, make_rules, store_together
from dashboard.ingest.pushed_lines import FORMAT, JSON, MSGPACK, PushUnreadable, read_push, settle_push
from dashboard.models import Team
from dashboard.policies.in_force import find_policy

router = Router(tags=["ingest"])

SOURCE = "push"
STORE = (
    "Another value: another database, which has none of what was sent before; where only what follows a slash is "
    "another, a backup of the same, which has what was sent before it was made."
)
_BATCH = {
    "requestBody": {
        "required": True,
        "description": "A batch of `plimsoll watch`; at most 64 MiB decompressed, plain or gzip.",
        "content": {
            MSGPACK: {"schema": {"type": "string", "format": "binary"}},
            JSON: {"schema": {"type": "object", "examples": [{"format": FORMAT, "sessions": []}]}},
        },
    }
}


class PushPlace(Schema):
    """Target team."""

    team: Name | None = Field(None, description="Slug of the team; required if you can send to several.")


class PushRules(Schema):
    """How lines are prepared before they leave a machine."""

    format: int = FORMAT
    team: str
    developer: str = Field(description="Owner of the sessions: the key's owner.")
    store: str = Field(description=STORE)
    version: int = Field(
        description="Version of the team's policy. If a response has another version, request the rules again."
    )
    keeps_content: bool = Field(description="Whether the team stores content. If not, no content needs to be sent.")
    content_since: datetime | None = Field(description="Older content is not stored and need not be sent.")
    digest_key: str = Field(description="Base64. One key per team, so that its fingerprints can be compared.")
    own_patterns: dict[str, str] = Field(description="The team's own redaction patterns, by name.")
    disabled_rules: list[str] = Field(description="Names of rules that the team has turned off.")
    redaction_version: int = Field(
        description="Policy version that last changed patterns or rules. If it increases, everything is sent again."
    )


class PushTaken(Schema):
    """Everything in the batch is committed or counted as refused. Sending it again is safe; duplicates are ignored."""

    lines: int
    new_lines: int
    version: int
    store: str = Field(description="If it differs from the rules' version, request the rules again.")
    refused_lines: int = Field(description="Lines dropped because their session belongs to another account.")


@router.get(
    "/ingest/lines",
    summary="Get push rules",
    response={200: PushRules, 403: Problem, 404: Problem, 422: Problem, 503: Problem},
)
def read_push_rules(request: ApiRequest, place: Query[PushPlace]) -> PushRules | Status[dict[str, str]]:
    """The team's storage and redaction rules, for `plimsoll watch`."""
    access.require_personal_sender(request.auth)
    team = find_team(request, place.team, Act.INGEST)
    policy = find_policy(team)
    rules = make_rules(team, policy)
    return PushRules(
        team=team.slug,
        developer=acting_user(request).username,
        store=_name_store(team),
        version=policy.version,
        keeps_content=rules.keeps_content,
        content_since=rules.content_since,
        digest_key=base64.b64encode(rules.digest_key).decode(),
        own_patterns=dict(rules.own_patterns),
        disabled_rules=sorted(rules.disabled_rules),
        redaction_version=rules.redaction_version,
    )


def _name_store(team: Team) -> str:
    restoration = find_restoration()
    return f"{team.pk}-{team.created_at.isoformat()}" + (f"/{restoration}" if restoration else "")


@router.post(
    "/ingest/lines",
    summary="Send prepared batch",
    response={
        200: PushTaken,
        400: Problem,
        403: Problem,
        404: Problem,
        413: Problem,
        415: Problem,
        422: Problem,
        503: Problem,
    },
    openapi_extra=_BATCH,
)
def send_lines(request: ApiRequest, place: Query[PushPlace]) -> PushTaken | Status[dict[str, str]]:
    """A batch of `plimsoll watch`: metrics of transcript lines and, if the team stores it, redacted content."""
    try:
        access.require_personal_sender(request.auth)
        origin = Origin(find_team(request, place.team, Act.INGEST), request.auth.sender, SOURCE)
        push = read_push(_read_body(request), (request.content_type or "").lower())
    except BodyRefused as refusal:
        return Status(refusal.status, {"detail": str(refusal)})
    except PushUnreadable as refusal:
        return Status(422, {"detail": str(refusal)})
    policy = find_policy(origin.team)
    taken = store_together(origin, settle_push(push, make_rules(origin.team, policy)), policy)
    return PushTaken(
        lines=taken.line_count,
        new_lines=taken.new_line_count,
        version=policy.version,
        store=_name_store(origin.team),
        refused_lines=taken.refused_line_count,
    )


def _read_body(request: ApiRequest) -> bytes:
    if (request.content_type or "").lower() not in (MSGPACK, JSON):
        raise BodyRefused(415, f"Send a batch as {MSGPACK}.")
    return unpack_body(request.body, request.headers.get("Content-Encoding", ""))
