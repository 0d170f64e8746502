"""The forecast of a session as it is stored: its pace, and the ranges to the auto line that follow from it.

Pure. Shared by what records a session, by what applies a changed policy to it and by its page, so that all agree.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from compaction.context.forecast import (
    LEAST_GROWTHS,
    OPENING_CALLS,
    CallPoint,
    Forecast,
    NotEnoughData,
    Pace,
    Range,
    forecast_remaining,
)

LEAST_CALLS = 1 + OPENING_CALLS + LEAST_GROWTHS  # fewer never give a pace
POINT_COLUMNS = ("number", "context_tokens", "at", "turn")
_RANGES = ("growth", "calls", "turns", "minutes")


class SessionForecast(NamedTuple):
    """Named as the columns of a session. `calls_left` is the figure of the forecast that lists show and sort by."""

    forecast: dict[str, Any] | None
    is_soon: bool
    calls_left: int | None


def serialize_forecast(pace: Pace | NotEnoughData, line_tokens: int | None, used_tokens: int) -> SessionForecast:
    """Return the columns of a session. Without a line the pace is stored alone, for later policies."""
    stored: dict[str, Any] = {"pace": asdict(pace)} if isinstance(pace, Pace) else {}
    found = None if line_tokens is None else forecast_remaining(pace, line_tokens - used_tokens)
    if not isinstance(found, Forecast):
        return SessionForecast(stored or None, is_soon=False, calls_left=None)
    ranges = (found.calls, found.turns, found.minutes)
    figures = (found.growth_tokens_per_call, *map(_serialize_range, ranges))
    forecast = stored | dict(zip(_RANGES, figures, strict=True))
    return SessionForecast(forecast, found.is_soon, found.calls.likely)


def parse_pace(stored: dict[str, Any] | None) -> Pace | None:
    """Return the pace of a stored forecast; None for one of a version that stored the ranges alone."""
    pace = (stored or {}).get("pace")
    return Pace(**pace) if pace else None


def list_ranges(stored: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a stored forecast as the API has it; None where there is no line to forecast."""
    return {name: stored[name] for name in _RANGES} if stored and "calls" in stored else None


def build_points(
    rows: Iterable[tuple[int, int, datetime | None, int]], compaction_ends: Sequence[int]
) -> list[CallPoint]:
    """Return the points of calls, which are rows of POINT_COLUMNS in order. `compaction_ends`: the numbers of the last
    calls before each full compaction, in order."""
    points, last = [], 0
    for number, tokens, at, turn in rows:
        # Behind the call before it and in front of this one, whatever was called beside the conversation meanwhile.
        is_first = bisect_left(compaction_ends, last) < bisect_left(compaction_ends, number)
        last = number
        if tokens:
            points.append(CallPoint(tokens, at, turn, is_first_after_compaction=is_first))
    return points


def _serialize_range(value: Range | None) -> list[int] | None:
    return None if value is None else [value.low, value.likely, value.high]
