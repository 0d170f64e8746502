"""How a system prompt is split into blocks, each with the scope of its marker, by named layout."""

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.context.cache_ttl import CacheTtl, Provider
from compaction.prompt.markers import CacheScope, Layout, build_cache_control
from compaction.prompt.request import BILLING_LINE
from compaction.prompt.sections import DYNAMIC_BOUNDARY


@dataclass(frozen=True, slots=True)
class SharingContext:
    """What decides who can share a prompt."""

    provider: Provider = Provider.FIRST_PARTY
    has_mcp_tools: bool = False
    is_custom_prompt: bool = False

    @property
    def shares_globally(self) -> bool:
        """Return whether all users can share it: the client's own prompt, served first-party, without MCP tools."""
        return self.provider is Provider.FIRST_PARTY and not self.has_mcp_tools and not self.is_custom_prompt


@dataclass(frozen=True, slots=True)
class SystemBlock:
    """One block of a system prompt; without a scope it carries no marker."""

    text: str
    scope: CacheScope | None = None


@dataclass(frozen=True, slots=True)
class SystemParts:
    """A system prompt before it is split: the version stamp, the client's opening line, and the sections."""

    sections: tuple[str, ...]
    attribution: str | None = None
    opening: str | None = None


def split_system(
    parts: SystemParts, sharing: SharingContext, layout: Layout = Layout.OBSERVED
) -> tuple[SystemBlock, ...]:
    """Return the blocks of a system prompt, each with the scope of its marker."""
    stamp = (SystemBlock(parts.attribution),) if parts.attribution else ()
    if sharing.is_custom_prompt:
        return (*stamp, *_join(parts.sections, CacheScope.ORG))
    if layout is Layout.OBSERVED:
        opening = (SystemBlock(parts.opening, CacheScope.ORG),) if parts.opening else ()
        return (*stamp, *opening, *_join(parts.sections, CacheScope.ORG))
    opening = (SystemBlock(parts.opening),) if parts.opening else ()
    if not sharing.shares_globally or DYNAMIC_BOUNDARY not in parts.sections:
        return (*stamp, *opening, *_join(parts.sections, CacheScope.ORG))
    boundary = parts.sections.index(DYNAMIC_BOUNDARY)
    shared = _join(parts.sections[:boundary], CacheScope.GLOBAL)
    return (*stamp, *opening, *shared, *_join(parts.sections[boundary:], CacheScope.ORG))


def _join(sections: Sequence[str], scope: CacheScope) -> tuple[SystemBlock, ...]:
    text = "\n\n".join(section for section in sections if section and section != DYNAMIC_BOUNDARY)
    return (SystemBlock(text, scope),) if text else ()


def write_system(blocks: Sequence[SystemBlock], ttl: CacheTtl) -> list[dict[str, object]]:
    """Return the blocks as the API takes them; only the global scope is written."""
    written: list[dict[str, object]] = []
    for block in blocks:
        item: dict[str, object] = {"type": "text", "text": block.text}
        is_stamp = block.text.startswith(BILLING_LINE)
        if block.scope is not None and ttl is not CacheTtl.OFF and not is_stamp:
            item["cache_control"] = build_cache_control(ttl, block.scope)
        written.append(item)
    return written
