"""The writer of the audit log."""

from dashboard.models import AuditAction, AuditEvent, Membership, Team, User

FROM_THE_TERMINAL = "terminal"


def note(
    team: Team, action: AuditAction, *, by: User | None, subject: object = "", **details: str | int | list[str]
) -> None:
    """`by` is None for what was done on the machine itself, with the command line."""
    AuditEvent.objects.create(
        team=team,
        actor=by,
        actor_name=by.username if by else FROM_THE_TERMINAL,
        action=action,
        subject=str(subject)[:200],
        details=details,
    )


def note_in_all_teams(user: User, action: AuditAction, *, by: User | None, **details: str | int | list[str]) -> None:
    for membership in Membership.objects.filter(user=user).select_related("team"):
        note(membership.team, action, by=by, subject=user, **details)
