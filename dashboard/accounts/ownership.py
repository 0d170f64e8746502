"""Who owns a session: assigned by an admin, one by one or for all sessions of a developer. Every change is audited."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Count, F, Max

from dashboard.accounts import audit
from dashboard.accounts.refusals import Refused
from dashboard.models import AgentSession, AuditAction, DeveloperAccount, SessionChange, Team, User

NOT_MOVABLE = "Only an owner of the team can change the owner of a session."
_BATCH = 200  # sessions in one transaction


@dataclass(frozen=True)
class Developer:
    """A person named by collected telemetry, with the sessions that have no owner yet.

    A developer with an account can have some: sessions whose telemetry named the developer after it created them."""

    name: str
    session_count: int = 0
    last_at: datetime | None = None
    account: User | None = None


@transaction.atomic
def assign_session(session: AgentSession, owner: User | None, *, by: User, may_move: bool) -> None:
    """Make the account the owner; None takes the owner away. Telemetry of the former owner is refused from then on.

    Raises Refused where the session has an owner already and `may_move` is False."""
    held = AgentSession.objects.select_for_update(of=("self",)).select_related("owner").get(pk=session.pk)
    if held.owner == owner:
        return
    if held.owner is not None and not may_move:
        raise Refused(NOT_MOVABLE)
    before = held.owner.username if held.owner else "none"
    _set_owner([held.pk], owner)
    after = owner.username if owner else "none"
    audit.note(session.team, AuditAction.OWNER_ASSIGNED, by=by, subject=held.external_id, before=before, after=after)
    SessionChange.objects.note(session.team_id, [held.pk])


def list_developers(team: Team) -> list[Developer]:
    """Return developers without an account first, those with most sessions on top, then those that have one."""
    waiting = AgentSession.objects.filter(team=team, owner=None).exclude(collector="").exclude(developer="")
    counted = waiting.values("developer").annotate(sessions=Count("pk"), last=Max("last_at")).order_by("developer")
    accounts = DeveloperAccount.objects.filter(team=team).select_related("user")
    found = {row["developer"]: Developer(row["developer"], row["sessions"], row["last"]) for row in counted}
    assigned = [
        replace(found.pop(each.developer, Developer(each.developer)), account=each.user)
        for each in accounts.order_by("developer")
    ]
    return [*sorted(found.values(), key=lambda each: -each.session_count), *assigned]


def assign_developer(team: Team, developer: str, owner: User, *, by: User) -> int:
    """Give the developer's collected sessions without an owner to the account, and those that follow.

    Returns how many were given. They are written in batches, so that telemetry is not held up meanwhile; a repeated
    call gives what an interrupted one left."""
    with transaction.atomic():
        DeveloperAccount.objects.update_or_create(team=team, developer=developer, defaults={"user": owner})
        waiting = AgentSession.objects.filter(team=team, developer=developer, owner=None).exclude(collector="")
        pks = list(waiting.order_by("pk").values_list("pk", flat=True))
        audit.note(
            team,
            AuditAction.DEVELOPER_ASSIGNED,
            by=by,
            subject=developer,
            account=owner.username,
            sessions=len(pks),
        )
    for batch in _cut(pks):
        with transaction.atomic():
            _set_owner(batch, owner)
            SessionChange.objects.note(team.pk, batch)
    return len(pks)


@transaction.atomic
def unassign_developer(team: Team, developer: str, *, by: User) -> None:
    """Sessions that follow have no owner again; those that were given stay with the account."""
    removed, _ = DeveloperAccount.objects.filter(team=team, developer=developer).delete()
    if removed:
        audit.note(team, AuditAction.DEVELOPER_UNASSIGNED, by=by, subject=developer)


def _set_owner(pks: list[int], owner: User | None) -> None:
    """The version rises, so that whoever writes the session at this moment looks again whether it may."""
    changed: dict[str, object] = {"owner": owner, "version": F("version") + 1}
    if owner is not None:  # without one the name stays, so that telemetry cannot report another
        changed["developer"] = owner.username
    AgentSession.objects.filter(pk__in=pks).update(**changed)


def _cut(pks: list[int]) -> Iterator[list[int]]:
    return (pks[start : start + _BATCH] for start in range(0, len(pks), _BATCH))
