"""The timeline: columns hold the calls, the hover names the one under it, marks stand in rows that can be read."""

from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest
from django.utils import timezone
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.chart_data import Timeline, TimelineAxis, TimelineBreak, TimelineCompaction
from dashboard.charts import Chart
from dashboard.charts.threshold_marks import list_lines
from dashboard.charts.timeline import MOST_TABLE_ROWS, TimelineView, chart_timeline
from dashboard.charts.timeline_columns import KINDS, MOST_BAR_CALLS, MOST_COLUMNS, Span
from dashboard.charts.timeline_marks import MOST_LANES, MOST_MARKS, MOST_VERTICALS
from dashboard.charts.timeline_range import read_range, write_range
from tests.dashboard.chart_builders import LONG, STARTED_AT, TIMELINE, find_trace, make_call

BY_TIME = TimelineView(TimelineAxis.TIME)


def list_rows(chart: Chart) -> list[str]:
    return list(chart.figure.layout.yaxis2.ticktext)


def list_shapes(chart: Chart, name: str) -> list[dict[str, Any]]:
    return [shape for shape in chart.serialize_figure()["layout"].get("shapes", []) if shape.get("name") == name]


@pytest.mark.parametrize("axis", TimelineAxis)
@settings(deadline=None, max_examples=25)
@given(counts=st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_tokens_of_the_main_thread_are_all_in_the_stack(axis: TimelineAxis, counts: list[int]) -> None:
    calls = tuple(make_call(number, count) for number, count in enumerate(counts, 1))
    timeline = Timeline((*calls, make_call(99, agent="explore")))
    chart = chart_timeline("calls", timeline, TimelineView(axis))
    # Steps end where the last one ends: its value is there twice.
    drawn = calls if axis is TimelineAxis.CALL else (*calls, calls[-1])
    for name, _, field in KINDS:
        assert sum(find_trace(chart, name)["y"]) == sum(getattr(call, field) for call in drawn)
    hover = find_trace(chart, "calls")
    assert [row[0] for row in hover["customdata"]] == [call.key for call in calls]
    assert [row[2] for row in hover["customdata"]] == [call.context_tokens for call in calls]


@pytest.mark.parametrize("axis", TimelineAxis)
@pytest.mark.parametrize("count", [5, MOST_BAR_CALLS, MOST_BAR_CALLS + 1, 3_000])
def test_columns_of_the_hover_lie_side_by_side_without_gaps(axis: TimelineAxis, count: int) -> None:
    calls = tuple(make_call(number) for number in range(1, count + 1))
    chart = chart_timeline("calls", Timeline(calls), TimelineView(axis))
    hover = find_trace(chart, "calls")
    widths, count_shown = hover["width"], len(hover["x"])
    widths = widths if isinstance(widths, list) else [widths] * count_shown
    assert hover["offset"] == (-widths[0] / 2 if len(set(widths)) == 1 else [-width / 2 for width in widths])
    starts = [x - width / 2 for x, width in zip(hover["x"], widths, strict=True)]
    ends = [x + width / 2 for x, width in zip(hover["x"], widths, strict=True)]
    assert starts[1:] == pytest.approx(ends[:-1])
    assert (starts[0], ends[-1]) == pytest.approx((0.5, count + 0.5)) or axis is TimelineAxis.TIME
    assert len(starts) <= MOST_COLUMNS


def test_column_of_many_calls_shows_the_one_with_the_largest_context() -> None:
    sizes = [10_000 + (number * 7_919) % 150_000 for number in range(3_000)]
    calls = tuple(make_call(number, size) for number, size in enumerate(sizes, 1))
    chart = chart_timeline("calls", Timeline(calls))
    by_key = {call.key: call for call in calls}
    hover, read = find_trace(chart, "calls"), find_trace(chart, "cache read")
    assert [by_key[row[0]].read_tokens for row in hover["customdata"]] == read["y"][:-1]
    assert read["y"][0] == max(sizes[:5])
    assert hover["customdata"][0][1].endswith(", the fullest of 1 to 5")
    assert chart.note.endswith("Each step shows the call with the largest context of up to 5 calls. Zoom in for more.")
    assert max(read["y"]) == max(sizes)


def test_zoomed_range_has_a_column_for_every_call() -> None:
    calls = tuple(make_call(number) for number in range(1, 20_001))
    timeline = Timeline(calls)
    chart = chart_timeline("calls", timeline, TimelineView(zoom=Span(8_000, 8_400)), has_table=False)
    hover = find_trace(chart, "calls")
    inside = [row[1] for row in hover["customdata"] if 8_000 <= row[-1] <= 8_400]
    assert inside == [f"call {number:,}" for number in range(8_000, 8_401)]
    assert len(hover["x"]) < 2 * MOST_COLUMNS
    assert chart.figure.layout.xaxis.range == (8_000, 8_400)
    assert chart.figure.layout.meta["full"] == [0.5, 20_000.5]
    assert chart.note == ""


def test_hover_names_what_happened_at_a_call_and_marks_do_not_hide_it() -> None:
    (first, second, last) = find_trace(chart_timeline("calls", TIMELINE), "calls")["customdata"]
    assert first[1:3] == ["call 1", 21_000]
    assert second[8] == "<br>Tools changed, $0.64"
    assert last[8] == "<br>compacted 161k → 51k<br>Not known, unknown"
    figure = chart_timeline("calls", TIMELINE).figure
    assert {trace.hoverinfo for trace in figure.data if trace.name in {name for name, _, _ in KINDS}} == {"skip"}
    assert figure.layout.hovermode == "closest"


def test_calls_of_sub_agents_have_rows_of_their_own() -> None:
    chart = chart_timeline("calls", TIMELINE)
    lane = find_trace(chart, "call of a sub-agent")
    assert (lane["x"], lane["y"], lane["customdata"], lane["yaxis"]) == ([3], [2], ["call-3"], "y2")
    assert list_rows(chart) == ["cache breaks", "compactions", "explore"]


def test_agents_beyond_the_last_row_share_it() -> None:
    calls = tuple(make_call(number, agent=f"agent-{number}") for number in range(1, MOST_LANES + 3))
    chart = chart_timeline("calls", Timeline(calls))
    assert max(find_trace(chart, "call of a sub-agent")["y"]) == MOST_LANES - 1
    assert list_rows(chart)[-1] == "3 more"


def test_break_grows_with_its_dollars_and_an_unknown_amount_has_another_shape() -> None:
    costs = [Decimal("0.01"), Decimal("0.25"), Decimal(1), None]
    breaks = tuple(TimelineBreak(f"call-{number}", usd, "Tools changed") for number, usd in enumerate(costs, 1))
    calls = tuple(make_call(number) for number in range(1, 5))
    marks = find_trace(chart_timeline("calls", Timeline(calls, breaks=breaks)), "cache break")
    sizes, symbols = marks["marker"]["size"], marks["marker"]["symbol"]
    assert sizes[:3] == sorted(sizes[:3])
    assert sizes[0] < sizes[2]
    assert sizes[3] == min(sizes)
    assert symbols == ["circle", "circle", "circle", "circle-open-dot"]
    assert marks["text"][3] == "cache break at call 4: Tools changed, unknown"


def test_breaks_of_sub_agents_are_named_with_them() -> None:
    calls = (make_call(1), make_call(2, agent="explore"))
    breaks = tuple(TimelineBreak(f"call-{number}", Decimal(number), "Tools changed") for number in (1, 2))
    marks = find_trace(chart_timeline("calls", Timeline(calls, breaks=breaks)), "cache break")
    assert (marks["customdata"], marks["y"]) == (["call-1", "call-2"], [0, 0])
    assert marks["text"][1] == "cache break at call 2 of explore: Tools changed, $2.00"


def test_crowded_breaks_share_marks_that_add_up() -> None:
    calls = tuple(make_call(number) for number in range(1, 1_001))
    breaks = tuple(TimelineBreak(call.key, Decimal(1), "Tools changed") for call in calls)
    marks = find_trace(chart_timeline("calls", Timeline(calls, breaks=breaks)), "cache break")
    assert len(marks["x"]) == MOST_MARKS
    assert sum(int(text.split()[0]) for text in marks["text"]) == len(breaks)
    assert marks["text"][0].startswith("25 cache breaks lost $25.00; the most expensive:<br>cache break at call ")
    zoomed = TimelineView(zoom=Span(100.5, 130.5))
    near = find_trace(chart_timeline("calls", Timeline(calls, breaks=breaks), zoomed), "cache break")
    assert sum(100 < x <= 130 for x in near["x"]) == 30


def test_compaction_is_a_labelled_vertical_before_its_call() -> None:
    chart = chart_timeline("calls", TIMELINE)
    (vertical,) = list_shapes(chart, "compaction")
    assert (vertical["x0"], vertical["x1"], vertical["label"]["text"]) == (3.5, 3.5, "161k → 51k")
    mark = find_trace(chart, "compaction")
    assert (mark["x"], mark["customdata"]) == ([3.5], ["call-4"])
    assert mark["text"] == ["compacted before call 4: 161k → 51k, auto"]


@pytest.mark.parametrize("axis", list(TimelineAxis))
def test_compaction_that_no_call_followed_is_a_vertical_behind_the_last(axis: TimelineAxis) -> None:
    calls = tuple(make_call(number) for number in (1, 2))
    newest = TimelineCompaction("call-2", 161_000, None, "auto", is_behind=True)
    chart = chart_timeline("calls", Timeline(calls, compactions=(newest,)), TimelineView(axis))
    (vertical,) = list_shapes(chart, "compaction")
    last = find_trace(chart, "calls")["customdata"][1][-1]
    edge = 0.5 if axis is TimelineAxis.CALL else 0
    assert (vertical["x0"], vertical["label"]["text"]) == (last + edge, "161k → unknown")
    assert find_trace(chart, "compaction")["x"] == [last + edge]
    assert chart.rows[1][-1] == "compacted after it 161k → unknown"


def test_labels_of_compactions_keep_their_distance() -> None:
    calls = tuple(make_call(number) for number in range(1, 101))
    crowd = tuple(TimelineCompaction(f"call-{number}", 167_000, 51_000, "auto") for number in range(3, 101, 3))
    shapes = list_shapes(chart_timeline("calls", Timeline(calls, compactions=crowd)), "compaction")
    assert len(shapes) == len(crowd)
    labelled = [shape for shape in shapes if "label" in shape]
    edges = [(shape["x0"], shape["label"]["xanchor"]) for shape in labelled]
    spans = [(x - 19, x) if anchor == "right" else (x, x + 19) for x, anchor in edges]
    assert len(spans) == 4
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_too_many_compactions_have_no_verticals_but_marks() -> None:
    calls = tuple(make_call(number) for number in range(1, 1_001))
    crowd = tuple(TimelineCompaction(f"call-{number}", 167_000, 51_000, "auto") for number in range(2, 1_001, 20))
    assert len(crowd) > MOST_VERTICALS
    chart = chart_timeline("calls", Timeline(calls, compactions=crowd))
    assert list_shapes(chart, "compaction") == []
    assert 0 < len(find_trace(chart, "compaction")["x"]) <= MOST_MARKS


def test_few_calls_are_bars_and_many_are_steps_without_gaps() -> None:
    few = chart_timeline("calls", Timeline(tuple(make_call(number) for number in range(MOST_BAR_CALLS))))
    many = chart_timeline("calls", Timeline(tuple(make_call(number) for number in range(MOST_BAR_CALLS + 1))))
    assert {trace.type for trace in few.figure.data} == {"bar"}
    steps = find_trace(many, "cache read")
    assert (steps["type"], steps["line"]["shape"], steps["stackgroup"]) == ("scatter", "hv", "tokens")
    assert steps["x"] == [number - 0.5 for number in range(MOST_BAR_CALLS + 2)]


def test_calls_without_a_time_are_left_out_by_time_and_that_is_said() -> None:
    timeline = Timeline((make_call(1), make_call(2, at=None)))
    by_time = chart_timeline("calls", timeline, BY_TIME)
    assert find_trace(by_time, "cache read")["x"][0] == round((STARTED_AT.timestamp() + 60) * 1000)
    assert by_time.note == "The chart leaves out 1 call with unknown time."
    assert by_time.rows[1][1] == "unknown"
    assert chart_timeline("calls", timeline).note == ""


def test_times_are_the_wall_clock_of_the_person() -> None:
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        chart = chart_timeline("calls", Timeline((make_call(1),)), BY_TIME)
    assert find_trace(chart, "cache read")["x"][0] == round((STARTED_AT.timestamp() + 60 + 9 * 3600) * 1000)
    assert chart.figure.layout.xaxis.title.text == "time, Asia/Tokyo"
    assert chart.figure.layout.meta["zone"] == "Asia/Tokyo"
    assert chart.rows[0][1] == "2026-03-14 18:01:00 JST"


def test_twenty_thousand_calls_stay_small() -> None:
    calls = tuple(make_call(number, 150_000 + number, key=f"{90_000_000 + number}") for number in range(20_000))
    chart = chart_timeline("calls", Timeline(calls, list_lines(LONG)))
    assert len(orjson.dumps(chart.serialize_figure())) < 110_000
    assert len(chart.rows) == len(chart.keys) == MOST_TABLE_ROWS
    assert chart.rows[-1][0] == "19,999"
    assert chart.note.startswith("The table has the newest 200 of 20,000 calls.")


@pytest.mark.parametrize(("count", "ticks"), [(2, 1), (12, 1), (13, None)])
def test_ticks_of_calls_are_whole_numbers(count: int, ticks: int | None) -> None:
    calls = tuple(make_call(number) for number in range(1, count + 1))
    axis = chart_timeline("calls", Timeline(calls)).serialize_figure()["layout"]["xaxis"]
    assert (axis["tickformat"], axis.get("dtick"), axis["range"]) == (",d", ticks, [0.5, count + 0.5])


@pytest.mark.parametrize("view", [TimelineView(picked="call-2"), TimelineView(TimelineAxis.TIME, picked="call-2")])
def test_picked_call_is_marked_where_it_lies(view: TimelineView) -> None:
    chart = chart_timeline("calls", TIMELINE, view)
    (mark,) = list_shapes(chart, "picked")
    assert mark["x0"] == mark["x1"] == find_trace(chart, "calls")["customdata"][1][-1]
    assert list_shapes(chart_timeline("calls", TIMELINE), "picked") == []


def test_call_without_a_place_is_not_marked() -> None:
    timeline = Timeline((make_call(1), make_call(2, at=None)))
    chart = chart_timeline("calls", timeline, TimelineView(TimelineAxis.TIME, picked="call-2"))
    assert list_shapes(chart, "picked") == []


def test_range_of_an_address_is_read_back_as_it_was_written() -> None:
    assert read_range({"from": "9.5", "to": "12.25"}, TimelineAxis.CALL) == Span(9.5, 12.25)
    assert write_range(Span(9.5, 12.25), TimelineAxis.CALL) == [9.5, 12.25]
    start, end = write_range(Span(1_773_478_860_500, 1_773_482_460_000), TimelineAxis.TIME)
    assert (start, end) == ("2026-03-14 09:01:00.500", "2026-03-14 10:01:00.000")
    asked = {"from": start, "to": end, "zone": "UTC"}
    assert read_range(asked, TimelineAxis.TIME) == Span(1_773_478_860_500, 1_773_482_460_000)


def test_range_of_a_link_from_another_zone_is_the_same_time() -> None:
    asked = {"from": "2026-03-14 18:00:00", "to": "2026-03-14 19:00:00", "zone": "Asia/Tokyo"}
    with timezone.override(ZoneInfo("Europe/Berlin")):
        span = read_range(asked, TimelineAxis.TIME)
        assert span is not None
        assert write_range(span, TimelineAxis.TIME) == ["2026-03-14 10:00:00.000", "2026-03-14 11:00:00.000"]


@pytest.mark.parametrize("axis", list(TimelineAxis))
@pytest.mark.parametrize(
    ("start", "end"),
    [("", ""), ("5", ""), ("12", "9"), ("nan", "nan"), ("-inf", "inf"), ("x", "y"), ("1e300", "2e300"), ("\0", "1")],
)
def test_address_without_a_range_shows_everything(axis: TimelineAxis, start: str, end: str) -> None:
    assert read_range({"from": start, "to": end}, axis) is None


@pytest.mark.parametrize("zone", ["", "no/zone", "../../etc/passwd", "America"])
def test_unknown_zone_of_an_address_is_that_of_the_reader(zone: str) -> None:
    asked = {"from": "2026-03-14 18:00", "to": "2026-03-14 19:00", "zone": zone}
    assert read_range(asked, TimelineAxis.TIME) == Span(1_773_511_200_000, 1_773_514_800_000)


def test_times_at_the_end_of_the_calendar_are_no_range() -> None:
    asked = {"from": "0001-01-01 00:00", "to": "9999-12-31 23:59", "zone": "Asia/Tokyo"}
    with timezone.override(ZoneInfo("America/Los_Angeles")):
        assert read_range(asked, TimelineAxis.TIME) is None
