"""A small timeline and its calls, for the tests of charts."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from compaction.context.margins import Preset
from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, compute_thresholds
from compaction.context.windows import ModelInUse
from dashboard.chart_data import Timeline, TimelineBreak, TimelineCall, TimelineCompaction
from dashboard.charts import Chart
from dashboard.charts.threshold_marks import list_lines

STARTED_AT = datetime(2026, 3, 14, 9, 0, tzinfo=UTC)


def lines_of(preset: Preset, model: str) -> Thresholds:
    lines = compute_thresholds(Policy.from_preset(preset), ModelInUse(model))
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


def find_trace(chart: Chart, name: str) -> dict[str, Any]:
    """Return a trace as the script has it, with the x that it shares."""
    traces = chart.serialize_figure()["data"]
    found: dict[str, Any] = next(trace for trace in traces if trace["name"] == name)
    if isinstance(found.get("x"), str):
        found["x"] = traces[int(found["x"][1:])]["x"]
    return found
