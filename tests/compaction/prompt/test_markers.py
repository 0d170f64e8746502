from typing import Any

from compaction.context.cache_ttl import CacheTtl
from compaction.prompt.markers import Layout, can_be_marked, mark_messages, mark_tools
from compaction.prompt.request import read_request
from tests.compaction.cache.builders import text, tool


def test_only_the_seed_layout_marks_the_last_tool() -> None:
    tools = [tool("A", cache_control={"type": "ephemeral"}), tool("B"), tool("C", defer_loading=True)]
    assert ["cache_control" in each for each in mark_tools(tools, CacheTtl.FIVE_MINUTES, Layout.SEED)] == [
        False, True, False,
    ]  # fmt: skip
    assert not any("cache_control" in each for each in mark_tools(tools, CacheTtl.FIVE_MINUTES, Layout.OBSERVED))


def _find_markers(messages: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [marker.path for marker in read_request({"messages": messages}).markers]


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [text("one", marked="5m")]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, text("two")]},
    {"role": "user", "content": "three"},
]


def test_exactly_one_marker_stands_on_the_last_message() -> None:
    marked = mark_messages(MESSAGES, CacheTtl.FIVE_MINUTES)
    assert _find_markers(marked) == [("messages", 2, "content", 0)]
    assert marked[2]["content"] == [text("three", marked="5m")]


def test_fork_that_skips_the_write_marks_the_message_before() -> None:
    assert _find_markers(mark_messages(MESSAGES, CacheTtl.ONE_HOUR, skips_write=True)) == [
        ("messages", 1, "content", 1)
    ]
    assert _find_markers(mark_messages(MESSAGES[:1], CacheTtl.ONE_HOUR, skips_write=True)) == []


def test_marker_passes_over_blocks_that_cannot_carry_one() -> None:
    odd = [
        *MESSAGES[:1],
        {"role": "assistant", "content": [text("ok"), text(""), {"type": "thinking", "thinking": "x"}]},
    ]
    assert _find_markers(mark_messages(odd, CacheTtl.FIVE_MINUTES)) == [("messages", 1, "content", 0)]
    empty = [*MESSAGES[:1], {"role": "system", "content": []}]
    assert _find_markers(mark_messages(empty, CacheTtl.FIVE_MINUTES)) == [("messages", 0, "content", 0)]
    assert _find_markers(mark_messages(MESSAGES, CacheTtl.OFF)) == []


def test_block_whose_type_is_no_text_does_not_raise() -> None:
    assert can_be_marked({"type": [], "text": "x"})
