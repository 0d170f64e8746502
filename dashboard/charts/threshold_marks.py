"""The lines of a window across a timeline: how high the figure must be to hold them, and labels that do not collide."""

from collections.abc import Sequence
from typing import Any

from compaction.context.thresholds import Thresholds, classify_usage
from dashboard.chart_data import TimelineLine
from dashboard.pages.gauge_bar import draw_gauge
from dashboard.words import say_size

_HEADROOM = 1.18
# Below this share of the lowest line the calls would be a thin strip at the foot of an empty figure.
_LEAST_SHARE_OF_LINE = 0.4
# One row of a label, as a share of the figure's height.
_ROW_SHARE = 0.055
_ABOVE = "above this chart:"
_LABEL_SIZE, _CHARACTER_PIXELS, _LABEL_GAP_PIXELS = 11, 6.6, 6


def list_lines(lines: Thresholds | None) -> tuple[TimelineLine, ...]:
    """The lines of the engine for a timeline, those that fall together as one; none when the window is not known."""
    if lines is None:
        return ()
    ticks = draw_gauge(lines, classify_usage(lines, 0)).ticks
    return tuple(TimelineLine(tick.name, tick.style, tick.tokens, is_dashed=tick.is_dashed) for tick in ticks)


def choose_top(highest_tokens: int, lines: Sequence[TimelineLine]) -> int:
    """The upper end of the axis: above the lines when the calls come near them, else just above the calls."""
    tokens = [line.tokens for line in lines]
    if not tokens or highest_tokens < min(tokens) * _LEAST_SHARE_OF_LINE:
        return max(1, round(highest_tokens * _HEADROOM))
    return round(max(highest_tokens, *tokens) * _HEADROOM)


def draw_thresholds(lines: Sequence[TimelineLine], top_tokens: int) -> list[dict[str, Any]]:
    """One line each; none where they lie beyond the figure."""
    return [
        {
            "type": "line",
            "xref": "x domain",
            "x0": 0,
            "x1": 1,
            "y0": line.tokens,
            "y1": line.tokens,
            "layer": "above",
            "line": {
                "color": f"var(--{line.style}-fill)",
                "width": 1.5,
                "dash": "dash" if line.is_dashed else "solid",
            },
        }
        for line in lines
        if line.tokens <= top_tokens
    ]


def label_thresholds(lines: Sequence[TimelineLine], top_tokens: int) -> list[dict[str, Any]]:
    """Names in the margin at the right, beside their lines, where no call can lie below them. Those of close neighbours
    stand in one stack, those of lines beyond the figure at its top."""
    if not lines:
        return []
    if is_beyond(lines, top_tokens):
        rows = [_ABOVE, *(_colour(line) for line in sorted(lines, key=_by_tokens, reverse=True))]
        return [_label(rows, {"yref": "y domain", "y": 1, "yanchor": "top"})]
    return [
        _label(
            [_colour(line) for line in reversed(stack)], {"yref": "y", "y": _find_middle(stack), "yanchor": "middle"}
        )
        for stack in _stack_neighbours(lines, top_tokens)
    ]


def measure_labels(lines: Sequence[TimelineLine], top_tokens: int) -> int:
    """The margin that they need, in pixels."""
    words = [say_line(line) for line in lines] + ([_ABOVE] if is_beyond(lines, top_tokens) else [])
    return round(max(map(len, words), default=0) * _CHARACTER_PIXELS) + 2 * _LABEL_GAP_PIXELS


def is_beyond(lines: Sequence[TimelineLine], top_tokens: int) -> bool:
    """Whether even the lowest line lies above the figure."""
    return all(line.tokens > top_tokens for line in lines)


def say_line(line: TimelineLine) -> str:
    return f"{line.name} {say_size(line.tokens)}"


def _stack_neighbours(lines: Sequence[TimelineLine], top_tokens: int) -> list[list[TimelineLine]]:
    """From the lowest: stacks, each beside the middle of its lines, that do not touch."""
    row_tokens = top_tokens * _ROW_SHARE
    stacks: list[list[TimelineLine]] = []
    for line in sorted(lines, key=_by_tokens):
        stacks.append([line])
        while len(stacks) > 1 and _touch(stacks[-2], stacks[-1], row_tokens):
            stacks[-2:] = [stacks[-2] + stacks[-1]]
    return stacks


def _touch(lower: Sequence[TimelineLine], upper: Sequence[TimelineLine], row_tokens: float) -> bool:
    return _find_middle(upper) - _find_middle(lower) < row_tokens * (len(lower) + len(upper)) / 2


def _find_middle(stack: Sequence[TimelineLine]) -> float:
    return (stack[0].tokens + stack[-1].tokens) / 2


def _by_tokens(line: TimelineLine) -> int:
    return line.tokens


def _label(rows: Sequence[str], place: dict[str, Any]) -> dict[str, Any]:
    return {
        **place,
        "name": "line",
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "xshift": _LABEL_GAP_PIXELS,
        "align": "left",
        "borderpad": 0,
        "showarrow": False,
        "text": "<br>".join(rows),
        "font": {"color": "var(--ink-2)", "size": _LABEL_SIZE},
    }


def _colour(line: TimelineLine) -> str:
    return f'<span style="color: var(--{line.style})">{say_line(line)}</span>'
