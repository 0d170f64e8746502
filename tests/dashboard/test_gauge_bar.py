"""The gauge in every state: where things lie on the bar, which words stand beside it, what its drawing holds."""

import html
import re
from dataclasses import replace

import pytest
from django.template import Context, Template
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.forecast import Forecast, NotEnoughData, Range
from compaction.context.margins import Preset
from compaction.context.policy import Policy
from compaction.context.thresholds import NOT_SEEN_REMARK, Level, Thresholds, classify_usage, compute_thresholds
from compaction.context.windows import ModelInUse
from dashboard.pages.gauge_bar import GaugeBar, draw_gauge
from dashboard.templatetags.drawings import gauge

SHORT = ModelInUse("claude-opus-4-5", client_version="2.1.100")
NEWER = ModelInUse("claude-opus-4-5", client_version="2.1.325")
LONG = ModelInUse("claude-opus-5-5")
CLIENT = Policy.from_preset(Preset.CLIENT)
EARLY = Policy.from_preset(Preset.EARLY)
AUTO_OFF = replace(CLIENT, is_auto_enabled=False)


def lines_of(policy: Policy, in_use: ModelInUse) -> Thresholds:
    lines = compute_thresholds(policy, in_use)
    assert lines is not None
    return lines


def bar_of(policy: Policy, in_use: ModelInUse, used_tokens: int, peak_tokens: int | None = None) -> GaugeBar:
    lines = lines_of(policy, in_use)
    return draw_gauge(lines, classify_usage(lines, used_tokens), peak_tokens=peak_tokens)


@pytest.mark.parametrize(
    ("used", "level", "fill", "left", "badge"),
    [
        (0, Level.OK, 0.0, 100, "ok"),
        (1, Level.OK, 0.0, 100, "ok"),
        (96_000, Level.OK, 48.0, 43, "ok"),
        (147_000, Level.ERROR, 73.5, 12, "error"),
        (167_000, Level.AUTO_COMPACT, 83.5, 0, "auto-compact"),
        (177_000, Level.BLOCKING, 88.5, 0, "blocking"),
        (200_000, Level.BLOCKING, 100.0, 0, "blocking"),
    ],
)
def test_reading_is_placed_on_the_window(used: int, level: Level, fill: float, left: int, badge: str) -> None:
    bar = bar_of(CLIENT, SHORT, used)
    assert (bar.level, bar.fill_percent, bar.percent_left, bar.level_words) == (level, fill, left, badge)
    assert bar.window_percent == 100.0
    assert not bar.is_over_full


def test_lines_that_fall_together_are_one_tick_with_both_names() -> None:
    ticks = bar_of(CLIENT, SHORT, 150_000).ticks
    assert [(tick.label, tick.style, tick.percent) for tick in ticks] == [
        ("warning and error 147.0k", "error", 73.5),
        ("auto-compact 167.0k", "auto", 83.5),
        ("blocking 177.0k", "blocking", 88.5),
    ]
    assert [tick.name for tick in bar_of(EARLY, SHORT, 0).ticks] == ["warning", "error", "auto-compact", "blocking"]


def test_tick_tells_its_sum_step_by_step_with_origins() -> None:
    warning, auto, blocking = bar_of(CLIENT, SHORT, 0).ticks
    assert [step.formula for step in warning.steps] == [
        "window = 200,000",
        "available = window - 20,000 = 180,000",
        "auto = available - 13,000 = 167,000",
        "warning = auto - 20,000 = 147,000",
        "error = auto - 20,000 = 147,000",
    ]
    assert [step.origin for step in auto.steps] == [
        "window 200,000 from the client's table for claude-opus-4-5",
        "reserve 20,000 from min(max output 32,000, 20,000) (client's table)",
        "13,000 from Claude Code's rule",
    ]
    assert [step.formula for step in blocking.steps][-1] == "blocking = available - 3,000 = 177,000"


def test_more_than_the_window_stretches_the_scale_and_is_said() -> None:
    bar = bar_of(CLIENT, SHORT, 250_000)
    assert (bar.fill_percent, bar.window_percent, bar.level_words) == (100.0, 80.0, "over the window")
    assert [tick.percent for tick in bar.ticks] == [58.8, 66.8, 70.8]
    assert "50,000 tokens over the window. Level: blocking." in bar.sentence
    drawn = gauge(bar)
    assert '<line class="gauge-over" x1="80.0%" x2="100.0%"' in drawn
    assert '<rect class="gauge-fill" y="3" width="80.0%"' in drawn


