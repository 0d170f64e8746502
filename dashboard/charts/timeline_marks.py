"""Marks of the timeline: compactions across the figure, and rows below it for cache breaks, compactions, sub-agents."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import plotly.graph_objects as go

from dashboard.chart_data import Timeline, TimelineBreak, TimelineCall, TimelineCompaction
from dashboard.charts import escape_markup
from dashboard.charts.timeline_columns import Span
from dashboard.words import say_size, say_tokens, say_usd

MOST_LANES = 8
# More marks in one row would run together; neighbours then share one mark.
MOST_MARKS, MOST_LANE_MARKS = 40, 120
# More verticals than this would hide the calls.
MOST_VERTICALS = 40
# Of the figure's width: as much as the label of a compaction needs beside the next one.
_LEAST_LABEL_GAP = 0.19
_SMALLEST_MARK, _LARGEST_MARK = 6, 14
BREAKS_ROW, COMPACTIONS_ROW = "cache breaks", "compactions"


class Mark(NamedTuple):
    """Something at a call: its position, its key, its words; `weight` decides which of several neighbours is shown."""

    position: float
    key: str
    text: str
    weight: float
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class MarkContext:
    """Positions of all calls by key, the visible range, and the distance of a compaction from its call."""

    calls: dict[str, TimelineCall]
    positions: dict[str, float]
    visible: Span
    edge: float

    def place_compaction(self, one: TimelineCompaction) -> float:
        """Return the position between two calls."""
        return self.positions[one.key] + (self.edge if one.is_behind else -self.edge)


def list_rows(timeline: Timeline, calls: Sequence[TimelineCall]) -> list[str]:
    """Return the names of the rows below the figure, from the top."""
    keys = {call.key for call in calls}
    names = []
    if any(one.key in keys for one in timeline.breaks):
        names.append(BREAKS_ROW)
    if any(one.key in keys for one in timeline.compactions):
        names.append(COMPACTIONS_ROW)
    agents = list(dict.fromkeys(call.agent for call in calls if call.agent is not None))
    lanes = [escape_markup(agent[:24]) for agent in agents]
    if len(lanes) > MOST_LANES:
        lanes = [*lanes[: MOST_LANES - 1], f"{len(lanes) - MOST_LANES + 1:,} more"]
    return [*names, *lanes]


def chart_breaks(breaks: Sequence[TimelineBreak], marking: MarkContext, row: int) -> Any:
    """Return the cache breaks as circles whose area grows with the dollars."""
    marks = [
        Mark(marking.positions[one.key], one.key, describe_break(one, marking.calls[one.key]), _weigh(one), _usd(one))
        for one in breaks
        if one.key in marking.positions
    ]
    shown = _share_marks(marks, marking.visible, MOST_MARKS, _describe_breaks)
    most = max((mark.usd for mark in shown if mark.usd is not None), default=0.0)
    return go.Scatter(
        name="cache break",
        meta="break",
        mode="markers",
        yaxis="y2",
        x=[mark.position for mark in shown],
        y=[row] * len(shown),
        text=[mark.text for mark in shown],
        customdata=[mark.key for mark in shown],
        hovertemplate="%{text}<extra></extra>",
        marker={
            "color": "var(--loss)",
            "line": {"color": "var(--card)", "width": 1},
            "opacity": 1,
            "size": [_size_mark(mark.usd, most) for mark in shown],
            "symbol": ["circle" if mark.usd is not None else "circle-open-dot" for mark in shown],
        },
    )


def chart_compactions(compactions: Sequence[TimelineCompaction], marking: MarkContext, row: int) -> Any:
    marks = [
        Mark(
            marking.place_compaction(one),
            one.key,
            describe_compaction(one, marking.calls[one.key]),
            one.before_tokens,
        )
        for one in compactions
        if one.key in marking.positions
    ]
    shown = _share_marks(marks, marking.visible, MOST_MARKS, lambda run: f"{len(run):,} compactions, one of them:")
    return go.Scatter(
        name="compaction",
        meta="compaction",
        mode="markers",
        yaxis="y2",
        x=[mark.position for mark in shown],
        y=[row] * len(shown),
        text=[mark.text for mark in shown],
        customdata=[mark.key for mark in shown],
        hovertemplate="%{text}<extra></extra>",
        marker={"symbol": "triangle-down", "size": 10, "color": "var(--auto-fill)"},
    )


def chart_lanes(calls: Sequence[TimelineCall], marking: MarkContext, first_row: int) -> list[Any]:
    """Return the calls of sub-agents as ticks, one row for each agent; those beyond the last row share it."""
    agents = list(dict.fromkeys(call.agent for call in calls if call.agent is not None))
    lanes = {agent: min(index, MOST_LANES - 1) for index, agent in enumerate(agents)}
    marks: list[tuple[int, Mark]] = []
    for lane in sorted(set(lanes.values())):
        own = [
            Mark(
                marking.positions[call.key],
                call.key,
                escape_markup(f"{call.agent}, call {call.number:,}: {say_tokens(call.context_tokens)}"),
                call.context_tokens,
            )
            for call in calls
            if call.agent is not None and lanes[call.agent] == lane
        ]
        shown = _share_marks(own, marking.visible, MOST_LANE_MARKS, lambda run: f"{len(run):,} calls, the fullest:")
        marks += [(first_row + lane, mark) for mark in shown]
    if not marks:
        return []
    most = max(mark.weight for _, mark in marks) or 1
    return [
        go.Scatter(
            name="call of a sub-agent",
            meta="call",
            mode="markers",
            yaxis="y2",
            x=[mark.position for _, mark in marks],
            y=[row for row, _ in marks],
            text=[mark.text for _, mark in marks],
            customdata=[mark.key for _, mark in marks],
            hovertemplate="%{text}<extra></extra>",
            marker={
                "symbol": "line-ns",
                "line": {"color": "var(--write5m)", "width": 2},
                "size": [round(4 + 5 * mark.weight / most) for _, mark in marks],
            },
        )
    ]


def draw_verticals(compactions: Sequence[TimelineCompaction], marking: MarkContext) -> list[dict[str, Any]]:
    """Return one line per compaction at the edge of its call, with "167k → 51k" where the label has room."""
    known = [(marking.place_compaction(one), one) for one in compactions if one.key in marking.positions]
    near = sorted((pair for pair in known if marking.visible.pad().holds(pair[0])), key=lambda pair: pair[0])
    if sum(marking.visible.holds(position) for position, _ in near) > MOST_VERTICALS:
        return []
    gap = marking.visible.width * _LEAST_LABEL_GAP
    shapes, free_from = [], float("-inf")
    for position, one in near:
        shape: dict[str, Any] = {
            "type": "line",
            "name": "compaction",
            "layer": "above",
            "x0": position,
            "x1": position,
            "y0": 0,
            "y1": 1,
            "yref": "y domain",
            "line": {"color": "var(--auto-fill)", "width": 1, "dash": "4px,3px"},
        }
        is_near_end = marking.visible.end - position < gap
        starts = position - gap if is_near_end else position
        if starts >= free_from and marking.visible.holds(position):
            free_from = starts + gap
            shape["label"] = {
                "text": say_change(one),
                "textposition": "end",
                "textangle": 0,
                "xanchor": "right" if is_near_end else "left",
                "yanchor": "bottom",
                "font": {"color": "var(--auto)", "size": 11},
            }
        shapes.append(shape)
    return shapes


def describe_break(one: TimelineBreak, call: TimelineCall) -> str:
    return escape_markup(f"cache break at {_name_call(call)}: {one.cause}, {say_usd(one.usd)}")


def describe_compaction(one: TimelineCompaction, call: TimelineCall) -> str:
    where = "after" if one.is_behind else "before"
    return escape_markup(f"compacted {where} {_name_call(call)}: {say_change(one)}, {one.trigger}")


def say_change(one: TimelineCompaction) -> str:
    """Return such as "167k → 51k"."""
    return f"{say_size(one.before_tokens)} → {say_size(one.after_tokens)}"


def _name_call(call: TimelineCall) -> str:
    """Every thread counts its own calls, so that of a sub-agent is named with it."""
    return f"call {call.number:,}" + (f" of {call.agent}" if call.agent else "")


def _share_marks(
    marks: Sequence[Mark], visible: Span, most: int, describe: Callable[[Sequence[Mark]], str]
) -> list[Mark]:
    """Return the marks in and around the visible range; where there are too many, neighbours share one."""
    near = sorted((mark for mark in marks if visible.pad().holds(mark.position)), key=lambda mark: mark.position)
    if sum(visible.holds(mark.position) for mark in near) <= most:
        return near
    return list(_merge_runs(near, visible.width / most, visible.start, describe))


def _merge_runs(
    marks: Sequence[Mark], width: float, start: float, describe: Callable[[Sequence[Mark]], str]
) -> Iterator[Mark]:
    for _, group in groupby(marks, lambda mark: math.floor((mark.position - start) / width)):
        run = list(group)
        heaviest = max(run, key=lambda mark: mark.weight)
        if len(run) == 1:
            yield heaviest
            continue
        known = [mark.usd for mark in run if mark.usd is not None]
        total = sum(known) if known else None
        yield heaviest._replace(text=f"{describe(run)}<br>{heaviest.text}", usd=total)


def _describe_breaks(run: Sequence[Mark]) -> str:
    known = [mark.usd for mark in run if mark.usd is not None]
    cost = f" lost ${sum(known):,.2f}" if known else " of unknown cost"
    return f"{len(run):,} cache breaks{cost}; the most expensive:"


def _size_mark(usd: float | None, most_usd: float) -> float:
    """The area grows with the dollars; an unknown amount has the smallest mark, and another shape."""
    if usd is None or most_usd <= 0:
        return _SMALLEST_MARK
    share = max(0.0, usd / most_usd)
    return round(_SMALLEST_MARK + (_LARGEST_MARK - _SMALLEST_MARK) * math.sqrt(share), 1)


def _usd(one: TimelineBreak) -> float | None:
    return None if one.usd is None else float(one.usd)


def _weigh(one: TimelineBreak) -> float:
    return -1.0 if one.usd is None else float(one.usd)
