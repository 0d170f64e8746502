"""Figures: what went in comes out, colours are tokens, tables hold the numbers."""

import json
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import plotly.graph_objects as go
import pytest

from compaction.context.thresholds import classify_usage
from dashboard.chart_data import (
    ContextPart,
    DaySpend,
    GroupLoss,
    Timeline,
    TimelineAxis,
    TimelineBreak,
    TimelineCompaction,
)
from dashboard.charts import Chart, build_figure
from dashboard.charts.compactions import DayCompactions, chart_compactions_per_day
from dashboard.charts.context import chart_indicator
from dashboard.charts.money import chart_loss_by_group, chart_spend_per_day
from dashboard.charts.timeline import TimelineView, chart_timeline
from dashboard.charts.treemap import _OTHER, _STYLES, chart_composition
from dashboard.templatetags.drawings import figure
from tests.dashboard.chart_builders import LONG, SHORT, TIMELINE, find_trace, make_call

ROOT = Path(__file__).parents[2]
TOKENS = (ROOT / "static" / "css" / "tokens.css").read_text()
CHARTS = (
    chart_timeline("calls", TIMELINE),
    chart_timeline("times", TIMELINE, TimelineView(TimelineAxis.TIME)),
    chart_timeline("empty", Timeline(())),
    chart_spend_per_day("days", [DaySpend(date(2026, 3, 1), Decimal("40.25"), Decimal("6.5"))]),
    chart_loss_by_group("causes", [GroupLoss("Tools changed", 3, Decimal(5), Decimal(4))]),
    chart_composition("parts", [ContextPart("tool results", 900, "Read", "a.py"), ContextPart("prompts", 100)]),
    chart_indicator("gauge", SHORT, classify_usage(SHORT, 171_400)),
    chart_compactions_per_day(
        "compactions",
        [
            DayCompactions(date(2026, 3, 1), 5, 4, Decimal("71.5")),
            DayCompactions(date(2026, 3, 2), 0, 0, None),
            DayCompactions(date(2026, 3, 3), 1, 0, None),
        ],
    ),
)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.id)
def test_every_colour_is_a_token_that_exists(chart: Chart) -> None:
    drawn = json.dumps(chart.serialize_figure())
    named = set(re.findall(r"var\((--[\w-]+)\)", drawn))
    assert named
    assert [name for name in named if f"{name}:" not in TOKENS] == []
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", drawn) == []


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.id)
def test_every_row_of_a_table_has_all_its_columns(chart: Chart) -> None:
    assert {len(row) for row in chart.rows} <= {len(chart.columns)}
    assert len(chart.keyed_rows) == len(chart.rows)


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
    (trace,) = chart_composition("parts", parts).serialize_figure()["data"]
    areas = dict(zip(trace["customdata"], trace["values"], strict=True))
    assert areas["tool results"] == 980
    assert areas["tool results, Read"] == 950
    assert areas["tool results, Read, b.py"] == 50
    assert areas["files, Edit and 8 smaller ones"] == 80
    top = [value for value, parent in zip(trace["values"], trace["parents"], strict=True) if parent == ""]
    assert sum(top) == sum(part.tokens for part in parts)


def test_areas_of_a_composition_show_tokens_and_share_in_one_colour_per_category() -> None:
    parts = [
        ContextPart("tool results", 60_000, "Read", "/src/transcript_renderer_test.exs"),
        ContextPart("tool results", 15_000, "Bash"),
        ContextPart("user text", 25_000),
    ]
    chart = chart_composition("parts", parts)
    (trace,) = chart.serialize_figure()["data"]
    assert trace["labels"] == [
        "tool results ~75.0k · 75%",
        "Read ~60.0k · 60%",
        "transcript_<br>renderer_test.exs<br>~60.0k · 60%",
        "Bash<br>~15.0k · 15%",
        "user text<br>~25.0k · 25%",
    ]
    assert trace["marker"]["colors"] == ["var(--part-results)"] * 4 + ["var(--part-user)"]
    assert chart.legend == (("part-results", "tool results ~75.0k · 75%"), ("part-user", "user text ~25.0k · 25%"))
    assert chart.rows[0] == ("tool results", "Read", "/src/transcript_renderer_test.exs", "~60,000", "60%")


def test_colours_of_a_composition_exist_as_tokens_and_swatches() -> None:
    static = Path(__file__).parents[2] / "static" / "css"
    tokens, swatches = ((static / name).read_text(encoding="utf-8") for name in ("tokens.css", "chart.css"))
    for style in (*_STYLES.values(), _OTHER):
        assert f"--{style}: light-dark(" in tokens
        assert f".swatch.{style} {{ background: var(--{style}); }}" in swatches


def test_indicator_has_one_step_from_each_line_to_the_next() -> None:
    (trace,) = CHARTS[6].serialize_figure()["data"]
    assert [(step["range"], step["color"]) for step in trace["gauge"]["steps"]] == [
        ([127_000, 147_000], "var(--warning-fill)"),
        ([147_000, 167_000], "var(--error-fill)"),
        ([167_000, 177_000], "var(--auto-fill)"),
        ([177_000, 200_000], "var(--blocking-fill)"),
    ]
    over = chart_indicator("gauge", LONG, classify_usage(LONG, 1_200_000)).serialize_figure()["data"][0]["gauge"]
    assert over["axis"]["range"] == [0, 1_200_000]
    assert len(over["steps"]) == 3


def test_text_of_people_is_no_markup_in_a_figure() -> None:
    hostile = '<a href="https://example.org">x</a>&lt;b&gt;'
    charts = [
        chart_composition("parts", [ContextPart(hostile, 5, hostile, hostile)]),
        chart_loss_by_group("causes", [GroupLoss(hostile, 1, Decimal(1), Decimal(0))]),
        chart_timeline(
            "calls",
            Timeline(
                (make_call(1), make_call(2, agent=hostile)),
                compactions=(TimelineCompaction("call-1", 5, 3, hostile),),
                breaks=(TimelineBreak("call-1", None, hostile),),
            ),
        ),
    ]
    for chart in charts:
        drawn = json.dumps(chart.serialize_figure())
        assert "&lt;a" in drawn
        assert "<a" not in drawn
        assert "&amp;lt;" in drawn or "…" in drawn


def test_figure_in_the_page_reads_as_written_and_cannot_end_its_script() -> None:
    traces = [go.Scatter(text=["</script><b>&amp;"])]
    chart = Chart('a"b', "Title", build_figure(traces, {}, height=10), (), ())
    drawn = figure(chart)
    opening, _, rest = drawn.partition(">")
    assert opening == '<script id="a&quot;b-figure" type="application/json"'
    assert json.loads(rest.removesuffix("</script>")) == chart.serialize_figure()
    assert not set("<>&") & set(rest.removesuffix("</script>"))


def test_warm_up_loads_what_the_charts_are_made_of() -> None:
    program = (
        "import sys; from dashboard.charts import warm_up; warm_up(); loaded = set(sys.modules); "
        "sys.exit(not {f'plotly.graph_objs._{name}' for name in ('bar', 'scatter', 'indicator')} <= loaded)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 0


def test_days_without_a_measured_compaction_have_no_mean() -> None:
    chart = next(chart for chart in CHARTS if chart.id == "compactions")
    assert find_trace(chart, "mean retained")["y"] == [71.5, None, None]
    assert find_trace(chart, "compactions")["y"] == [5, 0, 1]
    assert chart.rows == (("2026-03-01", "5", "4", "~72%"), ("2026-03-03", "1", "0", "–"))  # noqa: RUF001
