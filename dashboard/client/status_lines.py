"""The lines of a model's window as a status line needs them: plain numbers, drawn by the engine once and remembered."""

from collections.abc import Mapping

from compaction.context.policy import Policy
from compaction.context.thresholds import compute_thresholds
from compaction.context.windows import ModelInUse
from dashboard.client.status_values import StatusValues


def draw_status_lines(values: StatusValues, environment: Mapping[str, str]) -> dict[str, int | None] | None:
    """By name, with the window and the limit that "left" counts down to; `auto` is None while it is switched off."""
    in_use = ModelInUse(
        values.model, client_version=values.client_version or None, reported_window_tokens=values.window_tokens
    )
    lines = compute_thresholds(Policy.from_environment(environment), in_use)
    if lines is None:
        return None
    return {
        "window": lines.window.tokens,
        "limit": lines.limit_tokens,
        "warning": lines.warning.tokens,
        "error": lines.error.tokens,
        "auto": lines.auto.tokens if lines.is_auto_on else None,
        "blocking": lines.blocking.tokens,
    }
