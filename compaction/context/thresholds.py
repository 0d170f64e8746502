"""Thresholds of a window, each with its value, its formula and the origin of every term; and the level of a usage.

The settings that move them are in policy.py, the client's own distances in margins.py.
"""

from dataclasses import dataclass
from enum import StrEnum

from compaction.context.margins import EARLY_DRIFT_PERCENT, LATE_DRIFT_TOKENS, ONE_RESPONSE_MARGIN_TOKENS
from compaction.context.policy import Policy
from compaction.context.windows import (
    FormulaTerm,
    ModelInUse,
    Origin,
    compute_reserve,
    get_window,
    read_client_version,
)
from compaction.llm.table import SHORT_WINDOW_TOKENS

# Measured on 2.1.197 and 2.1.325: 200k models with no window set went to 190k and 230k without compacting.
FIRST_VERSION_NOT_SEEN = (2, 1, 197)

TOO_FEW_ROUNDS_REMARK = "With too few rounds, the client's attempt fails (too_few_groups) and nothing is freed."
SILENT_FAILURE_REMARK = "Failed compactions by the client are not logged in its transcript."
NOT_SEEN_REMARK = (
    "Claude Code 2.1.197 and later was not observed to auto-compact a 200k model unless an auto-compact window is set."
)


class ThresholdState(StrEnum):
    """Whether the auto-compact threshold has an effect."""

    IN_FORCE = "in force"
    NOT_SEEN = "not seen in force"
    OFF = "off"


class Level(StrEnum):
    """The highest threshold reached, in rising order; not known where the window is not known."""

    NOT_KNOWN = "not known"
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    AUTO_COMPACT = "auto-compact"
    BLOCKING = "blocking"


