"""Clears by idle time: after 60 minutes the cache is cold, so old results are cleared before all is sent again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from compaction.compactors.micro.clearing import (
    CLEARABLE_TOOLS,
    ClearingPlan,
    MicroKind,
    MicroOutcome,
    clear_planned,
    list_clearable,
)
from compaction.context.tokens import ResultCache, measure_context
from compaction.transcripts.entries import Entry


@dataclass(frozen=True, slots=True)
class IdleSettings:
    """The client's figures: the idle time after which the cache counts as cold, and the number of results kept."""

    gap_seconds: int = 60 * 60
    kept_results: int = 5
    tools: frozenset[str] | None = CLEARABLE_TOOLS  # None: of any tool


DEFAULT_IDLE_SETTINGS = IdleSettings()


def compute_idle_time(entries: Sequence[Entry], now: datetime) -> timedelta | None:
    """Return the time since the last response; None without one."""
    for entry in reversed(entries):
        if entry.type == "assistant" and entry.at is not None:
            return now - entry.at
    return None


def clear_by_idle_time(
    entries: Sequence[Entry],
    *,
    now: datetime,
    cache_ttl_seconds: int,
    settings: IdleSettings = DEFAULT_IDLE_SETTINGS,
    cache: ResultCache | None = None,
) -> MicroOutcome | None:
    """Clear all but the last results. None while the cache may be warm, or when there is nothing to clear."""
    idle = compute_idle_time(entries, now)
    if idle is None or idle <= timedelta(seconds=max(settings.gap_seconds, cache_ttl_seconds)):
        return None
    results = list_clearable(entries, tools=settings.tools, cache=cache)
    cleared = results[: max(0, len(results) - settings.kept_results)]
    if not cleared:
        return None
    total = sum(result.tokens for result in results)
    pre_tokens = measure_context(entries, cache).tokens
    plan = ClearingPlan(kind=MicroKind.IDLE, results=cleared, total_tokens=total, pre_tokens=pre_tokens)
    return clear_planned(entries, plan, now)
