"""Two sessions, or two periods of a team, held against each other: the figures, their differences, and the curves."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, Q, QuerySet, Sum
from django.urls import reverse
from django.utils import timezone

from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, CompactionKind, LossKind, SessionHour, Team
from dashboard.pages.gauges import name_session
from dashboard.pages.periods import LocalDay, Period
from dashboard.pages.session_calls import PlacedCall, read_calls
from dashboard.pages.session_figures import find_hit_rate, is_price_unknown
from dashboard.pages.trends import Figure, Trend, sign
from dashboard.words import UNKNOWN, say_percent, say_tokens, say_usd

_NOTHING_USD, _SMALLEST_USD = Decimal(0), Decimal("0.00000001")
Point = tuple[int, float]  # a call or a day by number, and its figure


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a side: how it is called, said and judged. Rates and shares are judged; `is_beside` them stands
    what they are of, which says nothing alone: twice the calls break the cache twice as often."""

    name: str
    label: str
    say: Callable[..., str]
    is_less_better: bool | None = None
    is_beside: bool = False


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of both sides; the second is held against the first."""

    measure: Measure
    trend: Trend

    @property
    def first_words(self) -> str:
        return self._say(self.trend.before)

    @property
    def second_words(self) -> str:
        return self._say(self.trend.now)

    @property
    def verdict(self) -> str:
        """Counts and sums beside a rate have none, not even that they are the same."""
        return "" if self.measure.is_beside else self.trend.verdict

    @property
    def difference_words(self) -> str:
        difference, say = self.trend.difference, self.measure.say
        return "" if difference is None else sign(difference, _say_points if say is say_percent else say)

    def _say(self, figure: Figure | None) -> str:
        return UNKNOWN if figure is None else self.measure.say(figure)


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared: a session or a period, with its figures by name and its curves over `length` calls or days."""

    name: str
    detail: str
    url: str
    figures: dict[str, Figure | None]
    curves: dict[str, tuple[Point, ...]]
    length: int


