"""How much of the measured context the lines of a transcript account for.

Usage tells how much the model saw; the lines tell what. Where they differ by more than a quarter, what is summarised
from the lines is not what the model saw: lines are missing, or the lines tell of more than is still in the context.
"""

from dataclasses import dataclass

from compaction.context.composition import BEFORE_FILE, LARGEST_PREFIX_TOKENS, PREFIX, UNRECORDED, Composition
from compaction.context.tokens import MARGIN_DENOMINATOR, MARGIN_NUMERATOR, ContextSize
from compaction.transcripts.chain import ContextSlice

TOLERATED_PART = 4  # a difference of up to one part in four is not reported,
TOLERATED_TOKENS = 2_000  # nor one that is small in itself


@dataclass(frozen=True, slots=True)
class Coverage:
    """`found_tokens` is the sum of all parts with the margin of the estimate, `bare_tokens` the same without it: the
    truth lies between them, so a healthy transcript is within both."""

    measured_tokens: int
    found_tokens: int
    bare_tokens: int

    @property
    def is_short(self) -> bool:
        """The model saw much more than the lines hold."""
        return self._is_reported(self.measured_tokens - self.found_tokens)

    @property
    def is_excessive(self) -> bool:
        """The lines hold much more than the model saw."""
        return self._is_reported(self.bare_tokens - self.measured_tokens)

    @property
    def differs(self) -> bool:
        return self.is_short or self.is_excessive

    def _is_reported(self, tokens: int) -> bool:
        return tokens > TOLERATED_TOKENS and TOLERATED_PART * tokens > self.measured_tokens


def compute_coverage(context: ContextSlice, size: ContextSize, found: Composition) -> Coverage | None:
    """None where nothing was measured.

    System and tools, and what came back after a compaction without a line of its own, count as found: the first call
    tells of both. Without the summary behind a boundary the latter would be the summary itself, so it does not count.
    Nor does the conversation before a transcript that begins in the middle.
    """
    if not size.is_measured:
        return None
    unrecorded = found.sum_category(UNRECORDED)
    lost = 0 if context.boundary is None or any(entry.is_compact_summary for entry in context.entries) else unrecorded
    before = found.sum_category(BEFORE_FILE)
    lost += max(0, before - LARGEST_PREFIX_TOKENS)
    known = found.sum_category(PREFIX) + unrecorded + before
    bare = known + (found.tokens - known) * MARGIN_DENOMINATOR // MARGIN_NUMERATOR
    return Coverage(size.tokens, found.tokens - lost, bare - lost)
