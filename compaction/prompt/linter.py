"""The linter: problems of the cache breakpoints and the prefix of one request, each with the path of its block."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compaction.context.cache_ttl import CacheTtl
from compaction.context.tokens import count_text_tokens
from compaction.llm.lookup import get_least_cached_tokens
from compaction.prompt.blocks import list_request_blocks
from compaction.prompt.markers import MOST_MARKERS, can_be_marked
from compaction.prompt.request import LEVELS, BlockPath, Fields, Marker, PromptLevel, PromptRequest
from compaction.prompt.volatile_text import find_volatile_text


class LintRule(StrEnum):
    """What the linter checks."""

    NO_MARKERS = "no cache breakpoint"
    TOO_MANY_MARKERS = "too many cache breakpoints"
    SHORT_BEFORE_LONG = "5 minutes before 1 hour"
    BELOW_MINIMUM = "prefix too short"
    UNCACHEABLE_BLOCK = "cache breakpoint on an uncacheable block"
    VOLATILE_TEXT = "volatile text before a cache breakpoint"
    UNSTABLE_TOOLS = "tools in unstable order"


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding: the rule, the path of its block in the request body, and a sentence."""

    rule: LintRule
    path: BlockPath
    sentence: str

    @property
    def cited(self) -> str:
        """The path as text: system[2], messages[14].content[0]."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).lstrip(".")


def lint_request(request: PromptRequest, earlier: Sequence[PromptRequest] = ()) -> tuple[LintFinding, ...]:
    """Return all findings. `earlier`: requests of the conversation, which show whether the tools keep their order."""
    return (
        *_lint_markers(request),
        *_lint_lengths(request),
        *_lint_marked_blocks(request),
        *_lint_text(request),
        *_lint_tool_order(request, earlier),
    )


def _lint_markers(request: PromptRequest) -> Iterator[LintFinding]:
    if not request.markers:
        yield LintFinding(LintRule.NO_MARKERS, (), "The request has no cache breakpoint, so nothing is cached.")
    for marker in request.markers[MOST_MARKERS:]:
        sentence = (
            f"The request has {len(request.markers)} cache breakpoints; the API rejects more than {MOST_MARKERS}."
        )
        yield LintFinding(LintRule.TOO_MANY_MARKERS, _cite(request, marker.path), sentence)
    short: Marker | None = None
    for marker in request.markers:
        if marker.ttl == CacheTtl.FIVE_MINUTES:
            short = short or marker
        elif short is not None:
            sentence = "A 1-hour cache breakpoint follows a 5-minute one; the API requires the longer lifetime first."
            yield LintFinding(LintRule.SHORT_BEFORE_LONG, _cite(request, marker.path), sentence)


def _lint_lengths(request: PromptRequest) -> Iterator[LintFinding]:
    least = get_least_cached_tokens(request.model)
    if least is None or request.are_messages_opaque or not request.are_messages_known:
        return
    for marker in request.markers:
        tokens = _count_tokens_before(request, marker, least)
        if tokens < least:
            sentence = (
                f"About {tokens:,} tokens end here; {request.model} does not cache prefixes shorter than {least:,}."
            )
            yield LintFinding(LintRule.BELOW_MINIMUM, _cite(request, marker.path), sentence)


def _count_tokens_before(request: PromptRequest, marker: Marker, enough: int) -> int:
    """Return the tokens up to and including the marked tool, system block or message; counting stops at `enough`."""
    end = (LEVELS.index(marker.level), marker.index)
    tokens = 0
    for position, level in enumerate(LEVELS):
        for block in list_request_blocks(request, level) if position <= end[0] else ():
            if (position, block.path[1]) > end or tokens >= enough:
                break
            tokens += count_text_tokens(block.identity)
    return tokens


def _lint_marked_blocks(request: PromptRequest) -> Iterator[LintFinding]:
    for marker in request.markers:
        problem = _find_problem(request, marker)
        if problem is not None:
            yield LintFinding(LintRule.UNCACHEABLE_BLOCK, _cite(request, marker.path), problem)


def _find_problem(request: PromptRequest, marker: Marker) -> str | None:
    if marker.level is PromptLevel.TOOLS:
        is_deferred = 0 <= marker.index < len(request.tools) and request.tools[marker.index].is_deferred
        return "A deferred tool is not part of the prefix and cannot end it." if is_deferred else None
    if marker.path[4:]:
        return "Content inside a tool result cannot have a cache breakpoint; put it on the tool result itself."
    block = _find_block(request, marker)
    if block is None or can_be_marked(block):
        return None
    if block.get("type") == "text":
        return "An empty text block cannot have a cache breakpoint."
    return "A thinking block cannot have a cache breakpoint; put it on the previous block."


def _find_block(request: PromptRequest, marker: Marker) -> Fields | None:
    if marker.level is PromptLevel.SYSTEM:
        return request.system[marker.index] if 0 <= marker.index < len(request.system) else None
    position = marker.path[3] if len(marker.path) > 3 else 0
    if not 0 <= marker.index < len(request.messages) or not isinstance(position, int):
        return None
    blocks = request.messages[marker.index].blocks
    return blocks[position] if position < len(blocks) else None


def _lint_text(request: PromptRequest) -> Iterator[LintFinding]:
    """Yield findings for tools and system prompt only: the text of a message does not change later."""
    if not request.markers:
        return
    last = max((LEVELS.index(marker.level), marker.index) for marker in request.markers)
    for level in (PromptLevel.TOOLS, PromptLevel.SYSTEM):
        for block in list_request_blocks(request, level):
            index = block.path[1]
            if not isinstance(index, int) or (LEVELS.index(level), index) > last:
                continue
            for volatile in find_volatile_text(block.render() or ""):
                sentence = (
                    f"{volatile.kind.value.capitalize()} at character {volatile.start} changes between requests; "
                )
                sentence += "everything after it is re-written to cache each time."
                yield LintFinding(LintRule.VOLATILE_TEXT, _cite(request, block.path), sentence)


def _lint_tool_order(request: PromptRequest, earlier: Sequence[PromptRequest]) -> Iterator[LintFinding]:
    names = [tool.name for tool in request.tools if not tool.is_deferred]
    for other in reversed(earlier):
        earlier_names = [tool.name for tool in other.tools if not tool.is_deferred]
        before = [name for name in earlier_names if name in names]
        after = [name for name in names if name in earlier_names]
        if before != after:
            first = next(name for name, old in zip(after, before, strict=True) if name != old)
            index = [tool.name for tool in request.tools].index(first)
            sentence = f"{first} was in a different position in an earlier request; sort tools by name."
            yield LintFinding(LintRule.UNSTABLE_TOOLS, (PromptLevel.TOOLS.value, index), sentence)
            return


def _cite(request: PromptRequest, path: BlockPath) -> BlockPath:
    """Return the path in the body as it was sent, where the client's version stamp counts."""
    if request.has_billing_line and path[:1] == (PromptLevel.SYSTEM.value,) and isinstance(path[1], int):
        return (path[0], path[1] + 1, *path[2:])
    return path
