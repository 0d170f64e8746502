"""Two figures of the same thing held against each other: the difference with its sign, the percent, and a verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from dashboard.words import say_percent

Figure = int | float | Decimal
_MINUS = "−"  # noqa: RUF001 (a minus sign lines up with digits, a hyphen does not)
BETTER, WORSE, SAME = "better", "worse", "the same"


@dataclass(frozen=True, slots=True)
class Trend:
    """`is_less_better` is None where neither way is: more calls are no worse than fewer."""

    before: Figure | None
    now: Figure | None
    is_less_better: bool | None = None

    @property
    def difference(self) -> Figure | None:
        if self.before is None or self.now is None:
            return None
        return self.now - self.before  # type: ignore[operator]  # both are of one kind

    @property
    def change(self) -> float | None:
        """As a share of what was before; None where that was nothing or is not known."""
        difference = self.difference
        return None if difference is None or not self.before else float(difference) / abs(float(self.before))

    @property
    def verdict(self) -> str:
        """In a word; empty where there is none to give."""
        difference = self.difference
        if difference is None:
            return ""
        if difference == 0:
            return SAME
        if self.is_less_better is None:
            return ""
        return BETTER if (difference < 0) is self.is_less_better else WORSE

    @property
    def change_words(self) -> str:
        """+12%; empty where there is nothing to take a share of."""
        change = self.change
        return "" if change is None or change == 0 else sign(change, say_percent)


def sign(figure: Figure, say: Callable[..., str]) -> str:
    """The figure with its sign in front, plus too."""
    return f"{_MINUS if figure < 0 else '+' if figure > 0 else ''}{say(abs(figure))}"


def say_trend(trend: Trend, *, against: str) -> str:
    """+12% against the 30 days before, worse."""
    if trend.before is None or trend.now is None:
        return ""
    if trend.verdict == SAME:
        return f"same as {against}"
    if not trend.before:
        return f"none in {against}"
    words = f"{trend.change_words} vs. {against}"
    return f"{words}, {trend.verdict}" if trend.verdict else words
