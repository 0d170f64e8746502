"""Two curves over the same axis: contexts of two sessions by call, or figures of two periods by day."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from compaction.transcripts.titles import cut_title
from dashboard.charts import Chart, build_figure, escape_markup

MOST_TABLE_ROWS = 200
MOST_MARKED = 10  # each of so many calls or days has its own mark; of more, plotly chooses round ones
MOST_DOTTED = 31  # points that lie far enough apart for dots
# Colour and dash: the one is never the only sign.
_LOOKS = (("write5m", "solid"), ("fresh", "dash"))


@dataclass(frozen=True, slots=True)
class Curve:
    """Points by the number of a call or a day, from 1 to `length`; days without a call have none."""

    name: str
    points: tuple[tuple[int, float], ...]
    length: int


def chart_two_curves(
    chart_id: str, title: str, curves: tuple[Curve, Curve], *, along: str, say: Callable[[float], str], prefix: str = ""
) -> Chart:
    """`along` names the axis: call or day. `say` tells a figure in the table."""
    traces = [_chart_curve(curve, look, prefix) for curve, look in zip(curves, _LOOKS, strict=True)]
    layout: dict[str, Any] = {
        "hovermode": "x unified",
        "xaxis": {"title": {"text": along}, "fixedrange": True, "tickformat": ",d", **_mark_axis(curves)},
        "yaxis": {"tickprefix": prefix, "fixedrange": True, "rangemode": "tozero"},
    }
    rows, left_out = _list_rows(curves, say)
    return Chart(
        chart_id,
        title,
        build_figure(traces, layout, height=260),
        (along.capitalize(), *(curve.name for curve in curves)),
        rows,
        note=f"The first {len(rows):,} of {len(rows) + left_out:,}." if left_out else "",
        legend=tuple((f"curve {token}{' dashed' if dash == 'dash' else ''}", curve.name)
                     for curve, (token, dash) in zip(curves, _LOOKS, strict=True)),
    )  # fmt: skip


def _mark_axis(curves: Sequence[Curve]) -> dict[str, Any]:
    """From the first call or day to the last, marked from the first on: there is none with the number 0."""
    length = max(1, *(curve.length for curve in curves))
    if length <= MOST_MARKED:
        return {"range": [0.5, length + 0.5], "tick0": 1, "dtick": 1}
    edge = min(0.9, length / 50)  # so much room that a dot is not cut, and not so much that a 0 is marked
    return {"range": [1 - edge, length + edge]}


def _chart_curve(curve: Curve, look: tuple[str, str], prefix: str) -> Any:
    """A call or day without a point leaves a gap; dots show a point between two gaps."""
    token, dash = look
    figures = ",.2f" if prefix else ",.0f"
    known = dict(curve.points)
    numbers = range(min(known, default=1), max(known, default=0) + 1)
    return go.Scatter(
        name=escape_markup(cut_title(curve.name, 60)),
        x=list(numbers),
        y=[round(known[number], 4) if number in known else None for number in numbers],
        mode="lines" if len(known) == len(numbers) > MOST_DOTTED else "lines+markers",
        connectgaps=False,
        line={"color": f"var(--{token})", "dash": dash, "width": 2},
        marker={"color": f"var(--{token})"},
        hovertemplate=f"{prefix}%{{y:{figures}}}",
    )


def _list_rows(curves: Sequence[Curve], say: Callable[[float], str]) -> tuple[tuple[tuple[str, ...], ...], int]:
    held = [dict(curve.points) for curve in curves]
    numbers = sorted(set().union(*held))
    shown = numbers[:MOST_TABLE_ROWS]
    rows = tuple(
        (f"{number:,}", *(say(points[number]) if number in points else "–" for points in held))  # noqa: RUF001
        for number in shown
    )
    return rows, len(numbers) - len(shown)
