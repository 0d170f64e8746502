"""Figures: what went in comes out, plotly knows every property, colours are tokens, tables hold the numbers."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import plotly.graph_objects as go
import pytest
from django.utils import timezone
from django.utils.html import json_script
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.policy import Policy, Preset
from compaction.context.thresholds import Lines, draw_lines, read_level
from compaction.context.windows import ModelInUse
from dashboard.chart_data import (
    ContextPart,
    DaySpend,
    GroupLoss,
    Timeline,
    TimelineAxis,
    TimelineBreak,
    TimelineCall,
    TimelineCompaction,
    TimelineLine,
)
from dashboard.charts import Chart
from dashboard.charts.compactions import DayCompactions, chart_compactions_per_day
from dashboard.charts.context import draw_composition, draw_indicator
from dashboard.charts.money import draw_loss_by_group, draw_spend_per_day
from dashboard.charts.threshold_marks import (
    choose_top,
    draw_thresholds,
    label_thresholds,
    list_lines,
    measure_labels,
)
from dashboard.charts.timeline import (
    KINDS,
    MOST_BAR_CALLS,
    MOST_LANES,
    MOST_TABLE_ROWS,
    draw_timeline,
    mark_picked,
)
from dashboard.templatetags.drawings import figure

TOKENS = (Path(__file__).parents[2] / "static" / "css" / "tokens.css").read_text()
STARTED_AT = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


def lines_of(preset: Preset, model: str) -> Lines:
    lines = draw_lines(Policy.from_preset(preset), ModelInUse(model))
    assert lines is not None
    return lines


SHORT, LONG = lines_of(Preset.EARLY, "claude-opus-4-5"), lines_of(Preset.CLIENT, "claude-opus-5-5")


def make_call(number: int, read_tokens: int = 20_000, **changes: Any) -> TimelineCall:
    values: dict[str, Any] = {
        "place": number,
        "number": number,
        "at": STARTED_AT + timedelta(minutes=number),
        "context_tokens": read_tokens + 1_000,
        "read_tokens": read_tokens,
        "write_5m_tokens": 700,
        "write_1h_tokens": 200,
        "uncached_tokens": 12,
        "output_tokens": 88,
        "agent": None,
        "key": f"call-{number}",
    }
    return TimelineCall(**(values | changes))


TIMELINE = Timeline(
    (make_call(1), make_call(2, 160_000), make_call(3, 9_000, agent="explore"), make_call(4, 51_000)),
    list_lines(SHORT),
    (TimelineCompaction("call-4", 161_000, 51_000, "auto"),),
    (TimelineBreak("call-2", Decimal("0.64"), "Tools changed"), TimelineBreak("call-4", None, "Not known")),
)
CHARTS = (
    draw_timeline("calls", TIMELINE),
    draw_timeline("times", TIMELINE, axis=TimelineAxis.TIME),
    draw_timeline("empty", Timeline(())),
    draw_spend_per_day("days", [DaySpend(date(2026, 3, 1), Decimal("40.25"), Decimal("6.5"))]),
    draw_loss_by_group("causes", [GroupLoss("Tools changed", 3, Decimal(5), Decimal(4))]),
    draw_composition("parts", [ContextPart("tool results", 900, "Read", "a.py"), ContextPart("prompts", 100)]),
    draw_indicator("gauge", SHORT, read_level(SHORT, 171_400)),
    chart_compactions_per_day(
        "compactions",
        [
            DayCompactions(date(2026, 3, 1), 5, 4, Decimal("71.5")),
            DayCompactions(date(2026, 3, 2), 0, 0, None),
            DayCompactions(date(2026, 3, 3), 1, 0, None),
        ],
    ),
)


def find_trace(chart: Chart, name: str) -> dict[str, Any]:
    return next(trace for trace in chart.figure["data"] if trace["name"] == name)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.id)
def test_every_colour_is_a_token_that_exists(chart: Chart) -> None:
    drawn = json.dumps(chart.figure)
    named = set(re.findall(r"var\((--[\w-]+)\)", drawn))
    assert named
    assert [name for name in named if f"{name}:" not in TOKENS] == []
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", drawn) == []


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.id)
def test_plotly_accepts_the_whole_figure_with_its_columns(chart: Chart) -> None:
    shared = chart.figure.get("shared", {})
    data = [
        {key: shared[value[1:]] if isinstance(value, str) and value[:1] == "=" else value for key, value in one.items()}
        for one in chart.figure["data"]
    ]
    assert len(go.Figure(data, layout=chart.figure["layout"]).data) == len(data)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.id)
def test_every_row_of_a_table_has_all_its_columns(chart: Chart) -> None:
    assert {len(row) for row in chart.rows} <= {len(chart.columns)}
    assert len(chart.keyed_rows) == len(chart.rows)


@pytest.mark.parametrize("axis", TimelineAxis)
@settings(deadline=None, max_examples=25)
@given(counts=st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_tokens_of_the_main_thread_are_all_in_the_stack(axis: TimelineAxis, counts: list[int]) -> None:
    calls = tuple(make_call(number, count) for number, count in enumerate(counts, 1))
    chart = draw_timeline("calls", Timeline((*calls, make_call(99, agent="explore"))), axis=axis)
    # By time the newest call is told twice: where it begins, and up to where it is drawn.
    drawn = calls if axis is TimelineAxis.CALL else (*calls, calls[-1])
    for name, _, field in KINDS:
        assert sum(find_trace(chart, name)["y"]) == sum(getattr(call, field) for call in drawn)
    x = chart.figure["shared"]["x"]
    assert len(x) == len(drawn)
    assert x == sorted(set(x))
    assert find_trace(chart, "cache read")["customdata"] == [call.key for call in drawn]


def test_calls_of_sub_agents_are_in_lanes_of_their_own() -> None:
    lane = find_trace(CHARTS[0], "sub-agents")
    assert (lane["x"], lane["y"], lane["customdata"], lane["yaxis"]) == ([3], [0], ["call-3"], "y2")
    assert CHARTS[0].figure["layout"]["yaxis2"]["ticktext"] == ["explore"]


def test_agents_beyond_the_last_lane_share_it() -> None:
    calls = tuple(make_call(number, agent=f"agent-{number}") for number in range(1, MOST_LANES + 3))
    chart = draw_timeline("calls", Timeline(calls))
    assert max(find_trace(chart, "sub-agents")["y"]) == MOST_LANES - 1
    assert chart.figure["layout"]["yaxis2"]["ticktext"][-1] == "3 more"


def test_break_grows_with_its_dollars_and_an_unknown_amount_has_another_shape() -> None:
    costs = [Decimal("0.01"), Decimal("0.25"), Decimal(1), None]
    breaks = tuple(TimelineBreak(f"call-{number}", usd, "Tools changed") for number, usd in enumerate(costs, 1))
    calls = tuple(make_call(number) for number in range(1, 5))
    marks = find_trace(draw_timeline("calls", Timeline(calls, breaks=breaks)), "cache break")
    sizes, symbols = marks["marker"]["size"], marks["marker"]["symbol"]
    assert sizes[:3] == sorted(sizes[:3])
    assert sizes[0] < sizes[2]
    assert sizes[3] == min(sizes)
    assert symbols == ["circle", "circle", "circle", "circle-open-dot"]
    assert marks["text"][3] == "cache break at call 4: Tools changed, unknown"


def test_compaction_is_a_labelled_vertical_before_its_call() -> None:
    vertical = CHARTS[0].figure["layout"]["shapes"][-1]
    assert (vertical["x0"], vertical["x1"], vertical["label"]["text"]) == (3.5, 3.5, "161k → 51k")
    mark = find_trace(CHARTS[0], "compaction")
    assert (mark["x"], mark["customdata"]) == ([3.5], ["call-4"])
    assert mark["text"] == ["compacted before call 4: 161k → 51k, auto"]


@pytest.mark.parametrize("axis", list(TimelineAxis))
def test_compaction_that_no_call_followed_is_a_vertical_behind_the_last(axis: TimelineAxis) -> None:
    calls = tuple(make_call(number) for number in (1, 2))
    newest = TimelineCompaction("call-2", 161_000, None, "auto", is_behind=True)
    chart = draw_timeline("calls", Timeline(calls, compactions=(newest,)), axis=axis)
    vertical, last = chart.figure["layout"]["shapes"][-1], chart.figure["shared"]["x"][1]
    edge = 0.5 if axis is TimelineAxis.CALL else 0
    assert (vertical["x0"], vertical["label"]["text"]) == (last + edge, "161k → unknown")
    assert find_trace(chart, "compaction")["x"] == [last + edge]
    assert chart.rows[1][-1] == "compacted after it 161k → unknown"


def test_breaks_of_sub_agents_lie_in_their_lanes() -> None:
    calls = (make_call(1), make_call(2, agent="explore"), make_call(3, agent="plan"))
    breaks = tuple(TimelineBreak(f"call-{number}", Decimal(number), "Tools changed") for number in (1, 2, 3))
    marks = draw_timeline("calls", Timeline(calls, breaks=breaks)).figure["data"]
    own, apart = (trace for trace in marks if trace["name"] == "cache break")
    assert (own["customdata"], own["y"]) == (["call-1"], [21_000])
    assert (apart["customdata"], apart["y"], apart["yaxis"]) == (["call-2", "call-3"], [0, 1], "y2")
    assert apart["text"][0] == "cache break at call 2 of explore: Tools changed, $2.00"


def test_labels_of_compactions_without_room_are_left_out() -> None:
    calls = tuple(make_call(number) for number in range(1, 101))
    crowd = tuple(TimelineCompaction(f"call-{number}", 167_000, 51_000, "auto") for number in range(2, 101, 2))
    shapes = draw_timeline("calls", Timeline(calls, compactions=crowd)).figure["layout"]["shapes"]
    assert len(shapes) == len(crowd)
    assert sum("label" in shape for shape in shapes) == 10


def test_few_calls_are_bars_and_many_are_areas() -> None:
    few = draw_timeline("calls", Timeline(tuple(make_call(number) for number in range(MOST_BAR_CALLS))))
    many = draw_timeline("calls", Timeline(tuple(make_call(number) for number in range(MOST_BAR_CALLS + 1))))
    assert {trace["type"] for trace in few.figure["data"]} == {"bar"}
    assert {trace["type"] for trace in many.figure["data"]} == {"scatter"}


def test_calls_without_a_time_are_left_out_by_time_and_that_is_said() -> None:
    timeline = Timeline((make_call(1), make_call(2, at=None)))
    by_time = draw_timeline("calls", timeline, axis=TimelineAxis.TIME)
    assert by_time.figure["shared"]["x"][0] == round((STARTED_AT.timestamp() + 60) * 1000)
    assert by_time.note == "The chart leaves out 1 call with unknown time."
    assert by_time.rows[1][1] == "unknown"
    assert draw_timeline("calls", timeline).note == ""


def test_times_are_the_wall_clock_of_the_person() -> None:
    with timezone.override(ZoneInfo("Asia/Tokyo")):
        chart = draw_timeline("calls", Timeline((make_call(1),)), axis=TimelineAxis.TIME)
    assert chart.figure["shared"]["x"][0] == round((STARTED_AT.timestamp() + 60 + 9 * 3600) * 1000)
    assert chart.figure["layout"]["xaxis"]["title"]["text"] == "time, Asia/Tokyo"
    assert chart.rows[0][1] == "2026-03-14 18:01:00 JST"


def test_five_thousand_calls_stay_small() -> None:
    calls = tuple(make_call(number, 150_000 + number, key=f"{90_000_000 + number}") for number in range(5_000))
    chart = draw_timeline("calls", Timeline(calls, list_lines(LONG)))
    assert len(json_script(chart.figure, "figure")) < 300_000
    assert len(chart.rows) == len(chart.keys) == MOST_TABLE_ROWS
    assert chart.rows[-1][0] == "4,999"
    assert chart.note == "The table has the newest 200 of 5,000 calls."


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 1), (50_000, 59_000), (60_000, 208_860), (171_000, 208_860), (231_000, 272_580)]
)
def test_figure_is_as_high_as_the_lines_once_the_calls_come_near(highest: int, top: int) -> None:
    assert choose_top(highest, list_lines(SHORT)) == top


@pytest.mark.parametrize(
    ("lines", "top", "labels"),
    [
        (SHORT, 208_860, [["warning 127k"], ["error 147k"], ["blocking 177k", "auto-compact 167k"]]),
        (LONG, 1_152_860, [["blocking 977k", "auto-compact 967k", "warning and error 947k"]]),
        (LONG, 59_000, [["above", "blocking 977k", "auto-compact 967k", "warning and error 947k"]]),
    ],
)
def test_labels_of_close_lines_are_stacked(lines: Lines, top: int, labels: list[list[str]]) -> None:
    rows = [label["text"].split("<br>") for label in label_thresholds(list_lines(lines), top)]
    assert len(rows) == len(labels)
    for row, expected in zip(rows, labels, strict=True):
        assert len(row) == len(expected)
        assert all(words in text for text, words in zip(row, expected, strict=True))
    assert len(draw_thresholds(list_lines(lines), top)) == (0 if labels[0][0] == "above" else len(list_lines(lines)))


@given(tokens=st.lists(st.integers(1, 1_000_000), min_size=1, max_size=6))
def test_labels_of_lines_never_touch_and_stay_beside_the_figure(tokens: list[int]) -> None:
    lines = [TimelineLine("line", "warning", each) for each in tokens]
    top = choose_top(max(tokens), lines)
    row = top * 0.05  # 14 of 280 pixels, a little less than what a row is given
    labels = label_thresholds(lines, top)
    stacks = [(label["y"], row * len(label["text"].split("<br>")) / 2) for label in labels]
    assert all(upper - high >= lower + low for (lower, low), (upper, high) in pairwise(stacks))
    assert all(label["xref"] == "paper" and label["x"] == 1 for label in labels)


@pytest.mark.parametrize("axis", list(TimelineAxis))
@pytest.mark.parametrize("highest", [20_000, 171_000])
def test_labels_of_lines_have_room_beside_the_calls(axis: TimelineAxis, highest: int) -> None:
    timeline = Timeline((make_call(1), make_call(2, highest)), list_lines(SHORT))
    chart = draw_timeline("calls", timeline, axis=axis)
    layout = chart.figure["layout"]
    assert layout["margin"]["r"] == measure_labels(timeline.lines, layout["yaxis"]["range"][1])
    assert layout["margin"]["r"] > len("auto-compact 167k") * 6
    assert draw_timeline("bare", Timeline(timeline.calls)).figure["layout"]["margin"] == {"t": 24}
    assert ("line blocking", "blocking 177k") in chart.legend or highest == 20_000


@pytest.mark.parametrize(("count", "ticks"), [(2, 1), (12, 1), (13, None)])
def test_ticks_of_calls_are_whole_numbers(count: int, ticks: int | None) -> None:
    calls = tuple(make_call(number) for number in range(1, count + 1))
    axis = draw_timeline("calls", Timeline(calls)).figure["layout"]["xaxis"]
    assert (axis["tickformat"], axis.get("dtick"), axis["range"]) == (",d", ticks, [0.5, count + 0.5])


def test_spend_of_a_day_is_split_into_lost_and_other() -> None:
    chart = CHARTS[3]
    assert (find_trace(chart, "lost to cache breaks")["y"], find_trace(chart, "other spend")["y"]) == ([6.5], [33.75])
    assert chart.rows == (("2026-03-01", "$40.25", "$6.50", "16%"),)


def test_loss_of_a_cause_is_split_into_avoidable_and_not() -> None:
    chart = CHARTS[4]
    assert (find_trace(chart, "avoidable")["x"], find_trace(chart, "not avoidable")["x"]) == ([4.0], [1.0])
    assert chart.rows == (("Tools changed", "3", "$5.00", "$4.00"),)


def test_areas_of_a_composition_hold_the_sums_of_what_lies_in_them() -> None:
    parts = [
        ContextPart("tool results", 900, "Read", "a.py"),
        ContextPart("tool results", 50, "Read", "b.py"),
        ContextPart("tool results", 30, "Bash"),
        ContextPart("prompts", 100),
        *(ContextPart("files", 10, "Edit", f"file-{number}.py") for number in range(20)),
    ]
    (trace,) = draw_composition("parts", parts).figure["data"]
    areas = dict(zip(trace["customdata"], trace["values"], strict=True))
    assert areas["tool results"] == 980
    assert areas["tool results, Read"] == 950
    assert areas["tool results, Read, b.py"] == 50
    assert areas["files, Edit and 8 smaller ones"] == 80
    top = [value for value, parent in zip(trace["values"], trace["parents"], strict=True) if parent == ""]
    assert sum(top) == sum(part.tokens for part in parts)


def test_indicator_has_one_step_from_each_line_to_the_next() -> None:
    (trace,) = CHARTS[6].figure["data"]
    assert [(step["range"], step["color"]) for step in trace["gauge"]["steps"]] == [
        ([127_000, 147_000], "var(--warning-fill)"),
        ([147_000, 167_000], "var(--error-fill)"),
        ([167_000, 177_000], "var(--auto-fill)"),
        ([177_000, 200_000], "var(--blocking-fill)"),
    ]
    over = draw_indicator("gauge", LONG, read_level(LONG, 1_200_000)).figure["data"][0]["gauge"]
    assert over["axis"]["range"] == [0, 1_200_000]
    assert len(over["steps"]) == 3


def test_text_of_people_is_no_markup_in_a_figure() -> None:
    hostile = '<a href="https://example.org">x</a>&lt;b&gt;'
    charts = [
        draw_composition("parts", [ContextPart(hostile, 5, hostile, hostile)]),
        draw_loss_by_group("causes", [GroupLoss(hostile, 1, Decimal(1), Decimal(0))]),
        draw_timeline(
            "calls",
            Timeline(
                (make_call(1), make_call(2, agent=hostile)),
                compactions=(TimelineCompaction("call-1", 5, 3, hostile),),
                breaks=(TimelineBreak("call-1", None, hostile),),
            ),
        ),
    ]
    for chart in charts:
        drawn = json.dumps(chart.figure)
        assert "&lt;a" in drawn
        assert "<a" not in drawn
        assert "&amp;lt;" in drawn or "…" in drawn


def test_figure_in_the_page_reads_as_written_and_cannot_end_its_script() -> None:
    chart = Chart('a"b', "Title", {"data": [{"text": ["</script><b>&amp;"]}], "layout": {"height": 1}}, (), ())
    drawn = figure(chart)
    opening, _, rest = drawn.partition(">")
    assert opening == '<script id="a&quot;b-figure" type="application/json"'
    assert json.loads(rest.removesuffix("</script>")) == chart.figure
    assert not set("<>&") & set(rest.removesuffix("</script>"))


def test_picked_call_is_marked_where_it_lies() -> None:
    bare = CHARTS[0].figure
    mark = mark_picked(bare, TIMELINE.calls[1], TimelineAxis.CALL)["layout"]["shapes"][-1]
    assert (mark["name"], mark["x0"], mark["x1"]) == ("picked", 2, 2)
    assert all(shape.get("name") != "picked" for shape in bare["layout"]["shapes"])
    by_time = mark_picked(CHARTS[1].figure, TIMELINE.calls[1], TimelineAxis.TIME)["layout"]["shapes"][-1]
    assert by_time["x0"] == CHARTS[1].figure["shared"]["x"][1]
    assert mark_picked(CHARTS[1].figure, make_call(9, at=None), TimelineAxis.TIME) is CHARTS[1].figure
    assert go.Figure(layout=mark_picked({"layout": {}}, TIMELINE.calls[0], TimelineAxis.CALL)["layout"]).layout.shapes


def test_days_without_a_measured_compaction_have_no_mean() -> None:
    chart = next(chart for chart in CHARTS if chart.id == "compactions")
    assert find_trace(chart, "mean retained")["y"] == [71.5, None, None]
    assert find_trace(chart, "compactions")["y"] == [5, 0, 1]
    assert chart.rows == (("2026-03-01", "5", "4", "~72%"), ("2026-03-03", "1", "0", "–"))  # noqa: RUF001
