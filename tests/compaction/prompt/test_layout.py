from typing import Any

import pytest

from compaction.context.cache_ttl import CacheTtl, Provider
from compaction.prompt.layout import SharingContext, SystemParts, split_system
from compaction.prompt.layout import write_system as write_blocks
from compaction.prompt.linter import lint_request
from compaction.prompt.markers import CacheScope, Layout, mark_messages, mark_tools
from compaction.prompt.request import read_request
from compaction.prompt.sections import DYNAMIC_BOUNDARY
from tests.compaction.cache.builders import text, tool

ORG, GLOBAL = CacheScope.ORG, CacheScope.GLOBAL
STAMP = "x-anthropic-billing-header: cc_version=2.1.325.abc;"
PARTS = SystemParts(("static one", "static two", DYNAMIC_BOUNDARY, "dynamic"), STAMP, "You are an agent.")
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [text("one", marked="5m")]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, text("two")]},
    {"role": "user", "content": "three"},
]
BOTH = "static one\n\nstatic two\n\ndynamic"

SPLITS: list[tuple[Layout, SharingContext, list[tuple[str, CacheScope | None]]]] = [
    (Layout.SEED, SharingContext(), [
        (STAMP, None), ("You are an agent.", None), ("static one\n\nstatic two", GLOBAL),
        ("dynamic", ORG)]),
    (Layout.SEED, SharingContext(has_mcp_tools=True), [(STAMP, None), ("You are an agent.", None), (BOTH, ORG)]),
    (Layout.SEED, SharingContext(Provider.BEDROCK), [(STAMP, None), ("You are an agent.", None), (BOTH, ORG)]),
    (Layout.SEED, SharingContext(is_custom_prompt=True), [(STAMP, None), (BOTH, ORG)]),
    (Layout.OBSERVED, SharingContext(), [(STAMP, None), ("You are an agent.", ORG), (BOTH, ORG)]),
    (Layout.OBSERVED, SharingContext(Provider.VERTEX), [
        (STAMP, None), ("You are an agent.", ORG), (BOTH, ORG)]),
    (Layout.OBSERVED, SharingContext(is_custom_prompt=True), [(STAMP, None), (BOTH, ORG)]),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "sharing", "expected"), SPLITS)
def test_system_prompt_is_split_by_layout_and_sharing(
    layout: Layout, sharing: SharingContext, expected: list[tuple[str, CacheScope | None]]
) -> None:
    assert [(block.text, block.scope) for block in split_system(PARTS, sharing, layout)] == expected


def test_prompt_without_a_boundary_is_not_shared_globally() -> None:
    assert [block.scope for block in split_system(SystemParts(("all",)), SharingContext(), Layout.SEED)] == [ORG]


def test_markers_of_the_system_prompt_name_only_what_is_not_the_default() -> None:
    blocks = split_system(PARTS, SharingContext(), Layout.SEED)
    assert [block.get("cache_control") for block in write_blocks(blocks, CacheTtl.ONE_HOUR)] == [
        None, None, {"type": "ephemeral", "ttl": "1h", "scope": "global"}, {"type": "ephemeral", "ttl": "1h"},
    ]  # fmt: skip
    assert all("cache_control" not in block for block in write_blocks(blocks, CacheTtl.OFF))


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
