"""Sessions as lists, and a team at a glance: the numbers of the sessions page and the overview."""

from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from django.http import HttpResponse
from django.utils import timezone
from ninja import Field, Query, Router, Schema
from ninja.errors import HttpError

from dashboard import access
from dashboard.access import Act
from dashboard.api.answers import answer_json
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.pages import gauges
from dashboard.pages.fleet import count_fleet
from dashboard.pages.gauge_bar import GaugeScale
from dashboard.pages.live_state import LiveState
from dashboard.pages.session_filters import ActiveWithin, SessionFilters, SortName
from dashboard.pages.session_paging import BadPlace, Cursor
from dashboard.person_zone import find_zone
from dashboard.policies.drawn_lines import acting_lines
from dashboard.session_forecasts import list_ranges

MOST_ROWS = 200

router = Router(tags=["sessions"])

LevelName = Literal["above", "soon", "not known", "ok", "warning", "error", "auto-compact", "blocking"]


class SessionQuery(Schema):
    text: str = Field(
        "",
        max_length=200,
        description="Search in project, developer, branch, id and readable titles; at least one word of three letters.",
    )
    team: str = Field("", max_length=200, description="Slug of one of your teams.")
    project: str = Field("", max_length=200)
    model: str = Field("", max_length=200)
    developer: str = Field("", max_length=200)
    level: LevelName | None = Field(None, description="`above`: any threshold reached. `soon`: close to auto-compact.")
    active: ActiveWithin | None = Field(None, description="Start of the period; today begins at midnight UTC.")
    breaks: bool = Field(default=False, description="Only sessions with a cache break.")
    sort: SortName = Field(
        SortName.ACTIVE,
        description="Ascending by `project`, `developer` and `forecast` (calls until auto-compact), else descending. "
        "Sessions without a value for `forecast`, `hit_rate` or `warm` (when the cache expires) come last.",
    )
    reversed: bool = Field(
        default=False, description="The opposite direction. Sessions without a value still come last."
    )
    after: str = Field("", max_length=4000, description="`after` of the previous page.")
    before: str = Field("", max_length=4000, description="`before` of the next page.")
    limit: int = Field(gauges.PAGE_SIZE, ge=1, le=MOST_ROWS)


class SessionOut(Schema):
    id: int
    external_id: str
    team: str
    title: str | None = Field(description="Null without content access or stored content.")
    project: str
    branch: str
    developer: str
    model: str
    client_version: str
    state: LiveState
    started_at: datetime | None
    last_at: datetime
    warm_until: datetime | None = Field(description="When the prompt cache expires, if known.")
    context_tokens: int = Field(description="Measured by the last call, plus what arrived since.")
    pending_tokens: int = Field(description="The estimated part of `context_tokens`: what arrived since.")
    window_tokens: int | None = Field(description="Null if the window is unknown.")
    level: str
    is_soon: bool = Field(description="At most 5 calls or 2 turns from the auto-compact threshold.")
    percent_left: int | None
    lines: dict[str, int] = Field(
        description="Active thresholds in tokens; empty if the window is unknown.",
        examples=[{"warning": 147_000, "error": 147_000, "auto-compact": 167_000, "blocking": 177_000}],
    )
    forecast: dict[str, object] | None = Field(
        description="Until the auto-compact threshold: calls, turns and minutes as [low, likely, high]. Turns are null "
        "if too few complete turns are known."
    )
    hit_rate: float | None = Field(description="Across all calls of the session; null before the first prompt.")
    recent_hits: list[int] = Field(description="Hit rate of the last calls in percent, oldest first.")
    spent_usd: Decimal | None = Field(
        description="At your prices, otherwise list price; null if no call has a known price."
    )
    client_cost_usd: Decimal | None = Field(description="The client's own total, if reported.")
    lost_usd: Decimal | None = Field(description="Lost to cache breaks, at your prices, otherwise list price.")
    calls: int
    breaks: int
    compactions: int = Field(description="Full compactions by the client.")
    mid_task_compactions: int


class SessionsOut(Schema):
    sessions: list[SessionOut]
    after: str | None = Field(description="Pass it as `after` for the next page; null at the end.")
    before: str | None = Field(description="Pass it as `before` for the previous page; null at the beginning.")


class DayOut(Schema):
    day: date
    spent_usd: Decimal | None = Field(description="Null if no call has a known price.")
    lost_usd: Decimal | None


class OverviewQuery(Schema):
    team: str = Field("", max_length=200, description="Slug of the team; required if you are in several teams.")
    zone: str = Field("UTC", max_length=64, description="Time zone in which days begin, such as Europe/Berlin.")


