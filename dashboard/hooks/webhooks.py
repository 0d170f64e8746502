"""A team's webhooks: added, switched, removed, with their secrets and the audit; and how sending to them went."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from dashboard.access import Act, Actor
from dashboard.accounts import audit, tokens
from dashboard.accounts.refusals import Refused
from dashboard.hooks.sending import SendFailed, Sending
from dashboard.hooks.signing import write_headers
from dashboard.hooks.targets import TargetRefused, read_target
from dashboard.models import AuditAction, HookEvent, RunCallback, Team, User, Webhook
from dashboard.runs.team_key import KeyUnreadable, open_key, seal_key

MOST_WEBHOOKS = 10  # of a team: all of them may be asked in one run
_PURPOSE = b"plimsoll: secrets that sign what webhooks are sent"


@dataclass(frozen=True, kw_only=True)
class WebhookWish:
    name: str
    url: str
    events: Sequence[HookEvent]
    sends_words: bool = False


def add_webhook(actor: Actor, team: Team, wish: WebhookWish, *, by: User) -> tuple[Webhook, str]:
    """The row, and the secret: the only time it can be shown. Raises Refused."""
    if not wish.events:
        raise Refused("Select at least one event.")
    if wish.sends_words and not may_send_words(actor, team):
        raise Refused("Only someone with access to the content of all sessions can include it in webhooks.")
    try:
        target = read_target(wish.url)
    except TargetRefused as refusal:
        raise Refused(str(refusal)) from refusal
    secret = tokens.make_token(tokens.WEBHOOK_SECRET)
    try:
        with transaction.atomic():
            Team.objects.select_for_update().get(pk=team.pk)  # so that two at once do not both become the last one
            if Webhook.objects.filter(team=team).count() >= MOST_WEBHOOKS:
                raise Refused(f"A team can have at most {MOST_WEBHOOKS} webhooks. Remove one first.")
            webhook = Webhook.objects.create(
                team=team,
                name=wish.name,
                url=wish.url,
                events=[event.value for event in HookEvent if event in wish.events],
                sends_words=wish.sends_words,
                sealed_secret=seal_secret(team, secret),
                created_by=by,
                created_by_name=by.username,
            )
            # The host alone: a path may hold what is as good as a password.
            words = "sent" if wish.sends_words else "not sent"
            told: dict[str, str | list[str]] = {"host": target.host, "events": webhook.events, "words": words}
            audit.note(team, AuditAction.WEBHOOK_ADDED, by=by, subject=webhook, **told)
    except IntegrityError:
        raise Refused(f"A webhook named {wish.name} already exists.") from None
    return webhook, secret


def may_send_words(actor: Actor, team: Team) -> bool:
    return actor.may(Act.READ_TEAM_CONTENT, team)


@transaction.atomic
def switch_webhook(webhook: Webhook, *, is_active: bool, by: User) -> None:
    changed = Webhook.objects.filter(pk=webhook.pk).exclude(is_active=is_active).update(is_active=is_active)
    if changed:
        state = "on" if is_active else "off"
        audit.note(webhook.team, AuditAction.WEBHOOK_SWITCHED, by=by, subject=webhook, state=state)


@transaction.atomic
def remove_webhook(webhook: Webhook, *, by: User) -> None:
    if Webhook.objects.filter(pk=webhook.pk).delete()[0]:
        audit.note(webhook.team, AuditAction.WEBHOOK_REMOVED, by=by, subject=webhook)


def find_webhooks(team: Team, event: HookEvent) -> list[Webhook]:
    """Those that are on and want it, oldest first. A team has a handful, so they are sorted out here."""
    rows = Webhook.objects.filter(team=team, is_active=True).select_related("team").order_by("pk")
    return [webhook for webhook in rows if event.value in webhook.events]


def seal_secret(team: Team, secret: str) -> bytes:
    return seal_key(team, secret, purpose=_PURPOSE)


def open_secret(team: Team, sealed: bytes | memoryview) -> str:
    """Raises SendFailed: without it nothing can be signed, and nothing goes out unsigned."""
    try:
        return open_key(team, sealed, purpose=_PURPOSE)
    except KeyUnreadable:
        raise SendFailed(
            "The signing secret cannot be read: this installation's secret key has changed. Add the webhook again.",
            is_refused=True,
        ) from None


def start_event(
    row: Webhook | RunCallback, team: Team, body: Mapping[str, object], *, event: str, event_id: str
) -> Sending:
    """Signed and under way. Raises SendFailed, as waiting for it does."""
    data = json.dumps({"event": event, "id": event_id, "team": team.slug, **body}).encode()
    secret = open_secret(team, row.sealed_secret)
    headers = write_headers(secret, data, event=event, event_id=event_id, at=timezone.now())
    return Sending(row.url, data, headers).start()


def note_taken(row: Webhook | RunCallback, *, event: str, status: int, now: datetime) -> None:
    columns: dict[str, object] = {"last_at": now, "last_status": status, "last_error": "", "failure_count": 0}
    columns |= {"last_event": event} if isinstance(row, Webhook) else {"delivered_at": now}
    _find(row).update(**columns)


def note_failed(row: Webhook | RunCallback, failure: SendFailed, *, event: str, now: datetime) -> None:
    columns: dict[str, object] = {"last_at": now, "last_status": failure.status, "last_error": str(failure)[:300]}
    columns |= {"last_event": event} if isinstance(row, Webhook) else {}
    _find(row).update(**columns, failure_count=F("failure_count") + 1)


def _find(row: Webhook | RunCallback) -> QuerySet[Webhook] | QuerySet[RunCallback]:
    """It may have been removed meanwhile."""
    rows = Webhook.objects if isinstance(row, Webhook) else RunCallback.objects
    return rows.filter(pk=row.pk)
