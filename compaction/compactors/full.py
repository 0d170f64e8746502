"""Full compaction: everything the model sees becomes one summary. The chain that decides when lives in auto."""

from collections.abc import Sequence

from compaction.compactors.news import list_selectable, require_new_messages
from compaction.compactors.outcome import CompactionKind, CompactionOutcome
from compaction.compactors.run import CompactionRequest, RunPorts, Selection, run_compaction
from compaction.compactors.summary.too_long import SummaryRange
from compaction.transcripts.chain import ContextSlice
from compaction.transcripts.entries import Entry


def compact_full(entries: Sequence[Entry], request: CompactionRequest, outside: RunPorts) -> CompactionOutcome:
    """The whole conversation summarised; a previous summary is summarised with it.

    `entries` is the active branch of one thread. Raises a RunError: NothingToCompact, BlockedByHook,
    CompactionCancelled, SummarizerUnavailable, ConversationTooLong, or a BadSummary.
    """
    return run_compaction(entries, _select_all, request, outside, kind=CompactionKind.FULL)


def _select_all(context: ContextSlice) -> Selection:
    require_new_messages(context)
    return Selection(CompactionKind.FULL, SummaryRange(list_selectable(context)))
