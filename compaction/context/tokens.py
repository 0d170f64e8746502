"""Counts tokens: content is estimated by its characters; the context size is the last usage plus that estimate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.chain import ContextSlice, is_boundary
from compaction.transcripts.entries import (
    Block,
    DocumentBlock,
    Entry,
    ImageBlock,
    ResultPart,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from compaction.transcripts.output_estimate import compute_output_tokens, count_written_characters

CHARACTERS_PER_TOKEN = 4  # the client's own rule of thumb
MEDIA_TOKENS = 2_000  # the client's flat figure for an image or a document
MARGIN_NUMERATOR, MARGIN_DENOMINATOR = 4, 3  # the client's safety margin of one third


@dataclass(frozen=True, slots=True)
class ContextSize:
    """The used part of the window: what the last response measured, and the estimate of what came after it."""

    measured_tokens: int
    estimated_tokens: int
    anchor_id: str | None = None

    @property
    def tokens(self) -> int:
        """The size to compare with the thresholds."""
        return self.measured_tokens + self.estimated_tokens

    @property
    def is_measured(self) -> bool:
        """Return whether a response was measured; otherwise system and tools are not in the figure."""
        return self.anchor_id is not None


@dataclass(slots=True)
class ResultCache:
    """Tokens of tool results by tool_use_id, so that large results are counted once; a changed result is recounted."""

    _counts: dict[str, tuple[tuple[ResultPart, ...], int]] = field(default_factory=dict)

    def count(self, result: ToolResultBlock) -> int:
        """Return the tokens of this result before the margin."""
        counted = self._counts.get(result.tool_use_id)
        if counted is not None and counted[0] is result.parts:
            return counted[1]
        tokens = sum(count_part_tokens(part) for part in result.parts)
        self._counts[result.tool_use_id] = (result.parts, tokens)
        return tokens

    def clear(self) -> None:
        """Remove all counts, as after a compaction."""
        self._counts.clear()


def count_text_tokens(text: str) -> int:
    """Return a quarter of the characters, rounded half up."""
    return (len(text) + CHARACTERS_PER_TOKEN // 2) // CHARACTERS_PER_TOKEN


def count_part_tokens(part: ResultPart) -> int:
    """Return the tokens of one part of a tool result, before the margin."""
    if isinstance(part, TextBlock):
        return count_text_tokens(part.text)
    if isinstance(part, ImageBlock | DocumentBlock):
        return MEDIA_TOKENS
    return count_text_tokens(part.json)


def count_block_tokens(block: Block, cache: ResultCache | None = None) -> int:
    """Return the tokens of one block, before the margin."""
    if isinstance(block, ToolResultBlock):
        return cache.count(block) if cache else sum(count_part_tokens(part) for part in block.parts)
    if isinstance(block, ToolUseBlock):
        return count_text_tokens(block.name + block.input_json)
    if isinstance(block, ThinkingBlock):
        return count_text_tokens(block.thinking if block.redacted is None else block.redacted)
    return count_part_tokens(block)


def count_entry_tokens(entry: Entry, cache: ResultCache | None = None) -> int:
    """Return the tokens that an entry adds to the context, before the margin; 0 for lines the model never sees."""
    if entry.type == "attachment":
        return count_text_tokens(render_attachment(entry))
    if entry.type not in ("user", "assistant") or entry.message is None:
        return 0
    return sum(count_block_tokens(block, cache) for block in entry.message.content)


def add_margin(tokens: int) -> int:
    """Return the tokens with the safety margin of one third, rounded up."""
    return -(-tokens * MARGIN_NUMERATOR // MARGIN_DENOMINATOR)


def estimate_tokens(entries: Iterable[Entry], cache: ResultCache | None = None) -> int:
    """Return the estimate of these entries, margin included."""
    return add_margin(sum(count_entry_tokens(entry, cache) for entry in entries))


def measure_context(context: ContextSlice | Sequence[Entry], cache: ResultCache | None = None) -> ContextSize:
    """Return the context size: usage of the last real response, plus the estimate of all entries after its first line.

    Lines of that same response are in its usage; results of parallel requests between them are not. No response before
    the last boundary, or kept across it, is used.
    """
    entries, kept_uuids = (
        (context.entries, context.kept_uuids) if isinstance(context, ContextSlice) else (context, frozenset())
    )
    last = _find_anchor(entries, kept_uuids)
    if last is None:
        return ContextSize(0, estimate_tokens(entries[_find_start(entries) :], cache))
    message = entries[last].message
    message_id = message.id if message else None
    first = _find_first_line(entries, last, message_id)
    lines = [*(line for line in entries[first:last] if _is_line_of(line, message_id)), entries[last]]
    later = (entry for entry in entries[first + 1 :] if not _is_line_of(entry, message_id))
    return ContextSize(_measure_response(lines), estimate_tokens(later, cache), entries[last].call_id)


def _measure_response(lines: Sequence[Entry]) -> int:
    """Return the context after a response, from its lines. Their last one has its usage."""
    messages = [line.message for line in lines if line.message is not None and line.is_response]
    last = messages[-1]
    usage = last.usage or Usage()
    if last.stop_reason is not None:
        return usage.context_tokens
    written = sum(count_written_characters(message.content) for message in messages if message.stop_reason is None)
    return usage.changed(output_tokens=compute_output_tokens(usage, None, written)).context_tokens


def _find_start(entries: Sequence[Entry]) -> int:
    return next((index for index in range(len(entries) - 1, -1, -1) if is_boundary(entries[index])), 0)


def _find_anchor(entries: Sequence[Entry], kept: frozenset[str]) -> int | None:
    """Return the index of the last real response after the last boundary; usage of zeros measures nothing."""
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if is_boundary(entry):
            return None
        usage = entry.message.usage if entry.message and entry.call_id is not None and entry.uuid not in kept else None
        if usage is not None and usage.context_tokens > 0:
            return index
    return None


def _find_first_line(entries: Sequence[Entry], last: int, message_id: str | None) -> int:
    if message_id is None:
        return last
    first = last
    for index in range(last - 1, -1, -1):
        if is_boundary(entries[index]):
            break
        if _is_line_of(entries[index], message_id):
            first = index
    return first


def _is_line_of(entry: Entry, message_id: str | None) -> bool:
    if entry.type != "assistant" or entry.message is None:
        return False
    return message_id is not None and entry.message.id == message_id
