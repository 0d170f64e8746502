"""Too long: reading the words of providers, shrinking from the new end, then from the old one, always smaller."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.compactors.summary.too_long import (
    LEFT_OUT_TEXT,
    SummaryRange,
    TokenBudget,
    build_left_out_mark,
    parse_prompt_too_long,
    shrink_range,
)
from compaction.errors import PromptTooLong
from compaction.transcripts.entries import Entry
from compaction.transcripts.flatten import flatten
from tests.compaction.compactors.talks import make_talk, talks

WIDE, NARROW = TokenBudget(1_000_000), TokenBudget(20_001)


@pytest.mark.parametrize(
    ("words", "figures"),
    [
        ("prompt is too long: 200251 tokens > 200000 maximum", (200_251, 200_000)),
        (
            "The model returned the following errors: Prompt is too long: 200049 tokens > 200000 maximum",
            (200_049, 200_000),
        ),
        ("prompt is too long", (None, None)),
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", (209_573, 200_000)),
        ("capability_rejected: prompt_too_long", (None, None)),
        ("413 request_too_large", (None, None)),
    ],
)
def test_what_providers_say_becomes_figures(words: str, figures: tuple[int | None, int | None]) -> None:
    error = parse_prompt_too_long(words)
    assert error is not None
    assert (error.prompt_tokens, error.maximum_tokens) == figures


@pytest.mark.parametrize("words", ["", "overloaded", "max_tokens: 8192 > 4096", "rate limit"])
def test_other_errors_are_not_too_long(words: str) -> None:
    assert parse_prompt_too_long(words) is None


def test_the_gap_is_what_has_to_go() -> None:
    assert PromptTooLong(200_251, 200_000).gap_tokens == 251
    assert PromptTooLong(10, 200).gap_tokens == 1
    assert PromptTooLong().gap_tokens is None
    assert "200,251 tokens" in str(PromptTooLong(200_251, 200_000))


@pytest.mark.parametrize(("gap", "kept_rounds"), [(50, 1), (150, 2), (400, 4), (None, 2)])
def test_newest_rounds_stay_by_the_gap_or_a_fifth(gap: int | None, kept_rounds: int) -> None:
    entries = tuple(make_talk(10)[1:-2])
    error = PromptTooLong() if gap is None else PromptTooLong(gap + 1, 1)
    smaller = shrink_range(SummaryRange(entries), error, WIDE, may_keep_newest=True)
    assert smaller is not None
    assert len(smaller.kept_after) == 2 * kept_rounds
    assert smaller.sent + smaller.kept_after == entries


def test_oldest_rounds_go_where_the_tail_has_no_room_and_an_assistant_never_begins() -> None:
    entries = tuple(make_talk(10))
    smaller = shrink_range(SummaryRange(entries), PromptTooLong(151, 1), NARROW, may_keep_newest=True)
    assert smaller is not None
    assert smaller.kept_after == ()
    assert smaller.left_out + smaller.sent[1:] == entries
    assert smaller.sent[0] == build_left_out_mark()
    assert flatten(smaller.sent)[0].role == "user"


def test_our_own_mark_is_not_all_that_a_retry_leaves_out() -> None:
    entries = tuple(make_talk(12))
    span = SummaryRange(entries)
    sizes = []
    for _ in range(3):
        smaller = shrink_range(span, PromptTooLong(), NARROW, may_keep_newest=True)
        assert smaller is not None
        span = smaller
        texts = [entry for entry in span.sent if entry.is_meta]
        assert len(texts) == 1
        sizes.append(len(span.sent))
    assert sizes == sorted(set(sizes), reverse=True)
    assert LEFT_OUT_TEXT in str(span.sent[0].message)


def test_nothing_left_is_nothing() -> None:
    entries = tuple(make_talk(2))
    assert shrink_range(SummaryRange(entries), PromptTooLong(10**6, 1), WIDE, may_keep_newest=True) is None
    assert shrink_range(SummaryRange(entries[:1]), PromptTooLong(), WIDE, may_keep_newest=True) is None


@pytest.mark.parametrize(
    ("line", "maximum", "held"),
    [(167_000, None, True), (20_100, None, False), (None, 200_000, True), (None, 50_000, False), (None, None, True)],
)
def test_room_is_measured_against_the_line_or_the_window_named(
    line: int | None, maximum: int | None, *, held: bool
) -> None:
    assert TokenBudget(line).has_room_for(make_talk(4, size=4_000), maximum) == held
    assert not TokenBudget(line, 10**6).has_room_for([], maximum)


@settings(max_examples=100, deadline=None)
@given(
    entries=talks(fewest_steps=5),
    gap=st.one_of(st.none(), st.integers(1, 500)),
    is_wide=st.booleans(),
    may_keep=st.booleans(),
)
def test_shrinking_always_makes_progress_and_loses_track_of_nothing(
    *, entries: list[Entry], gap: int | None, is_wide: bool, may_keep: bool
) -> None:
    error = PromptTooLong() if gap is None else PromptTooLong(gap, 0)
    span: SummaryRange | None = SummaryRange(tuple(entries))
    while span is not None:
        told = [entry for entry in (*span.left_out, *span.sent, *span.kept_after) if entry.uuid]
        assert told == entries
        assert flatten(span.sent)[0].role == "user"
        size = len([entry for entry in span.sent if entry.uuid])
        span = shrink_range(span, error, WIDE if is_wide else NARROW, may_keep_newest=may_keep)
        assert span is None or len([entry for entry in span.sent if entry.uuid]) < size
