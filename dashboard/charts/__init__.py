"""Base of every chart: the plotly figure with the theme, and the table behind it.

Colours are names of CSS tokens, such as var(--ok-fill); static/js/charts.js replaces them by the values of the theme
shown.
"""

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
_TEMPLATE: dict[str, Any] = {
    "layout": {
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
            "align": "left",
        },
        # The page has its own legend: plotly's takes half of a narrow figure and does not follow a resized page.
        "showlegend": False,
    }
}

# Up to this many calls or days every one has its tick: plotly would put others halfway between. static/js/charts.js
# applies the same limit to a zoomed range.
MOST_SINGLE_TICKS = 12


@dataclass(frozen=True)
class Chart:
    """A figure and the table behind it; the first column names the row, the others hold numbers.

    `keys` has one entry per row where a row can be picked; `note` tells what the table leaves out; `legend` holds the
    class of a swatch and its words. `is_zoomable` adds the buttons for zooming, `has_downloads` those for files.
    """

    id: str
    title: str
    figure: go.Figure
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: tuple[str, ...] = ()
    note: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    is_zoomable: bool = False
    has_downloads: bool = True

    @property
    def height_pixels(self) -> int:
        """Reserved in the page before the script draws, so that nothing moves."""
        height: int = self.figure.layout.height
        return height

    @property
    def figure_id(self) -> str:
        return f"{self.id}-figure"

    @property
    def keyed_rows(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every row with its key, empty where rows cannot be picked."""
        keys = self.keys or ("",) * len(self.rows)
        return list(zip(keys, self.rows, strict=True))

    def serialize_figure(self) -> dict[str, Any]:
        """Return the figure as plain values for static/js/charts.js. A trace whose x is that of an earlier trace has
        "=" and the number of that trace instead: the figure travels in the page."""
        values: dict[str, Any] = self.figure.to_dict()
        seen: list[Any] = []
        for trace in values["data"]:
            x = trace.get("x")
            if isinstance(x, list) and x in seen:
                trace["x"] = f"={seen.index(x)}"
            seen.append(x)
        return values


def build_figure(traces: list[Any], layout: dict[str, Any], *, height: int) -> go.Figure:
    return go.Figure(traces, {**layout, "height": height, "template": _TEMPLATE})


def warm_up() -> None:
    """Load plotly's classes, so that the first page with a chart does not wait for them."""
    layout = {"xaxis": {"range": [0, 1]}, "yaxis": {"range": [0, 1]}, "shapes": [{"type": "line"}]}
    traces = [
        go.Bar(x=[1], y=[1], marker={"color": "var(--read)"}),
        go.Scatter(x=[1], y=[1], line={"shape": "hv"}, marker={"size": [1]}),
        go.Indicator(value=1, mode="gauge+number", gauge={"axis": {"range": [0, 1]}}),
    ]
    build_figure(traces, layout, height=100).to_dict()


def tick_whole_numbers(count: int) -> dict[str, Any]:
    """Return the ticks of an axis of `count` calls or days."""
    return {"tickformat": ",d", **({"dtick": 1} if count <= MOST_SINGLE_TICKS else {})}


def escape_markup(text: str) -> str:
    """Escape text of people for a figure: plotly renders a few tags and entities, links among them."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
