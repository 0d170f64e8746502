"""Columns of the timeline: one per call, or one per run of calls where there are more calls than a screen can show."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any, NamedTuple

import plotly.graph_objects as go
from django.utils import timezone

from dashboard.chart_data import TimelineAxis, TimelineCall

# (name, colour token, field of a call), from the bottom of the stack to its top
KINDS = (
    ("cache read", "read", "read_tokens"),
    ("written, 5 min", "write5m", "write_5m_tokens"),
    ("written, 1 h", "write1h", "write_1h_tokens"),
    ("uncached", "fresh", "uncached_tokens"),
    ("output", "output", "output_tokens"),
)
# Bars have gaps between them, which differ by a pixel where bars are thin; more calls are steps without gaps.
MOST_BAR_CALLS = 50
_BAR_WIDTH = 0.85
# About as many as a figure has pixels to show them in.
MOST_COLUMNS = 600
# Beside a zoomed range, for panning, and beyond that: seen only while a finer figure is on its way.
_MOST_BESIDE, _MOST_BEYOND = 150, 50
# By time a context lasts until the next call; the newest is drawn on by this share of the figure, so that it can be
# seen and clicked. A session of one call is a minute wide.
_NEWEST_SHARE, _ONLY_MILLISECONDS = 0.03, 60_000


class Span(NamedTuple):
    """A range on the x axis."""

    start: float
    end: float

    @property
    def width(self) -> float:
        return self.end - self.start

    def pad(self) -> "Span":
        """Return the range with as much again on either side, so that panning finds something."""
        return Span(self.start - self.width, self.end + self.width)

    def holds(self, position: float) -> bool:
        return self.start <= position <= self.end


class Column(NamedTuple):
    """Consecutive calls drawn as one: the call with the largest context represents them."""

    call: TimelineCall
    first: TimelineCall
    last: TimelineCall
    calls: int
    start: float
    end: float


def find_position(call: TimelineCall, axis: TimelineAxis) -> float:
    """Return the position of a call on the x axis: its number, or milliseconds."""
    if axis is TimelineAxis.CALL or call.at is None:
        return call.place
    # Plotly shows times in UTC, so the wall clock of the viewer's zone is passed as if it were UTC.
    return round(timezone.localtime(call.at).replace(tzinfo=UTC).timestamp() * 1000)


def find_full_span(positions: Sequence[float], axis: TimelineAxis) -> Span:
    """Return the range that holds all calls."""
    if not positions:
        return Span(0, 1)
    first, last = min(positions), max(positions)
    if axis is TimelineAxis.CALL:
        return Span(round(first) - 0.5, round(last) + 0.5)
    return Span(first, last + (round((last - first) * _NEWEST_SHARE) or _ONLY_MILLISECONDS))


def build_columns(
    calls: Sequence[TimelineCall], axis: TimelineAxis, full: Span, zoom: Span | None = None
) -> list[Column]:
    """Group calls into at most `MOST_COLUMNS` columns in the visible range, and fewer outside of it."""
    if not calls:
        return []
    edge = 0.5 if axis is TimelineAxis.CALL else 0
    # The clocks of clients jump.
    placed = sorted(((find_position(call, axis) - edge, call) for call in calls), key=lambda pair: pair[0])
    starts = [start for start, _ in placed]
    runs = [run for section, most in _list_sections(starts, zoom) for run in _cut(section, most)]
    ends = [*(starts[run.start] for run in runs[1:]), full.end]
    return [
        _build_column([call for _, call in placed[run.start : run.stop]], starts[run.start], end)
        for run, end in zip(runs, ends, strict=True)
    ]


def _list_sections(starts: Sequence[float], zoom: Span | None) -> Iterator[tuple[range, int]]:
    """Yield parts of the calls from left to right, each with the most columns it may have."""
    if zoom is None:
        yield range(len(starts)), MOST_COLUMNS
        return
    beside = zoom.pad()
    # The column that begins before the range reaches into it.
    inside = max(0, bisect_left(starts, zoom.start) - 1), bisect_right(starts, zoom.end)
    near = min(inside[0], bisect_left(starts, beside.start)), bisect_right(starts, beside.end)
    yield range(near[0]), _MOST_BEYOND
    yield range(near[0], inside[0]), _MOST_BESIDE
    yield range(*inside), MOST_COLUMNS
    yield range(inside[1], near[1]), _MOST_BESIDE
    yield range(near[1], len(starts)), _MOST_BEYOND


def _cut(section: range, most: int) -> Iterator[range]:
    size = max(1, -(-len(section) // most))
    for start in range(section.start, section.stop, size):
        yield range(start, min(start + size, section.stop))


def _build_column(calls: Sequence[TimelineCall], start: float, end: float) -> Column:
    fullest = max(calls, key=lambda call: call.context_tokens) if len(calls) > 1 else calls[0]
    return Column(fullest, calls[0], calls[-1], len(calls), start, end)


def chart_kinds(columns: Sequence[Column], axis: TimelineAxis, *, is_bars: bool) -> list[Any]:
    """Return the stack of tokens by kind: bars for few calls, steps without gaps for many."""
    if is_bars and axis is TimelineAxis.CALL:
        return [
            go.Bar(
                name=name,
                x=[column.call.place for column in columns],
                y=[getattr(column.call, field) for column in columns],
                width=_BAR_WIDTH,  # the columns for the hover would halve it
                marker={"color": f"var(--{token})", "line": {"width": 0}},
                hoverinfo="skip",
            )
            for name, token, field in KINDS
        ]
    drawn = [*columns, *columns[-1:]]
    x = [*(column.start for column in columns), *(column.end for column in columns[-1:])]
    return [
        go.Scatter(
            name=name,
            x=x,
            y=[getattr(column.call, field) for column in drawn],
            mode="lines",
            stackgroup="tokens",
            line={"shape": "hv", "width": 0, "color": f"var(--{token})"},
            fillcolor=f"var(--{token})",
            hoverinfo="skip",
        )
        for name, token, field in KINDS
    ]


def chart_hover(columns: Sequence[Column], axis: TimelineAxis, top_tokens: int, events: dict[str, list[str]]) -> Any:
    """Return invisible bars as high as the figure, one per column: the pointer is always over exactly one of them.

    The stack itself cannot do this: plotly finds the nearest corner of a step, not the step under the pointer.
    """
    widths = [column.end - column.start for column in columns]
    is_even = len(set(widths)) == 1
    squares = "".join(
        f'<br><span style="color:var(--{token})">■</span> {name} %{{customdata[{index}]:,}}'
        for index, (name, token, _) in enumerate(KINDS, 3)
    )
    return go.Bar(
        name="calls",
        meta="call",
        x=[(column.start + column.end) / 2 for column in columns],
        width=widths[0] if is_even else widths,
        offset=-widths[0] / 2 if is_even else [-width / 2 for width in widths],
        base=0,  # without it they would stand on the bars of few calls, and only the space above would answer
        y=[top_tokens] * len(columns),
        marker={"color": "rgba(0,0,0,0)", "line": {"width": 0}},
        customdata=[_describe(column, axis, events) for column in columns],
        hovertemplate=(
            f"<b>%{{customdata[1]}}</b><br>context %{{customdata[2]:,}}{squares}%{{customdata[8]}}<extra></extra>"
        ),
        showlegend=False,
    )


def _describe(column: Column, axis: TimelineAxis, events: dict[str, list[str]]) -> list[Any]:
    call = column.call
    name = f"call {call.number:,}"
    if column.calls > 1:
        name += f", the fullest of {column.first.number:,} to {column.last.number:,}"
    happened = "".join(f"<br>{words}" for words in events.get(call.key, []))
    counts = [getattr(call, field) for _, _, field in KINDS]
    return [call.key, name, call.context_tokens, *counts, happened, find_position(call, axis)]