def test_hatch_ends_at_what_is_used_and_the_window_has_its_edge() -> None:
    over = bar_of(CLIENT, replace(SHORT, reported_window_tokens=100_000), 120_000, peak_tokens=160_000)
    drawn = gauge(over, "header")
    assert '<line class="gauge-over" x1="62.5%" x2="75.0%"' in drawn
    assert '<line class="gauge-edge" x1="62.5%"' in drawn
    assert '<li class="gauge-edge-name">window <b>100.0k</b></li>' in drawn
    assert "Peak: 160,000, over the window." in over.sentence
    below = gauge(bar_of(CLIENT, SHORT, 51_000, peak_tokens=250_000), "header")
    assert '<line class="gauge-edge" x1="80.0%"' in below
    assert "gauge-over" not in below
    assert "gauge-edge" not in gauge(bar_of(CLIENT, SHORT, 51_000, peak_tokens=60_000), "header")


def test_row_tells_the_sum_and_the_origins_of_its_lines() -> None:
    drawn = gauge(bar_of(CLIENT, SHORT, 51_000))
    title = html.unescape(drawn.split('title="')[1].split('"')[0])
    first, *sums = title.split("\n")
    assert first == "69% left · warning and error 147.0k · auto-compact 167.0k · blocking 177.0k"
    assert sums == [
        "window = 200,000: window 200,000 from the client's table for claude-opus-4-5",
        "available = window - 20,000 = 180,000: reserve 20,000 from min(max output 32,000, 20,000) (client's table)",
        "auto = available - 13,000 = 167,000: 13,000 from Claude Code's rule",
        "warning = auto - 20,000 = 147,000: 20,000 from Claude Code's rule",
        "error = auto - 20,000 = 147,000: 20,000 from Claude Code's rule",
        "blocking = available - 3,000 = 177,000: 3,000 from Claude Code's rule",
    ]


def test_window_that_is_not_known_is_said_and_never_drawn_as_zero() -> None:
    bar = draw_gauge(None, classify_usage(None, 48_200), peak_tokens=60_000)
    assert (bar.used_words, bar.window_words, bar.level_words) == ("48.2k", "unknown window", "unknown level")
    assert bar.sentence.startswith("48,200 tokens in use. The window of this model is unknown")
    for size in ("row", "card", "header"):
        drawn = gauge(bar, size)
        assert 'class="gauge-none"' in drawn
        assert "gauge-fill" not in drawn
        assert "% left" not in drawn


def test_without_auto_compact_its_line_is_left_out_and_that_is_said() -> None:
    bar = bar_of(AUTO_OFF, SHORT, 100_000)
    assert [tick.label for tick in bar.ticks] == ["warning and error 160.0k", "blocking 177.0k"]
    assert bar.notice.startswith("Auto-compact is off.")
    assert bar.limit_words == "to the usable window"
    assert [step.formula for step in bar.ticks[0].steps][1:3] == [
        "available = window - 20,000 = 180,000",
        "warning = available - 20,000 = 160,000",
    ]


def test_line_not_seen_in_force_is_dashed_with_its_remark() -> None:
    bar = bar_of(CLIENT, NEWER, 100_000)
    assert [tick.is_dashed for tick in bar.ticks] == [False, True, False]
    assert bar.ticks[1].remarks[0] == bar.notice == NOT_SEEN_REMARK
    assert '<line class="tick-auto dashed"' in gauge(bar)
    assert NOT_SEEN_REMARK in gauge(bar, "header")
    assert "dashed" not in gauge(bar_of(CLIENT, SHORT, 100_000), "header")


def test_long_window_has_its_ticks_close_to_the_end() -> None:
    bar = bar_of(CLIENT, LONG, 61_000)
    assert bar.window_words == "of 1M"
    assert [tick.percent for tick in bar.ticks] == [94.7, 96.7, 97.7]


def test_window_smaller_than_the_reserve_has_all_lines_at_zero() -> None:
    tiny = replace(LONG, reported_window_tokens=8_000)
    bar = bar_of(CLIENT, tiny, 0)
    assert [tick.label for tick in bar.ticks] == ["warning, error, auto-compact and blocking 0"]
    assert (bar.level, bar.percent_left) == (Level.BLOCKING, 0)


def test_peak_is_marked_only_above_what_is_used_now() -> None:
    assert 'class="gauge-peak" x1="85.0%"' in gauge(bar_of(CLIENT, SHORT, 51_000, peak_tokens=170_000))
    assert "gauge-peak" not in gauge(bar_of(CLIENT, SHORT, 170_000, peak_tokens=170_000))
    assert bar_of(CLIENT, SHORT, 51_000, peak_tokens=250_000).window_percent == 80.0


