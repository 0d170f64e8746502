"""Invitation links: made, revoked, accepted once. One opens as long as its maker may give the role it gives."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from dashboard import access
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
    audit.note(team, AuditAction.INVITATION_CREATED, by=by, subject=invitation.label, role=role)
    return invitation, settings.PUBLIC_URL + reverse("invitation", args=[token])


@transaction.atomic
def revoke(invitation: Invitation, *, by: User, now: datetime) -> None:
    if not Invitation.objects.still_open(now).filter(pk=invitation.pk).update(revoked_at=now):
        raise Refused("This invitation was already used, was revoked or has expired.")
    audit.note(invitation.team, AuditAction.INVITATION_REVOKED, by=by, subject=invitation.label)


def revoke_without_maker(invitation: Invitation, *, now: datetime) -> None:
    """Revoke an invitation whose maker lost the right to make it, once somebody opens it."""
    with transaction.atomic():
        if Invitation.objects.still_open(now).filter(pk=invitation.pk).update(revoked_at=now):
            audit.note(
                invitation.team,
                AuditAction.INVITATION_REVOKED,
                by=audit.BY_ITSELF,
                subject=invitation.label,
                reason="its creator can no longer grant this role",
            )


def find_open(token: str, *, now: datetime) -> Invitation | None:
    return (
        Invitation.objects.still_open(now)
        .filter(digest=tokens.digest(token))
        .select_related("team", "created_by")
        .first()
    )


@transaction.atomic
def accept(invitation: Invitation, user: User, *, now: datetime) -> Membership:
    """Of two people who open the same link at once, the conditional update lets one in.

    The maker's right is read after it: a removal that goes on at the same time waits for the row, or has revoked it.
    """
    if not Invitation.objects.still_open(now).filter(pk=invitation.pk).update(accepted_at=now, accepted_by=user):
        raise Refused("This invitation was already used, was revoked or has expired. Ask for a new one.")
    if not access.can_be_accepted(invitation):
        raise Refused("The creator of this invitation can no longer grant this role. Ask an owner for a new one.")
    return members.add_member(invitation.team, user, Role(invitation.role), by=user)
