"""Sliders over a gauge that move its thresholds; each writes the margin field that its threshold comes from."""

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds
from dashboard.words import say_size


@dataclass(frozen=True)
class TickSlider:
    """One threshold as a slider. Its margin is counted down from `limit_tokens`."""

    name: str
    style: str
    tokens: int
    limit_tokens: int
    lowest: int
    highest: int
    window_tokens: int

    @property
    def field(self) -> str:
        """The form field of the margin."""
        return f"{self.style}_margin_tokens"

    @property
    def percent(self) -> float:
        """Position on the gauge."""
        return round(100 * self.tokens / max(1, self.window_tokens), 2)

    @property
    def window_size(self) -> str:
        return say_size(self.window_tokens)

    @property
    def value_words(self) -> str:
        return f"{self.tokens:,} tokens, {self.percent:.0f}% of the window"


def list_sliders(policy: Policy, lines: Thresholds) -> Iterator[TickSlider]:
    """Sliders from the lowest threshold to the highest. Their ranges keep the order that a policy must have."""
    window, available = lines.window.tokens, lines.available.tokens
    warning, error, blocking = lines.warning.tokens, lines.error.tokens, lines.blocking.tokens
    limit = lines.limit_tokens
    by_margin = max(0, available - policy.auto_margin_tokens)
    yield TickSlider("Warning", "warning", warning, limit, 0, error, window)
    yield TickSlider("Error", "error", error, limit, warning, limit if lines.is_auto_on else blocking, window)
    if lines.is_auto_on:
        # Warning and error keep their distance below it, and must not fall below zero. A percentage only lowers it.
        auto = lines.auto.tokens
        highest = blocking if policy.auto_percent is None else by_margin
        yield TickSlider("Auto-compact", "auto", auto, available, auto - warning, highest, window)
    lowest = by_margin if lines.is_auto_on else max(by_margin, error)
    yield TickSlider("Blocking", "blocking", blocking, available, lowest, available, window)
