"""Treemap of one context: category, then tool, then file, by estimated tokens."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from dashboard.chart_data import ContextPart
from dashboard.charts import Chart, build_figure, escape_markup
from dashboard.words import join_words, say_percent, say_tokens

_TEXT_PIXELS = 12
_LARGEST_PARTS = 12  # more areas than this in one part cannot be read; the smaller ones are put together
_LONGEST_NAME = 36
_LONGEST_LINE = 18
_WORD = re.compile(r"[^_\-. ]+[_\-. ]*|[_\-. ]+")
_OTHER = "part-other"
# Names of tokens in static/css/tokens.css; each is readable behind text. What else is in a context shares one colour.
_STYLES = {
    "tool results": "part-results",
    "tool requests": "part-requests",
    "system and tools": "part-system",
    "assistant text": "part-assistant",
    "thinking": "part-thinking",
    "user text": "part-user",
    "summary": "part-summary",
    "attachments": "part-attachments",
}


@dataclass(frozen=True)
class _Area:
    """One area of the treemap. The id holds places, not names; `full_name` is for the hover."""

    id: str
    name: str
    full_name: str
    tokens: int
    style: str
    is_leaf: bool


def chart_composition(chart_id: str, parts: Sequence[ContextPart]) -> Chart:
    """Return the treemap of a context with one colour per category, and a legend with their sums."""
    areas = list(_list_areas(_build_tree(parts), parent=""))
    total = sum(part.tokens for part in parts)
    treemap = go.Treemap(
        branchvalues="total",
        ids=[area.id for area in areas],
        parents=[area.id.rpartition("/")[0] for area in areas],
        labels=[_write_label(area, total) for area in areas],
        values=[area.tokens for area in areas],
        customdata=[escape_markup(area.full_name) for area in areas],
        textinfo="label",
        hovertemplate="%{customdata}: ~%{value:,} tokens, %{percentRoot:.0%}<extra></extra>",
        marker={
            "colors": [f"var(--{area.style})" for area in areas],
            "line": {"color": "var(--card)", "width": 2},
            "pad": {"t": 22, "l": 4, "r": 4, "b": 4},
        },
        textfont={"color": "var(--ink)", "size": _TEXT_PIXELS},
        tiling={"pad": 0},
        pathbar={"visible": False},
    )
    # Text that does not fit is hidden: the legend, the hover and the table have the same.
    layout = {"uniformtext": {"mode": "hide", "minsize": _TEXT_PIXELS}, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}}
    figure = build_figure([treemap], layout, height=420)
    columns, rows = _list_rows(parts, total)
    return Chart(chart_id, "Context composition", figure, columns, rows, legend=_list_legend(areas, total))


def _list_legend(areas: Sequence[_Area], total: int) -> tuple[tuple[str, str], ...]:
    return tuple((area.style, f"{area.name} {_write_size(area.tokens, total)}") for area in areas if "/" not in area.id)


def _list_rows(parts: Sequence[ContextPart], total: int) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return columns and rows of the table, largest first; files have a column only where some are named."""
    named: list[tuple[str, Callable[[ContextPart], str]]] = [
        ("Category", lambda part: part.category),
        ("Tool", lambda part: part.tool or ""),
        ("Tokens", lambda part: f"~{part.tokens:,}"),
        ("Share", lambda part: say_percent(part.tokens / total if total else 0)),
    ]
    if any(part.file for part in parts):
        named.insert(2, ("File", lambda part: part.file or ""))
    largest_first = sorted(parts, key=lambda part: -part.tokens)
    return tuple(name for name, _ in named), tuple(tuple(write(part) for _, write in named) for part in largest_first)


def _write_label(area: _Area, total: int) -> str:
    """The name and the size: below each other, or in one line above the areas inside."""
    size = _write_size(area.tokens, total)
    name = _shorten(area.name)
    if not area.is_leaf:
        return f"{escape_markup(name)} {size}"
    return "<br>".join((*map(escape_markup, _wrap(name)), size))


def _wrap(name: str) -> list[str]:
    """Break a long name after its separators."""
    lines = [""]
    for word in _WORD.findall(name):
        if lines[-1] and len(lines[-1] + word) > _LONGEST_LINE:
            lines.append("")
        lines[-1] += word
    return lines


def _write_size(tokens: int, total: int) -> str:
    return f"~{say_tokens(tokens)} · {say_percent(tokens / total if total else 0)}"


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


def _list_areas(node: _Node, *, parent: str, path: tuple[str, ...] = ()) -> Iterator[_Area]:
    """All areas below a node, largest first."""
    children = sorted(node.children.items(), key=lambda pair: -pair[1].tokens)
    for place, (name, child) in enumerate(children[:_LARGEST_PARTS]):
        area_id = f"{parent}/{place}" if parent else str(place)
        own_path = (*path, name)
        style = _STYLES.get(own_path[0], _OTHER)
        yield _Area(area_id, name, ", ".join(own_path), child.tokens, style, is_leaf=not child.children)
        yield from _list_areas(child, parent=area_id, path=own_path)
    if smaller := children[_LARGEST_PARTS:]:
        area_id = f"{parent}/more" if parent else "more"
        tokens = sum(child.tokens for _, child in smaller)
        full_name = join_words((*path, f"{len(smaller):,} smaller ones"))
        style = _STYLES.get(path[0], _OTHER) if path else _OTHER
        yield _Area(area_id, f"{len(smaller):,} more", full_name, tokens, style, is_leaf=True)


def _shorten(path: str) -> str:
    """A file by its last part: the whole path is in the hover."""
    name = path.rstrip("/").rpartition("/")[2] or path
    return name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME + 1 :]}"
