"""Joining, leaving, roles and content grants. A team always keeps an owner."""

from django.db import transaction
from django.utils import timezone

from dashboard.accounts import audit
from dashboard.accounts.refusals import Refused
from dashboard.models import ApiKey, AuditAction, Invitation, Membership, Role, Team, User


@transaction.atomic
def add_member(team: Team, user: User, role: Role, *, by: User | None) -> Membership:
    membership, is_new = Membership.objects.get_or_create(team=team, user=user, defaults={"role": role})
    if not is_new:
        raise Refused(f"{user} is already a member of {team}.")
    audit.note(team, AuditAction.MEMBER_JOINED, by=by, subject=user, role=role)
    return membership


@transaction.atomic
def change_role(membership: Membership, role: Role, *, by: User) -> None:
    locked = _locked(membership)
    if locked.role == role:
        return
    if locked.role == Role.OWNER:
        _require_another_owner(locked)
    audit.note(locked.team, AuditAction.ROLE_CHANGED, by=by, subject=locked.user, before=locked.role, after=role)
    if role.rank < Role(locked.role).rank:
        _revoke_invitations(locked, by=by, reason="its creator now has a lower role")
    locked.role = role
    locked.save(update_fields=["role"])


@transaction.atomic
def set_content_grant(membership: Membership, *, granted: bool, by: User) -> None:
    locked = _locked(membership)
    if locked.content_grant == granted:
        return
    action = AuditAction.CONTENT_GRANTED if granted else AuditAction.CONTENT_WITHDRAWN
    audit.note(locked.team, action, by=by, subject=locked.user)
    locked.content_grant = granted
    locked.save(update_fields=["content_grant"])


@transaction.atomic
def remove_member(membership: Membership, *, by: User) -> None:
    """The person's keys and open invitations in this team are revoked along with it."""
    locked = _locked(membership)
    if locked.role == Role.OWNER:
        _require_another_owner(locked)
    keys = ApiKey.objects.filter(team=locked.team, owner=locked.user, revoked_at=None)
    revoked = keys.update(revoked_at=timezone.now())
    _revoke_invitations(locked, by=by, reason="its creator left the team")
    audit.note(locked.team, AuditAction.MEMBER_REMOVED, by=by, subject=locked.user, keys_revoked=revoked)
    locked.delete()


def _revoke_invitations(maker: Membership, *, by: User, reason: str) -> None:
    """Revoke what the person could come back by, or let others in with."""
    now = timezone.now()
    still_open = Invitation.objects.still_open(now)
    for invitation in still_open.filter(team=maker.team, created_by=maker.user).order_by("pk"):
        # Conditional: somebody may have accepted it meanwhile, and is in then.
        if still_open.filter(pk=invitation.pk).update(revoked_at=now):
            audit.note(maker.team, AuditAction.INVITATION_REVOKED, by=by, subject=invitation.label, reason=reason)


def _locked(membership: Membership) -> Membership:
    """All of the team's memberships, locked: two owners who demote each other at once must not both succeed."""
    rows = (
        Membership.objects.filter(team=membership.team_id)
        .select_for_update(of=("self",))
        .select_related("user", "team")
    )
    for row in rows:
        if row.pk == membership.pk:
            return row
    raise Refused("This person is no longer a member of the team.")


def _require_another_owner(membership: Membership) -> None:
    others = Membership.objects.filter(team=membership.team_id, role=Role.OWNER, user__is_active=True).exclude(
        pk=membership.pk
    )
    if not others.exists():
        raise Refused("A team needs an owner. Make someone else owner first.")
