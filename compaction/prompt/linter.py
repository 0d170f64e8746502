"""The linter: what is wrong with the markers and the prefix of one request, each finding citing its block."""

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


class Rule(StrEnum):
    """What the linter looks for."""

    NO_MARKERS = "no markers"
    TOO_MANY_MARKERS = "too many markers"
    SHORT_BEFORE_LONG = "5 minutes before 1 hour"
    BELOW_MINIMUM = "prefix too short"
    UNCACHEABLE_BLOCK = "marker on an uncacheable block"
    VOLATILE_TEXT = "volatile text before a marker"
    UNSTABLE_TOOLS = "tools in unstable order"


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One finding: the rule, the block it is about as a path into the request body, and a sentence."""

    rule: Rule
    path: BlockPath
    sentence: str

    @property
    def cited(self) -> str:
        """The block as one would write it: system[2], messages[14].content[0]."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path).lstrip(".")


def lint_request(request: PromptRequest, earlier: Sequence[PromptRequest] = ()) -> tuple[LintFinding, ...]:
    """Everything found. `earlier` requests of the conversation show whether the tools keep their order."""
    return (
        *_lint_markers(request),
        *_lint_lengths(request),
        *_lint_marked_blocks(request),
        *_lint_text(request),
        *_lint_tool_order(request, earlier),
    )


def _lint_markers(request: PromptRequest) -> Iterator[LintFinding]:
    if not request.markers:
        yield LintFinding(Rule.NO_MARKERS, (), "The request has no cache markers, so nothing is cached.")
    for marker in request.markers[MOST_MARKERS:]:
        sentence = f"The API accepts {MOST_MARKERS} cache markers and rejects this request with {len(request.markers)}."
        yield LintFinding(Rule.TOO_MANY_MARKERS, _cite(request, marker.path), sentence)
    short: Marker | None = None
    for marker in request.markers:
        if marker.ttl == CacheTtl.FIVE_MINUTES:
            short = short or marker
        elif short is not None:
            sentence = "A 1-hour marker follows a 5-minute marker; the API requires the longer lifetime first."
            yield LintFinding(Rule.SHORT_BEFORE_LONG, _cite(request, marker.path), sentence)


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
            yield LintFinding(Rule.BELOW_MINIMUM, _cite(request, marker.path), sentence)


def _count_tokens_before(request: PromptRequest, marker: Marker, enough: int) -> int:
    """Tokens up to and including the marked block's tool, system block or message; counting stops when it suffices."""
    end = (LEVELS.index(marker.level), marker.index)
    tokens = 0
    for place, level in enumerate(LEVELS):
        for piece in list_request_blocks(request, level) if place <= end[0] else ():
            if (place, piece.path[1]) > end or tokens >= enough:
                break
            tokens += count_text_tokens(piece.identity)
    return tokens


def _lint_marked_blocks(request: PromptRequest) -> Iterator[LintFinding]:
    for marker in request.markers:
        problem = _find_problem(request, marker)
        if problem is not None:
            yield LintFinding(Rule.UNCACHEABLE_BLOCK, _cite(request, marker.path), problem)


def _find_problem(request: PromptRequest, marker: Marker) -> str | None:
    if marker.level is PromptLevel.TOOLS:
        is_deferred = 0 <= marker.index < len(request.tools) and request.tools[marker.index].is_deferred
        return "A deferred tool is not part of the prefix and cannot end it." if is_deferred else None
    if marker.path[4:]:
        return "Content inside a tool result cannot have a cache marker; put it on the tool result itself."
    block = _find_block(request, marker)
    if block is None or can_be_marked(block):
        return None
    if block.get("type") == "text":
        return "An empty text block cannot have a cache marker."
    return "A thinking block cannot have a cache marker; put it on the previous block."


def _find_block(request: PromptRequest, marker: Marker) -> Fields | None:
    if marker.level is PromptLevel.SYSTEM:
        return request.system[marker.index] if 0 <= marker.index < len(request.system) else None
    place = marker.path[3] if len(marker.path) > 3 else 0
    if not 0 <= marker.index < len(request.messages) or not isinstance(place, int):
        return None
    blocks = request.messages[marker.index].blocks
    return blocks[place] if place < len(blocks) else None


def _lint_text(request: PromptRequest) -> Iterator[LintFinding]:
    """Tools and system prompt only: what stands in a message was said once and stays."""
    if not request.markers:
        return
    last = max((LEVELS.index(marker.level), marker.index) for marker in request.markers)
    for level in (PromptLevel.TOOLS, PromptLevel.SYSTEM):
        for piece in list_request_blocks(request, level):
            index = piece.path[1]
            if not isinstance(index, int) or (LEVELS.index(level), index) > last:
                continue
            for found in find_volatile_text(piece.spell() or ""):
                sentence = f"{found.kind.value.capitalize()} at character {found.start} changes between requests; "
                sentence += "everything after it is re-written to cache each time."
                yield LintFinding(Rule.VOLATILE_TEXT, _cite(request, piece.path), sentence)


def _lint_tool_order(request: PromptRequest, earlier: Sequence[PromptRequest]) -> Iterator[LintFinding]:
    names = [tool.name for tool in request.tools if not tool.is_deferred]
    for other in reversed(earlier):
        known = [tool.name for tool in other.tools if not tool.is_deferred]
        before, after = [name for name in known if name in names], [name for name in names if name in known]
        if before != after:
            first = next(name for name, old in zip(after, before, strict=True) if name != old)
            index = [tool.name for tool in request.tools].index(first)
            sentence = f"{first} was in a different position in an earlier request; sort tools by name."
            yield LintFinding(Rule.UNSTABLE_TOOLS, (PromptLevel.TOOLS.value, index), sentence)
            return


def _cite(request: PromptRequest, path: BlockPath) -> BlockPath:
    """The path in the body as it was sent: the client's version stamp counts there."""
    if request.has_billing_line and path[:1] == (PromptLevel.SYSTEM.value,) and isinstance(path[1], int):
        return (path[0], path[1] + 1, *path[2:])
    return path
