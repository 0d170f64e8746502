"""Builders of what most tests need first: people, teams, keys, sessions."""

from datetime import timedelta

from django.utils import timezone
from django.utils.text import slugify

from dashboard.accounts.keys import create_key
from dashboard.models import AgentSession, ApiKey, Membership, Role, Scope, Team, User


def make_user(name: str) -> User:
    """The person of this name, made when absent; the password is the name followed by `-password`."""
    return User.objects.filter(username=name).first() or User.objects.create_user(name, f"{name}-password")


def make_team(name: str, **people: str) -> Team:
    """A team with one person per role: make_team("Harbour", owner="alice", viewer="vera")."""
    team = Team.objects.create(name=name, slug=slugify(name))
    for role, person in people.items():
        Membership.objects.create(team=team, user=make_user(person), role=Role(role))
    return team


def make_key(team: Team, owner: User, *scopes: Scope) -> tuple[ApiKey, str]:
    """The key's row and its text."""
    name = f"{owner.username}'s {' '.join(scopes)}"
    return create_key(team, owner, name=name, scopes=scopes, expires_at=None, by=owner)


def make_session(team: Team, external_id: str, **columns: object) -> AgentSession:
    """A stored session: 150,000 of a 200k window, unless told otherwise."""
    given = {"model": "claude-sonnet-4-5", "client_version": "2.1.100", "context_tokens": 150_000, **columns}
    given.setdefault("peak_tokens", given["context_tokens"])
    return AgentSession.objects.create(team=team, external_id=external_id, **given)


def make_many_sessions(team: Team, count: int, **columns: object) -> list[AgentSession]:
    """Stored sessions one minute apart, the first one the newest; a column that is a function gets the number."""
    now = timezone.now()
    rows = [
        AgentSession(
            team=team,
            external_id=f"{team.slug}-{number:05}",
            **{
                "model": "claude-sonnet-4-5",
                "client_version": "2.1.100",
                "last_at": now - timedelta(minutes=number),
                **{name: value(number) if callable(value) else value for name, value in columns.items()},
            },
        )
        for number in range(count)
    ]
    return AgentSession.objects.bulk_create(rows)
