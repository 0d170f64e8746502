"""A team's webhooks. A secret comes out once, when it is made."""

from datetime import datetime

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema, Status

from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import PERSON_ONLY, Input, Problem
from dashboard.hooks import webhooks
from dashboard.hooks.delivery import send_test
from dashboard.hooks.sending import SendFailed
from dashboard.hooks.targets import LONGEST_URL
from dashboard.hooks.webhooks import WebhookWish
from dashboard.models import HookEvent, Webhook

router = Router(tags=["webhooks"])
REFUSALS = {403: Problem, 404: Problem}


class WebhookIn(Input):
    name: str = Field(min_length=1, max_length=80, examples=["review bot"])
    url: str = Field(max_length=LONGEST_URL, examples=["https://hooks.example/plimsoll"])
    events: list[HookEvent] = Field(min_length=1, examples=[["PreCompact", "RunFinished"]])
    sends_words: bool = Field(
        False, description="Include instructions and summaries; requires permission to read them."
    )


class WebhookSwitch(Input):
    is_active: bool


class WebhookOut(Schema):
    id: int
    name: str
    url: str
    events: list[HookEvent]
    sends_words: bool
    is_active: bool
    created_by: str = Field(alias="created_by_name")
    created_at: datetime
    last_at: datetime | None = Field(description="Time of the last delivery attempt.")
    last_event: str
    last_status: int | None = Field(description="Null: no response.")
    last_error: str = Field(description="Why the last delivery failed; otherwise empty.")
    failure_count: int = Field(description="Failed deliveries in a row.")


class NewWebhookOut(Schema):
    secret: str = Field(description="Secret that signs every request to the webhook. It cannot be shown again.")
    details: WebhookOut


class TriedOut(Schema):
    is_taken: bool
    status: int | None
    problem: str


@router.get(
    "/teams/{slug}/webhooks",
    summary="List webhooks",
    response={200: list[WebhookOut], **REFUSALS},
    openapi_extra=PERSON_ONLY,
)
def list_webhooks(request: ApiRequest, slug: str) -> QuerySet[Webhook]:
    return access.webhooks(request.auth, slug)


@router.post(
    "/teams/{slug}/webhooks",
    summary="Add webhook",
    response={201: NewWebhookOut, 409: Problem, **REFUSALS},
    openapi_extra=PERSON_ONLY,
)
def add_webhook(request: ApiRequest, slug: str, body: WebhookIn) -> Status[dict[str, object]]:
    """The response contains the secret, which is shown only once."""
    team = access.require_team(request.auth, slug, Act.MANAGE)
    wish = WebhookWish(**body.model_dump())
    webhook, secret = webhooks.add_webhook(request.auth, team, wish, by=acting_user(request))
    return Status(201, {"secret": secret, "details": webhook})


@router.patch(
    "/teams/{slug}/webhooks/{int:webhook_id}",
    summary="Turn webhook on or off",
    response={200: WebhookOut, **REFUSALS},
    openapi_extra=PERSON_ONLY,
)
def switch_webhook(request: ApiRequest, slug: str, webhook_id: int, body: WebhookSwitch) -> Webhook:
    """While off, the webhook receives no events."""
    webhook = get_object_or_404(access.webhooks(request.auth, slug), pk=webhook_id)
    webhooks.switch_webhook(webhook, is_active=body.is_active, by=acting_user(request))
    webhook.refresh_from_db()
    return webhook


@router.post(
    "/teams/{slug}/webhooks/{int:webhook_id}/test",
    summary="Send test event",
    response={200: TriedOut, **REFUSALS},
    openapi_extra=PERSON_ONLY,
)
def try_webhook(request: ApiRequest, slug: str, webhook_id: int) -> dict[str, object]:
    """Sends a Test event once and returns the result."""
    webhook = get_object_or_404(access.webhooks(request.auth, slug), pk=webhook_id)
    try:
        reply = send_test(webhook)
    except SendFailed as failure:
        return {"is_taken": False, "status": failure.status, "problem": str(failure)}
    return {"is_taken": True, "status": reply.status, "problem": ""}


@router.delete(
    "/teams/{slug}/webhooks/{int:webhook_id}",
    summary="Remove webhook",
    response={204: None, **REFUSALS},
    openapi_extra=PERSON_ONLY,
)
def remove_webhook(request: ApiRequest, slug: str, webhook_id: int) -> Status[None]:
    webhook = get_object_or_404(access.webhooks(request.auth, slug), pk=webhook_id)
    webhooks.remove_webhook(webhook, by=acting_user(request))
    return Status(204, None)
