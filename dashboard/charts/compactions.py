"""Compactions per day, and above them how much they retained on average."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import plotly.graph_objects as go

from dashboard.charts import Chart, build_figure
from dashboard.words import format_retained

_GRID = {"gridcolor": "var(--line-2)", "zerolinecolor": "var(--line)", "automargin": True, "fixedrange": True}
_MOST_DOTS = 92  # of more days only the line is shown


@dataclass(frozen=True, slots=True)
class DayCompactions:
    """One day; the mean is of the `averaged` compactions, None where there are none."""

    day: date
    count: int
    averaged: int
    mean_percent: Decimal | None


def chart_compactions_per_day(chart_id: str, days: Sequence[DayCompactions]) -> Chart:
    """Return bars of counts below a line of means. The table leaves out days without a compaction."""
    names = [f"{day.day:%Y-%m-%d}" for day in days]
    means = [None if day.mean_percent is None else float(day.mean_percent) for day in days]
    traces = [
        go.Bar(
            name="compactions",
            x=names,
            y=[day.count for day in days],
            marker={"color": "var(--output)"},
            hovertemplate="%{y:,d}",
        ),
        go.Scatter(
            name="mean retained",
            x=names,
            y=means,
            yaxis="y2",
            mode="lines+markers" if len(days) <= _MOST_DOTS else "lines",
            connectgaps=True,
            line={"color": "var(--write5m)", "width": 2},
            marker={"color": "var(--write5m)"},
            hovertemplate="~%{y:.0f}%",
        ),
    ]
    rows = tuple(
        (name, f"{day.count:,}", f"{day.averaged:,}", format_retained(day.mean_percent) if day.averaged else "–")  # noqa: RUF001
        for name, day in zip(names, days, strict=True)
        if day.count
    )
    return Chart(
        chart_id,
        "Compactions per day, and the mean of what they retained",
        build_figure(traces, _lay_out(max((day.count for day in days), default=0)), height=260),
        ("Day", "Compactions", "In the mean", "Mean retained"),
        rows,
        legend=(("curve write5m", "mean retained"), ("output", "compactions")),
    )


def _lay_out(most: int) -> dict[str, Any]:
    counts: dict[str, Any] = {"domain": [0, 0.36], "rangemode": "tozero", "fixedrange": True, "nticks": 3}
    if most <= 2:
        counts |= {"dtick": 1}
    return {
        "bargap": 0.3,
        "hovermode": "x unified",
        "xaxis": {"type": "date", "tickformat": "%-d %b", "fixedrange": True},
        "yaxis": counts,
        "yaxis2": {
            **_GRID,
            "domain": [0.46, 1],
            "range": [0, 105],
            "tickvals": [0, 50, 100],
            "ticktext": ["0%", "50%", "100%"],
        },
    }
