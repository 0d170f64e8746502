"""A team at a glance: what is live, what is above a line, what today cost, and what happened last.

Queries in, frozen values out; every query is bounded by days or rows, not by how much there is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal

from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils import timezone

from dashboard import access
from dashboard.access import Actor
from dashboard.chart_data import DaySpend
from dashboard.ingest.hour_sums import read_sums
from dashboard.models import LEVELS, AgentSession, CompactionKind, LossKind, RunState, Team
from dashboard.pages.active_days import ActiveDays, count_active_days
from dashboard.pages.break_titles import title_break
from dashboard.pages.gauges import SessionRow, list_sessions, name_session
from dashboard.pages.ledger import LossFilter, find_losses
from dashboard.pages.live_state import match_live
from dashboard.pages.session_filters import ABOVE, ActiveWithin, SessionFilters, SortName, find_start
from dashboard.words import saves_nothing

CHART_DAYS = 14
RISKY_ROWS = 8
NEWEST_ROWS = 4
_WARNING, _AUTO = LEVELS.index("warning"), LEVELS.index("auto-compact")
_NOTHING_USD = Decimal(0)


@dataclass(frozen=True, slots=True)
class FleetNumbers:
    """Sessions above a line are those of the last 24 hours; today is the day of the zone asked for."""

    live_count: int
    today_count: int
    above_count: int
    past_auto_count: int
    soon_count: int  # below the auto-compact line, and a few calls or turns from it
    spent_today_usd: Decimal | None  # None where nothing that was called today has a price
    lost_today_usd: Decimal | None
    has_unpriced_today: bool  # sessions with calls whose model has no price, not in these sums
    hit_rate_today: float | None  # None before the first prompt of the day
    days: tuple[DaySpend, ...]  # oldest first, the last one is today

    @property
    def lost_share(self) -> Decimal | None:
        spent, lost = self.spent_today_usd, self.lost_today_usd
        return lost / spent if spent and lost is not None else None


@dataclass(frozen=True, slots=True)
class NewBreak:
    pk: int
    url: str
    title: str
    session_name: str
    lost_tokens: int
    lost_usd: Decimal | None
    at: datetime


@dataclass(frozen=True, slots=True)
class NewCompaction:
    pk: int
    url: str
    before_tokens: int | None
    after_tokens: int | None
    trigger: str
    is_mid_task: bool
    session_name: str
    at: datetime
    is_own: bool = False  # by Plimsoll, not by the client

    @property
    def saves_nothing(self) -> bool:
        return saves_nothing(self.before_tokens, self.after_tokens)


@dataclass(frozen=True, slots=True)
class Fleet:
    """`filters`: what the sessions were listed with, of which their caption is made. `quiet_days`: the last active
    days, where today had no activity."""

    numbers: FleetNumbers
    sessions: tuple[SessionRow, ...]
    filters: SessionFilters
    quiet_days: ActiveDays | None
    breaks: tuple[NewBreak, ...]
    compactions: tuple[NewCompaction, ...]

    @property
    def caption(self) -> str:
        if self.quiet_days:
            return f"{self.quiet_days.label}, {self.filters.order_words}"
        period = "Active in the last 24 h" if self.filters.active else "No activity in the last 24 hours"
        return f"{period}, {self.filters.order_words}"

    @property
    def is_by_risk(self) -> bool:
        return self.filters.sort is SortName.RISK

    @property
    def period(self) -> str:
        """What the numbers and the sessions are of, for pages that ask whether it is another one by now."""
        return self.filters.since or self.filters.active or "all"


def look_at_fleet(actor: Actor, team: Team, *, now: datetime) -> Fleet | None:
    """None before the first session."""
    filters = risk_filters(team)
    rows = list_sessions(actor, filters, now=now, size=RISKY_ROWS).rows
    if not rows:
        filters = SessionFilters(team=team.slug)
        rows = list_sessions(actor, filters, now=now, size=RISKY_ROWS).rows
    if not rows:
        return None
    zone = timezone.get_current_timezone()
    numbers = count_fleet(actor, team, now=now, zone=zone)
    is_quiet = not (numbers.today_count or numbers.live_count)
    quiet_days = count_active_days(actor, team, zone=zone) if is_quiet else None
    if quiet_days:
        filters = since_filters(team, quiet_days)
        rows = list_sessions(actor, filters, now=now, size=RISKY_ROWS).rows or rows
    return Fleet(
        numbers=numbers,
        sessions=rows,
        filters=filters,
        quiet_days=quiet_days,
        breaks=_list_breaks(actor, team),
        compactions=_list_newest(actor, team),
    )


def risk_filters(team: Team) -> SessionFilters:
    return SessionFilters(team=team.slug, active=ActiveWithin.DAY, sort=SortName.RISK)


def since_filters(team: Team, days: ActiveDays) -> SessionFilters:
    return SessionFilters(team=team.slug, since=days.first.isoformat(), sort=SortName.RISK)


def above_filters(team: Team) -> SessionFilters:
    return SessionFilters(team=team.slug, active=ActiveWithin.DAY, level=ABOVE, sort=SortName.RISK)


def count_fleet(actor: Actor, team: Team, *, now: datetime, zone: tzinfo) -> FleetNumbers:
    with timezone.override(zone):
        today_at = find_start(ActiveWithin.TODAY, now)
    days = _add_days(actor, team, timezone.localdate(now, zone), zone)
    sessions = access.sessions(actor).filter(team=team)
    spends = tuple(_make_spend(day) for day in days)
    today = days[-1]
    return FleetNumbers(
        **_count_sessions(sessions, today_at, now),
        # Apart from the counts above: an index answers those alone, these two look at sessions themselves.
        live_count=sessions.filter(match_live(now)).count(),
        has_unpriced_today=sessions.filter(last_at__gte=today_at, unpriced_count__gt=0).exists(),
        spent_today_usd=spends[-1].spend_usd,
        lost_today_usd=spends[-1].lost_usd,
        hit_rate_today=today.read_tokens / today.prompt_tokens if today.prompt_tokens else None,
        days=spends,
    )


def _make_spend(day: "_Day") -> DaySpend:
    """Whatever has a price costs something: prompts that cost nothing at all have none."""
    if day.prompt_tokens and not day.spent_usd:
        return DaySpend(day.day, None, None)
    return DaySpend(day.day, day.spent_usd, day.lost_usd)


def _count_sessions(sessions: QuerySet[AgentSession], today_at: datetime, now: datetime) -> dict[str, int]:
    day_at = find_start(ActiveWithin.DAY, now)
    counts: dict[str, int] = sessions.filter(last_at__gte=min(day_at, today_at)).aggregate(
        today_count=Count("pk", filter=Q(last_at__gte=today_at)),
        above_count=Count("pk", filter=Q(last_at__gte=day_at, level_rank__gte=_WARNING)),
        past_auto_count=Count("pk", filter=Q(last_at__gte=day_at, level_rank__gte=_AUTO)),
        soon_count=Count("pk", filter=Q(last_at__gte=day_at, is_soon=True)),
    )
    return counts


@dataclass(slots=True)
class _Day:
    day: date
    spent_usd: Decimal = _NOTHING_USD
    lost_usd: Decimal = _NOTHING_USD
    prompt_tokens: int = 0
    read_tokens: int = 0


def _add_days(actor: Actor, team: Team, today: date, zone: tzinfo) -> list[_Day]:
    """Hours are kept by UTC: where a zone is half an hour off, an hour belongs to the day in which it begins."""
    days = {day: _Day(day) for day in (today - timedelta(days=back) for back in reversed(range(CHART_DAYS)))}
    first_at = datetime.combine(min(days), datetime.min.time(), zone)
    wanted = Q(team_id=team.pk, hour_at__gte=first_at)
    sums = read_sums(access.team_hours(actor), access.session_hours(actor), wanted)
    for hour_at, spent, lost, prompts, read in sums:
        day = days.get(hour_at.astimezone(zone).date())
        if day is None:  # a clock that runs ahead
            continue
        day.spent_usd += spent
        day.lost_usd += lost
        day.prompt_tokens += prompts
        day.read_tokens += read
    return list(days.values())


def _list_breaks(actor: Actor, team: Team) -> tuple[NewBreak, ...]:
    """The minor ones are left to the ledger."""
    wanted = LossFilter(team=team.slug, kind=LossKind.BREAK, is_counted=True, is_minor=False)
    newest = find_losses(actor, wanted).order_by("-at", "-id")
    columns = ("cause", "detail", "gap_seconds", "lost_tokens", "lost_usd", "at", *_name_columns())
    rows = newest.select_related("session").only(*columns)
    return tuple(
        NewBreak(
            pk=row.pk,
            url=reverse("cache_break", args=[row.pk]),
            title=title_break(row.cause, row.detail, row.gap_seconds),
            session_name=name_session(actor, row.session, team),
            lost_tokens=row.lost_tokens,
            lost_usd=row.lost_usd,
            at=row.at,
        )
        for row in rows[:NEWEST_ROWS]
    )


def _list_newest(actor: Actor, team: Team) -> tuple[NewCompaction, ...]:
    """The client's and our own together."""
    both = (*_list_compactions(actor, team), *_list_runs(actor, team))
    return tuple(sorted(both, key=lambda each: each.at, reverse=True)[:NEWEST_ROWS])


