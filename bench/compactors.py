"""Speed of the compactors, model time left out. Goal 5: micro-compaction of 2,000 messages within 20 ms, linear growth.

Run: python -m bench.compactors.
"""

import gc
import math
from collections.abc import Callable
from datetime import UTC, datetime

from bench.engine import GOAL_MESSAGES, GOAL_MS, SIZES, make_session, time_ms
from compaction.compactors.micro.by_idle import clear_by_idle_time
from compaction.compactors.micro.by_size import clear_by_size
from compaction.compactors.micro.cache_edits import CacheEditState, plan_deletions, register_results
from compaction.compactors.outcome import Trigger
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full, compact_up_to
from compaction.compactors.summary.prompt import list_sections
from compaction.errors import PromptTooLong
from compaction.ports import Monitor, SummaryAnswer, SummaryRequest
from compaction.transcripts.entries import Entry
from compaction.transcripts.transcript import read_transcript

NOW = datetime(2026, 5, 2, 10, 0, tzinfo=UTC)
REQUEST = CompactionRequest(trigger=Trigger.AUTO, now=NOW)
Entries = tuple[Entry, ...]


class InstantSummarizer:
    """Answers at once; the first so many times that the request is too long."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:  # noqa: ARG002
        """Nine sections with a word each."""
        if self.refusals:
            self.refusals -= 1
            raise PromptTooLong(205_000, 200_000)
        text = "\n".join(f"{number}. {name}: done" for number, name in enumerate(list_sections(request.variant), 1))
        return SummaryAnswer(text=f"<summary>{text}</summary>", stop_reason="end_turn")


def clear_size(entries: Entries) -> object:
    """Micro-compaction by size."""
    return clear_by_size(entries, used_tokens=1, warning_tokens=0, now=NOW)


def clear_idle(entries: Entries) -> object:
    """Micro-compaction by idle time."""
    return clear_by_idle_time(entries, now=NOW, cache_ttl_seconds=3_600)


def edit_cache(entries: Entries) -> object:
    """Registering and planning of cache edits."""
    return plan_deletions(register_results(CacheEditState(), entries))


def summarise_all(entries: Entries) -> object:
    """Full compaction, plain request."""
    return compact_full(entries, REQUEST, RunPorts(InstantSummarizer()))


def summarise_half(entries: Entries) -> object:
    """Partial compaction, half of it kept."""
    return compact_up_to(entries, entries[len(entries) // 2].uuid or "", REQUEST, RunPorts(InstantSummarizer()))


def summarise_shrunk(entries: Entries) -> object:
    """Full compaction that is refused three times."""
    return compact_full(entries, REQUEST, RunPorts(InstantSummarizer(3)))


WORKS: dict[str, Callable[[Entries], object]] = {
    "micro, size": clear_size,
    "micro, idle": clear_idle,
    "cache edits": edit_cache,
    "full": summarise_all,
    "up_to, half": summarise_half,
    "full, 3 shrinks": summarise_shrunk,
}


def main() -> None:
    """Prints a table and the goal."""
    table: dict[str, list[float]] = {name: [] for name in WORKS}
    for size in SIZES:
        entries = read_transcript(make_session(size)).entries
        for entry in entries:
            len(entry.message.content if entry.message else ())
        gc.collect()
        gc.freeze()
        for name, work in WORKS.items():
            table[name].append(time_ms(lambda work=work, entries=entries: work(entries), rounds=3))  # type: ignore[misc]
        gc.unfreeze()
    print("messages          " + "".join(f"{size:>9,}" for size in SIZES) + "   exponent")
    for name, times in table.items():
        exponent = math.log(times[-1] / times[0]) / math.log(SIZES[-1] / SIZES[0])
        print(f"{name:<15} ms" + "".join(f"{ms:9.2f}" for ms in times) + f"   {exponent:8.2f}")
    goal = table["micro, size"][SIZES.index(GOAL_MESSAGES)]
    print(f"goal 5: micro-compaction of {GOAL_MESSAGES:,} messages takes {goal:.1f} ms (goal {GOAL_MS:.0f} ms)")


if __name__ == "__main__":
    main()
