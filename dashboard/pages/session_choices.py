"""What the filters of the sessions page offer: the projects, models and developers there are."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db import connection

from dashboard.models import Membership, Team

MOST_CHOICES = 300
KEPT_SECONDS = 30
# From one name to the next by the index: as many steps as there are names, not as there are sessions.
_NEXT = "SELECT min({column}) FROM dashboard_agentsession WHERE team_id = %s AND {column} >"
_NAMES = (
    f"WITH RECURSIVE names(name) AS ({_NEXT} '' UNION ALL SELECT ({_NEXT} names.name) FROM names "  # noqa: S608
    "WHERE name IS NOT NULL) SELECT name FROM names WHERE name IS NOT NULL LIMIT %s"
)


@dataclass(frozen=True, slots=True)
class SessionChoices:
    projects: tuple[str, ...]
    models: tuple[str, ...]
    developers: tuple[str, ...]


def list_choices(teams: Sequence[Team]) -> SessionChoices:
    """Remembered for half a minute: a new project is not missed, and no page waits for it."""
    key = f"session-choices-{'-'.join(str(team.pk) for team in teams)}"
    choices: SessionChoices | None = cache.get(key)
    if choices is None:
        choices = _read_choices(teams)
        cache.set(key, choices, KEPT_SECONDS)
    return choices


def _read_choices(teams: Sequence[Team]) -> SessionChoices:
    people = Membership.objects.filter(team__in=teams).values_list("user__username", flat=True)
    return SessionChoices(
        projects=_list_names(teams, "project"),
        models=_list_names(teams, "model"),
        developers=tuple(sorted(set(people[:MOST_CHOICES]))),
    )


def _list_names(teams: Sequence[Team], column: str) -> tuple[str, ...]:
    found: set[str] = set()
    with connection.cursor() as cursor:
        for team in teams:
            cursor.execute(_NAMES.format(column=column), [team.pk, team.pk, MOST_CHOICES])
            found.update(name for (name,) in cursor.fetchall())
    return tuple(sorted(found)[:MOST_CHOICES])
