"""Where a session stands under a team's policy: the figures that lists sort and gauges draw.

Shared by what records a session and by what levels it anew after a change of policy, so that both agree.
"""

from dataclasses import dataclass
from typing import Any

from compaction.context.policy import Policy
from compaction.context.thresholds import Level, Thresholds, classify_usage, compute_thresholds
from compaction.context.windows import ModelInUse

# The columns of a session that its lines depend on, beside the team's policy: as `describe_use` takes them.
USE_COLUMNS = ("model", "client_version", "reported_window_tokens", "is_claude_code", "is_window_inferred")
LEVEL_RANKS = {level: rank for rank, level in enumerate(Level)}  # not known, ok, warning, … blocking


@dataclass(frozen=True, slots=True)
class SessionLevel:
    """Named as the columns of a session. Without a known window only the level speaks, and says so."""

    window_tokens: int | None
    auto_line_tokens: int | None  # None as well while the client does not compact by itself
    level: str
    level_rank: int
    percent_left: int | None


def describe_use(
    model: str,
    client_version: str,
    reported_window_tokens: int | None,
    is_claude_code: bool,  # noqa: FBT001 (a row)
    is_window_inferred: bool,  # noqa: FBT001
) -> ModelInUse:
    """The one place where a stored session becomes what the engine asks for. SQLite hands truths over as numbers."""
    return ModelInUse(
        model,
        is_claude_code=bool(is_claude_code),
        is_window_inferred=bool(is_window_inferred),
        client_version=client_version or None,
        reported_window_tokens=reported_window_tokens,
    )


def find_model_in_use(session: Any) -> ModelInUse:
    """Of a session as it is stored, or as a list reads it."""
    return describe_use(*[getattr(session, name) for name in USE_COLUMNS])


def work_out_level(policy: Policy, in_use: ModelInUse, context_tokens: int) -> SessionLevel:
    return place_on_lines(compute_thresholds(policy, in_use), context_tokens)


def place_on_lines(lines: Thresholds | None, context_tokens: int) -> SessionLevel:
    """For many sessions with the same lines."""
    reading = classify_usage(lines, context_tokens)
    return SessionLevel(
        window_tokens=lines.window.tokens if lines else None,
        auto_line_tokens=lines.auto.tokens if lines and lines.is_auto_on else None,
        level=reading.level.value,
        level_rank=LEVEL_RANKS[reading.level],
        percent_left=reading.percent_left,
    )
