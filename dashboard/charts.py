"""Rows in, plotly figures out: the only file that imports plotly.

Colours are names of CSS tokens, such as var(--ok-fill); static/js/charts.js reads their values in the theme shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

_FONT = {"family": "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif", "size": 12}
_AXIS = {
    "gridcolor": "var(--line-2)",
    "linecolor": "var(--line)",
    "zerolinecolor": "var(--line)",
    "tickcolor": "var(--line)",
    "automargin": True,
    "title": {"standoff": 8},
}
_TEMPLATE = go.layout.Template(
    layout={
        "font": {**_FONT, "color": "var(--ink-2)"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": ["var(--write5m)", "var(--write1h)", "var(--read)", "var(--fresh)", "var(--output)"],
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "hoverlabel": {
            "bgcolor": "var(--raised)",
            "bordercolor": "var(--line)",
            "font": {**_FONT, "color": "var(--ink)"},
        },
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
    }
)


@dataclass(frozen=True)
class Chart:
    """A figure and the table behind it; the first column names the row, the others hold numbers."""

    id: str
    title: str
    figure: dict[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def height_pixels(self) -> int:
        """Kept free in the page before the script draws, so that nothing jumps."""
        height: int = self.figure["layout"]["height"]
        return height

    @property
    def figure_id(self) -> str:
        return f"{self.id}-figure"


@dataclass(frozen=True)
class Line:
    """A threshold of a context window: where it lies, what it is called, whose colour it has."""

    name: str
    level: str
    tokens: int


@dataclass(frozen=True)
class Point:
    """One call: its number in the session and the tokens it read from the cache and wrote."""

    call: int
    read_tokens: int
    written_tokens: int


@dataclass(frozen=True)
class Share:
    """One part of a context and the tokens it takes."""

    name: str
    tokens: int


def gauge_chart(chart_id: str, *, used_tokens: int, window_tokens: int, lines: Sequence[Line]) -> Chart:
    """How full a window is, with one step per threshold."""
    ends = [*(line.tokens for line in lines[1:]), window_tokens]
    steps = [
        {"range": [line.tokens, end], "color": f"var(--{line.level}-fill)"}
        for line, end in zip(lines, ends, strict=True)
    ]
    indicator = go.Indicator(
        mode="gauge+number",
        value=used_tokens,
        number={"valueformat": ".4s", "font": {"color": "var(--ink)", "size": 18}},
        gauge={
            "shape": "bullet",
            "axis": {"range": [0, window_tokens], "tickformat": "~s", "tickcolor": "var(--line)"},
            "bar": {"color": "var(--ink)", "thickness": 0.35},
            "bgcolor": "var(--sunken)",
            "borderwidth": 0,
            "steps": steps,
        },
    )
    figure = _drawn(go.Figure(indicator, layout={"margin": {"l": 12, "r": 12, "t": 4, "b": 28}}), height=88)
    named = [("used", used_tokens), *((line.name, line.tokens) for line in lines), ("window", window_tokens)]
    rows = tuple((name, f"{tokens:,}") for name, tokens in named)
    return Chart(chart_id, "Context in use against its lines, in tokens", figure, ("Line", "Tokens"), rows)


def calls_chart(chart_id: str, points: Sequence[Point]) -> Chart:
    """What each call read from the cache and what it wrote."""
    calls = [point.call for point in points]
    kinds = (("cache read", "read", "circle"), ("written", "write1h", "diamond"))
    values = ([point.read_tokens for point in points], [point.written_tokens for point in points])
    traces = [
        go.Scatter(
            x=calls,
            y=tokens,
            name=name,
            mode="lines+markers",
            line={"color": f"var(--{token})", "width": 2},
            marker={"symbol": symbol, "size": 7},
            hovertemplate="call %{x}: %{y:,} tokens<extra>%{fullData.name}</extra>",
        )
        for (name, token, symbol), tokens in zip(kinds, values, strict=True)
    ]
    figure = go.Figure(traces)
    figure.update_layout(xaxis_title_text="call", yaxis_title_text="tokens", yaxis_tickformat="~s")
    rows = tuple((str(p.call), f"{p.read_tokens:,}", f"{p.written_tokens:,}") for p in points)
    return Chart(chart_id, "Tokens per call", _drawn(figure, height=280), ("Call", "Cache read", "Written"), rows)


def shares_chart(chart_id: str, shares: Sequence[Share]) -> Chart:
    """What a context is made of, by area."""
    treemap = go.Treemap(
        labels=[share.name for share in shares],
        parents=[""] * len(shares),
        values=[share.tokens for share in shares],
        texttemplate="%{label}<br>%{value:.3s} tokens",
        hovertemplate="%{label}: %{value:,} tokens, %{percentRoot:.0%}<extra></extra>",
        marker={"colors": ["var(--accent-soft)"] * len(shares), "line": {"color": "var(--accent)", "width": 1}},
        textfont={"color": "var(--ink)", "size": 13},
        tiling={"pad": 3},
        pathbar={"visible": False},
    )
    figure = _drawn(go.Figure(treemap), height=280)
    rows = tuple((share.name, f"{share.tokens:,}") for share in shares)
    return Chart(chart_id, "What the context is made of", figure, ("Part", "Tokens"), rows)


def _drawn(figure: go.Figure, *, height: int) -> dict[str, Any]:
    figure.update_layout(template=_TEMPLATE, height=height)
    drawn: dict[str, Any] = figure.to_plotly_json()
    return drawn
