"""Invitation links: made, revoked, accepted once."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse

from dashboard.accounts import audit, members, tokens
from dashboard.accounts.refusals import Refused
from dashboard.models import AuditAction, Invitation, Membership, Role, Team, User

VALID_FOR = timedelta(days=7)


@transaction.atomic
def invite(team: Team, role: Role, *, note: str, by: User, now: datetime) -> tuple[Invitation, str]:
    """The invitation, and its link: the only time the link can be shown."""
    token = tokens.make_token(tokens.INVITATION)
    invitation = Invitation.objects.create(
        team=team,
        role=role,
        note=note,
        digest=tokens.digest(token),
        created_by=by,
        created_at=now,
        expires_at=now + VALID_FOR,
    )
    audit.note(team, AuditAction.INVITATION_CREATED, by=by, subject=note or f"invitation {invitation.pk}", role=role)
    return invitation, settings.PUBLIC_URL + reverse("invitation", args=[token])


@transaction.atomic
def revoke(invitation: Invitation, *, by: User, now: datetime) -> None:
    if not open_ones(now).filter(pk=invitation.pk).update(revoked_at=now):
        raise Refused("This invitation was already used, revoked or has expired.")
    subject = invitation.note or f"invitation {invitation.pk}"
    audit.note(invitation.team, AuditAction.INVITATION_REVOKED, by=by, subject=subject)


def find_open(token: str, *, now: datetime) -> Invitation | None:
    return open_ones(now).filter(digest=tokens.digest(token)).select_related("team", "created_by").first()


@transaction.atomic
def accept(invitation: Invitation, user: User, *, now: datetime) -> Membership:
    """Of two people who open the same link at once, the conditional update lets one in."""
    if not open_ones(now).filter(pk=invitation.pk).update(accepted_at=now, accepted_by=user):
        raise Refused("This invitation was already used, revoked or has expired. Ask for a new one.")
    return members.add_member(invitation.team, user, Role(invitation.role), by=user)


def open_ones(now: datetime) -> QuerySet[Invitation]:
    return Invitation.objects.filter(Q(accepted_at=None) & Q(revoked_at=None) & Q(expires_at__gt=now))
