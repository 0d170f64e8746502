"""The lines of a policy for windows people know, beside those of the policy in force."""

from collections.abc import Iterator
from dataclasses import dataclass

from compaction.context.policy import Policy
from compaction.context.thresholds import Threshold, Thresholds, compute_thresholds
from compaction.context.windows import ModelInUse
from compaction.llm.table import LONG_WINDOW_TOKENS, SHORT_WINDOW_TOKENS

# What people call the lines, and their names in the engine and in class names.
STYLES = {"warning": "warning", "error": "error", "auto-compact": "auto", "blocking": "blocking"}


@dataclass(frozen=True)
class MovedLine:
    """`before` is None where the line did not act, `tokens` where it does not."""

    name: str
    style: str
    before: int | None
    tokens: int | None
    formula: str

    @property
    def moved_by(self) -> int | None:
        return None if self.before is None or self.tokens is None else self.tokens - self.before


@dataclass(frozen=True)
class DrawnWindow:
    """One window under the draft; `model` is empty for any model with that window."""

    model: str
    before: Thresholds | None
    lines: Thresholds | None

    @property
    def window_tokens(self) -> int | None:
        return self.lines.window.tokens if self.lines else None

    @property
    def available(self) -> str:
        """What the lines are counted down from."""
        return (
            f"usable window (available) {self.lines.available.tokens:,} = {say_formula(self.lines.available)}"
            if self.lines
            else ""
        )

    @property
    def moved(self) -> list[MovedLine]:
        return [*_compare(self.before, self.lines)] if self.lines else []


def draw_windows(current: Policy, draft: Policy) -> list[DrawnWindow]:
    """200k and 1M, or the one window the draft sets for all; then the models with values of their own."""
    plain = [
        _draw(current, draft, ModelInUse(model="", reported_window_tokens=tokens))
        for tokens in (SHORT_WINDOW_TOKENS, LONG_WINDOW_TOKENS)
    ]
    models = sorted({name for policy in (current, draft) for name, _ in policy.by_model})
    windows = plain[:1] if draft.window_tokens is not None else plain
    return windows + [_draw(current, draft, ModelInUse(model=name)) for name in models]


def _draw(current: Policy, draft: Policy, in_use: ModelInUse) -> DrawnWindow:
    return DrawnWindow(in_use.model, compute_thresholds(current, in_use), compute_thresholds(draft, in_use))


def acting_lines(lines: Thresholds | None) -> dict[str, Threshold]:
    """The lines that mean something, by name: none without a known window, no auto-compact line while it is off."""
    if lines is None:
        return {}
    drawn = {name: getattr(lines, style) for name, style in STYLES.items()}
    return drawn if lines.is_auto_on else {name: line for name, line in drawn.items() if line is not lines.auto}


def _compare(before: Thresholds | None, lines: Thresholds) -> Iterator[MovedLine]:
    olds, news = acting_lines(before), acting_lines(lines)
    for name, style in STYLES.items():
        old, new = olds.get(name), news.get(name)
        formula = say_formula(new) if new else "off"
        yield MovedLine(name, style, old.tokens if old else None, new.tokens if new else None, formula)


def say_formula(line: Threshold) -> str:
    """For a place that names the line and its tokens already: warning = auto - 20,000 = 147,000 -> auto - 20,000."""
    return line.formula.removeprefix(f"{line.name} = ").removesuffix(f" = {line.tokens:,}")
