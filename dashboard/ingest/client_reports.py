"""Hooks and status lines taken in: decoded, recorded, drops counted."""

from django.utils import timezone

from dashboard.ingest import client_hooks, client_status
from dashboard.ingest.client_hooks import prepare_hooks
from dashboard.ingest.client_status import prepare_statuses
from dashboard.ingest.intake import Origin, Taken, count_drops, make_rules, store
from dashboard.models import Team, User
from dashboard.policies.in_force import find_policy

SPOOL_FULL = "dropped on the developer's machine: too many waited"


def take_in_hooks(team: Team, sender: User | None, data: bytes) -> Taken:
    """Raises OperationalError or TooBusy when the last session was not kept: sending it again is safe."""
    policy = find_policy(team)
    prepared = prepare_hooks(data, make_rules(team, policy), arrived_at=timezone.now())
    return store(Origin(team, sender, client_hooks.NAME), prepared, policy)


def take_in_statuses(team: Team, sender: User | None, data: bytes) -> Taken:
    """Raises as `take_in_hooks` does."""
    policy = find_policy(team)
    prepared = prepare_statuses(data, make_rules(team, policy), arrived_at=timezone.now())
    return store(Origin(team, sender, client_status.NAME), prepared, policy)


def count_spool_drops(team: Team, sender: User | None, count: int) -> None:
    """What a developer's machine had to throw away while this server was away."""
    if count > 0:
        count_drops(Origin(team, sender, client_hooks.NAME), {SPOOL_FULL: count}, detail="")
