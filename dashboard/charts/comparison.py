"""Two curves over the same axis: contexts of two sessions by call, or figures of two periods by day."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.transcripts.titles import cut_title
from dashboard.charts import Chart, Series, build_figure, escape_markup, tick_whole_numbers

MOST_TABLE_ROWS = 200
# Colour and dash: the one is never the only sign.
_LOOKS = (("write5m", "solid"), ("fresh", "dash"))


@dataclass(frozen=True, slots=True)
class Curve:
    """Points by the number of a call or a day."""

    name: str
    points: tuple[tuple[int, float], ...]


def draw_two_curves(
    chart_id: str, title: str, curves: tuple[Curve, Curve], *, along: str, say: Callable[[float], str], prefix: str = ""
) -> Chart:
    """`along` names the axis: call or day. `say` tells a figure in the table."""
    series = [_draw(curve, look, prefix) for curve, look in zip(curves, _LOOKS, strict=True)]
    longest = max((x for curve in curves for x, _ in curve.points), default=0)
    layout: dict[str, Any] = {
        "hovermode": "x unified",
        "xaxis": {"title": {"text": along}, "fixedrange": True, "rangemode": "tozero", **tick_whole_numbers(longest)},
        "yaxis": {"tickprefix": prefix, "fixedrange": True, "rangemode": "tozero"},
    }
    rows, left_out = _list_rows(curves, say)
    return Chart(
        chart_id,
        title,
        build_figure(series, layout, height=260),
        (along.capitalize(), *(curve.name for curve in curves)),
        rows,
        note=f"The first {len(rows):,} of {len(rows) + left_out:,}." if left_out else "",
        legend=tuple((f"curve {token}{' dashed' if dash == 'dash' else ''}", curve.name)
                     for curve, (token, dash) in zip(curves, _LOOKS, strict=True)),
    )  # fmt: skip


def _draw(curve: Curve, look: tuple[str, str], prefix: str) -> Series:
    token, dash = look
    figures = ",.2f" if prefix else ",.0f"
    style = {
        "type": "scatter",
        "mode": "lines" if len(curve.points) > 1 else "markers",
        "name": escape_markup(cut_title(curve.name, 60)),
        "line": {"color": f"var(--{token})", "dash": dash, "width": 2},
        "marker": {"color": f"var(--{token})"},
        "hovertemplate": f"{prefix}%{{y:{figures}}}",
    }
    return Series(style, {"x": [x for x, _ in curve.points], "y": [round(y, 4) for _, y in curve.points]})


def _list_rows(curves: Sequence[Curve], say: Callable[[float], str]) -> tuple[tuple[tuple[str, ...], ...], int]:
    held = [dict(curve.points) for curve in curves]
    numbers = sorted(set().union(*held))
    shown = numbers[:MOST_TABLE_ROWS]
    rows = tuple(
        (f"{number:,}", *(say(points[number]) if number in points else "–" for points in held))  # noqa: RUF001
        for number in shown
    )
    return rows, len(numbers) - len(shown)
