"""An installation on a developer's own machine: one team, one owner, made at the first start."""

import getpass
import re

from django.db import transaction

from dashboard.accounts import audit
from dashboard.models import AuditAction, Membership, Role, Team, User

_NOT_IN_NAMES = re.compile(r"[^\w.@+-]")


@transaction.atomic
def ensure_local_owner() -> User:
    """Safe to call at every start, and by two processes at once (the team's constraint lets one be first)."""
    existing = Membership.objects.filter(team__is_local=True, role=Role.OWNER, user__is_active=True)
    if membership := existing.select_related("user").order_by("id").first():
        return membership.user
    team, _ = Team.objects.get_or_create(is_local=True, defaults={"name": "My machine", "slug": "local"})
    owner = User.objects.find_by_name(_local_name()) or User.objects.create_user(_local_name())
    Membership.objects.update_or_create(team=team, user=owner, defaults={"role": Role.OWNER})
    audit.note(team, AuditAction.TEAM_CREATED, by=owner, subject=team)
    return owner


def _local_name() -> str:
    """The name this machine knows the person by; a container without one gets a plain word."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return "owner"
    return _NOT_IN_NAMES.sub("", name)[:150] or "owner"
