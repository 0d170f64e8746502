"""How much of the measured context the lines of a transcript account for.

Usage is how much the model saw, the lines are what it saw. Where they differ by more than a quarter, a summary of the
lines is not one of what the model saw: lines are missing, or the lines hold more than is still in the context.
"""

from dataclasses import dataclass

from compaction.context.composition import BEFORE_FILE, LARGEST_PREFIX_TOKENS, PREFIX, UNRECORDED, Composition
from compaction.context.tokens import MARGIN_DENOMINATOR, MARGIN_NUMERATOR, ContextSize
from compaction.transcripts.chain import ContextSlice

TOLERATED_PART = 4  # a difference of up to one part in four is not reported,
TOLERATED_TOKENS = 2_000  # nor one of at most this size


@dataclass(frozen=True, slots=True)
class Coverage:
    """`found_tokens` is the sum of all parts with the margin of the estimate, `bare_tokens` the same without it: the
    truth lies between them, so a healthy transcript is within both."""

    measured_tokens: int
    found_tokens: int
    bare_tokens: int

    @property
    def is_short(self) -> bool:
        """Return whether the model saw much more than the lines hold."""
        return self._is_reported(self.measured_tokens - self.found_tokens)

    @property
    def is_excessive(self) -> bool:
        """Return whether the lines hold much more than the model saw."""
        return self._is_reported(self.bare_tokens - self.measured_tokens)

    @property
    def differs(self) -> bool:
        return self.is_short or self.is_excessive

    def _is_reported(self, tokens: int) -> bool:
        return tokens > TOLERATED_TOKENS and TOLERATED_PART * tokens > self.measured_tokens


def compute_coverage(context: ContextSlice, size: ContextSize, composition: Composition) -> Coverage | None:
    """Return how much of the measured context the lines account for; None where nothing was measured.

    System and tools, and what came back after a compaction without a line of its own, count as found: the first call
    measures both. Where the summary behind a boundary is missing, the latter would be the summary itself, so it does
    not count. Nor does the conversation before a transcript that begins in the middle.
    """
    if not size.is_measured:
        return None
    unrecorded = composition.sum_category(UNRECORDED)
    lost = 0 if context.boundary is None or any(entry.is_compact_summary for entry in context.entries) else unrecorded
    before = composition.sum_category(BEFORE_FILE)
    lost += max(0, before - LARGEST_PREFIX_TOKENS)
    known = composition.sum_category(PREFIX) + unrecorded + before
    bare = known + (composition.tokens - known) * MARGIN_DENOMINATOR // MARGIN_NUMERATOR
    return Coverage(size.tokens, composition.tokens - lost, bare - lost)
