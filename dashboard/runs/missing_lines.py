"""Sentences and refusals for conversations with missing lines, or whose lines do not add up to what was measured."""

from compaction.context.coverage import Coverage
from dashboard.runs.basis import Basis
from dashboard.runs.choices import RunRefused

DIFFERS = "context_differs"
LINE_MISSING = "line_missing"


def describe_gaps(count: int) -> str:
    """Return the sentence for lines missing at this many places; empty where none is missing."""
    if not count:
        return ""
    if count == 1:
        return (
            "At least one line of this conversation is missing: the transcript refers to it, but does not hold it. "
            "The conversation is taken to go on at the line before it."
        )
    return (
        f"Lines of this conversation are missing at {count:,} places: the transcript refers to them, but does not hold "
        "them. The conversation is taken to go on at the line before each place."
    )


def describe_difference(coverage: Coverage | None) -> str:
    """Return the sentence for lines that differ from the measured context by more than a quarter; else empty."""
    if coverage is None or not coverage.differs:
        return ""
    measured = f"The context in use is {coverage.measured_tokens:,} tokens"
    if coverage.is_short:
        return (
            f"{measured}, but what is stored of it adds up to ~{coverage.found_tokens:,}. "
            "The model saw more than the stored lines hold, and a summary of them would leave the rest out."
        )
    return (
        f"{measured}, but what is stored of it adds up to ~{coverage.bare_tokens:,}. "
        "The stored lines hold more than the model saw, and a summary of them would bring back what had left."
    )


def find_difference(coverage: Coverage | None) -> int | None:
    """Tokens that the stored lines add up to; None unless they differ by more than a quarter from what was measured."""
    if coverage is None or not coverage.differs:
        return None
    return coverage.found_tokens if coverage.is_short else coverage.bare_tokens


def refuse_difference(basis: Basis) -> RunRefused | None:
    """What is in the way of a run that nobody confirmed; None where the stored lines add up."""
    found_tokens = find_difference(basis.coverage)
    if basis.coverage is None or found_tokens is None:
        return None
    return RunRefused(
        DIFFERS,
        f"{describe_difference(basis.coverage)} A result is made only when this is confirmed.",
        context_tokens=basis.coverage.measured_tokens,
        found_tokens=found_tokens,
        missing_lines=basis.gap_count,
    )
