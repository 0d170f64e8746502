"""Clears by size: above the warning threshold, the oldest results are cleared until the rest is small enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.compactors.micro.clearing import (
    CLEARABLE_TOOLS,
    ClearingPlan,
    MicroKind,
    MicroOutcome,
    clear_planned,
    list_clearable,
)
from compaction.context.tokens import ResultCache
from compaction.transcripts.entries import Entry


@dataclass(frozen=True, slots=True)
class SizeSettings:
    """The client's figures: results kept, tokens that may remain, and the minimum to save."""

    kept_results: int = 3
    target_tokens: int = 40_000
    min_saved_tokens: int = 20_000
    tools: frozenset[str] | None = CLEARABLE_TOOLS  # None: of any tool


DEFAULT_SIZE_SETTINGS = SizeSettings()


def clear_by_size(
    entries: Sequence[Entry],
    *,
    used_tokens: int,
    warning_tokens: int,
    now: datetime,
    settings: SizeSettings = DEFAULT_SIZE_SETTINGS,
    cache: ResultCache | None = None,
) -> MicroOutcome | None:
    """Clear the oldest results. None below the warning threshold, or when clearing would save too little."""
    if used_tokens < warning_tokens:
        return None
    results = list_clearable(entries, tools=settings.tools, cache=cache)
    total = sum(result.tokens for result in results)
    remaining, cleared = total, []
    for result in results[: max(0, len(results) - settings.kept_results)]:
        if remaining <= settings.target_tokens:
            break
        cleared.append(result)
        remaining -= result.tokens
    if not cleared or total - remaining < settings.min_saved_tokens:
        return None
    plan = ClearingPlan(kind=MicroKind.SIZE, results=cleared, total_tokens=total, pre_tokens=used_tokens)
    return clear_planned(entries, plan, now)
