"""A session as a list reads it: a tuple, as the database hands it over. Objects of the model take twice as long."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import QuerySet

from dashboard.models import AgentSession


class ListedSession(NamedTuple):
    """The columns of dashboard.models.AgentSession that a list needs."""

    id: int
    team_id: int
    external_id: str
    owner_id: int | None
    developer: str
    title: str
    project: str
    branch: str
    model: str
    client_version: str
    started_at: datetime | None
    reported_window_tokens: int | None
    last_at: datetime
    ended_at: datetime | None
    warm_until: datetime | None
    context_tokens: int
    level_rank: int
    percent_left: int | None
    forecast: dict[str, Any] | None
    recent_hits: Sequence[int]
    spent_usd: Decimal
    lost_usd: Decimal
    call_count: int
    unpriced_count: int
    break_count: int
    compaction_count: int
    mid_task_count: int

    @property
    def pk(self) -> int:
        return self.id


def list_columns(sessions: QuerySet[AgentSession]) -> QuerySet[AgentSession, tuple[Any, ...]]:
    return sessions.values_list(*ListedSession._fields)
