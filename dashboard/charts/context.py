"""Chart of one context: how full its window is, with the thresholds."""

import plotly.graph_objects as go

from compaction.context.thresholds import LevelReading, Thresholds
from dashboard.charts import Chart, build_figure
from dashboard.pages.gauge_bar import draw_gauge
from dashboard.words import say_tokens


def _find_number_format(tokens: int) -> str:
    """As `say_tokens` has it. d3 counts digits from the first: so many before the point, one or two behind it."""
    behind = 0 if tokens < 1000 else 1 if tokens < 1_000_000 else 2
    return f".{(len(str(tokens)) - 1) % 3 + 1 + behind}s"


def chart_indicator(
    chart_id: str, lines: Thresholds, reading: LevelReading, *, is_estimated: bool = False, is_small: bool = False
) -> Chart:
    """How full a window is, with one step from each line to the next; lines that fall together are one step. A small
    one has no figures on its axis."""
    bar = draw_gauge(lines, reading)
    mark = "~" if is_estimated else ""
    end = max(lines.window.tokens, reading.used_tokens)
    ends = [*(tick.tokens for tick in bar.ticks[1:]), end]
    steps = [
        {"range": [tick.tokens, upper], "color": f"var(--{tick.style}-fill)"}
        for tick, upper in zip(bar.ticks, ends, strict=True)
    ]
    axis_look = {"showticklabels": False, "ticks": ""} if is_small else {}
    indicator = go.Indicator(
        mode="gauge+number",
        value=reading.used_tokens,
        number={
            "prefix": mark,
            "valueformat": _find_number_format(reading.used_tokens),
            "font": {"color": "var(--ink)", "size": 16 if is_small else 24},
        },
        gauge={
            "shape": "angular",
            "axis": {"range": [0, end], "tickformat": "~s", "tickcolor": "var(--line)", "nticks": 6} | axis_look,
            "bar": {"color": "var(--ink)", "thickness": 0.3},
            "bgcolor": "var(--line)",
            "borderwidth": 0,
            "steps": steps,
        },
    )
    named = [*((tick.name, tick.tokens) for tick in bar.ticks), ("window", lines.window.tokens)]
    rows = (("used", f"{mark}{reading.used_tokens:,}"), *((name, f"{tokens:,}") for name, tokens in named))
    layout = {"margin": {"l": 8, "r": 8, "t": 4, "b": 4} if is_small else {"l": 40, "r": 40, "t": 28, "b": 8}}
    title = f"Context and thresholds: {mark}{say_tokens(reading.used_tokens)}, {bar.level_words}"
    figure = build_figure([indicator], layout, height=84 if is_small else 200)
    return Chart(chart_id, title, figure, ("Threshold", "Tokens"), rows, has_downloads=False)