@dataclass(frozen=True, slots=True)
class Threshold:
    """One threshold: its value, its formula, and the figures in it."""

    name: str
    tokens: int
    formula: str
    terms: tuple[FormulaTerm, ...]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The four thresholds of one window. `limit_tokens` is what "percent left" counts down to."""

    window: FormulaTerm
    reserve: FormulaTerm
    available: Threshold
    auto: Threshold
    warning: Threshold
    error: Threshold
    blocking: Threshold
    auto_state: ThresholdState
    remarks: tuple[str, ...]

    @property
    def is_auto_on(self) -> bool:
        """Return whether the auto-compact threshold counts for flags and limit."""
        return self.auto_state is not ThresholdState.OFF

    @property
    def limit_tokens(self) -> int:
        """The auto-compact threshold, or all that is available when auto-compact is off."""
        return self.auto.tokens if self.is_auto_on else self.available.tokens


@dataclass(frozen=True, slots=True)
class LevelReading:
    """The level of a usage: four independent flags, the one level shown, and the percentage left."""

    used_tokens: int
    level: Level
    percent_left: int | None
    is_above_warning: bool = False
    is_above_error: bool = False
    is_above_auto: bool = False
    is_at_blocking: bool = False


class DriftKind(StrEnum):
    """How an observed automatic compaction differs from the threshold in force."""

    EARLY = "early"
    LATE = "late"
    THOUGH_OFF = "though off"


@dataclass(frozen=True, slots=True)
class Drift:
    """An observed automatic compaction that differs from its threshold, with a sentence for the page."""

    kind: DriftKind
    observed_tokens: int
    line_tokens: int
    sentence: str


def compute_thresholds(policy: Policy, in_use: ModelInUse) -> Thresholds | None:
    """Return the thresholds of a policy for a model in use, never negative, always ordered; None without a window."""
    policy = policy.for_model(in_use.model)
    window = _choose_window(policy, in_use)
    if window is None:
        return None
    reserve = _choose_reserve(policy, in_use)
    available = _subtract_margin("available", Threshold("window", window.tokens, "", (window,)), reserve)
    auto = _compute_auto(policy, available)
    blocking = _subtract_margin("blocking", available, _get_margin(policy, "blocking"))
    auto = _cap_threshold(auto, blocking)
    limit = auto if policy.compacts_by_itself else available
    ceiling = auto if policy.compacts_by_itself else blocking
    error = _cap_threshold(_subtract_margin("error", limit, _get_margin(policy, "error")), ceiling)
    warning = _cap_threshold(_subtract_margin("warning", limit, _get_margin(policy, "warning")), error)
    state, remarks = _classify_auto_state(policy, in_use)
    return Thresholds(window, reserve, available, auto, warning, error, blocking, state, remarks)


def classify_usage(lines: Thresholds | None, used_tokens: int) -> LevelReading:
    """Return the level of a usage. A threshold is reached when used >= threshold; without thresholds: not known."""
    if lines is None:
        return LevelReading(used_tokens, level=Level.NOT_KNOWN, percent_left=None)
    is_above_warning = used_tokens >= lines.warning.tokens
    is_above_error = used_tokens >= lines.error.tokens
    is_above_auto = lines.is_auto_on and used_tokens >= lines.auto.tokens
    is_at_blocking = used_tokens >= lines.blocking.tokens
    if is_at_blocking:
        level = Level.BLOCKING
    elif is_above_auto:
        level = Level.AUTO_COMPACT
    elif is_above_error:
        level = Level.ERROR
    else:
        level = Level.WARNING if is_above_warning else Level.OK
    return LevelReading(
        used_tokens,
        level,
        compute_percent_left(used_tokens, lines.limit_tokens),
        is_above_warning=is_above_warning,
        is_above_error=is_above_error,
        is_above_auto=is_above_auto,
        is_at_blocking=is_at_blocking,
    )


def compute_percent_left(used_tokens: int, limit_tokens: int) -> int:
    """Return what is left until the limit, in percent from 0 to 100, rounded half up."""
    if limit_tokens <= 0:
        return 0
    left = max(0, limit_tokens - max(0, used_tokens))
    return (200 * left + limit_tokens) // (2 * limit_tokens)


def compute_drift(
    lines: Thresholds, observed_tokens: int, *, trigger: str = "auto", is_reactive: bool = False
) -> Drift | None:
    """Return how an observed compaction differs from the threshold in force; None for manual and reactive ones."""
    if trigger != "auto" or is_reactive:
        return None
    line = lines.auto.tokens
    if not lines.is_auto_on:
        sentence = f"Auto-compacted at {observed_tokens:,} tokens although auto-compact is off."
        return Drift(DriftKind.THOUGH_OFF, observed_tokens, line, sentence)
    if observed_tokens * 100 < line * (100 - EARLY_DRIFT_PERCENT):
        sentence = f"Compacted at {observed_tokens:,} tokens, {line - observed_tokens:,} below the threshold {line:,}."
        return Drift(DriftKind.EARLY, observed_tokens, line, sentence)
    if observed_tokens > line + LATE_DRIFT_TOKENS:
        sentence = f"Compacted at {observed_tokens:,} tokens, {observed_tokens - line:,} above the threshold {line:,}."
        return Drift(DriftKind.LATE, observed_tokens, line, sentence)
    return None


def _choose_window(policy: Policy, in_use: ModelInUse) -> FormulaTerm | None:
    model_window = get_window(in_use)
    tokens = policy.window_tokens
    if tokens is None:
        return model_window
    origin = policy.get_origin("window_tokens")
    if origin is Origin.CLIENT_SETTING and model_window is not None and tokens > model_window.tokens:
        # The client caps its auto-compact window at what the model holds.
        return model_window
    return FormulaTerm(tokens, origin, f"window {tokens:,} set by {origin}")


def _choose_reserve(policy: Policy, in_use: ModelInUse) -> FormulaTerm:
    if policy.reserve_tokens is not None:
        origin = policy.get_origin("reserve_tokens")
        return FormulaTerm(policy.reserve_tokens, origin, f"reserve {policy.reserve_tokens:,} from {origin}")
    if policy.max_output_tokens is None:
        return compute_reserve(in_use)
    origin = policy.get_origin("max_output_tokens")
    return compute_reserve(
        in_use, FormulaTerm(policy.max_output_tokens, origin, f"max output {policy.max_output_tokens:,}")
    )


def _compute_auto(policy: Policy, available: Threshold) -> Threshold:
    auto = _subtract_margin("auto", available, _get_margin(policy, "auto"))
    if policy.auto_percent is None:
        return auto
    tokens = int(available.tokens * policy.auto_percent / 100)
    if tokens >= auto.tokens:
        return auto
    origin = policy.get_origin("auto_percent")
    description = f"{policy.auto_percent}% of available"
    formula = f"auto = floor(available x {policy.auto_percent} / 100) = {tokens:,}"
    return Threshold("auto", tokens, formula, (*available.terms, FormulaTerm(tokens, origin, description)))


def _get_margin(policy: Policy, name: str) -> FormulaTerm:
    setting = f"{name}_margin_tokens"
    tokens: int = getattr(policy, setting)
    origin = policy.get_origin(setting)
    return FormulaTerm(tokens, origin, f"{tokens:,} from {origin}")


def _subtract_margin(name: str, limit: Threshold, margin: FormulaTerm) -> Threshold:
    tokens = limit.tokens - margin.tokens
    formula = f"{name} = {limit.name} - {margin.tokens:,} = {tokens:,}"
    if tokens < 0:
        tokens, formula = 0, f"{formula}, held at 0"
    return Threshold(name, tokens, formula, (*limit.terms, margin))


def _cap_threshold(line: Threshold, ceiling: Threshold) -> Threshold:
    if line.tokens <= ceiling.tokens:
        return line
    formula = f"{line.formula}, held at {ceiling.name} {ceiling.tokens:,}"
    return Threshold(line.name, ceiling.tokens, formula, line.terms)


def _classify_auto_state(policy: Policy, in_use: ModelInUse) -> tuple[ThresholdState, tuple[str, ...]]:
    if not policy.compacts_by_itself:
        return ThresholdState.OFF, ()
    if not in_use.is_claude_code:
        return ThresholdState.IN_FORCE, ()
    remarks = [TOO_FEW_ROUNDS_REMARK, SILENT_FAILURE_REMARK]
    model_window = get_window(in_use)
    if in_use.responses is not None and in_use.responses <= 1 and model_window is not None:
        tokens = max(0, model_window.tokens - ONE_RESPONSE_MARGIN_TOKENS)
        remarks.insert(0, f"With only one response so far, the client compacts at {tokens:,} tokens.")
    version = read_client_version(in_use.client_version)
    has_client_window = policy.get_origin("window_tokens") is Origin.CLIENT_SETTING
    is_short = model_window is not None and model_window.tokens <= SHORT_WINDOW_TOKENS
    if version is not None and version >= FIRST_VERSION_NOT_SEEN and is_short and not has_client_window:
        return ThresholdState.NOT_SEEN, (NOT_SEEN_REMARK, *remarks)
    return ThresholdState.IN_FORCE, tuple(remarks)
