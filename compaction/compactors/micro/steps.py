"""Micro-compaction at the start of a turn: by idle time or by cache edits, then by size above the warning line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from compaction.compactors.micro.by_idle import DEFAULT_IDLE_SETTINGS, clear_by_idle_time
from compaction.compactors.micro.by_size import DEFAULT_SIZE_SETTINGS, clear_by_size
from compaction.compactors.micro.cache_edits import plan_deletions, register_results
from compaction.compactors.micro.clearing import MicroOutcome
from compaction.compactors.thread_state import ThreadMemory
from compaction.context.thresholds import Thresholds
from compaction.context.tokens import add_margin
from compaction.transcripts.chain import slice_context
from compaction.transcripts.entries import Entry


class MicroTurn(Protocol):
    """What these steps ask of a turn."""

    @property
    def now(self) -> datetime: ...
    @property
    def lines(self) -> Thresholds | None: ...
    @property
    def can_edit_cache(self) -> bool: ...
    @property
    def cache_ttl_seconds(self) -> int: ...
    @property
    def clearable_tools(self) -> frozenset[str] | None: ...


@dataclass(frozen=True, slots=True)
class MicroSteps:
    """What was cleared, step by step, and how many deletions were queued for the cache."""

    outcomes: tuple[MicroOutcome, ...] = ()
    queued_deletions: int = 0

    @property
    def saved_tokens(self) -> int:
        """By how much the context is smaller, in the same measure as the context itself."""
        return add_margin(sum(step.tokens_saved for step in self.outcomes))

    def apply(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """All entries with what was cleared in place; the very same object when nothing was."""
        if not self.outcomes:
            return entries
        cleared = {entry.uuid: entry for step in self.outcomes for entry in step.entries if entry.uuid}
        return tuple(cleared.get(entry.uuid, entry) if entry.uuid else entry for entry in entries)


def run_micro_steps(entries: Sequence[Entry], turn: MicroTurn, memory: ThreadMemory, *, used_tokens: int) -> MicroSteps:
    """The steps that are due. A warm cache is edited, never rewritten, where that can be done."""
    seen: Sequence[Entry] = slice_context(entries).entries
    steps: list[MicroOutcome] = []
    idle = clear_by_idle_time(
        seen,
        now=turn.now,
        cache_ttl_seconds=turn.cache_ttl_seconds,
        settings=replace(DEFAULT_IDLE_SETTINGS, tools=turn.clearable_tools),
        cache=memory.token_cache,
    )
    queued = 0
    if idle is not None:
        steps.append(idle)
        seen = idle.entries
    elif turn.can_edit_cache:
        queued = _queue_deletions(seen, memory)
    saved = add_margin(sum(step.tokens_saved for step in steps))
    if turn.lines is not None and not queued:
        by_size = clear_by_size(
            seen,
            used_tokens=used_tokens - saved,
            warning_tokens=turn.lines.warning.tokens,
            now=turn.now,
            settings=replace(DEFAULT_SIZE_SETTINGS, tools=turn.clearable_tools),
            cache=memory.token_cache,
        )
        if by_size is not None:
            steps.append(by_size)
    for step in steps:
        memory.micro.note(step)
    return MicroSteps(tuple(steps), queued)


def _queue_deletions(entries: Sequence[Entry], memory: ThreadMemory) -> int:
    before = register_results(memory.cache_edits, entries)
    memory.cache_edits = plan_deletions(before)
    return len(memory.cache_edits.pending) - len(before.pending)
