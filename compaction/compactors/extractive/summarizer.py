"""A summary without a model: quoted from the transcript, never interpreted, the same for the same input.

The Summarizer where no key is configured. The other files of this folder decide what goes into each section.
"""

from collections.abc import Sequence

from compaction.compactors.extractive.current_state import list_current_items, list_next_items
from compaction.compactors.extractive.errors import list_error_items
from compaction.compactors.extractive.files import list_concept_items, list_file_items
from compaction.compactors.extractive.history import list_history_items
from compaction.compactors.extractive.material import read_material
from compaction.compactors.extractive.pending import list_pending_items
from compaction.compactors.extractive.previous_summary import list_previous_items
from compaction.compactors.extractive.requests import list_message_items, list_request_items
from compaction.compactors.extractive.sections import build_sections
from compaction.compactors.summary.prompt import list_sections
from compaction.context.margins import MAX_SUMMARY_TOKENS
from compaction.context.tokens import estimate_tokens
from compaction.errors import CompactionCancelled
from compaction.ports import Monitor, SummaryAnswer, SummaryRequest, Variant
from compaction.transcripts.entries import Entry

# The product's: a summary should be at most half of what it covers, as far as code, notes and statements go,
AIM_PERCENT = 50
LEAST_AIM_TOKENS = 1_500
# and no longer than about 24,000 characters: the client's own summaries have 9,000 to 16,000.
MOST_AIM_TOKENS = 8_000
LABEL = "made without a model: quoted from the transcript, not interpreted"


class ExtractiveSummarizer:
    """Answers every request for a summary from the entries it is to cover."""

    def __init__(self, *, cap_tokens: int = MAX_SUMMARY_TOKENS) -> None:
        self._cap_tokens = cap_tokens

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        """Return the summary. Raise CompactionCancelled when the monitor reports a cancellation."""
        if monitor.is_cancelled():
            raise CompactionCancelled
        text = build_extractive_summary(
            request.entries, request.variant, cap_tokens=self._cap_tokens, instructions=request.instructions
        )
        return SummaryAnswer(text=f"<summary>\n{text}\n</summary>", stop_reason="end_turn", label=LABEL)


def build_extractive_summary(
    entries: Sequence[Entry],
    variant: Variant = Variant.FULL,
    *,
    cap_tokens: int = MAX_SUMMARY_TOKENS,
    instructions: str | None = None,
) -> str:
    """Return all nine sections from these entries, within the cap; what the instructions name is cut last."""
    material = read_material(entries, instructions=instructions)
    items = [
        *list_request_items(material, LABEL),
        *list_previous_items(material.activity.previous_summary, material.priorities),
        *list_concept_items(material),
        *list_file_items(material),
        *list_error_items(material),
        *list_history_items(material),
        *list_message_items(material.activity.user_messages),
        *list_pending_items(material),
        *list_current_items(material),
        *list_next_items(material),
    ]
    aim_tokens = min(MOST_AIM_TOKENS, max(LEAST_AIM_TOKENS, estimate_tokens(entries) * AIM_PERCENT // 100))
    return build_sections(items, list_sections(variant), cap_tokens=cap_tokens, aim_tokens=aim_tokens)
