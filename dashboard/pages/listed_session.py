"""A session as a list reads it: a tuple, made of a row as the database hands it over. What Django does to rows on the
way takes longer than the query, and objects of the model twice as long again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import orjson
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from dashboard.kept_query import Open
from dashboard.models import AgentSession


class ListedSession(NamedTuple):
    """The columns of dashboard.models.AgentSession that a list needs."""

    started_at: datetime | None
    last_at: datetime
    ended_at: datetime | None
    warm_until: datetime | None
    forecast: dict[str, Any] | None
    recent_hits: Sequence[int]
    spent_usd: Decimal
    lost_usd: Decimal
    client_cost_usd: Decimal | None
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
    reported_window_tokens: int | None
    is_claude_code: bool
    is_window_inferred: bool
    context_tokens: int
    pending_tokens: int
    level_rank: int
    risk_rank: int
    is_soon: bool
    percent_left: int | None
    calls_left: int | None
    input_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    hit_rate_ppm: int | None
    call_count: int
    unpriced_count: int
    break_count: int
    compaction_count: int
    mid_task_count: int

    @property
    def pk(self) -> int:
        return self.id


_SELECT = f"SELECT {', '.join(ListedSession._fields)} FROM {AgentSession._meta.db_table}"  # noqa: S608 (our own names)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Its SQL is put together; `params` has an `Open` where a value is told when it is asked."""

    sql: str
    params: tuple[Any, ...]

    def read(self, **values: int) -> list[ListedSession]:
        told = [values[value.name] if isinstance(value, Open) else value for value in self.params]
        with connection.cursor() as cursor:
            cursor.execute(self.sql, told)
            return [_make_session(*row) for row in cursor.fetchall()]


def read_listed(*parts: QuerySet[AgentSession], order: Sequence[str] = ()) -> list[ListedSession]:
    """The sessions of all parts in one query, in this order of columns or in none."""
    query = write_query(*parts, order=order)
    return query.read() if query else []


def write_query(*parts: QuerySet[AgentSession], order: Sequence[str] = ()) -> ListQuery | None:
    """None where no part can hold a session. `order`: columns as Django writes them, such as "-last_at"."""
    chosen: list[str] = []
    params: list[Any] = []
    for number, part in enumerate(parts):
        try:
            sql, values = part.values("pk").query.sql_with_params()
        except EmptyResultSet:
            continue
        # As a table of its own: SQLite takes no LIMIT in a part of a UNION.
        chosen.append(f"SELECT pk FROM ({sql}) AS part_{number}")  # noqa: S608 (made by Django)
        params += values
    if not chosen:
        return None
    ordered = ", ".join(f"{name.removeprefix('-')}{' DESC' if name.startswith('-') else ''}" for name in order)
    sql = f"{_SELECT} WHERE id IN ({' UNION ALL '.join(chosen)}){f' ORDER BY {ordered}' if ordered else ''}"
    return ListQuery(sql, tuple(params))


def _make_session(  # noqa: PLR0913 (a row)
    started: Any,
    last: Any,
    ended: Any,
    warm: Any,
    forecast: Any,
    hits: Any,
    spent: Any,
    lost: Any,
    paid: Any,
    *rest: Any,
) -> ListedSession:
    return ListedSession(
        started and _make_time(started),
        _make_time(last),
        ended and _make_time(ended),
        warm and _make_time(warm),
        forecast and orjson.loads(forecast),
        orjson.loads(hits),
        _make_usd(spent),
        _make_usd(lost),
        None if paid is None else _make_usd(paid),
        *rest,
    )


def _make_time(told: datetime) -> datetime:
    """SQLite keeps the time of UTC without saying so."""
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def _make_usd(told: Decimal | float) -> Decimal:
    """SQLite keeps dollars as a binary number."""
    return told if isinstance(told, Decimal) else Decimal(f"{told:.8f}")
