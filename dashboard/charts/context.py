"""Figures about one context: how full it is among its lines, and what it is made of."""

from collections.abc import Callable, Iterator, Sequence

import plotly.graph_objects as go

from compaction.context.thresholds import Lines, Reading
from dashboard.chart_data import ContextPart
from dashboard.charts import Chart, build_figure, escape_markup
from dashboard.pages.gauge_bar import draw_gauge
from dashboard.words import join_words, say_tokens

# More areas than this in one part cannot be read; the smaller ones are put together.
_SMALLEST_TEXT = 10
_LARGEST_PARTS = 12
_LONGEST_NAME = 28
_DEPTH_COLOURS = ("var(--sunken)", "var(--accent-soft)", "var(--raised)")


def _find_number_format(tokens: int) -> str:
    """As `say_tokens` has it. d3 counts digits from the first: so many before the point, one or two behind it."""
    behind = 0 if tokens < 1000 else 1 if tokens < 1_000_000 else 2
    return f".{(len(str(tokens)) - 1) % 3 + 1 + behind}s"


def chart_indicator(
    chart_id: str, lines: Lines, reading: Reading, *, is_estimated: bool = False, is_small: bool = False
) -> Chart:
    """How full a window is, with one step from each line to the next; lines that fall together are one step. A small
    one has no figures on its axis."""
    bar = draw_gauge(lines, reading)
    mark = "~" if is_estimated else ""
    end = max(lines.window.tokens, reading.used_tokens)
    ends = [*(tick.tokens for tick in bar.ticks[1:]), end]
    steps = [
        {"range": [tick.tokens, upper], "color": f"var(--{tick.style}-fill)"}
        for tick, upper in zip(bar.ticks, ends, strict=True)
    ]
    axis_look = {"showticklabels": False, "ticks": ""} if is_small else {}
    indicator = go.Indicator(
        mode="gauge+number",
        value=reading.used_tokens,
        number={
            "prefix": mark,
            "valueformat": _find_number_format(reading.used_tokens),
            "font": {"color": "var(--ink)", "size": 16 if is_small else 24},
        },
        gauge={
            "shape": "angular",
            "axis": {"range": [0, end], "tickformat": "~s", "tickcolor": "var(--line)", "nticks": 6} | axis_look,
            "bar": {"color": "var(--ink)", "thickness": 0.3},
            "bgcolor": "var(--line)",
            "borderwidth": 0,
            "steps": steps,
        },
    )
    named = [*((tick.name, tick.tokens) for tick in bar.ticks), ("window", lines.window.tokens)]
    rows = (("used", f"{mark}{reading.used_tokens:,}"), *((name, f"{tokens:,}") for name, tokens in named))
    layout = {"margin": {"l": 8, "r": 8, "t": 4, "b": 4} if is_small else {"l": 40, "r": 40, "t": 28, "b": 8}}
    title = f"Context and thresholds: {mark}{say_tokens(reading.used_tokens)}, {bar.level_words}"
    figure = build_figure([indicator], layout, height=84 if is_small else 200)
    return Chart(chart_id, title, figure, ("Threshold", "Tokens"), rows, has_downloads=False)


def chart_composition(chart_id: str, parts: Sequence[ContextPart]) -> Chart:
    """What a context is made of, by area: category, then tool, then file."""
    areas = list(_list_areas(_build_tree(parts), parent=""))
    colours = [_DEPTH_COLOURS[area_id.count("/")] for area_id, _, _, _ in areas]
    treemap = go.Treemap(
        branchvalues="total",
        ids=[area_id for area_id, _, _, _ in areas],
        parents=[area_id.rpartition("/")[0] for area_id, _, _, _ in areas],
        labels=[escape_markup(_shorten(name)) for _, name, _, _ in areas],
        values=[tokens for _, _, tokens, _ in areas],
        customdata=[escape_markup(path) for _, _, _, path in areas],
        texttemplate="%{label}<br>%{value:.3s}",
        hovertemplate="%{customdata}: %{value:,} tokens, %{percentRoot:.0%}<extra></extra>",
        marker={"colors": colours, "line": {"color": "var(--edge)", "width": 1}},
        textfont={"color": "var(--ink)", "size": 13},
        tiling={"pad": 2},
        pathbar={"visible": False},
    )
    # Areas too small for their words are told by their colour and on hover.
    layout = {"uniformtext": {"mode": "hide", "minsize": _SMALLEST_TEXT}}
    figure = build_figure([treemap], layout, height=320)
    named: list[tuple[str, Callable[[ContextPart], str]]] = [
        ("Category", lambda part: part.category),
        ("Tool", lambda part: part.tool or ""),
        ("Tokens", lambda part: f"{part.tokens:,}"),
    ]
    if any(part.file for part in parts):
        named.insert(2, ("File", lambda part: part.file or ""))
    rows = tuple(tuple(say(part) for _, say in named) for part in sorted(parts, key=lambda part: -part.tokens))
    return Chart(chart_id, "Context composition", figure, tuple(name for name, _ in named), rows)


class _Node:
    """A part of the tree: its own tokens and its children by name."""

    def __init__(self) -> None:
        self.own_tokens = 0
        self.children: dict[str, _Node] = {}

    @property
    def tokens(self) -> int:
        return self.own_tokens + sum(child.tokens for child in self.children.values())


def _build_tree(parts: Sequence[ContextPart]) -> _Node:
    root = _Node()
    for part in parts:
        node = root
        for name in (part.category, part.tool, part.file):
            if name is not None:
                node = node.children.setdefault(name, _Node())
        node.own_tokens += part.tokens
    return root


def _list_areas(node: _Node, *, parent: str, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str, int, str]]:
    """(id, name, tokens, words for the hover) of all parts below a node, largest first. Ids are places, not names."""
    named = sorted(node.children.items(), key=lambda pair: -pair[1].tokens)
    for place, (name, child) in enumerate(named[:_LARGEST_PARTS]):
        area_id = f"{parent}/{place}" if parent else str(place)
        words = (*path, name)
        yield area_id, name, child.tokens, ", ".join(words)
        yield from _list_areas(child, parent=area_id, path=words)
    if smaller := named[_LARGEST_PARTS:]:
        area_id = f"{parent}/more" if parent else "more"
        total = sum(child.tokens for _, child in smaller)
        yield area_id, f"{len(smaller):,} more", total, join_words((*path, f"{len(smaller):,} smaller ones"))


def _shorten(path: str) -> str:
    """A file by its last part: the whole path is in the hover."""
    name = path.rstrip("/").rpartition("/")[2] or path
    return name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1 :]}"