def _list_runs(actor: Actor, team: Team) -> tuple[NewCompaction, ...]:
    done = access.runs(actor).filter(team=team, state=RunState.DONE, finished_at__isnull=False).order_by("-id")
    rows = done.select_related("session").only("before_tokens", "after_tokens", "kind", "finished_at", *_name_columns())
    return tuple(
        NewCompaction(
            pk=row.pk,
            url=reverse("run", args=[row.pk]),
            before_tokens=row.before_tokens,
            after_tokens=row.after_tokens,
            trigger="by Plimsoll",
            is_mid_task=False,
            session_name=name_session(actor, row.session, team),
            at=row.finished_at,
            is_own=True,
        )
        for row in rows[:NEWEST_ROWS]
        if row.finished_at is not None
    )


def _list_compactions(actor: Actor, team: Team) -> tuple[NewCompaction, ...]:
    # PostgreSQL would put those without a time first.
    full = access.compactions(actor).filter(team=team, kind=CompactionKind.FULL, at__isnull=False)
    rows = full.order_by("-at", "-id").select_related("session")
    rows = rows.only("before_tokens", "after_tokens", "trigger", "is_mid_task", "at", *_name_columns())
    return tuple(
        NewCompaction(
            pk=row.pk,
            url=reverse("compaction", args=[row.pk]),
            before_tokens=row.before_tokens,
            after_tokens=row.after_tokens,
            trigger=row.trigger or "trigger not recorded",
            is_mid_task=row.is_mid_task is True,
            session_name=name_session(actor, row.session, team),
            at=row.at,
        )
        for row in rows[:NEWEST_ROWS]
        if row.at is not None
    )


def _name_columns() -> Sequence[str]:
    return ("session__external_id", "session__title", "session__owner_id", "session__team_id")
