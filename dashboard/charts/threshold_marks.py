"""The lines of a window across a timeline: how high the figure must be to hold them, and labels that do not collide."""

from collections.abc import Sequence
from typing import Any

from compaction.context.thresholds import Lines, read_level
from dashboard.chart_data import TimelineLine
from dashboard.pages.gauge_bar import draw_gauge
from dashboard.words import say_size

_HEADROOM = 1.18
# Below this share of the lowest line the calls would be a thin strip at the foot of an empty figure.
_LEAST_SHARE_OF_LINE = 0.4
# Labels of lines closer than this share of the figure's height would lie on each other.
_LEAST_DISTANCE = 0.06
# Of the figure's width, for labels at its right end.
_LABEL_SHARE = 0.2


def list_lines(lines: Lines | None) -> tuple[TimelineLine, ...]:
    """The lines of the engine for a timeline, those that fall together as one; none when the window is not known."""
    if lines is None:
        return ()
    ticks = draw_gauge(lines, read_level(lines, 0)).ticks
    return tuple(TimelineLine(tick.name, tick.style, tick.tokens, is_dashed=tick.is_dashed) for tick in ticks)


def choose_top(highest_tokens: int, lines: Sequence[TimelineLine]) -> int:
    """The upper end of the axis: above the lines when the calls come near them, else just above the calls."""
    tokens = [line.tokens for line in lines]
    if not tokens or highest_tokens < min(tokens) * _LEAST_SHARE_OF_LINE:
        return max(1, round(highest_tokens * _HEADROOM))
    return round(max(highest_tokens, *tokens) * _HEADROOM)


def find_label_room(lines: Sequence[TimelineLine], top_tokens: int, heights: Sequence[int]) -> float:
    """How many calls' width to leave free at the right, so that labels do not lie on the last calls; 0 when these are
    lower than the labels."""
    if not lines or not heights:
        return 0.0
    lowest = min(line.tokens for line in lines)
    # Labels stand on their line, or hang from the top in as many rows as there are lines and one more.
    foot = lowest if lowest <= top_tokens else top_tokens * (1 - _LEAST_DISTANCE * (len(lines) + 1))
    last = heights[-max(1, round(len(heights) * _LABEL_SHARE)) :]
    return len(heights) * _LABEL_SHARE / (1 - _LABEL_SHARE) if max(last) > foot else 0.0


def draw_thresholds(lines: Sequence[TimelineLine], top_tokens: int) -> list[dict[str, Any]]:
    """One line each; labels of close neighbours stand above the highest of them. Lines beyond the figure are named."""
    if not lines:
        return []
    ordered = sorted(lines, key=lambda line: line.tokens)
    if ordered[0].tokens > top_tokens:
        words = ["above this figure:", *(_say_line(line) for line in reversed(ordered))]
        return [{**_stretch(top_tokens), "line": {"width": 0}, "label": _label(words, "top")}]
    shapes: list[dict[str, Any]] = []
    names: list[str] = []
    for place, line in enumerate(ordered):
        names.insert(0, _say_line(line))
        look = {"color": f"var(--{line.style}-fill)", "width": 1.5, "dash": "dash" if line.is_dashed else "solid"}
        shape = {**_stretch(line.tokens), "line": look}
        is_last = place + 1 == len(ordered)
        if is_last or ordered[place + 1].tokens - line.tokens > top_tokens * _LEAST_DISTANCE:
            shape["label"] = _label(names, "bottom")
            names = []
        shapes.append(shape)
    return shapes


def _stretch(tokens: int) -> dict[str, Any]:
    return {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "y0": tokens, "y1": tokens, "layer": "above"}


def _label(rows: Sequence[str], anchor: str) -> dict[str, Any]:
    look = {"textposition": "end", "xanchor": "right", "yanchor": anchor, "padding": 2}
    return {**look, "text": "<br>".join(rows), "font": {"color": "var(--ink-2)", "size": 11}}


def _say_line(line: TimelineLine) -> str:
    return f'<span style="color: var(--{line.style})">{line.name} {say_size(line.tokens)}</span>'
