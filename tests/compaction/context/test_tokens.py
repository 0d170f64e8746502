"""Counting: the estimate block by block, and the context size from the last usage plus what came after."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.context.tokens import (
    ContextSize,
    ResultCache,
    add_margin,
    count_block_tokens,
    count_text_tokens,
    estimate_tokens,
    measure_context,
)
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import (
    Block,
    DocumentBlock,
    Entry,
    ImageBlock,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from compaction.transcripts.payloads import Boundary
from tests.compaction.making import answer, make_entry, request, result, say, text, use
from tests.compaction.recorded import list_recorded, read_recorded


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 0), (2, 1), (5, 1), (6, 2), (4_000, 1_000)])
def test_text_is_a_quarter_of_its_characters_rounded_half_up(characters: int, tokens: int) -> None:
    assert count_text_tokens("é" * characters) == tokens


BLOCKS: list[tuple[Block, int]] = [
    (TextBlock("x" * 40), 10),
    (ThinkingBlock("x" * 40, "signature"), 10),
    (ThinkingBlock("", None, "x" * 40), 10),
    (ToolUseBlock("t", "Read", {"a": 1}, '{"a":1}'), 3),
    (ToolResultBlock("t", (TextBlock("x" * 40), ImageBlock(), DocumentBlock())), 4_010),
    (ToolResultBlock("t"), 0),
    (ImageBlock(), 2_000),
    (DocumentBlock(), 2_000),
    (OtherBlock("x", {}, "y" * 80), 20),
]


@pytest.mark.parametrize(("block", "tokens"), BLOCKS)
def test_each_kind_of_block_has_its_rule(block: Block, tokens: int) -> None:
    assert count_block_tokens(block) == tokens
    assert count_block_tokens(block, ResultCache()) == tokens


@pytest.mark.parametrize(("tokens", "expected"), [(0, 0), (1, 2), (3, 4), (10, 14), (300, 400)])
def test_the_margin_is_a_third_rounded_up(tokens: int, expected: int) -> None:
    assert add_margin(tokens) == expected


def test_only_what_the_model_sees_is_estimated() -> None:
    found = [
        say("x" * 40),
        say([text("x" * 40)]),
        make_entry("attachment", attachment={"type": "date"}, rendered=[{"content": "x" * 40}]),
        make_entry("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["x" * 40]}),
        make_entry("progress", data={"type": "agent_progress", "message": {"type": "user"}}),
        make_entry("system", content="x" * 40),
    ]
    assert estimate_tokens(found) == 40


def test_the_cache_counts_once_and_recounts_what_was_changed() -> None:
    cache = ResultCache()
    long = ToolResultBlock("t", (TextBlock("x" * 400),))
    assert cache.count(long) == cache.count(long) == 100
    assert cache.count(ToolResultBlock("t", (TextBlock("[cleared]"),))) == 2
    cache.clear()
    assert cache.count(long) == 100


def test_results_between_the_lines_of_the_last_response_are_added() -> None:
    found = [
        say("x" * 4_000),
        answer("m1", request("t1"), usage=use(900, 90, cache_read_input_tokens=9_000, cache_creation_input_tokens=10)),
        say([result("t1", "x" * 40)]),
        answer("m1", request("t2"), usage=use(900, 200, cache_read_input_tokens=9_000, cache_creation_input_tokens=10)),
        say([result("t2", "x" * 80)]),
    ]
    assert measure_context(found) == ContextSize(10_110, 40, "m1")


def test_synthetic_and_empty_usage_is_skipped() -> None:
    found = [
        answer("m1", text("a"), usage=use(100, 1)),
        answer("m2", text("error"), usage=use(0, 0), model="<synthetic>"),
        answer("m3", usage=use(0, 0)),
    ]
    assert measure_context(found) == ContextSize(101, 2, "m1")


def test_nothing_before_a_boundary_or_kept_across_it_is_leaned_on() -> None:
    metadata = {"preservedSegment": {"headUuid": "2", "anchorUuid": "s", "tailUuid": "2"}}
    found = [
        say("old", uuid="1"),
        answer("m1", text("x" * 40), uuid="2", parentUuid="1", usage=use(150_000, 9)),
        make_entry("system", subtype="compact_boundary", uuid="b", logicalParentUuid="2", compactMetadata=metadata),
        say("x" * 80, uuid="s", parentUuid="b", isCompactSummary=True),
    ]
    size = measure_context(slice_context(follow_chain(found)))
    assert size == ContextSize(0, 40, None)
    assert not size.is_measured
    assert measure_context(found).tokens == 27


def test_the_size_comes_from_the_last_message_iteration() -> None:
    iterations = [{"type": "message", "input_tokens": 5}, {"type": "message", "input_tokens": 70, "output_tokens": 7},
                  {"type": "compaction", "input_tokens": 9_999}]  # fmt: skip
    assert measure_context([answer("m1", usage=use(500, 7, iterations=iterations))]).tokens == 77


def test_an_empty_conversation_has_no_size() -> None:
    assert measure_context([]) == ContextSize(0, 0, None)


@settings(deadline=None)
@given(st.lists(st.text(max_size=30), max_size=8))
def test_the_estimate_never_falls_when_something_is_added(words: list[str]) -> None:
    found: list[Entry] = []
    before = 0
    for word in words:
        found.append(say(word))
        assert estimate_tokens(found) >= before
        before = estimate_tokens(found)


# Boundaries whose preTokens are not exactly our figure without the margin: how far off, and why.
EXPLAINED = {
    142_431: (0.005, "the last response reports 1 output token without a stop reason and wrote 1,655 characters"),
    167_094: (0.005, "recorded by a newer client: two tokens of the estimate are not explained yet"),
}


@pytest.mark.recorded_data
def test_the_size_before_each_recorded_boundary_is_what_the_client_counted() -> None:
    """The client adds its estimate without the margin of a third; with it every boundary still lies within 5%."""
    compared = [pair for path in list_recorded() for pair in _compare_boundaries(read_recorded(path).entries)]
    if not compared:
        pytest.skip("the recorded sessions are not beside this checkout")
    assert len(compared) >= 7
    for pre_tokens, size in compared:
        allowed, _ = EXPLAINED.get(pre_tokens, (0.0005, ""))
        assert abs(size.tokens / pre_tokens - 1) < allowed
        if pre_tokens not in EXPLAINED:
            assert add_margin(pre_tokens - size.measured_tokens) == size.estimated_tokens


def _compare_boundaries(entries: tuple[Entry, ...]) -> Iterator[tuple[int, ContextSize]]:
    for index, boundary in enumerate(entries):
        if isinstance(boundary.payload, Boundary) and boundary.payload.pre_tokens:
            leaf = next(entry for entry in entries[:index] if entry.uuid == boundary.logical_parent_uuid)
            yield boundary.payload.pre_tokens, measure_context(slice_context(follow_chain(entries[:index], leaf)))
