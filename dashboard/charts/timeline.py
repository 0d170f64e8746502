"""The timeline of a session: tokens per call, thresholds, compactions, cache breaks, and sub-agents in rows below."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from dashboard.chart_data import Timeline, TimelineAxis, TimelineCall, TimelineLine
from dashboard.charts import Chart, build_figure, escape_markup, tick_whole_numbers
from dashboard.charts.copied_calls import shade_copies
from dashboard.charts.threshold_marks import (
    choose_top,
    draw_thresholds,
    is_beyond,
    label_thresholds,
    measure_labels,
    say_line,
)
from dashboard.charts.timeline_columns import (
    KINDS,
    MOST_BAR_CALLS,
    Column,
    Span,
    build_columns,
    chart_hover,
    chart_kinds,
    find_full_span,
    find_position,
)
from dashboard.charts.timeline_marks import (
    BREAKS_ROW,
    COMPACTIONS_ROW,
    MOST_MARKS,
    MOST_VERTICALS,
    MarkContext,
    chart_breaks,
    chart_compactions,
    chart_lanes,
    draw_verticals,
    list_rows,
    say_change,
)
from dashboard.charts.timeline_range import write_range
from dashboard.words import say_usd

# The table in the page; a session of 5,000 calls would be 45,000 cells.
MOST_TABLE_ROWS = 200
_MAIN_PIXELS, _ROW_PIXELS, _FRAME_PIXELS = 280, 22, 70
_BEHIND_SHARE = 0.02
_COLUMNS = ("Call", "Time", "Agent", "Context", *(name.capitalize() for name, _, _ in KINDS), "Event")


@dataclass(frozen=True, slots=True)
class TimelineView:
    """What a reader asked for: the axis, the zoomed range, the picked call. `copies`: keys of calls shown as copies."""

    axis: TimelineAxis = TimelineAxis.CALL
    zoom: Span | None = None
    picked: str | None = None
    copies: Collection[str] = ()


def chart_timeline(
    chart_id: str, timeline: Timeline, view: TimelineView | None = None, *, has_table: bool = True
) -> Chart:
    """Return everything on one x axis. By time, calls whose time is not known are left out of the figure."""
    view = view or TimelineView()
    shown = [call for call in timeline.calls if view.axis is TimelineAxis.CALL or call.at is not None]
    main = [call for call in shown if call.agent is None]
    positions = {call.key: find_position(call, view.axis) for call in shown}
    calls_span = find_full_span(list(positions.values()), view.axis)
    full = _add_room(calls_span, timeline, view.axis)
    columns = build_columns(main, view.axis, calls_span, view.zoom)
    marking = MarkContext(
        {call.key: call for call in shown},
        positions,
        view.zoom or full,
        0.5 if view.axis is TimelineAxis.CALL else 0.0,
    )
    top = choose_top(max((call.context_tokens for call in main), default=0), timeline.lines)
    rows = list_rows(timeline, shown)
    traces = [
        *chart_kinds(columns, view.axis, is_bars=len(main) <= MOST_BAR_CALLS),
        *_chart_rows(timeline, shown, marking, rows),
        chart_hover(columns, view.axis, top, _list_escaped_events(timeline)),
    ]
    layout = _lay_out(view.axis, top, rows)
    layout["xaxis"] |= {"range": write_range(view.zoom or full, view.axis)}
    layout["xaxis"] |= dict(zip(("minallowed", "maxallowed"), write_range(full, view.axis), strict=True))
    if view.axis is TimelineAxis.CALL:
        layout["xaxis"] |= tick_whole_numbers(round((view.zoom or full).width))
    if timeline.lines:
        layout["margin"]["r"] = measure_labels(timeline.lines, top)
        layout["annotations"] = label_thresholds(timeline.lines, top)
    layout["shapes"] = [
        *shade_copies(shown, view.copies, view.axis),
        *draw_thresholds(timeline.lines, top),
        *draw_verticals(timeline.compactions, marking),
        *_mark_picked(view.picked, positions),
    ]
    layout["meta"] = {
        "full": write_range(full, view.axis),
        "zoom": write_range(view.zoom, view.axis) if view.zoom else None,
        "zone": timezone.get_current_timezone_name() if view.axis is TimelineAxis.TIME else None,
        "picked": view.picked,
        "refines": _refines(timeline, columns),
    }
    visible = [column for column in columns if marking.visible.holds(column.start)]
    listed = timeline.calls[-MOST_TABLE_ROWS:] if has_table else ()
    return Chart(
        chart_id,
        f"Context per call, in tokens: {len(timeline.calls):,} calls",
        build_figure(traces, layout, height=_MAIN_PIXELS + _FRAME_PIXELS + _ROW_PIXELS * len(rows)),
        _COLUMNS if has_table else (),
        _list_rows(listed, timeline),
        keys=tuple(call.key for call in listed),
        note=_say_left_out(timeline.calls, shown, visible, has_table=has_table),
        legend=(*_list_marks(timeline, view.axis), *_list_lines(timeline.lines, top)),
        is_zoomable=True,
    )


def _add_room(calls: Span, timeline: Timeline, axis: TimelineAxis) -> Span:
    """Return the range with room for the mark of a compaction behind the last call."""
    if axis is TimelineAxis.TIME or not any(one.is_behind for one in timeline.compactions):
        return calls
    return Span(calls.start, calls.end + calls.width * _BEHIND_SHARE)


def _refines(timeline: Timeline, columns: Sequence[Column]) -> bool:
    """Whether a figure of a zoomed range shows more than the whole one does there."""
    return (
        any(column.calls > 1 for column in columns)
        or len(timeline.breaks) > MOST_MARKS
        or len(timeline.compactions) > min(MOST_VERTICALS, 4)
    )


def _chart_rows(
    timeline: Timeline, calls: Sequence[TimelineCall], marking: MarkContext, rows: Sequence[str]
) -> list[Any]:
    traces = []
    if BREAKS_ROW in rows[:1]:
        traces.append(chart_breaks(timeline.breaks, marking, 0))
    if COMPACTIONS_ROW in rows[:2]:
        traces.append(chart_compactions(timeline.compactions, marking, rows.index(COMPACTIONS_ROW)))
    return [*traces, *chart_lanes(calls, marking, len(traces))]


def _mark_picked(picked: str | None, positions: dict[str, float]) -> list[dict[str, Any]]:
    """Return a line through the picked call, as static/js/charts.js draws it where one is clicked."""
    if picked is None or picked not in positions:
        return []
    x = positions[picked]
    line = {"color": "var(--ink)", "width": 1}
    return [{"type": "line", "name": "picked", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}]


def _lay_out(axis: TimelineAxis, top_tokens: int, rows: Sequence[str]) -> dict[str, Any]:
    spike = {"showspikes": True, "spikemode": "across", "spikesnap": "hovered data", "spikethickness": 1}
    x: dict[str, Any] = {**spike, "spikedash": "solid", "spikecolor": "var(--ink-3)"}
    if axis is TimelineAxis.CALL:
        x |= {"type": "linear", "title": {"text": "call"}}
    else:
        x |= {"type": "date", "title": {"text": f"time, {timezone.get_current_timezone_name()}"}}
    layout: dict[str, Any] = {
        "barmode": "stack",
        "hovermode": "closest",
        "dragmode": "zoom",
        "margin": {"t": 24},
        "xaxis": x,
        "yaxis": {"range": [0, top_tokens], "tickformat": "~s", "fixedrange": True},
    }
    if rows:
        share = len(rows) * _ROW_PIXELS / (_MAIN_PIXELS + len(rows) * _ROW_PIXELS)
        x["anchor"] = "y2"
        layout["yaxis"]["domain"] = [share + 0.04, 1]
        layout["yaxis2"] = {
            "domain": [0, share],
            "range": [len(rows) - 0.5, -0.5],
            "tickvals": list(range(len(rows))),
            "ticktext": list(rows),
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
            "automargin": True,
        }
    return layout


def _list_events(timeline: Timeline) -> dict[str, list[str]]:
    """Return what happened at calls, by key."""
    events: dict[str, list[str]] = {}
    for compaction in timeline.compactions:
        when = " after it" if compaction.is_behind else ""
        events.setdefault(compaction.key, []).append(f"compacted{when} {say_change(compaction)}")
    for one in timeline.breaks:
        events.setdefault(one.key, []).append(f"{one.cause}, {say_usd(one.usd)}")
    return events


def _list_escaped_events(timeline: Timeline) -> dict[str, list[str]]:
    return {key: list(map(escape_markup, words)) for key, words in _list_events(timeline).items()}


def _list_rows(calls: Sequence[TimelineCall], timeline: Timeline) -> tuple[tuple[str, ...], ...]:
    events = _list_events(timeline)
    return tuple(
        (
            f"{call.number:,}",
            f"{timezone.localtime(call.at):%Y-%m-%d %H:%M:%S %Z}" if call.at else "unknown",
            call.agent or "",
            f"{call.context_tokens:,}",
            *(f"{getattr(call, field):,}" for _, _, field in KINDS),
            "; ".join(events.get(call.key, [])),
        )
        for call in calls
    )


def _list_marks(timeline: Timeline, axis: TimelineAxis) -> tuple[tuple[str, str], ...]:
    has_agents = any(call.agent is not None for call in timeline.calls)
    where = ", below the call it followed" if axis is TimelineAxis.CALL else ""
    marks = (
        ("compacted", "compaction", bool(timeline.compactions)),
        ("broken", "cache break, sized by cost", bool(timeline.breaks)),
        ("lane", f"call of a sub-agent{where}", has_agents),
    )
    kinds = tuple((token, name) for name, token, _ in KINDS)
    return (*kinds, *((style, words) for style, words, is_there in marks if is_there))


def _list_lines(lines: Sequence[TimelineLine], top_tokens: int) -> list[tuple[str, str]]:
    """They are named in the figure where it is wide enough, else in the legend: static/css/chart.css."""
    where = ", above this chart" if is_beyond(lines, top_tokens) else ""
    return [(f"line {line.style}", f"{say_line(line)}{where}") for line in reversed(lines)]


def _say_left_out(
    calls: Sequence[TimelineCall], shown: Sequence[TimelineCall], columns: Sequence[Column], *, has_table: bool
) -> str:
    parts = []
    if has_table and len(calls) > MOST_TABLE_ROWS:
        parts.append(f"The table has the newest {MOST_TABLE_ROWS:,} of {len(calls):,} calls.")
    left_out = len(calls) - len(shown)
    if left_out:
        parts.append(f"The chart leaves out {left_out:,} {'call' if left_out == 1 else 'calls'} with unknown time.")
    most = max((column.calls for column in columns), default=1)
    if most > 1:
        parts.append(f"Each step shows the call with the largest context of up to {most:,} calls. Zoom in for more.")
    return " ".join(parts)
