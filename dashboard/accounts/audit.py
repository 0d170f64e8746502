"""The writer of the audit log."""

from dashboard.models import AuditAction, AuditEvent, Membership, Team, User

FROM_THE_TERMINAL = "terminal"
BY_ITSELF = "Plimsoll"


def note(
    team: Team,
    action: AuditAction,
    *,
    by: User | str | None,
    subject: object = "",
    **details: str | int | list[str],
) -> None:
    """`by` is None for what was done on the machine itself, with the command line; BY_ITSELF for what nobody did."""
    AuditEvent.objects.create(
        team=team,
        actor=by if isinstance(by, User) else None,
        actor_name=str(by or FROM_THE_TERMINAL),
        action=action,
        subject=str(subject)[:200],
        details=details,
    )


def note_of_installation(action: AuditAction, *, by: User | None, subject: object, **details: str | int) -> None:
    """Record what was done to the whole installation in every team: it concerns all of them."""
    for team in Team.objects.order_by("pk"):
        note(team, action, by=by, subject=subject, **details)


def note_in_all_teams(user: User, action: AuditAction, *, by: User | None, **details: str | int | list[str]) -> None:
    for membership in Membership.objects.filter(user=user).select_related("team"):
        note(membership.team, action, by=by, subject=user, **details)
