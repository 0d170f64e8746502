"""The frame of every figure: theme and the table behind it. Figures are plain values in the words of plotly.js.

The plotly package checks them in tests; importing it here would cost a web process a second and every page 5 ms.
Colours are names of CSS tokens, such as var(--ok-fill); static/js/charts.js reads their values in the theme shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

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
        },
        # Shown where fingers zoom: static/js/charts.js.
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "var(--ink-3)", "activecolor": "var(--ink)"},
        # Plotly's own legend takes half of a narrow figure and does not move when the page is resized.
        "showlegend": False,
    }
}


# Up to so many calls or days every one has its tick: plotly would put others halfway between. static/js/charts.js does
# the same for the part that is zoomed to.
MOST_SINGLE_TICKS = 12


@dataclass(frozen=True)
class Chart:
    """A figure and the table behind it; the first column names the row, the others hold numbers.

    `keys` has one entry per row where a row can be picked; `note` tells what the table leaves out; `legend` holds the
    class of a swatch and its words.
    """

    id: str
    title: str
    figure: dict[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: tuple[str, ...] = ()
    note: str = ""
    legend: tuple[tuple[str, str], ...] = ()

    @property
    def height_pixels(self) -> int:
        """Kept free in the page before the script draws, so that nothing jumps."""
        height: int = self.figure["layout"]["height"]
        return height

    @property
    def figure_id(self) -> str:
        return f"{self.id}-figure"

    @property
    def keyed_rows(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every row with its key, empty where rows cannot be picked."""
        keys = self.keys or ("",) * len(self.rows)
        return list(zip(keys, self.rows, strict=True))


@dataclass(frozen=True)
class Series:
    """One trace: what it looks like, and its columns, which may be long.

    A column given as "=name" stands for one of the figure's shared columns.
    """

    look: dict[str, Any]
    columns: dict[str, Any] = field(default_factory=dict)


def build_figure(
    series: Sequence[Series], layout: dict[str, Any], *, height: int, shared: dict[str, list[Any]] | None = None
) -> dict[str, Any]:
    """A figure for static/js/charts.js."""
    figure: dict[str, Any] = {
        "data": [one.look | one.columns for one in series],
        "layout": {**layout, "height": height, "template": _TEMPLATE},
    }
    if shared:
        figure["shared"] = shared
    return figure


def tick_whole_numbers(count: int) -> dict[str, Any]:
    """For an axis of calls or days by number."""
    return {"tickformat": ",d", **({"dtick": 1} if count <= MOST_SINGLE_TICKS else {})}


def escape_markup(text: str) -> str:
    """Text of people for a figure: plotly reads a few tags and entities in every text, links among them."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
