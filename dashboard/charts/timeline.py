"""The timeline of a session: tokens per call, the lines, compactions, cache breaks, and sub-agents in lanes below."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any

from django.utils import timezone

from dashboard.chart_data import (
    Timeline,
    TimelineAxis,
    TimelineBreak,
    TimelineCall,
    TimelineCompaction,
    TimelineLine,
)
from dashboard.charts import Chart, Series, build_figure, escape_markup, tick_whole_numbers
from dashboard.charts.threshold_marks import (
    choose_top,
    draw_thresholds,
    is_beyond,
    label_thresholds,
    measure_labels,
    say_line,
)
from dashboard.words import say_size, say_tokens, say_usd

# (name, colour token, field of a call), from the bottom of the stack to its top
KINDS = (
    ("cache read", "read", "read_tokens"),
    ("written, 5 min", "write5m", "write_5m_tokens"),
    ("written, 1 h", "write1h", "write_1h_tokens"),
    ("uncached", "fresh", "uncached_tokens"),
    ("output", "output", "output_tokens"),
)
# One bar is one element of the page; beyond this a stack is five areas with steps, however many calls there are.
MOST_BAR_CALLS = 300
# The table in the page; a session of 5,000 calls would be 45,000 cells.
MOST_TABLE_ROWS = 200
MOST_LANES = 8
_MAIN_PIXELS, _LANE_PIXELS, _FRAME_PIXELS = 280, 22, 70
_SMALLEST_MARK, _LARGEST_MARK, _LARGEST_LANE_MARK = 9, 26, 16
_LEAST_LABEL_GAP = 0.1
# By time a context stands until the next call; the newest is drawn on by this share of the figure, so that it can be
# seen and clicked. A session of one call is a minute wide.
_NEWEST_SHARE, _ONLY_MILLISECONDS = 0.03, 60_000
_BEHIND_SHARE = 0.02
_COLUMNS = ("Call", "Time", "Agent", "Context", *(name.capitalize() for name, _, _ in KINDS), "Event")


def draw_timeline(
    chart_id: str, timeline: Timeline, *, axis: TimelineAxis = TimelineAxis.CALL, has_table: bool = True
) -> Chart:
    """Everything on one x axis. By time, calls whose time is not known are left out of the figure."""
    shown = [call for call in timeline.calls if axis is TimelineAxis.CALL or call.at is not None]
    main = [call for call in shown if call.agent is None]
    places = {call.key: find_place(call, axis) for call in shown}
    lanes = _name_lanes(shown)
    edge = 0.5 if axis is TimelineAxis.CALL else 0.0
    x = [places[call.key] for call in main]
    if axis is TimelineAxis.TIME and main:
        x.append(_find_end(places.values()))
    series = [
        *_stack_kinds(main, axis),
        *_mark_compactions(timeline.compactions, shown, places, edge=edge),
        *_mark_breaks(timeline.breaks, shown, lanes, places),
        *_draw_lanes(shown, lanes, places),
    ]
    top = choose_top(max((call.context_tokens for call in main), default=0), timeline.lines)
    lane_count = min(len(lanes), MOST_LANES)
    layout = _lay_out(axis, top, _label_lanes(lanes))
    if axis is TimelineAxis.CALL:
        layout["xaxis"] |= tick_whole_numbers(len(main)) | _range_calls(timeline.compactions, places)
    if timeline.lines:
        layout["margin"]["r"] = measure_labels(timeline.lines, top)
        layout["annotations"] = label_thresholds(timeline.lines, top)
    verticals = _draw_verticals(timeline.compactions, places, edge=edge)
    layout["shapes"] = [*draw_thresholds(timeline.lines, top), *verticals]
    listed = timeline.calls[-MOST_TABLE_ROWS:] if has_table else ()
    return Chart(
        chart_id,
        f"Context per call, in tokens: {len(timeline.calls):,} calls",
        build_figure(
            series,
            layout,
            height=_MAIN_PIXELS + _FRAME_PIXELS + _LANE_PIXELS * lane_count,
            shared={"x": x},
        ),
        _COLUMNS if has_table else (),
        _list_rows(listed, timeline),
        keys=tuple(call.key for call in listed),
        note=_say_left_out(timeline.calls, shown),
        legend=(*_list_marks(timeline, axis), *_list_lines(timeline.lines, top)),
    )


def mark_picked(figure: dict[str, Any], call: TimelineCall, axis: TimelineAxis) -> dict[str, Any]:
    """The same figure with a line through the call, as static/js/charts.js draws it where one is clicked."""
    if axis is TimelineAxis.TIME and call.at is None:
        return figure
    place, layout = find_place(call, axis), figure["layout"]
    line = {"color": "var(--ink)", "width": 1}
    mark = {"type": "line", "name": "picked", "x0": place, "x1": place, "y0": 0, "y1": 1, "yref": "paper", "line": line}
    return {**figure, "layout": {**layout, "shapes": [*layout.get("shapes", ()), mark]}}


def find_place(call: TimelineCall, axis: TimelineAxis) -> float:
    if axis is TimelineAxis.CALL or call.at is None:
        return call.place
    # Plotly shows times in UTC: the person's wall clock is handed over as if it were that.
    return round(timezone.localtime(call.at).replace(tzinfo=UTC).timestamp() * 1000)


def _range_calls(compactions: Sequence[TimelineCompaction], places: dict[str, float]) -> dict[str, Any]:
    """Whole calls, and room for the mark of a compaction behind the last one."""
    if not places:
        return {}
    first, last = round(min(places.values())), round(max(places.values()))
    behind = (last - first + 1) * _BEHIND_SHARE if any(one.is_behind for one in compactions) else 0
    return {"range": [first - 0.5, last + 0.5 + behind]}


def _find_end(places: Iterable[float]) -> float:
    """Of the newest call, which no other has ended yet."""
    known = list(places)
    first, last = min(known), max(known)
    return last + (round((last - first) * _NEWEST_SHARE) or _ONLY_MILLISECONDS)


def _stack_kinds(calls: Sequence[TimelineCall], axis: TimelineAxis) -> list[Series]:
    is_bars = axis is TimelineAxis.CALL and len(calls) <= MOST_BAR_CALLS
    drawn = [*calls, *calls[-1:]] if axis is TimelineAxis.TIME else calls
    series: list[Series] = []
    for name, token, field in KINDS:
        colour = f"var(--{token})"
        look: dict[str, Any] = {"name": name, "hovertemplate": "%{y:,}"}
        if is_bars:
            look |= {"type": "bar", "marker": {"color": colour, "line": {"width": 0}}}
        else:
            shape = "hvh" if axis is TimelineAxis.CALL else "hv"
            line = {"shape": shape, "width": 0, "color": colour}
            look |= {"type": "scatter", "mode": "lines", "stackgroup": "tokens", "line": line, "fillcolor": colour}
        columns = {"x": "=x", "y": [getattr(call, field) for call in drawn]}
        if not series:
            look["meta"] = "call"
            columns["customdata"] = [call.key for call in drawn]
        series.append(Series(look, columns))
    return series


def _mark_compactions(
    compactions: Sequence[TimelineCompaction],
    calls: Sequence[TimelineCall],
    places: dict[str, float],
    *,
    edge: float,
) -> list[Series]:
    """On their verticals."""
    by_key = {call.key: call for call in calls}
    known = [one for one in compactions if one.key in by_key]
    if not known:
        return []
    look = {
        "type": "scatter",
        "mode": "markers",
        "name": "compaction",
        "meta": "compaction",
        "marker": {"symbol": "triangle-down", "size": 10, "color": "var(--auto-fill)"},
        "hovertemplate": "%{text}<extra></extra>",
    }
    columns = {
        "x": [_stand(one, places, edge) for one in known],
        "y": [one.before_tokens for one in known],
        "text": [
            escape_markup(f"{_say_place(one, by_key[one.key])}: {say_change(one)}, {one.trigger}") for one in known
        ],
        "customdata": [one.key for one in known],
    }
    return [Series(look, columns)]


def _stand(one: TimelineCompaction, places: dict[str, float], edge: float) -> float:
    """Between two calls."""
    return places[one.key] + (edge if one.is_behind else -edge)


def _say_place(one: TimelineCompaction, call: TimelineCall) -> str:
    return f"compacted {'after' if one.is_behind else 'before'} {_name_call(call)}"


def _name_call(call: TimelineCall) -> str:
    """Numbers begin anew in every thread, so that of a sub-agent is named with it."""
    return f"call {call.number:,}" + (f" of {call.agent}" if call.agent else "")


def _mark_breaks(
    breaks: Sequence[TimelineBreak], calls: Sequence[TimelineCall], lanes: dict[str, int], places: dict[str, float]
) -> list[Series]:
    """Those of the main thread on top of their calls, those of sub-agents in the lanes of their own."""
    by_key = {call.key: call for call in calls}
    known = [(one, by_key[one.key]) for one in breaks if one.key in by_key]
    most = max((float(one.usd) for one, _ in known if one.usd is not None), default=0.0)
    own = [(one, call, call.context_tokens, _size_mark(one, most)) for one, call in known if call.agent is None]
    apart = [
        (one, call, lanes[call.agent], min(_size_mark(one, most), _LARGEST_LANE_MARK))
        for one, call in known
        if call.agent is not None
    ]
    return [*_draw_breaks(own, places), *_draw_breaks(apart, places, yaxis="y2")]


def _draw_breaks(
    marks: Sequence[tuple[TimelineBreak, TimelineCall, int, float]], places: dict[str, float], **look_of_axis: str
) -> list[Series]:
    """Each with its call, its height and its size."""
    if not marks:
        return []
    look = {
        "type": "scatter",
        "mode": "markers",
        "name": "cache break",
        "meta": "break",
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": "var(--loss)",
            "line": {"color": "var(--card)", "width": 1.5},
            "opacity": 1,
            "size": [size for *_, size in marks],
            "symbol": ["circle" if one.usd is not None else "circle-open-dot" for one, *_ in marks],
        },
        **look_of_axis,
    }
    columns = {
        "x": [places[one.key] for one, *_ in marks],
        "y": [height for _, _, height, _ in marks],
        "text": [
            escape_markup(f"cache break at {_name_call(call)}: {one.cause}, {say_usd(one.usd)}")
            for one, call, *_ in marks
        ],
        "customdata": [one.key for one, *_ in marks],
    }
    return [Series(look, columns)]


def _size_mark(one: TimelineBreak, most_usd: float) -> float:
    """The area grows with the dollars; an unknown amount has the smallest mark, and another shape."""
    if one.usd is None or most_usd <= 0:
        return _SMALLEST_MARK
    share = max(0.0, float(one.usd) / most_usd)
    return round(_SMALLEST_MARK + (_LARGEST_MARK - _SMALLEST_MARK) * math.sqrt(share), 1)


def _name_lanes(calls: Sequence[TimelineCall]) -> dict[str, int]:
    """Agents and their lanes in order of appearance; beyond the last lane they share it."""
    agents = list(dict.fromkeys(call.agent for call in calls if call.agent is not None))
    return {agent: min(place, MOST_LANES - 1) for place, agent in enumerate(agents)}


def _label_lanes(lanes: dict[str, int]) -> list[str]:
    names = [escape_markup(agent[:24]) for agent in lanes]
    if len(names) <= MOST_LANES:
        return names
    return [*names[: MOST_LANES - 1], f"{len(names) - MOST_LANES + 1:,} more"]


def _draw_lanes(calls: Sequence[TimelineCall], lanes: dict[str, int], places: dict[str, float]) -> list[Series]:
    told = [(call, lanes[call.agent]) for call in calls if call.agent is not None]
    if not told:
        return []
    most = max(call.context_tokens for call, _ in told) or 1
    look = {
        "type": "scatter",
        "mode": "markers",
        "name": "sub-agents",
        "yaxis": "y2",
        "meta": "call",
        "hovertemplate": "%{text}<extra></extra>",
    }
    columns = {
        "x": [places[call.key] for call, _ in told],
        "y": [lane for _, lane in told],
        "customdata": [call.key for call, _ in told],
        "text": [
            escape_markup(f"{call.agent}, call {call.number:,}: {say_tokens(call.context_tokens)}") for call, _ in told
        ],
        "marker": {
            "symbol": "line-ns",
            "line": {"color": "var(--write5m)", "width": 2},
            "size": [round(4 + 5 * call.context_tokens / most) for call, _ in told],
        },
    }
    return [Series(look, columns)]


def _draw_verticals(
    compactions: Sequence[TimelineCompaction], places: dict[str, float], *, edge: float
) -> list[dict[str, Any]]:
    """One line per compaction at the edge of its call, with "167k → 51k" where the label has room."""
    known = [(_stand(one, places, edge), one) for one in compactions if one.key in places]
    first, last = min(places.values(), default=0), max(places.values(), default=1)
    gap = (last - first) * _LEAST_LABEL_GAP
    shapes, labelled_at = [], float("-inf")
    for place, one in sorted(known, key=lambda pair: pair[0]):
        shape: dict[str, Any] = {
            "type": "line",
            "name": "compaction",
            "layer": "above",
            "x0": place,
            "x1": place,
            "y0": 0,
            "y1": 1,
            "yref": "y domain",
            "line": {"color": "var(--auto-fill)", "width": 1, "dash": "4px,3px"},
        }
        if place - labelled_at >= gap:
            labelled_at = place
            is_near_end = last - place < gap
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


def say_change(one: TimelineCompaction) -> str:
    """167k → 51k."""
    return f"{say_size(one.before_tokens)} → {say_size(one.after_tokens)}"


def _lay_out(axis: TimelineAxis, top_tokens: int, lanes: Sequence[str]) -> dict[str, Any]:
    x: dict[str, Any] = {"type": "date", "title": {"text": f"time, {timezone.get_current_timezone_name()}"}}
    if axis is TimelineAxis.CALL:
        x = {"type": "linear", "title": {"text": "call"}, "unifiedhovertitle": {"text": "call %{x:.0f}"}}
    layout: dict[str, Any] = {
        "barmode": "stack",
        "bargap": 0.08,
        "hovermode": "x unified",
        "dragmode": "zoom",
        "margin": {"t": 24},
        "xaxis": x,
        "yaxis": {"range": [0, top_tokens], "tickformat": "~s", "fixedrange": True},
    }
    if lanes:
        share = len(lanes) * _LANE_PIXELS / (_MAIN_PIXELS + len(lanes) * _LANE_PIXELS)
        x["anchor"] = "y2"
        layout["yaxis"]["domain"] = [share + 0.04, 1]
        layout["yaxis2"] = {
            "domain": [0, share],
            "range": [len(lanes) - 0.5, -0.5],
            "tickvals": list(range(len(lanes))),
            "ticktext": list(lanes),
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        }
    return layout


def _list_rows(calls: Sequence[TimelineCall], timeline: Timeline) -> tuple[tuple[str, ...], ...]:
    events: dict[str, list[str]] = {}
    for compaction in timeline.compactions:
        when = " after it" if compaction.is_behind else ""
        events.setdefault(compaction.key, []).append(f"compacted{when} {say_change(compaction)}")
    for one in timeline.breaks:
        events.setdefault(one.key, []).append(f"{one.cause}, {say_usd(one.usd)}")
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


def _say_left_out(calls: Sequence[TimelineCall], shown: Sequence[TimelineCall]) -> str:
    parts = []
    if len(calls) > MOST_TABLE_ROWS:
        parts.append(f"The table has the newest {MOST_TABLE_ROWS:,} of {len(calls):,} calls.")
    left_out = len(calls) - len(shown)
    if left_out:
        parts.append(f"The chart leaves out {left_out:,} {'call' if left_out == 1 else 'calls'} with unknown time.")
    return " ".join(parts)
