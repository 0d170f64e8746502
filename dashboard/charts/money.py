"""Figures about dollars at list price: spend and loss per day, and loss by cause, project or the like."""

from collections.abc import Sequence
from decimal import Decimal
from textwrap import wrap
from typing import Any

from dashboard.chart_data import DayLoss, DaySpend, GroupLoss
from dashboard.charts import Chart, Series, build_figure, escape_markup
from dashboard.words import say_percent, say_usd

_ROW_PIXELS = 34
_LONGEST_LINE = 22
_LOSS_LEGEND = (("loss", "avoidable"), ("output", "not avoidable"))


def draw_spend_per_day(chart_id: str, days: Sequence[DaySpend]) -> Chart:
    """One bar per day: what was lost to cache breaks below, the rest of the spend above it."""
    names = [f"{day.day:%Y-%m-%d}" for day in days]
    spends = [None if day.spend_usd is None else _round(day.spend_usd - (day.lost_usd or 0)) for day in days]
    losses = [None if day.lost_usd is None else _round(day.lost_usd) for day in days]
    series = [
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
        "Spend and loss per day, list price",
        build_figure(series, layout, height=220),
        ("Day", "Spend", "Lost to cache breaks", "Share"),
        rows,
        note=f"Not known, as the models have no price: {', '.join(unpriced)}." if unpriced else "",
        legend=(("write5m", "other spend"), ("loss", "lost to cache breaks")),
    )


def draw_loss_per_day(chart_id: str, days: Sequence[DayLoss]) -> Chart:
    """One bar per day, the avoidable part below. The table leaves out days without a break."""
    names = [f"{day.day:%Y-%m-%d}" for day in days]
    series = [
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
        "Lost to cache breaks per day, list price",
        build_figure(series, layout, height=220),
        ("Day", "Breaks", "Avoidable", "Lost"),
        rows,
        legend=_LOSS_LEGEND,
    )


def draw_loss_by_group(chart_id: str, groups: Sequence[GroupLoss], *, by: str = "cause", note: str = "") -> Chart:
    """One bar per group, the avoidable part first. The order given is kept, from the top."""
    names = ["<br>".join(map(escape_markup, _wrap(group.name))) for group in groups]
    expected = [_round(group.lost_usd - group.avoidable_usd) for group in groups]
    avoidable = [_round(group.avoidable_usd) for group in groups]
    series = [
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
    rows = tuple(
        (group.name, f"{group.breaks:,}", say_usd(group.lost_usd), say_usd(group.avoidable_usd)) for group in groups
    )
    return Chart(
        chart_id,
        f"Lost to cache breaks by {by}, list price",
        build_figure(series, layout, height=50 + _ROW_PIXELS * max(1, len(groups))),
        (by.capitalize(), "Breaks", "Lost", "Avoidable"),
        rows,
        note=note,
        legend=_LOSS_LEGEND,
    )


def _wrap(name: str) -> list[str]:
    """Two lines at most: a third would run into the bar below."""
    return wrap(name, _LONGEST_LINE, max_lines=2, placeholder="…") or ["-"]


def _bars(name: str, token: str, columns: dict[str, Any], *, orientation: str = "v") -> Series:
    value = "y" if orientation == "v" else "x"
    look = {
        "type": "bar",
        "name": name,
        "orientation": orientation,
        "marker": {"color": f"var(--{token})"},
        "hovertemplate": f"$%{{{value}:,.2f}}",
    }
    return Series(look, columns)


def _round(amount: Decimal) -> float:
    return float(round(amount, 4))


def _say_share(part: Decimal | None, whole: Decimal | None) -> str:
    return say_percent(part / whole) if whole and part is not None else "–"  # noqa: RUF001 (the sign for nothing to say)
