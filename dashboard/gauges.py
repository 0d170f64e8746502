"""Sessions as lists show them: one row each, with its gauge. Queries in, frozen values out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.urls import reverse

from compaction.context.thresholds import Lines, draw_lines, read_level
from compaction.context.windows import ModelInUse
from dashboard import access
from dashboard.access import Act, Actor
from dashboard.gauge_bar import NOW, GaugeBar, draw_gauge
from dashboard.live_state import LiveState, find_live_state
from dashboard.models import AgentSession, Team
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.session_filters import SessionFilters
from dashboard.session_paging import Cursor, Page, SessionList
from dashboard.session_search import search_for
from dashboard.words import say_range

PAGE_SIZE = 50
_SHORT_ID = 8
_COLUMNS = (
    "team_id", "external_id", "owner_id", "developer", "title", "project", "branch", "model", "client_version",
    "started_at", "reported_window_tokens", "last_at", "ended_at", "warm_until", "context_tokens", "level",
    "level_rank", "percent_left", "forecast", "recent_hits", "spent_usd", "lost_usd", "call_count", "unpriced_count",
    "turn_count", "break_count", "compaction_count", "mid_task_count",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One line of a list. The title is empty for who may not read it."""

    session: AgentSession
    url: str
    title: str
    state: LiveState
    bar: GaugeBar
    forecast_words: str
    warm_seconds: int | None  # left of the cache's time, 0 when it is over, None when it is not known
    hits: tuple[float, ...]

    @property
    def name(self) -> str:
        return self.title or self.session.external_id[:_SHORT_ID]

    @property
    def last_hit(self) -> float | None:
        return self.hits[-1] if self.hits else None

    @property
    def warm_words(self) -> str:
        if self.warm_seconds is None:
            return "not known"
        return f"{self.warm_seconds // 60}:{self.warm_seconds % 60:02}" if self.warm_seconds else "cold"

    @property
    def spent_usd(self) -> Decimal | None:
        """None when no call has a price: a sum of nothing would read as free."""
        return None if self.is_price_unknown else self.session.spent_usd

    @property
    def lost_usd(self) -> Decimal | None:
        return None if self.is_price_unknown else self.session.lost_usd

    @property
    def is_price_unknown(self) -> bool:
        return 0 < self.session.call_count == self.session.unpriced_count


@dataclass(frozen=True, slots=True)
class SessionRows:
    """A page of a list, with the places before and after it."""

    rows: tuple[SessionRow, ...]
    before: str = ""
    after: str = ""
    total: int | None = None


def list_sessions(
    actor: Actor, filters: SessionFilters, *, now: datetime, cursor: Cursor | None = None, size: int = PAGE_SIZE
) -> SessionRows:
    """The same few queries however many sessions there are. A team that is not the actor's does not exist."""
    teams = [access.require_team(actor, filters.team, Act.SEE)] if filters.team else access.teams(actor)
    page = find_sessions(actor, filters, teams, now=now, cursor=cursor, size=size)
    return SessionRows(draw_rows(actor, page.sessions, teams, now=now), page.before, page.after, page.total)


def find_sessions(
    actor: Actor,
    filters: SessionFilters,
    teams: Sequence[Team],
    *,
    now: datetime,
    cursor: Cursor | None = None,
    size: int = PAGE_SIZE,
) -> Page:
    team_ids = [team.pk for team in teams]
    visible = access.sessions(actor).only(*_COLUMNS)
    if filters.team:
        visible = visible.filter(team_id__in=team_ids)
    listed = SessionList(visible, team_ids, filters, search_for(actor, filters.text), now)
    return listed.find_page(size, cursor)


def draw_rows(
    actor: Actor, sessions: Sequence[AgentSession], teams: Sequence[Team], *, now: datetime
) -> tuple[SessionRow, ...]:
    """One query for each team that has a session here."""
    shown = {session.team_id for session in sessions}
    teams_by_id = {team.pk: team for team in teams if team.pk in shown}
    drawn = LineMemo({pk: find_policy(team) for pk, team in teams_by_id.items()})
    # One look into the URL table for a whole page.
    pattern = reverse("session", args=[0])
    rows = []
    for session in sessions:
        title = find_title(actor, session, teams_by_id[session.team_id])
        lines = drawn.find_lines(session)
        bar = draw_gauge(lines, read_level(lines, session.context_tokens))
        rows.append(
            SessionRow(
                session=session,
                url=pattern.replace("0", str(session.pk), 1),
                title=title,
                state=find_live_state(session, now=now),
                bar=bar,
                forecast_words=say_forecast(session, bar),
                warm_seconds=_count_warm(session, now),
                hits=tuple(percent / 100 for percent in session.recent_hits),
            )
        )
    return tuple(rows)


def find_title(actor: Actor, session: AgentSession, team: Team) -> str:
    """A title quotes the conversation: empty for who may not read it."""
    session.team = team
    return session.title if access.reads_content(actor, session) else ""


def name_session(actor: Actor, session: AgentSession, team: Team) -> str:
    return find_title(actor, session, team) or session.external_id[:_SHORT_ID]


class LineMemo:
    """Lines by team, model, client and window: a page of sessions has few different ones."""

    def __init__(self, settings: dict[int, TeamSettings]) -> None:
        self._settings = settings
        self._drawn: dict[tuple[int, str, str, int | None], Lines | None] = {}

    def find_lines(self, session: AgentSession) -> Lines | None:
        key = (session.team_id, session.model, session.client_version, session.reported_window_tokens)
        if key not in self._drawn:
            _, model, version, window = key
            in_use = ModelInUse(model, client_version=version or None, reported_window_tokens=window)
            self._drawn[key] = draw_lines(self._settings[session.team_id].lines_policy, in_use)
        return self._drawn[key]


def say_forecast(session: AgentSession, bar: GaugeBar) -> str:
    """Turns to the auto-compact line, calls where turns cannot be told; empty without a forecast."""
    if bar.percent_left == 0:
        return NOW
    told = session.forecast or {}
    for unit in ("turns", "calls"):
        if told.get(unit):
            low, likely, high = told[unit]
            return say_range(likely, (low, high), unit[:-1])
    return ""


def _count_warm(session: AgentSession, now: datetime) -> int | None:
    if session.warm_until is None:
        return None
    return max(0, int((session.warm_until - now).total_seconds()))
