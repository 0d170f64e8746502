"""Which policy was in force when something happened. No Django here."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from compaction.context.policy import Policy

PastPolicies: TypeAlias = tuple[tuple[datetime, Policy], ...]  # each with when it ended, the oldest first
PolicyAt: TypeAlias = Callable[[datetime | None], Policy]


def pick_policy(past: PastPolicies, in_force: Policy, at: datetime | None) -> Policy:
    """Without a time: the one that is in force."""
    if at is None:
        return in_force
    return next((policy for ended_at, policy in past if at < ended_at), in_force)
