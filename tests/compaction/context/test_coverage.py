"""When what the lines hold differs from what was measured, and which differences are none."""

from pathlib import Path

import pytest

from bench.threads import split_threads
from compaction.compactors.micro.clearing import apply_boundaries
from compaction.context.composition import compute_composition
from compaction.context.coverage import Coverage, compute_coverage
from compaction.context.tokens import measure_context
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from tests.compaction.making import answer, make_entry, say, text, use
from tests.compaction.recorded import each_recorded, read_recorded

WORDS = "x" * 12_000  # 3,000 tokens, 4,000 with the margin


def cover(*entries: Entry) -> Coverage | None:
    context = slice_context(entries)
    return compute_coverage(context, measure_context(context), compute_composition(context, opening=entries))


def turn(tokens: int, words: str = WORDS) -> tuple[Entry, Entry]:
    """A prompt, and the answer that measured the context at this size."""
    return say(words), answer(f"m{tokens}", text("Well."), usage=use(tokens, 0))


def compacted(*, has_summary: bool) -> tuple[Entry, ...]:
    boundary = make_entry("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9})
    return (boundary, say(WORDS, isCompactSummary=True)) if has_summary else (boundary,)


MIDWAY = say("go on", parentUuid="in another file")


@pytest.mark.parametrize(
    ("entries", "difference"),
    [
        pytest.param([*turn(20_000), *turn(23_500)], "", id="system and tools are no difference"),
        pytest.param([*turn(20_000), *turn(36_000)], "short", id="a third of it is in no line"),
        pytest.param([*turn(100_000), *turn(110_000)], "", id="many tools"),
        pytest.param([MIDWAY, *turn(100_000), *turn(110_000)], "short", id="a file that starts in the middle"),
        pytest.param([MIDWAY, *turn(45_000), *turn(50_000)], "", id="what may be system and tools alone"),
        pytest.param([*turn(1_000, "go"), *turn(2_500, "on")], "", id="too small to speak of"),
        pytest.param([*turn(20_000), *turn(20_500), *turn(20_900)], "", id="within the margin"),
        pytest.param([*turn(20_000), *turn(20_001, WORDS * 4)], "excessive", id="more than the model saw"),
        pytest.param([*turn(9_000), *compacted(has_summary=True), *turn(20_000)], "", id="restored, not recorded"),
        pytest.param([*turn(9_000), *compacted(has_summary=False), *turn(20_000)], "short", id="no summary"),
    ],
)
def test_more_than_a_quarter_is_a_difference(entries: list[Entry], difference: str) -> None:
    coverage = cover(*entries)
    assert coverage is not None
    assert (coverage.is_short, coverage.is_excessive) == (difference == "short", difference == "excessive")
    assert coverage.differs == bool(difference)


def test_nothing_is_compared_before_a_response() -> None:
    assert cover(say(WORDS)) is None
    assert cover(*turn(9_000), *compacted(has_summary=True)) is None


# The one real file whose lines hold much less than the model saw: 40% of its growth is in no line.
KNOWN = {"iansherr_claude-code-log_ef958aa1-0e93-49f0-bb71-150f63befcd1"}


@each_recorded(has_real_usage=True)
@pytest.mark.recorded_data
def test_recorded_sessions_add_up_at_their_end(path: Path) -> None:
    for thread in split_threads(read_recorded(path).entries):
        context = slice_context(follow_chain(apply_boundaries(thread.entries)))
        found = compute_composition(context, opening=thread.entries)
        coverage = compute_coverage(context, measure_context(context), found)
        assert coverage is None or coverage.differs == (path.stem in KNOWN), coverage
