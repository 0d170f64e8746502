"""Micro-compaction by size: above the warning line, the oldest results go until the rest is small enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.compactors.micro.clearing import (
    CLEARABLE_TOOLS,
    Clearing,
    MicroKind,
    MicroOutcome,
    find_clearable,
    make_micro_outcome,
)
from compaction.context.tokens import ResultCache
from compaction.transcripts.entries import Entry


@dataclass(frozen=True, slots=True)
class SizeSettings:
    """The client's figures: what stays untouched, what may remain, what it has to be worth."""

    kept_results: int = 3
    target_tokens: int = 40_000
    least_saved_tokens: int = 20_000
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
    """What remains after clearing the oldest results; None below the warning line, or when too little is saved."""
    if used_tokens < warning_tokens:
        return None
    results = find_clearable(entries, tools=settings.tools, cache=cache)
    total = sum(result.tokens for result in results)
    left, cleared = total, []
    for result in results[: max(0, len(results) - settings.kept_results)]:
        if left <= settings.target_tokens:
            break
        cleared.append(result)
        left -= result.tokens
    if not cleared or total - left < settings.least_saved_tokens:
        return None
    clearing = Clearing(kind=MicroKind.SIZE, results=cleared, total_tokens=total, pre_tokens=used_tokens)
    return make_micro_outcome(entries, clearing, now)