TEN_CALLS, FIVE_TURNS, MINUTES = Range(8, 10, 14), Range(3, 5, 9), Range(10, 20, 35)


@pytest.mark.parametrize(
    ("forecast", "words", "reason"),
    [
        (None, "", ""),
        (NotEnoughData("No API calls recorded yet."), "", "No API calls recorded yet."),
        (Forecast(900, 90, TEN_CALLS), "~10 calls (8-14)", "about 90 tokens per call."),
        (Forecast(900, 90, TEN_CALLS, FIVE_TURNS), "~10 calls (8-14), ~5 turns (3-9)", "about 90 tokens per call."),
        (
            Forecast(900, 90, TEN_CALLS, FIVE_TURNS, MINUTES),
            "~10 calls (8-14), ~5 turns (3-9)",
            "20 minutes of work (10-35), excluding pauses",
        ),
        (
            Forecast(900, 90, TEN_CALLS, None, MINUTES),
            "~10 calls (8-14)",
            "20 minutes of work (10-35), excluding pauses",
        ),
        (
            Forecast(900, 90, TEN_CALLS, Range(0, 0, 1)),
            "~10 calls (8-14), less than a turn",
            "about 90 tokens per call.",
        ),
        (Forecast(0, 90, Range(0, 0, 0)), "now", "about 90 tokens per call."),
    ],
)
def test_forecast_is_put_into_words(forecast: Forecast | NotEnoughData | None, words: str, reason: str) -> None:
    lines = lines_of(CLIENT, SHORT)
    bar = draw_gauge(lines, classify_usage(lines, 100_000), forecast=forecast)
    assert bar.forecast_words == words
    assert reason in bar.forecast_reason
    assert (f"Forecast: {words}." in bar.sentence) == bool(words)


def test_text_alternative_says_all_that_is_drawn() -> None:
    lines = lines_of(EARLY, SHORT)
    forecast = Forecast(900, 90, TEN_CALLS, FIVE_TURNS)
    bar = draw_gauge(lines, classify_usage(lines, 150_000), forecast=forecast, peak_tokens=171_000)
    assert bar.sentence == (
        "150,000 of 200,000 tokens in use, 10% left. Level: error. Thresholds: warning at 127,000, error at 147,000, "
        "auto-compact at 167,000, blocking at 177,000. Peak: 171,000. "
        "Forecast: ~10 calls (8-14), ~5 turns (3-9)."
    )
    assert f'aria-label="{bar.sentence}"' in gauge(bar)


@pytest.mark.parametrize("size", ["card", "header"])
def test_every_tick_of_the_larger_sizes_is_a_button_described_by_its_sum(size: str) -> None:
    template = Template("{% gauge bar size=size %}")
    drawn = template.render(Context({"bar": bar_of(CLIENT, SHORT, 171_400), "size": size}))
    described = re.findall(r'<button type="button"[^>]* aria-describedby="([\w-]+)"', drawn)
    assert len(described) == len(set(described)) == 3
    assert all(f'role="tooltip" id="{tip_id}"' in drawn for tip_id in described)
    assert "blocking = available - 3,000 = 177,000" in drawn


def test_words_of_an_origin_are_escaped() -> None:
    lines = lines_of(CLIENT, SHORT)
    window = replace(lines.window, description="window of <i>")
    hostile = replace(lines, available=replace(lines.available, terms=(window, lines.reserve)))
    drawn = gauge(draw_gauge(hostile, classify_usage(hostile, 1)), "header")
    assert "window of &lt;i&gt;" in drawn
    assert "<i>" not in drawn


@settings(deadline=None)
@given(
    used=st.integers(-10, 3_000_000),
    window=st.integers(1, 2_000_000),
    peak=st.none() | st.integers(0, 3_000_000),
)
def test_nothing_lies_outside_the_bar(used: int, window: int, peak: int | None) -> None:
    bar = bar_of(CLIENT, replace(LONG, reported_window_tokens=window), used, peak_tokens=peak)
    places = [bar.fill_percent, bar.window_percent, bar.peak_percent or 0, *(tick.percent for tick in bar.ticks)]
    assert all(0 <= place <= 100 for place in places)
    assert {level for tick in bar.ticks for level in tick.levels} == {*Level} - {Level.OK, Level.NOT_KNOWN}
