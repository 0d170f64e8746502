"""Layout: how a system prompt is split into blocks and where the cache breakpoints of a request go, by named layout.

"seed" is the older client's (scopes, last tool marked); "observed" is what 2.1.325 sends. Lifetimes: see ttl.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compaction.context.cache_ttl import CacheTtl, Provider
from compaction.prompt.request import BILLING_LINE, Fields
from compaction.prompt.sections import DYNAMIC_BOUNDARY
from compaction.transcripts.json_fields import get_text

MOST_MARKERS = 4  # the API refuses a fifth
# Blocks that cannot carry a marker: reasoning, and text without characters.
UNCACHEABLE_TYPES = frozenset({"thinking", "redacted_thinking"})


class Layout(StrEnum):
    """The two ways of laying out a prompt that are known."""

    SEED = "seed"
    OBSERVED = "observed"


class Scope(StrEnum):
    """Who shares a cached block: everybody, or the organisation."""

    GLOBAL = "global"
    ORG = "org"


@dataclass(frozen=True, slots=True)
class SharingContext:
    """What decides how far a prompt can be shared."""

    provider: Provider = Provider.FIRST_PARTY
    has_mcp_tools: bool = False
    is_custom_prompt: bool = False

    @property
    def shares_globally(self) -> bool:
        """Only the provider's own prompt, on its own service, without tools of others."""
        return self.provider is Provider.FIRST_PARTY and not self.has_mcp_tools and not self.is_custom_prompt


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One block of a system prompt; without a scope it carries no marker."""

    text: str
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class SystemParts:
    """A system prompt before it is split: the version stamp, the client's opening line, and the sections."""

    sections: tuple[str, ...]
    attribution: str | None = None
    opening: str | None = None


def split_system(
    parts: SystemParts, situation: SharingContext, layout: Layout = Layout.OBSERVED
) -> tuple[SystemBlock, ...]:
    """The blocks of a system prompt, each with the scope of its marker."""
    stamp = (SystemBlock(parts.attribution),) if parts.attribution else ()
    if situation.is_custom_prompt:
        return (*stamp, *_join(parts.sections, Scope.ORG))
    if layout is Layout.OBSERVED:
        opening = (SystemBlock(parts.opening, Scope.ORG),) if parts.opening else ()
        return (*stamp, *opening, *_join(parts.sections, Scope.ORG))
    opening = (SystemBlock(parts.opening),) if parts.opening else ()
    if not situation.shares_globally or DYNAMIC_BOUNDARY not in parts.sections:
        return (*stamp, *opening, *_join(parts.sections, Scope.ORG))
    boundary = parts.sections.index(DYNAMIC_BOUNDARY)
    shared = _join(parts.sections[:boundary], Scope.GLOBAL)
    return (*stamp, *opening, *shared, *_join(parts.sections[boundary:], Scope.ORG))


def _join(sections: Sequence[str], scope: Scope) -> tuple[SystemBlock, ...]:
    text = "\n\n".join(section for section in sections if section and section != DYNAMIC_BOUNDARY)
    return (SystemBlock(text, scope),) if text else ()


def write_system(blocks: Sequence[SystemBlock], ttl: CacheTtl) -> list[dict[str, object]]:
    """The blocks as the API takes them; only the global scope is spelled out."""
    written: list[dict[str, object]] = []
    for block in blocks:
        item: dict[str, object] = {"type": "text", "text": block.text}
        is_stamp = block.text.startswith(BILLING_LINE)
        if block.scope is not None and ttl is not CacheTtl.OFF and not is_stamp:
            item["cache_control"] = build_cache_control(ttl, block.scope)
        written.append(item)
    return written


def build_cache_control(ttl: CacheTtl, scope: Scope | None = None) -> dict[str, str]:
    """A cache_control: 5 minutes and the organisation go without saying."""
    control = {"type": "ephemeral"}
    if ttl is CacheTtl.ONE_HOUR:
        control["ttl"] = ttl.value
    if scope is Scope.GLOBAL:
        control["scope"] = scope.value
    return control


def mark_tools(tools: Sequence[Fields], ttl: CacheTtl, layout: Layout = Layout.OBSERVED) -> list[dict[str, object]]:
    """The tools with the layout's marker: on the last one that is not deferred ("seed"), or on none ("observed")."""
    bare = [{key: value for key, value in tool.items() if key != "cache_control"} for tool in tools]
    if layout is Layout.SEED and ttl is not CacheTtl.OFF:
        last = next((tool for tool in reversed(bare) if tool.get("defer_loading") is not True), None)
        if last is not None:
            last["cache_control"] = build_cache_control(ttl)
    return bare


def mark_messages(messages: Sequence[Fields], ttl: CacheTtl, *, skips_write: bool = False) -> list[dict[str, object]]:
    """The messages with their one marker: on the last, or on the one before for a fork that must not write its tail.

    Markers that were there are taken off. A block that cannot carry one passes it to the block before it.
    """
    bare = [_strip_message(message) for message in messages]
    place = len(bare) - (2 if skips_write else 1)
    while place >= 0 and ttl is not CacheTtl.OFF:
        if _mark_message(bare[place], ttl):
            break
        place -= 1
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
    """Whether the API takes a marker on this block."""
    kind = get_text(block, "type")
    if kind in UNCACHEABLE_TYPES:
        return False
    return not (kind == "text" and not block.get("text"))
