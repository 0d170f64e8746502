"""Cache markers (breakpoints) of a request: what the API accepts, how far back it looks, and where a client puts them.

The lifetime of a marker is decided in context/cache_ttl.py.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from compaction.context.cache_ttl import CacheTtl
from compaction.prompt.request import Fields
from compaction.transcripts.json_fields import get_text

MOST_MARKERS = 4  # the API refuses a fifth
LOOKBACK_BLOCKS = 20  # positions the server looks back from a marker, the marker's own block counted as the first
# Blocks that cannot carry a marker: reasoning, and text without characters.
UNCACHEABLE_TYPES = frozenset({"thinking", "redacted_thinking"})


class Layout(StrEnum):
    """The two known ways to lay out a prompt: the older client's, and what 2.1.325 sends."""

    SEED = "seed"
    OBSERVED = "observed"


class CacheScope(StrEnum):
    """Who shares a cached block: all users, or the organisation."""

    GLOBAL = "global"
    ORG = "org"


def build_cache_control(ttl: CacheTtl, scope: CacheScope | None = None) -> dict[str, str]:
    """Return a cache_control; 5 minutes and the organisation are the defaults and left out."""
    control = {"type": "ephemeral"}
    if ttl is CacheTtl.ONE_HOUR:
        control["ttl"] = ttl.value
    if scope is CacheScope.GLOBAL:
        control["scope"] = scope.value
    return control


def mark_tools(tools: Sequence[Fields], ttl: CacheTtl, layout: Layout = Layout.OBSERVED) -> list[dict[str, object]]:
    """Return the tools with the layout's marker: on the last tool not deferred ("seed"), or none ("observed")."""
    bare = [{key: value for key, value in tool.items() if key != "cache_control"} for tool in tools]
    if layout is Layout.SEED and ttl is not CacheTtl.OFF:
        last = next((tool for tool in reversed(bare) if tool.get("defer_loading") is not True), None)
        if last is not None:
            last["cache_control"] = build_cache_control(ttl)
    return bare


def mark_messages(messages: Sequence[Fields], ttl: CacheTtl, *, skips_write: bool = False) -> list[dict[str, object]]:
    """Return the messages with one marker: on the last, or on the one before for a fork that must not write its tail.

    Earlier markers are removed. Where a block cannot carry a marker, the block before it gets it.
    """
    bare = [_strip_message(message) for message in messages]
    index = len(bare) - (2 if skips_write else 1)
    while index >= 0 and ttl is not CacheTtl.OFF:
        if _mark_message(bare[index], ttl):
            break
        index -= 1
    return bare


def _strip_message(message: Fields) -> dict[str, object]:
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    blocks = [
        {key: value for key, value in block.items() if key != "cache_control"} if isinstance(block, Mapping) else block
        for block in content
    ]
    return {**message, "content": blocks}


def _mark_message(message: dict[str, object], ttl: CacheTtl) -> bool:
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return False
    for index in range(len(content) - 1, -1, -1):
        block = content[index]
        if isinstance(block, dict) and can_be_marked(block):
            marked = {**block, "cache_control": build_cache_control(ttl)}
            message["content"] = [*content[:index], marked, *content[index + 1 :]]
            return True
    return False


def can_be_marked(block: Fields) -> bool:
    """Return whether the API accepts a marker on this block."""
    kind = get_text(block, "type")
    if kind in UNCACHEABLE_TYPES:
        return False
    return not (kind == "text" and not block.get("text"))
