"""Compactions of a period added up by the database: per day, in all, and for as many days before.

Two queries, one for compactions by clients and one for runs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from dashboard.access import Actor
from dashboard.models import SummarizerName
from dashboard.pages.compaction_filters import LOW_PERCENT, CompactionFilters, Performer
from dashboard.pages.compaction_history import find_observed, find_runs
from dashboard.pages.periods import LocalDay, Period

_TENTH = Decimal("0.1")


@dataclass(frozen=True, slots=True)
class CompactionSum:
    """Compactions added up. `measured`: those with a percentage of what they retained; `averaged`: those in the mean.

    The mean is of summaries that a model wrote: those that quote have more with the same facts.
    """

    count: int = 0
    own_count: int = 0
    measured: int = 0
    averaged: int = 0
    percent_sum: Decimal = Decimal(0)
    low_count: int = 0
    mid_task_count: int = 0

    def __add__(self, other: "CompactionSum") -> "CompactionSum":
        return CompactionSum(
            self.count + other.count,
            self.own_count + other.own_count,
            self.measured + other.measured,
            self.averaged + other.averaged,
            self.percent_sum + other.percent_sum,
            self.low_count + other.low_count,
            self.mid_task_count + other.mid_task_count,
        )

    @property
    def mean_percent(self) -> Decimal | None:
        return (self.percent_sum / self.averaged).quantize(_TENTH) if self.averaged else None


@dataclass(frozen=True, slots=True)
class CompactionTotals:
    """Every day of the period with its sum, the whole period, and the period before."""

    days: tuple[tuple[date, CompactionSum], ...]
    total: CompactionSum
    before: CompactionSum


def compute_totals(actor: Actor, filters: CompactionFilters) -> CompactionTotals:
    period = filters.period
    both = Period(period.before.first, period.last, period.zone, period.now, is_custom=True)
    wide = replace(filters, period=both)
    by_day: dict[date, CompactionSum] = {}
    for day, found in (*_sum_observed(actor, wide), *_sum_runs(actor, wide)):
        by_day[day] = by_day.get(day, CompactionSum()) + found
    days = tuple((day, by_day.get(day, CompactionSum())) for day in period.list_days())
    before = _add(found for day, found in by_day.items() if day < period.first)
    return CompactionTotals(days, _add(found for _, found in days), before)


def _sum_observed(actor: Actor, filters: CompactionFilters) -> Iterable[tuple[date, CompactionSum]]:
    if not filters.includes(Performer.CLIENT):
        return []
    found = find_observed(actor, filters, *filters.kinds).order_by()
    rows = _sum_days(found, "at", "retained_percent", filters.period, mid_task=Count("id", filter=Q(is_mid_task=True)))
    return [(row["day"], _build_sum(row, own_count=0, mid_task_count=row["mid_task"])) for row in rows]


def _sum_runs(actor: Actor, filters: CompactionFilters) -> Iterable[tuple[date, CompactionSum]]:
    if not filters.includes(Performer.PLIMSOLL) or filters.mid_task:
        return []
    found = find_runs(actor, filters).order_by()
    is_written = Q(summarizer__in=[name for name in SummarizerName if name.is_paid])
    if filters.by == Performer.PLIMSOLL and not found.filter(is_written).exists():
        is_written = Q()
    rows = _sum_days(found, "created_at", "revised_percent", filters.period, is_averaged=is_written)
    return [(row["day"], _build_sum(row, own_count=row["count"], mid_task_count=0)) for row in rows]


def _sum_days(
    rows: QuerySet[Any], moment: str, percent: str, period: Period, *, is_averaged: Q | None = None, **more: Count
) -> QuerySet[Any, dict[str, Any]]:
    sums: QuerySet[Any, dict[str, Any]] = rows.values(day=LocalDay(moment, period)).annotate(
        count=Count("id"),
        measured=Count(percent),
        averaged=Count(percent, filter=is_averaged),
        percent_sum=Sum(percent, filter=is_averaged),
        low_count=Count("id", filter=Q(**{f"{percent}__lt": LOW_PERCENT})),
        **more,
    )
    return sums


def _build_sum(row: Mapping[str, Any], *, own_count: int, mid_task_count: int) -> CompactionSum:
    percent_sum = row["percent_sum"] or Decimal(0)
    return CompactionSum(
        row["count"],
        own_count,
        row["measured"],
        row["averaged"],
        Decimal(percent_sum),
        row["low_count"],
        mid_task_count,
    )


def _add(sums: Iterable[CompactionSum]) -> CompactionSum:
    return sum(sums, CompactionSum())
