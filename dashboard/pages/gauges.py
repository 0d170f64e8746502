"""Sessions as lists show them: one row each, with its gauge. Queries in, frozen values out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

from django.urls import reverse

from compaction.context.policy import Policy
from compaction.context.thresholds import LevelReading, Thresholds, classify_usage, compute_thresholds
from compaction.context.windows import ModelInUse
from dashboard import access
from dashboard.access import Act, Actor
from dashboard.models import AgentSession, Team
from dashboard.pages.gauge_bar import NOW, GaugeBar, GaugeScale, draw_gauge, draw_scale
from dashboard.pages.listed_session import ListedSession
from dashboard.pages.live_state import LiveState, find_live_state
from dashboard.pages.session_figures import find_hit_rate, is_price_unknown
from dashboard.pages.session_filters import SessionFilters
from dashboard.pages.session_paging import Cursor, Page, SessionList
from dashboard.pages.session_search import search_for
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.session_levels import USE_COLUMNS, describe_use
from dashboard.words import say_range

PAGE_SIZE = 50
_GET_USE = attrgetter(*USE_COLUMNS)
_SHORT_ID = 8


@dataclass(frozen=True)
class SessionRow:
    """One line of a list. The title is empty for who may not read it. Its gauge is drawn when somebody looks at it: a
    program reads numbers alone."""

    session: ListedSession
    team: Team
    url: str
    title: str
    state: LiveState
    scale: GaugeScale | None
    reading: LevelReading
    warm_seconds: int | None  # left of the cache's time, 0 when it is over, None when it is not known

    @property
    def window_tokens(self) -> int | None:
        return self.scale.lines.window.tokens if self.scale else None

    @cached_property
    def bar(self) -> GaugeBar:
        bar = draw_gauge(self.scale.lines if self.scale else None, self.reading, scale=self.scale)
        return replace(bar, pending_tokens=self.session.pending_tokens, is_soon=bool(self.session.is_soon))

    @property
    def forecast_words(self) -> str:
        return say_forecast(self.session, self.scale.lines if self.scale else None)

    @property
    def name(self) -> str:
        return self.title or self.session.external_id[:_SHORT_ID]

    @property
    def hit_rate(self) -> float | None:
        return find_hit_rate(self.session)

    @property
    def warm_words(self) -> str:
        if self.warm_seconds is None:
            return "unknown"
        return f"{self.warm_seconds // 60}:{self.warm_seconds % 60:02}" if self.warm_seconds else "cold"

    @property
    def spent_usd(self) -> Decimal | None:
        """None when no call has a price."""
        return None if self.is_price_unknown else self.session.spent_usd

    @property
    def lost_usd(self) -> Decimal | None:
        return None if self.is_price_unknown else self.session.lost_usd

    @property
    def is_price_unknown(self) -> bool:
        return is_price_unknown(self.session)


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
    listed = SessionList(actor, team_ids, filters, search_for(actor, filters.text), now)
    return listed.find_page(size, cursor)


def draw_rows(
    actor: Actor, sessions: Sequence[ListedSession], teams: Sequence[Team], *, now: datetime
) -> tuple[SessionRow, ...]:
    """One query for each team that has a session here."""
    shown = {session.team_id for session in sessions}
    teams_by_id = {team.pk: team for team in teams if team.pk in shown}
    scales = _Scales({pk: find_policy(team) for pk, team in teams_by_id.items()})
    # One look into the URL table for a whole page.
    pattern = reverse("session", args=[0])
    rows = []
    for session in sessions:
        team = teams_by_id[session.team_id]
        scale = scales.find_scale(session)
        rows.append(
            SessionRow(
                session=session,
                team=team,
                url=pattern.replace("0", str(session.pk), 1),
                title=find_title(actor, session, team),
                state=find_live_state(session, now=now),
                scale=scale,
                reading=classify_usage(scale.lines if scale else None, session.context_tokens),
                warm_seconds=_count_warm(session, now),
            )
        )
    return tuple(rows)


def find_title(actor: Actor, session: AgentSession | ListedSession, team: Team) -> str:
    """A title quotes the conversation: empty for who may not read it."""
    return session.title if access.reads_content_of(actor, team, session.owner_id) else ""


def name_session(actor: Actor, session: AgentSession | ListedSession, team: Team) -> str:
    return find_title(actor, session, team) or session.external_id[:_SHORT_ID]


class _Scales:
    """Lines on their scale by team, model, client and window: a page of sessions has few different ones."""

    def __init__(self, settings: dict[int, TeamSettings]) -> None:
        self._settings = settings
        self._found: dict[tuple[Any, ...], GaugeScale | None] = {}

    def find_scale(self, session: ListedSession) -> GaugeScale | None:
        key = (session.team_id, *_GET_USE(session))
        if key not in self._found:
            self._found[key] = _draw_scale(self._settings[session.team_id].lines_policy, describe_use(*key[1:]))
        return self._found[key]


@lru_cache(maxsize=512)
def _draw_scale(policy: Policy, in_use: ModelInUse) -> GaugeScale | None:
    lines = compute_thresholds(policy, in_use)
    return draw_scale(lines) if lines else None


def say_forecast(session: ListedSession, lines: Thresholds | None) -> str:
    """Return the calls that are left to the auto-compact line; empty without a forecast, or where it is off."""
    if lines is not None and lines.is_auto_on and session.context_tokens >= lines.auto.tokens:
        return NOW
    calls = (session.forecast or {}).get("calls")
    if not calls:
        return ""
    low, likely, high = calls
    return say_range(likely, (low, high), "call")


def _count_warm(session: ListedSession, now: datetime) -> int | None:
    if session.warm_until is None:
        return None
    return max(0, int((session.warm_until - now).total_seconds()))
