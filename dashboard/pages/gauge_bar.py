"""The gauge: where a context stands among the lines of its window, as positions and words ready to be drawn.

Pure: lines, reading and forecast of the engine come in. The marks are made in dashboard.templatetags.drawings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from compaction.context.forecast import SOON_CALLS, SOON_TURNS, Forecast, NotEnoughData
from compaction.context.thresholds import NOT_SEEN_REMARK, Level, LevelReading, Threshold, Thresholds, ThresholdState
from dashboard.words import join_words, say_range, say_size, say_tokens

# The names of the levels in class names and tokens of the stylesheets.
STYLES = {
    Level.NOT_KNOWN: "unknown",
    Level.OK: "ok",
    Level.WARNING: "warning",
    Level.ERROR: "error",
    Level.AUTO_COMPACT: "auto",
    Level.BLOCKING: "blocking",
}
NOW = "now"
_NOTICES = {
    ThresholdState.IN_FORCE: "",
    ThresholdState.NOT_SEEN: NOT_SEEN_REMARK,
    ThresholdState.OFF: "Auto-compact is off. Remaining space is measured against the usable window.",
}
SOON_EXPLAINED = f"Soon: at most {SOON_CALLS} calls or {SOON_TURNS} turns left before the auto-compact threshold."
WINDOW_NOT_KNOWN = "The window of this model is unknown, so no thresholds are shown."
# The notices in a few words, for a line that has no room for the sentence.
_NOTICE_WORDS = {
    _NOTICES[ThresholdState.NOT_SEEN]: "auto-compact not observed",
    _NOTICES[ThresholdState.OFF]: "auto-compact off",
    WINDOW_NOT_KNOWN: "no thresholds",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the sum that leads to a line, and where its figure comes from."""

    formula: str
    origin: str


@dataclass(frozen=True, slots=True)
class Tick:
    """One mark on the bar; lines at the same number of tokens share it. `chain` is the sum, line by line."""

    levels: tuple[Level, ...]
    tokens: int
    percent: float
    chain: tuple[Threshold, ...]
    is_dashed: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def style(self) -> str:
        return STYLES[self.levels[-1]]

    @property
    def name(self) -> str:
        return join_words(self.levels)

    @property
    def label(self) -> str:
        """Name and tokens: warning and error 147.0k."""
        return f"{self.name} {say_tokens(self.tokens)}"

    @property
    def steps(self) -> tuple[Step, ...]:
        """From the window down to the line: each formula with the origin of the figure it takes in."""
        window = self.chain[0].terms[0]
        first = Step(f"window = {window.tokens:,}", window.description)
        return (first, *(Step(line.formula, _say_origin(line)) for line in self.chain))


