from typing import Any

import pytest

from compaction.context.cache_ttl import CacheTtl, Provider
from compaction.errors import SectionNameTaken, UnreasonedSection
from compaction.prompt.layout import (
    Layout,
    Scope,
    SharingContext,
    SystemParts,
    can_be_marked,
    mark_messages,
    mark_tools,
    split_system,
)
from compaction.prompt.layout import write_system as write_blocks
from compaction.prompt.linter import lint_request
from compaction.prompt.request import read_request
from compaction.prompt.sections import DYNAMIC_BOUNDARY, SectionRegistry
from tests.compaction.cache.builders import text, tool

STAMP = "x-anthropic-billing-header: cc_version=2.1.325.abc;"
PARTS = SystemParts(("static one", "static two", DYNAMIC_BOUNDARY, "dynamic"), STAMP, "You are an agent.")
BOTH = "static one\n\nstatic two\n\ndynamic"

SPLITS: list[tuple[Layout, SharingContext, list[tuple[str, Scope | None]]]] = [
    (Layout.SEED, SharingContext(), [
        (STAMP, None), ("You are an agent.", None), ("static one\n\nstatic two", Scope.GLOBAL),
        ("dynamic", Scope.ORG)]),
    (Layout.SEED, SharingContext(has_mcp_tools=True), [(STAMP, None), ("You are an agent.", None), (BOTH, Scope.ORG)]),
    (Layout.SEED, SharingContext(Provider.BEDROCK), [(STAMP, None), ("You are an agent.", None), (BOTH, Scope.ORG)]),
    (Layout.SEED, SharingContext(is_custom_prompt=True), [(STAMP, None), (BOTH, Scope.ORG)]),
    (Layout.OBSERVED, SharingContext(), [(STAMP, None), ("You are an agent.", Scope.ORG), (BOTH, Scope.ORG)]),
    (Layout.OBSERVED, SharingContext(Provider.VERTEX), [
        (STAMP, None), ("You are an agent.", Scope.ORG), (BOTH, Scope.ORG)]),
    (Layout.OBSERVED, SharingContext(is_custom_prompt=True), [(STAMP, None), (BOTH, Scope.ORG)]),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "situation", "expected"), SPLITS)
def test_system_prompt_is_split_by_layout_and_situation(
    layout: Layout, situation: SharingContext, expected: list[tuple[str, Scope | None]]
) -> None:
    assert [(block.text, block.scope) for block in split_system(PARTS, situation, layout)] == expected


def test_prompt_without_a_boundary_is_not_shared_globally() -> None:
    assert [block.scope for block in split_system(SystemParts(("all",)), SharingContext(), Layout.SEED)] == [Scope.ORG]


def test_markers_of_the_system_prompt_name_only_what_is_not_the_default() -> None:
    blocks = split_system(PARTS, SharingContext(), Layout.SEED)
    assert [block.get("cache_control") for block in write_blocks(blocks, CacheTtl.ONE_HOUR)] == [
        None, None, {"type": "ephemeral", "ttl": "1h", "scope": "global"}, {"type": "ephemeral", "ttl": "1h"},
    ]  # fmt: skip
    assert all("cache_control" not in block for block in write_blocks(blocks, CacheTtl.OFF))


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


@pytest.mark.parametrize("layout", list(Layout))
def test_laid_out_request_passes_the_linter(layout: Layout) -> None:
    parts = SystemParts(("static " * 3_000, DYNAMIC_BOUNDARY, "dynamic " * 3_000), STAMP, "You are an agent. " * 300)
    request = {
        "model": "claude-opus-5-5",
        "system": write_blocks(split_system(parts, SharingContext(), layout), CacheTtl.ONE_HOUR),
        "tools": mark_tools([tool("A", "does it " * 400)], CacheTtl.ONE_HOUR, layout),
        "messages": mark_messages(MESSAGES, CacheTtl.ONE_HOUR),
    }
    assert lint_request(read_request(request)) == ()


def test_sections_are_computed_once_until_cleared() -> None:
    asked: list[str] = []
    registry = SectionRegistry()
    registry.add("intro", lambda: asked.append("intro") or "hello", is_shared=True)  # type: ignore[func-returns-value]
    registry.add("memory", lambda: asked.append("memory") or "notes")  # type: ignore[func-returns-value]
    registry.add("language", lambda: None)
    registry.add_volatile("mcp", lambda: f"turn {len(asked)}", reason="servers come and go between turns")
    assert registry.resolve() == ("hello", DYNAMIC_BOUNDARY, "notes", "turn 2")
    assert registry.resolve() == ("hello", DYNAMIC_BOUNDARY, "notes", "turn 2")
    assert asked == ["intro", "memory"]
    registry.clear()
    registry.resolve()
    assert asked == ["intro", "memory", "intro", "memory"]


def test_volatile_section_needs_a_reason_and_a_name_of_its_own() -> None:
    registry = SectionRegistry()
    with pytest.raises(UnreasonedSection, match="needs a written reason"):
        registry.add_volatile("mcp", lambda: "x", reason="  ")
    registry.add("mcp", lambda: "x")
    with pytest.raises(SectionNameTaken, match="already a section"):
        registry.add("mcp", lambda: "y")


def test_block_whose_type_is_no_text_does_not_raise() -> None:
    assert can_be_marked({"type": [], "text": "x"})
