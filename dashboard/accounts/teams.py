"""Founding and renaming teams."""

from django.db import transaction
from django.utils.text import slugify

from dashboard.accounts import audit
from dashboard.accounts.refusals import Refused
from dashboard.models import AuditAction, Membership, Role, Team, User

# Words that would read as part of the address rather than as a team.
RESERVED_SLUGS = frozenset({"new"})


@transaction.atomic
def create_team(name: str, *, owner: User) -> Team:
    team = Team.objects.create(name=name, slug=_free_slug(name))
    Membership.objects.create(team=team, user=owner, role=Role.OWNER)
    audit.note(team, AuditAction.TEAM_CREATED, by=owner, subject=team)
    return team


@transaction.atomic
def rename_team(team: Team, name: str, *, by: User) -> None:
    """The slug stays: links to the team keep working."""
    if name == team.name:
        return
    audit.note(team, AuditAction.TEAM_RENAMED, by=by, subject=name, before=team.name)
    team.name = name
    team.save(update_fields=["name"])


def _free_slug(name: str) -> str:
    wanted = slugify(name)[:50] or "team"
    taken = set(Team.objects.filter(slug__startswith=wanted).values_list("slug", flat=True)) | RESERVED_SLUGS
    if wanted not in taken:
        return wanted
    for number in range(2, 10_000):
        if (slug := f"{wanted}-{number}") not in taken:
            return slug
    raise Refused(f"Too many teams are named {name}.")
