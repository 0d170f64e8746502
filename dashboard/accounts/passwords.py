"""Setting passwords, and the question whether anybody has one."""

from django.db import transaction
from django.utils import timezone

from dashboard.accounts import audit, sign_in_links
from dashboard.models import AuditAction, Role, User


@transaction.atomic
def set_password(user: User, password: str, *, by: User | None) -> None:
    """Signs the person out everywhere else: sessions carry a hash of the password, and open sign-in links expire."""
    user.set_password(password)
    user.save(update_fields=["password"])
    sign_in_links.expire_links(user, now=timezone.now())
    audit.note_in_all_teams(user, AuditAction.PASSWORD_CHANGED, by=by)


def has_password_protected_owner() -> bool:
    owners = User.objects.filter(is_active=True, memberships__role=Role.OWNER).distinct()
    return any(owner.has_usable_password() for owner in owners)
