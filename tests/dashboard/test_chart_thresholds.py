"""Thresholds across the timeline: the height of the figure, and labels that do not touch."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.thresholds import Thresholds
from dashboard.chart_data import Timeline, TimelineAxis, TimelineLine
from dashboard.charts.threshold_marks import (
    choose_top,
    draw_thresholds,
    label_thresholds,
    list_lines,
    measure_labels,
)
from dashboard.charts.timeline import TimelineView, chart_timeline
from tests.dashboard.chart_builders import LONG, SHORT, make_call


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
def test_labels_of_close_lines_are_stacked(lines: Thresholds, top: int, labels: list[list[str]]) -> None:
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
    chart = chart_timeline("calls", timeline, TimelineView(axis))
    layout = chart.figure.layout
    assert layout.margin.r == measure_labels(timeline.lines, layout.yaxis.range[1])
    assert layout.margin.r > len("auto-compact 167k") * 6
    assert chart_timeline("bare", Timeline(timeline.calls)).serialize_figure()["layout"]["margin"] == {"t": 24}
    assert ("line blocking", "blocking 177k") in chart.legend or highest == 20_000
