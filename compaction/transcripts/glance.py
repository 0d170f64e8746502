"""A glance at a message's content: which kinds of blocks it has and how much was written, without making the blocks."""

from dataclasses import dataclass

import msgspec

from compaction.transcripts.calls import count_written_characters
from compaction.transcripts.entries import Block, LazySequence, Message, ThinkingBlock, ToolResultBlock
from compaction.transcripts.reader import Written, count_block_characters


@dataclass(frozen=True, slots=True)
class Glance:
    """`written_characters` is 0 where a stop reason vouches for the reported output."""

    has_thinking: bool = False
    has_results: bool = False
    has_words: bool = False
    written_characters: int = 0


class _Kind(msgspec.Struct, gc=False):
    type: str = ""
    tool_use_id: str = ""


_KINDS = msgspec.json.Decoder(list[_Kind])
_WRITTEN = msgspec.json.Decoder(list[Written])
_WORDS = Glance(has_words=True)
_RESULTS = Glance(has_results=True)


def glance(message: Message) -> Glance:
    """The same whether the content was decoded before or not."""
    content = message.content
    raw = content.source if isinstance(content, LazySequence) else None
    if not isinstance(raw, msgspec.Raw):
        return _look_at_blocks(message)
    if message.is_plain and message.role == "user":
        return _WORDS
    try:
        return _look_at_answer(raw) if message.role == "assistant" and message.stop_reason is None else _look_at(raw)
    except (ValueError, RecursionError):
        return _look_at_blocks(message)


def _look_at(raw: msgspec.Raw) -> Glance:
    blocks = _KINDS.decode(raw)
    kinds = {"" if block.type == "tool_result" and not block.tool_use_id else block.type for block in blocks}
    if kinds == {"tool_result"}:
        return _RESULTS
    return Glance(
        has_thinking="thinking" in kinds or "redacted_thinking" in kinds,
        has_results="tool_result" in kinds,
        has_words=bool(kinds - {"tool_result"}),
    )


def _look_at_answer(raw: msgspec.Raw) -> Glance:
    blocks = _WRITTEN.decode(raw)
    kinds = {block.type for block in blocks}
    return Glance(
        has_thinking="thinking" in kinds or "redacted_thinking" in kinds,
        has_results="tool_result" in kinds,
        has_words=bool(kinds - {"tool_result"}),
        written_characters=sum(map(count_block_characters, blocks)),
    )


def _look_at_blocks(message: Message) -> Glance:
    blocks: tuple[Block, ...] = tuple(message.content)
    is_open = message.role == "assistant" and message.stop_reason is None
    return Glance(
        has_thinking=any(isinstance(block, ThinkingBlock) for block in blocks),
        has_results=any(isinstance(block, ToolResultBlock) for block in blocks),
        has_words=any(not isinstance(block, ToolResultBlock) for block in blocks),
        written_characters=count_written_characters(blocks) if is_open else 0,
    )
