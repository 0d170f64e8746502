"""Figures: colours are tokens that exist, and the table behind a figure holds its numbers."""

import json
import re
from pathlib import Path

import pytest

from dashboard.charts import Chart, Line, Point, Share, calls_chart, gauge_chart, shares_chart

TOKENS = (Path(__file__).parents[2] / "static" / "css" / "tokens.css").read_text()
LINES = (Line("warning", "warning", 120_000), Line("auto-compact", "auto", 167_000))
CHARTS = (
    gauge_chart("gauge", used_tokens=171_400, window_tokens=200_000, lines=LINES),
    calls_chart("calls", [Point(1, 0, 24_300), Point(2, 24_300, 3_100)]),
    shares_chart("shares", [Share("tool results", 71_200), Share("prompts", 6_600)]),
)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.id)
def test_every_colour_is_a_token_that_exists(chart: Chart) -> None:
    drawn = json.dumps(chart.figure)
    named = set(re.findall(r"var\((--[\w-]+)\)", drawn))
    assert named
    assert [name for name in named if f"{name}:" not in TOKENS] == []
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", drawn) == []


def test_gauge_has_one_step_from_each_line_to_the_next() -> None:
    steps = CHARTS[0].figure["data"][0]["gauge"]["steps"]
    assert [(step["range"], step["color"]) for step in steps] == [
        ([120_000, 167_000], "var(--warning-fill)"),
        ([167_000, 200_000], "var(--auto-fill)"),
    ]


def test_tables_hold_the_numbers_of_the_figures() -> None:
    gauge, calls, shares = CHARTS
    assert gauge.rows == (
        ("used", "171,400"),
        ("warning", "120,000"),
        ("auto-compact", "167,000"),
        ("window", "200,000"),
    )
    assert calls.rows == (("1", "0", "24,300"), ("2", "24,300", "3,100"))
    assert shares.rows == (("tool results", "71,200"), ("prompts", "6,600"))
    for chart in CHARTS:
        assert {len(row) for row in chart.rows} == {len(chart.columns)}