@dataclass(frozen=True, eq=False)
class GaugeScale:
    """The marks of some lines on a bar that is so many tokens long. All gauges of a list with the same lines share it,
    and with it everything that is drawn or said of the marks alone."""

    lines: Thresholds
    tokens: int
    ticks: tuple[Tick, ...]

    @cached_property
    def labels(self) -> str:
        return " · ".join(tick.label for tick in self.ticks)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The sums of all lines, each step once, from the window down."""
        return tuple({step.formula: step for tick in self.ticks for step in tick.steps}.values())

    @cached_property
    def sums(self) -> str:
        """The same as text, a step a line."""
        return "\n".join(f"{step.formula}: {step.origin}" for step in self.steps)

    @cached_property
    def sentence(self) -> str:
        return f"Thresholds: {', '.join(f'{tick.name} at {tick.tokens:,}' for tick in self.ticks)}."


@dataclass(frozen=True, slots=True)
class GaugeBar:
    """Everything a gauge shows. Percents are of its scale: the window, or all that is used where that is more."""

    level: Level
    used_tokens: int
    window_tokens: int | None
    fill_percent: float = 0.0
    window_percent: float = 100.0
    percent_left: int | None = None
    scale: GaugeScale | None = None
    peak_tokens: int | None = None
    peak_percent: float | None = None
    forecast_words: str = ""
    forecast_reason: str = ""
    notice: str = ""
    provenance: str = ""  # of the tokens in use; empty where nobody asked
    pending_tokens: int = 0  # the estimated part of the tokens in use: what arrived since the last call
    is_soon: bool = False

    @property
    def style(self) -> str:
        return STYLES[self.level]

    @property
    def ticks(self) -> tuple[Tick, ...]:
        return self.scale.ticks if self.scale else ()

    @property
    def is_known(self) -> bool:
        return self.window_tokens is not None

    @property
    def shows_edge(self) -> bool:
        """The scale is longer than the window: its end is drawn and named."""
        return self.window_percent < 100

    @property
    def is_over_full(self) -> bool:
        return self.window_tokens is not None and self.used_tokens > self.window_tokens

    @property
    def is_estimated(self) -> bool:
        return self.provenance == "estimated" or self.pending_tokens > 0

    @property
    def parts_words(self) -> str:
        """Which part of the tokens in use was measured; empty where all of it was."""
        if not self.pending_tokens:
            return ""
        measured = self.used_tokens - self.pending_tokens
        if measured <= 0:
            return "No call has measured it yet: the whole value is estimated."
        return f"{measured:,} tokens measured, about {self.pending_tokens:,} estimated for messages since then."

    @property
    def used_words(self) -> str:
        return f"~{say_tokens(self.used_tokens)}" if self.is_estimated else say_tokens(self.used_tokens)

    @property
    def soon_words(self) -> str:
        return SOON_EXPLAINED if self.is_soon else ""

    @property
    def window_words(self) -> str:
        """of 200k, or that it is not known."""
        return "unknown window" if self.window_tokens is None else f"of {say_size(self.window_tokens)}"

    @property
    def notice_words(self) -> str:
        return _NOTICE_WORDS.get(self.notice, "")

    @property
    def level_words(self) -> str:
        """The level as a badge says it: never the colour alone."""
        if self.is_over_full:
            return "over the window"
        return "unknown level" if self.level is Level.NOT_KNOWN else str(self.level)

    @property
    def limit_words(self) -> str:
        """What the forecast counts down to."""
        is_auto_on = any(Level.AUTO_COMPACT in tick.levels for tick in self.ticks)
        limit = "the auto-compact threshold" if is_auto_on else "the usable window"
        return f"past {limit}" if self.forecast_words == NOW else f"to {limit}"

    @property
    def left_words(self) -> str:
        return "" if self.percent_left is None else f"{self.percent_left}% left"

    @property
    def _used_exactly(self) -> str:
        return f"About {self.used_tokens:,}" if self.is_estimated else f"{self.used_tokens:,}"

    @property
    def sentence(self) -> str:
        """The whole gauge as text, for those who cannot see it."""
        if self.window_tokens is None:
            return f"{self._used_exactly} tokens in use. {WINDOW_NOT_KNOWN}"
        parts = [f"{self._used_exactly} of {self.window_tokens:,} tokens in use, {self.left_words}."]
        if self.is_over_full:
            parts.append(f"{self.used_tokens - self.window_tokens:,} tokens over the window.")
        if self.parts_words:
            parts.append(self.parts_words)
        parts.append(f"Level: {self.level}.")
        if self.is_soon:
            parts.append(SOON_EXPLAINED)
        if self.scale:
            parts.append(self.scale.sentence)
        if self.notice:
            parts.append(self.notice)
        if self.peak_tokens is not None:
            beyond = ", over the window" if self.peak_tokens > self.window_tokens else ""
            parts.append(f"Peak: {self.peak_tokens:,}{beyond}.")
        if self.forecast_words:
            parts.append(f"Forecast: {self.forecast_words}.")
        return " ".join(parts)


def draw_gauge(
    lines: Thresholds | None,
    reading: LevelReading,
    *,
    forecast: Forecast | NotEnoughData | None = None,
    peak_tokens: int | None = None,
    scale: GaugeScale | None = None,
    provenance: str = "",
) -> GaugeBar:
    """Place a reading, its peak and the lines on one bar. Without lines there is no bar, only the tokens.

    `scale`: one of these lines that is drawn already, taken where it is long enough.
    """
    if lines is None:
        return GaugeBar(
            reading.level,
            reading.used_tokens,
            None,
            peak_tokens=peak_tokens,
            notice=WINDOW_NOT_KNOWN,
            provenance=provenance,
        )
    used, window = max(0, reading.used_tokens), lines.window.tokens
    length = max(used, window, peak_tokens or 0, 1)
    if scale is None or scale.tokens != length:
        scale = draw_scale(lines, length)
    words, reason = _say_forecast(forecast, is_past=used >= lines.limit_tokens)
    return GaugeBar(
        level=reading.level,
        used_tokens=reading.used_tokens,
        window_tokens=window,
        fill_percent=_share(used, length),
        window_percent=_share(window, length),
        percent_left=reading.percent_left,
        scale=scale,
        peak_tokens=peak_tokens,
        peak_percent=None if peak_tokens is None else _share(peak_tokens, length),
        forecast_words=words,
        forecast_reason=reason,
        notice=_NOTICES[lines.auto_state],
        provenance=provenance,
    )


def draw_scale(lines: Thresholds, tokens: int | None = None) -> GaugeScale:
    """As long as the window, unless told otherwise."""
    length = max(1, lines.window.tokens) if tokens is None else tokens
    return GaugeScale(lines, length, tuple(_draw_ticks(lines, length)))


def _draw_ticks(lines: Thresholds, scale_tokens: int) -> Iterator[Tick]:
    limits = (lines.available, lines.auto) if lines.is_auto_on else (lines.available,)
    marks: list[tuple[Level, Threshold, tuple[Threshold, ...]]] = [
        (Level.WARNING, lines.warning, limits),
        (Level.ERROR, lines.error, limits),
        (Level.BLOCKING, lines.blocking, (lines.available,)),
    ]
    if lines.is_auto_on:
        marks.insert(2, (Level.AUTO_COMPACT, lines.auto, (lines.available,)))
    joined: dict[int, list[tuple[Level, Threshold, tuple[Threshold, ...]]]] = {}
    for mark in marks:
        joined.setdefault(mark[1].tokens, []).append(mark)
    for tokens, group in joined.items():
        levels = tuple(level for level, _, _ in group)
        is_auto = Level.AUTO_COMPACT in levels
        yield Tick(
            levels=levels,
            tokens=tokens,
            percent=_share(tokens, scale_tokens),
            chain=tuple({line.name: line for _, own, before in group for line in (*before, own)}.values()),
            is_dashed=is_auto and lines.auto_state is ThresholdState.NOT_SEEN,
            remarks=lines.remarks if is_auto else (),
        )


def _say_origin(line: Threshold) -> str:
    term = line.terms[-1]
    return term.description if str(term.origin) in term.description else f"{term.description} ({term.origin})"


def _say_forecast(forecast: Forecast | NotEnoughData | None, *, is_past: bool) -> tuple[str, str]:
    """The words of the forecast, and what stands behind them or why there are none."""
    if forecast is None:
        return "", ""
    if isinstance(forecast, NotEnoughData):
        return NOW if is_past else "", forecast.sentence
    growth = f"The context is expected to grow by about {forecast.growth_tokens_per_call:,} tokens per call."
    if is_past or forecast.remaining_tokens == 0:
        return NOW, growth
    words = say_range(forecast.calls.likely, (forecast.calls.low, forecast.calls.high), "call")
    if forecast.turns is not None:
        turns = forecast.turns
        words = f"{words}, {say_range(turns.likely, (turns.low, turns.high), 'turn')}"
    if forecast.minutes is not None and forecast.minutes.likely > 0:
        minutes = forecast.minutes
        growth = (
            f"{growth} About {minutes.likely:,} minutes of work ({minutes.low:,}-{minutes.high:,}), excluding pauses."
        )
    return words, growth


def _share(tokens: int, scale_tokens: int) -> float:
    return round(100 * tokens / scale_tokens, 2)
