"""The status JSON of a coding agent, read without trust: a value of another kind than expected is not there."""

import math
from datetime import UTC, datetime
from typing import Any, NamedTuple

_LARGEST_TOKENS = 10**12
_LARGEST_SECONDS = 10**11  # above it a time is told in milliseconds
_LARGEST_TIME = 10**14


class StatusValues(NamedTuple):
    """What a status line shows and forwards; None: not told."""

    session_id: str = ""
    model: str = ""
    client_version: str = ""
    window_tokens: int | None = None
    used_tokens: int | None = None
    cost_usd: float | None = None
    cache: dict[str, Any] = {}
    rate_limits: dict[str, dict[str, float]] = {}

    @property
    def misses(self) -> int | None:
        return read_count(self.cache.get("misses"))

    @property
    def warm_until(self) -> float | None:
        """Seconds since 1970; None where the cache is cold or not known."""
        return read_time(self.cache.get("expires_at")) if self.cache.get("warm") is not False else None


def read_status(told: dict[str, Any]) -> StatusValues:
    window = _read_object(told.get("context_window"))
    model = told.get("model")
    size_tokens = read_count(window.get("context_window_size"))
    return StatusValues(
        session_id=_read_text(told.get("session_id")),
        model=_read_text(_read_object(model).get("id") if isinstance(model, dict) else model),
        client_version=_read_text(told.get("version")),
        window_tokens=size_tokens or None,
        used_tokens=_read_used(window, size_tokens),
        cost_usd=read_number(_read_object(told.get("cost")).get("total_cost_usd")),
        cache=_read_object(told.get("prompt_cache")),
        rate_limits=_read_limits(told.get("rate_limits")),
    )


def _read_used(window: dict[str, Any], size_tokens: int | None) -> int | None:
    """After the last response: what went in and what came out. Right after a compaction only a share is told."""
    usage = window.get("current_usage")
    if isinstance(usage, dict):
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        return sum(read_count(usage.get(name)) or 0 for name in names)
    percent = read_number(window.get("used_percentage"))
    if percent is None or size_tokens is None:
        return None
    return round(size_tokens * min(max(percent, 0), 1000) / 100)


def _read_limits(told: object) -> dict[str, dict[str, float]]:
    limits = {}
    for name, limit in list(_read_object(told).items())[:8]:
        used = read_number(_read_object(limit).get("used_percentage"))
        if used is not None:
            resets_at = read_time(_read_object(limit).get("resets_at"))
            limits[str(name)] = {"used_percentage": used} | ({"resets_at": resets_at} if resets_at else {})
    return limits


def _read_object(told: object) -> dict[str, Any]:
    return told if isinstance(told, dict) else {}


def _read_text(told: object) -> str:
    """Whole: whoever keeps it takes secrets out before it is cut."""
    return told if isinstance(told, str) else ""


def read_number(told: object) -> float | None:
    if isinstance(told, bool) or not isinstance(told, int | float) or abs(told) > 1e15 or not math.isfinite(told):
        return None
    return float(told)


def read_count(told: object) -> int | None:
    number = read_number(told)
    return None if number is None or not 0 <= number <= _LARGEST_TOKENS else int(number)


def read_time(told: object) -> float | None:
    """Seconds since 1970, from seconds, milliseconds or ISO 8601; without a zone it is UTC."""
    if isinstance(told, str):
        try:
            at = datetime.fromisoformat(told[:40])
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    number = read_number(told)
    if number is None or not 0 < number < _LARGEST_TIME:
        return None
    return number / 1000 if number > _LARGEST_SECONDS else number