@dataclass(frozen=True, slots=True)
class Comparison:
    first: Side
    second: Side
    figures: tuple[ComparedFigure, ...]

    @property
    def is_empty(self) -> bool:
        """Neither side has a call."""
        return not (self.first.figures["calls"] or self.second.figures["calls"])


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose periods are compared; empty values cut nothing."""

    team: Team
    project: str = ""
    developer: str = ""


def _say_count(count: Figure) -> str:
    return f"{count:,.0f}"


def _say_points(share: Figure) -> str:
    """The difference of two shares is none itself."""
    points = f"{float(share) * 100:.1f}".removesuffix(".0")
    return f"{points} point{'' if points == '1' else 's'}"


def _say_rate(rate: Figure) -> str:
    return "0" if not rate else "<0.1" if rate < 0.05 else f"{rate:,.1f}"


_SHARED = (
    Measure("hit_rate", "Hit rate", say_percent, is_less_better=False),
    Measure("break_rate", "Cache breaks per 100 calls", _say_rate, is_less_better=True),
    Measure("breaks", "Cache breaks", _say_count, is_beside=True),
    Measure("lost_share", "Lost to cache breaks, % of spend", say_percent, is_less_better=True),
    Measure("lost_usd", "Lost to cache breaks", say_usd, is_beside=True),
    Measure("avoidable_share", "Avoidable, % of spend", say_percent, is_less_better=True),
    Measure("avoidable_usd", "Avoidable", say_usd, is_beside=True),
    Measure("call_usd", "Spent per call", say_usd, is_less_better=True),
    Measure("spent_usd", "Spent", say_usd, is_beside=True),
    Measure("compaction_rate", "Compactions per 100 calls", _say_rate, is_less_better=True),
    Measure("compactions", "Compactions", _say_count, is_beside=True),
    Measure("mid_task_rate", "Mid-task compactions per 100 calls", _say_rate, is_less_better=True),
    Measure("mid_task", "Mid-task compactions", _say_count, is_beside=True),
    Measure("calls", "Calls", _say_count),
)
SESSION_MEASURES = (
    Measure("growth_tokens", "Context growth per call", say_tokens, is_less_better=True),
    Measure("peak_tokens", "Peak context", say_tokens),
    *_SHARED,
    Measure("turns", "Turns", _say_count),
)
PERIOD_MEASURES = (
    Measure("prompt_tokens", "Context per call", say_tokens, is_less_better=True),
    *_SHARED,
    Measure("sessions", "Sessions", _say_count),
)


def compare_sessions(actor: Actor, first: AgentSession, second: AgentSession) -> Comparison:
    """Three queries a side."""
    return _compare(_look_at_session(actor, first), _look_at_session(actor, second), SESSION_MEASURES)


def compare_periods(actor: Actor, scope: Scope, first: Period, second: Period, *, is_before: bool) -> Comparison:
    """Four queries a side. `is_before`: the first is the one right before, of which only as much counts as of the
    second is over."""
    end_at = first.so_far_at if is_before else first.end_at
    return _compare(
        _look_at_period(actor, scope, first, end_at),
        _look_at_period(actor, scope, second, second.end_at),
        PERIOD_MEASURES,
    )


def _compare(first: Side, second: Side, measures: Sequence[Measure]) -> Comparison:
    figures = (
        ComparedFigure(each, Trend(first.figures[each.name], second.figures[each.name], each.is_less_better))
        for each in measures
    )
    return Comparison(first, second, tuple(figures))


def _look_at_session(actor: Actor, session: AgentSession) -> Side:
    told = [call for call in read_calls(actor, session).calls if not call.is_beside]
    own = _find_conversation(told)
    contexts = [call.context_tokens for call in own]
    is_priced = not is_price_unknown(session)
    return Side(
        name=name_session(actor, session, session.team),
        detail=session.project or "no project",
        url=reverse("session", args=[session.pk]),
        figures={
            "growth_tokens": _find_growth(contexts),
            "peak_tokens": session.peak_tokens,
            "turns": session.turn_count,
            "hit_rate": find_hit_rate(session),
            **_tell_counts(
                session.call_count, session.break_count, session.compaction_count, mid_task=session.mid_task_count
            ),
            **_tell_dollars(
                session.spent_usd if is_priced else None, session.lost_usd, session.avoidable_usd, session.call_count
            ),
        },
        curves={"context": tuple((call.number, float(call.context_tokens)) for call in own)},
        length=max((call.number for call in own), default=0),
    )


def _find_conversation(calls: Sequence[PlacedCall]) -> list[PlacedCall]:
    """The main one, else that of the longest sub-agent: numbers of calls begin anew in every thread."""
    lengths = Counter(call.agent_id for call in calls)
    shown = "" if "" in lengths else max(lengths, key=lambda agent_id: lengths[agent_id], default="")
    return [call for call in calls if call.agent_id == shown]


def _find_growth(contexts: Sequence[int]) -> int | None:
    """The mean rise from one call to the next; what a compaction takes away is no growth."""
    if len(contexts) < 2:
        return None
    rises = sum(max(0, after - before) for before, after in pairwise(contexts))
    return rises // (len(contexts) - 1)


def _look_at_period(actor: Actor, scope: Scope, period: Period, end_at: datetime) -> Side:
    hours = access.session_hours(actor).filter(_match(scope), hour_at__gte=period.start_at, hour_at__lt=end_at)
    days = _add_days(hours, period)
    calls, prompts, read = (sum(day[name] for day in days.values()) for name in ("calls", "prompts", "read"))
    spent, lost = (_add_usd(day[name] for day in days.values()) for name in ("spent", "lost"))
    breaks, avoidable = _count_breaks(actor, scope, period, end_at)
    compactions, mid_task = _count_compactions(actor, scope, period, end_at)
    numbered = list(enumerate(period.list_days(), 1))
    held = [(number, days[day]) for number, day in numbered if day in days]
    spent_on = {day: float(each["spent"]) for day, each in days.items()}
    today = timezone.localdate(period.now, period.zone)
    return Side(
        name=f"{period.first:%Y-%m-%d} to {period.last:%Y-%m-%d}",
        detail=f"{period.days} day{'' if period.days == 1 else 's'}",
        url=f"{reverse('ledger')}?{_ledger_query(scope, period)}",
        figures={
            "prompt_tokens": prompts // calls if calls else None,
            "sessions": hours.order_by().values("session").distinct().count(),
            "hit_rate": read / prompts if prompts else None,
            **_tell_counts(calls, breaks, compactions, mid_task=mid_task),
            **_tell_dollars(spent, lost, avoidable, calls),
        },
        curves={
            "context": tuple((number, each["prompts"] / each["calls"]) for number, each in held if each["calls"]),
            "spent": tuple((number, spent_on.get(day, 0.0)) for number, day in numbered if day <= today),
        },
        length=period.days,
    )


def _match(scope: Scope) -> Q:
    named = {"session__project": scope.project, "session__developer": scope.developer}
    return Q(team=scope.team, **{name: value for name, value in named.items() if value})


def _add_days(hours: QuerySet[SessionHour], period: Period) -> dict[Any, Mapping[str, Any]]:
    """Days with a call, oldest first. Where a zone is half an hour off, an hour belongs to the day it begins in."""
    sums: Iterable[Mapping[str, Any]] = (
        hours.order_by()
        .values(day=LocalDay("hour_at", period))
        .annotate(
            calls=Sum("call_count"),
            prompts=Sum("input_tokens"),
            read=Sum("read_tokens"),
            spent=Sum("spent_usd"),
            lost=Sum("lost_usd"),
        )
    )
    known = set(period.list_days())
    return {each["day"]: each for each in sorted(sums, key=lambda each: each["day"]) if each["day"] in known}


def _count_breaks(actor: Actor, scope: Scope, period: Period, end_at: datetime) -> tuple[int, Decimal]:
    counted = access.breaks(actor).filter(
        _match(scope), kind=LossKind.BREAK, is_counted=True, at__gte=period.start_at, at__lt=end_at
    )
    sums = counted.order_by().values("is_avoidable").annotate(breaks=Count("id"), usd=Sum("avoidable_usd"))
    rows = list(sums)
    return sum(row["breaks"] for row in rows), _add_usd(row["usd"] for row in rows)


def _count_compactions(actor: Actor, scope: Scope, period: Period, end_at: datetime) -> tuple[int, int]:
    """All of them, and those in the middle of a task."""
    full = access.compactions(actor).filter(
        _match(scope), kind=CompactionKind.FULL, at__gte=period.start_at, at__lt=end_at
    )
    counts = full.aggregate(compactions=Count("id"), mid_task=Count("id", filter=Q(is_mid_task=True)))
    return counts["compactions"], counts["mid_task"]


def _tell_counts(calls: int, breaks: int, compactions: int, *, mid_task: int) -> dict[str, Figure | None]:
    def rate(count: int) -> float | None:
        return 100 * count / calls if calls else None

    return {
        "calls": calls,
        "breaks": breaks,
        "break_rate": rate(breaks),
        "compactions": compactions,
        "compaction_rate": rate(compactions),
        "mid_task": mid_task,
        "mid_task_rate": rate(mid_task),
    }


def _tell_dollars(spent: Decimal | None, lost: Decimal, avoidable: Decimal, calls: int) -> dict[str, Figure | None]:
    is_known = spent is not None
    return {
        "spent_usd": spent,
        "lost_usd": lost if is_known else None,
        "avoidable_usd": avoidable if is_known else None,
        "lost_share": lost / spent if spent else None,
        "avoidable_share": avoidable / spent if spent else None,
        "call_usd": spent / calls if spent is not None and calls else None,
    }


def _add_usd(amounts: Iterable[Decimal | None]) -> Decimal:
    return sum((amount or _NOTHING_USD for amount in amounts), _NOTHING_USD).quantize(_SMALLEST_USD)


def _ledger_query(scope: Scope, period: Period) -> str:
    fields = {"team": scope.team.slug, "project": scope.project, "developer": scope.developer}
    fields |= {"from": period.first.isoformat(), "to": period.last.isoformat()}
    return urlencode({name: value for name, value in fields.items() if value})
