"""Samples for the style guide: gauges in every state and figures of every kind, worked out by the engine."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from compaction.context.forecast import CallPoint, forecast_threshold
from compaction.context.margins import Preset
from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, classify_usage, compute_thresholds
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
)
from dashboard.charts import Chart
from dashboard.charts.context import chart_indicator
from dashboard.charts.money import chart_loss_by_group, chart_spend_per_day
from dashboard.charts.threshold_marks import list_lines
from dashboard.charts.timeline import TimelineView, chart_timeline
from dashboard.charts.treemap import chart_composition
from dashboard.pages.gauge_bar import GaugeBar, draw_gauge

CLIENT, EARLY = Policy.from_preset(Preset.CLIENT), Policy.from_preset(Preset.EARLY)
SHORT = ModelInUse("claude-opus-4-5", client_version="2.1.100")
LONG = ModelInUse("claude-opus-5-5", client_version="2.1.325")
AUTO_OFF = replace(CLIENT, is_auto_enabled=False)
LONG_SESSION_CALLS = 5_000
STARTED_AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
# Tokens a call adds, over and over; every 60th call the conversation is compacted, every 23rd loses its cache.
GROWTHS_TOKENS = (900, 2_400, 1_300, 5_200, 700, 3_100, 1_800)
COMPACTED_EVERY, BROKEN_EVERY, PAUSED_EVERY = 60, 23, 17


def draw_gauges() -> list[tuple[str, GaugeBar]]:
    """The gauge in every state it has."""
    not_seen = replace(SHORT, client_version="2.1.325")
    return [
        ("Empty", _draw_sample(CLIENT, SHORT, 0)),
        ("Half full", _draw_sample(CLIENT, SHORT, 96_200, growth_tokens=1_800)),
        ("Early warning", _draw_sample(EARLY, SHORT, 131_000, peak_tokens=171_400, growth_tokens=2_100)),
        ("Warning and error fall together", _draw_sample(CLIENT, SHORT, 158_600, growth_tokens=3_400)),
        ("Past the auto-compact threshold", _draw_sample(CLIENT, SHORT, 171_400, growth_tokens=3_400)),
        ("Full", _draw_sample(CLIENT, SHORT, 200_000)),
        ("Over the window", _draw_sample(CLIENT, SHORT, 231_000)),
        ("Threshold not observed", _draw_sample(CLIENT, not_seen, 120_000, growth_tokens=900)),
        ("Auto-compact off", _draw_sample(AUTO_OFF, SHORT, 120_000)),
        ("1M window", _draw_sample(CLIENT, LONG, 412_000, growth_tokens=2_600)),
        ("8k window", _draw_sample(CLIENT, replace(SHORT, reported_window_tokens=8_000), 3_000)),
        ("Window not known", _draw_sample(CLIENT, ModelInUse("some-other-model"), 48_200)),
    ]


def draw_timelines(*, is_long: bool) -> list[Chart]:
    """By call and by time, with sub-agents: a usual session, or a long one near the lines of a 1M window."""
    if is_long:
        timeline = _make_timeline(LONG_SESSION_CALLS, compute_thresholds(CLIENT, LONG), step=7)
    else:
        timeline = _make_timeline(150, compute_thresholds(EARLY, SHORT))
    return [
        chart_timeline("calls-sample", timeline),
        chart_timeline("times-sample", timeline, TimelineView(TimelineAxis.TIME)),
    ]


def draw_charts() -> list[Chart]:
    """The other figures."""
    lines = compute_thresholds(EARLY, SHORT)
    days = [
        DaySpend(date(2026, 3, 1) + timedelta(days=day), Decimal(spend), Decimal(lost))
        for day, (spend, lost) in enumerate([(40, 6), (52, 9), (33, 3), (61, 22), (70, 10), (18, 1), (0, 0), (55, 8)])
    ]
    causes = [
        GroupLoss("The cache expired after five minutes", 41, Decimal("7.42"), Decimal("7.42")),
        GroupLoss("Tools changed", 12, Decimal("5.10"), Decimal("4.02")),
        GroupLoss("Not known", 9, Decimal("2.84"), Decimal(0)),
        GroupLoss("Effort changed", 3, Decimal("0.39"), Decimal("0.39")),
    ]
    parts = [
        ContextPart("tool results", 31_200, "Read", "src/billing/ledger/decimal_amounts.py"),
        ContextPart("tool results", 12_900, "Read", "src/billing/models.py"),
        ContextPart("tool results", 18_400, "Bash"),
        ContextPart("tool results", 8_700, "Grep"),
        ContextPart("tool definitions", 38_400),
        ContextPart("system prompt", 14_800),
        ContextPart("answers", 11_300),
        ContextPart("prompts", 6_600),
    ]
    indicator = [chart_indicator("gauge-sample", lines, classify_usage(lines, 171_400))] if lines else []
    return [
        *indicator,
        chart_spend_per_day("days-sample", days),
        chart_loss_by_group("causes-sample", causes),
        chart_composition("parts-sample", parts),
    ]


def _draw_sample(
    policy: Policy, in_use: ModelInUse, used_tokens: int, *, peak_tokens: int | None = None, growth_tokens: int = 0
) -> GaugeBar:
    lines = compute_thresholds(policy, in_use)
    limit = lines.limit_tokens if lines else 0
    calls = [CallPoint(used_tokens - growth_tokens * back, turn=(40 - back) // 3) for back in reversed(range(40))]
    forecast = forecast_threshold(calls, limit) if growth_tokens else None
    return draw_gauge(lines, classify_usage(lines, used_tokens), forecast=forecast, peak_tokens=peak_tokens)


def _make_timeline(count: int, lines: Thresholds | None, *, step: int = 1) -> Timeline:
    """A session that grows, is compacted, loses its cache, pauses, and asks two sub-agents; slower by `step`."""
    calls, compactions, breaks = [], [], []
    context, at = 24_300, STARTED_AT
    for number in range(1, count + 1):
        at += timedelta(minutes=25 if number % PAUSED_EVERY == 0 else 1)
        agent = f"explore-{number // 40 + 1}" if number % 40 in (20, 21, 22) and number < 100 else None
        if number % (COMPACTED_EVERY * step) == 0:
            compactions.append(TimelineCompaction(_key(number), context, 51_000, "auto"))
            context = 51_000
        added = GROWTHS_TOKENS[number % len(GROWTHS_TOKENS)]
        is_broken = agent is None and number % (BROKEN_EVERY * step) == 0
        if is_broken:
            usd = None if number % 2 else Decimal(context) / 100_000
            breaks.append(TimelineBreak(_key(number), usd, "The cache expired after five minutes"))
        size = 9_000 + number * 40 if agent else context + added
        calls.append(_make_call(number, at, size, added, agent=agent, is_broken=is_broken))
        context = context if agent else context + added
    return Timeline(tuple(calls), list_lines(lines), tuple(compactions), tuple(breaks))


def _make_call(
    number: int, at: datetime, context_tokens: int, added_tokens: int, *, agent: str | None, is_broken: bool
) -> TimelineCall:
    output, uncached = added_tokens // 4, 12
    prompt = context_tokens - output - uncached
    read = prompt // 8 if is_broken else prompt - added_tokens // 2
    return TimelineCall(
        number,
        number,
        at,
        context_tokens,
        read_tokens=read,
        write_5m_tokens=0 if is_broken else prompt - read,
        write_1h_tokens=prompt - read if is_broken else 0,
        uncached_tokens=uncached,
        output_tokens=output,
        agent=agent,
        key=_key(number),
    )


def _key(number: int) -> str:
    return f"call-{number}"
