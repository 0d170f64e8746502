"""Figures about dollars: spend and loss per day, and loss by cause, project or the like."""

from collections.abc import Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from dashboard.chart_data import DayLoss, DaySpend, GroupLoss
from dashboard.charts import Chart, build_figure, escape_markup
from dashboard.words import name_prices, say_percent, say_usd

MOST_BARS = 12
LIST_PRICE = name_prices(has_own=False)
_ROW_PIXELS = 34
_LONGEST_LINE = 22
_LOSS_LEGEND = (("loss", "avoidable"), ("output", "not avoidable"))


def chart_spend_per_day(chart_id: str, days: Sequence[DaySpend], *, basis: str = LIST_PRICE) -> Chart:
    """One bar per day: what was lost to cache breaks below, the rest of the spend above it."""
    names = [f"{day.day:%Y-%m-%d}" for day in days]
    spends = [None if day.spend_usd is None else _round(day.spend_usd - (day.lost_usd or 0)) for day in days]
    losses = [None if day.lost_usd is None else _round(day.lost_usd) for day in days]
    traces = [
        _bars("lost to cache breaks", "loss", {"x": names, "y": losses}),
        _bars("other spend", "write5m", {"x": names, "y": spends}),
    ]
    unpriced = [name for name, spend in zip(names, spends, strict=True) if spend is None]
    layout = {
        "barmode": "stack",
        "bargap": 0.3,
        "hovermode": "x unified",
        "xaxis": {"type": "date", "tickformat": "%-d %b", "fixedrange": True},
        "yaxis": {"tickprefix": "$", "fixedrange": True, "rangemode": "tozero"},
    }
    rows = tuple(
        (name, say_usd(day.spend_usd), say_usd(day.lost_usd), _say_share(day.lost_usd, day.spend_usd))
        for name, day in zip(names, days, strict=True)
    )
    return Chart(
        chart_id,
        f"Spend and losses per day, {basis}",
        build_figure(traces, layout, height=220),
        ("Day", "Spend", "Lost to cache breaks", "Share"),
        rows,
        note=f"Unknown, because the models have no price: {', '.join(unpriced)}." if unpriced else "",
        legend=(("write5m", "other spend"), ("loss", "lost to cache breaks")),
    )


def chart_loss_per_day(chart_id: str, days: Sequence[DayLoss], *, basis: str = LIST_PRICE) -> Chart:
    """One bar per day, the avoidable part below. The table leaves out days without a break."""
    names = [f"{day.day:%Y-%m-%d}" for day in days]
    traces = [
        _bars("avoidable", "loss", {"x": names, "y": [_round(day.avoidable_usd) for day in days]}),
        _bars("not avoidable", "output", {"x": names, "y": [_round(day.lost_usd - day.avoidable_usd) for day in days]}),
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.3,
        "hovermode": "x unified",
        "xaxis": {"type": "date", "tickformat": "%-d %b", "fixedrange": True},
        "yaxis": {"tickprefix": "$", "fixedrange": True, "rangemode": "tozero"},
    }
    rows = tuple(
        (name, f"{day.breaks:,}", say_usd(day.avoidable_usd), say_usd(day.lost_usd))
        for name, day in zip(names, days, strict=True)
        if day.breaks
    )
    return Chart(
        chart_id,
        f"Lost to cache breaks per day, {basis}",
        build_figure(traces, layout, height=220),
        ("Day", "Breaks", "Avoidable", "Lost"),
        rows,
        legend=_LOSS_LEGEND,
    )


def chart_loss_by_group(
    chart_id: str, groups: Sequence[GroupLoss], *, by: str = "cause", basis: str = LIST_PRICE
) -> Chart:
    """One bar per group, the dearest on top, the avoidable part of each first. What has no bar of its own is one bar
    together with its like, so that the bars add up to the whole."""
    bars = _fold_cheapest(groups)
    names = ["<br>".join(map(escape_markup, _wrap(bar.name))) for bar in bars]
    expected = [_round(bar.lost_usd - bar.avoidable_usd) for bar in bars]
    avoidable = [_round(bar.avoidable_usd) for bar in bars]
    traces = [
        _bars("avoidable", "loss", {"y": names, "x": avoidable}, orientation="h"),
        _bars("not avoidable", "output", {"y": names, "x": expected}, orientation="h"),
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.35,
        "hovermode": "y unified",
        "xaxis": {"tickprefix": "$", "fixedrange": True, "rangemode": "tozero", "nticks": 5, "tickangle": 0},
        "yaxis": {"type": "category", "autorange": "reversed", "fixedrange": True, "ticksuffix": " "},
    }
    rows = tuple((bar.name, f"{bar.breaks:,}", say_usd(bar.lost_usd), say_usd(bar.avoidable_usd)) for bar in bars)
    title = f"Lost to cache breaks by {by}, {basis}"
    if len(bars) < len(groups):
        title += f": the {MOST_BARS} most expensive of {len(groups):,} {by}s, all others in one bar"
    return Chart(
        chart_id,
        title,
        build_figure(traces, layout, height=50 + _ROW_PIXELS * max(1, len(bars))),
        (by.capitalize(), "Breaks", "Lost", "Avoidable"),
        rows,
        legend=_LOSS_LEGEND,
    )


def _fold_cheapest(groups: Sequence[GroupLoss]) -> list[GroupLoss]:
    """By what they lost. A single one that is left over has as much right to the last bar as "1 other"."""
    ranked = sorted(groups, key=lambda group: (-group.lost_usd, -group.avoidable_usd, -group.breaks))
    if len(ranked) <= MOST_BARS + 1:
        return ranked
    shown, rest = ranked[:MOST_BARS], ranked[MOST_BARS:]
    others = GroupLoss(
        name=f"{len(rest):,} others",
        breaks=sum(group.breaks for group in rest),
        lost_usd=sum((group.lost_usd for group in rest), Decimal(0)),
        avoidable_usd=sum((group.avoidable_usd for group in rest), Decimal(0)),
    )
    return [*shown, others]


def _wrap(name: str) -> list[str]:
    """Two lines at most: a third would run into the bar below."""
    return wrap(name, _LONGEST_LINE, max_lines=2, placeholder="…") or ["-"]


def _bars(name: str, token: str, columns: dict[str, Any], *, orientation: str = "v") -> Any:
    value = "y" if orientation == "v" else "x"
    return go.Bar(
        name=name,
        orientation=orientation,
        marker={"color": f"var(--{token})"},
        hovertemplate=f"$%{{{value}:,.2f}}",
        **columns,
    )


def _round(amount: Decimal) -> float:
    return float(round(amount, 4))


def _say_share(part: Decimal | None, whole: Decimal | None) -> str:
    return say_percent(part / whole) if whole and part is not None else "–"  # noqa: RUF001 (the sign for nothing to say)