class OverviewOut(Schema):
    team: str
    live: int = Field(description="Sessions with data in the last 5 minutes that have not ended.")
    active_today: int
    above_a_line: int = Field(description="Sessions of the last 24 hours at or over the warning threshold.")
    past_auto_compact: int
    soon: int = Field(
        description="Sessions of the last 24 hours, at most 5 calls or 2 turns from the auto-compact threshold."
    )
    spent_today_usd: Decimal | None = Field(
        description="At your prices, otherwise list price; null if no model used today has a known price."
    )
    lost_today_usd: Decimal | None
    has_unpriced_today: bool = Field(
        description="Some sessions of today have calls without a price, which are not in the sums."
    )
    hit_rate_today: float | None = Field(description="Share of prompt tokens read from the cache; null without any.")
    days: list[DayOut] = Field(description="14 days, oldest first; the last one is today.")


@router.get("/sessions", summary="List sessions", response={200: SessionsOut, 403: Problem, 404: Problem, 422: Problem})
def list_sessions(request: ApiRequest, query: Query[SessionQuery]) -> HttpResponse:
    """Sessions of your teams. Pages use cursors: fast at any depth and stable while sessions change."""
    access.require_anywhere(request.auth, Act.SEE)
    _refuse_unknown(request, SessionQuery)
    filters = SessionFilters(
        text=query.text.replace("\x00", ""),
        has_breaks=query.breaks,
        level=query.level or "",
        active=query.active or "",
        sort=query.sort,
        is_reversed=query.reversed,
        **{name: getattr(query, name).replace("\x00", "") for name in ("team", "project", "model", "developer")},
    )
    if filters.text and not filters.is_searching:
        raise HttpError(422, "text: at least one word of three letters.")
    found = gauges.list_sessions(
        request.auth, filters, now=timezone.now(), cursor=_read_cursor(query), size=query.limit
    )
    rows = [_describe_row(row) for row in found.rows]
    return answer_json({"sessions": rows, "after": found.after or None, "before": found.before or None})


@router.get("/overview", summary="Get overview", response={200: OverviewOut, 403: Problem, 404: Problem, 422: Problem})
def read_overview(
    request: ApiRequest,
    query: Query[OverviewQuery],
) -> OverviewOut:
    """Live sessions, sessions over a threshold, and today's cost."""
    access.require_anywhere(request.auth, Act.SEE)
    _refuse_unknown(request, OverviewQuery)
    chosen = find_team(request, query.team, Act.SEE)
    zone = find_zone(query.zone)
    if zone is None:
        raise HttpError(422, "zone: expected a time zone name, such as Europe/Berlin.")
    numbers = count_fleet(request.auth, chosen, now=timezone.now(), zone=zone)
    return OverviewOut(
        team=chosen.slug,
        live=numbers.live_count,
        active_today=numbers.today_count,
        above_a_line=numbers.above_count,
        past_auto_compact=numbers.past_auto_count,
        soon=numbers.soon_count,
        spent_today_usd=numbers.spent_today_usd,
        lost_today_usd=numbers.lost_today_usd,
        has_unpriced_today=numbers.has_unpriced_today,
        hit_rate_today=numbers.hit_rate_today,
        days=[DayOut(day=day.day, spent_usd=day.spend_usd, lost_usd=day.lost_usd) for day in numbers.days],
    )


def _refuse_unknown(request: ApiRequest, query: type[Schema]) -> None:
    """A misspelt filter would otherwise show everything, silently."""
    unknown = sorted(request.GET.keys() - query.model_fields.keys())
    if unknown:
        raise HttpError(422, f"Unknown parameter: {unknown[0][:50]}.")


def _read_cursor(query: SessionQuery) -> Cursor | None:
    text, forwards = (query.after, True) if query.after else (query.before, False)
    if not text:
        return None
    try:
        return Cursor.read(text, query.sort, forwards=forwards)
    except BadPlace as error:
        raise HttpError(422, "after, before: not a cursor of a list with this sort.") from error


@lru_cache(maxsize=512)
def _list_lines(scale: GaugeScale) -> dict[str, int]:
    """Once for all rows that share a scale."""
    return {name: line.tokens for name, line in acting_lines(scale.lines).items()}


def _describe_row(row: gauges.SessionRow) -> dict[str, object]:
    """As SessionOut says."""
    session = row.session
    return {
        "id": session.id,
        "external_id": session.external_id,
        "team": row.team.slug,
        "title": row.title or None,
        "project": session.project,
        "branch": session.branch,
        "developer": session.developer,
        "model": session.model,
        "client_version": session.client_version,
        "state": row.state,
        "started_at": session.started_at,
        "last_at": session.last_at,
        "warm_until": session.warm_until,
        "context_tokens": session.context_tokens,
        "pending_tokens": session.pending_tokens,
        "window_tokens": row.window_tokens,
        "level": row.reading.level,
        "is_soon": bool(session.is_soon),
        "percent_left": row.reading.percent_left,
        "lines": _list_lines(row.scale) if row.scale else {},
        "forecast": list_ranges(session.forecast),
        "hit_rate": row.hit_rate,
        "recent_hits": session.recent_hits,
        "spent_usd": row.spent_usd,
        "client_cost_usd": session.client_cost_usd,
        "lost_usd": row.lost_usd,
        "calls": session.call_count,
        "breaks": session.break_count,
        "compactions": session.compaction_count,
        "mid_task_compactions": session.mid_task_count,
    }
