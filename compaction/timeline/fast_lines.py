"""A glance at a message's content: which kinds of blocks it has and how much was written, without making the blocks.

And at a whole line: what metrics need of a plain one, in one pass.
"""

from collections.abc import Iterable

import msgspec

from compaction.context.tokens import MEDIA_TOKENS, count_text_tokens
from compaction.transcripts.client_protocol import ToolName
from compaction.transcripts.entries import Block, LazySequence, Message, ThinkingBlock, ToolResultBlock
from compaction.transcripts.output_estimate import count_written_characters
from compaction.transcripts.reader import (
    MessageHead,
    Time,
    Written,
    count_block_characters,
    name_in_json,
)

_MEDIA_PARTS = ("image", "document")


class ContentScan(msgspec.Struct, frozen=True, gc=False):
    """`written_characters` is 0 where a stop reason vouches for the reported output."""

    has_thinking: bool = False
    has_results: bool = False
    has_words: bool = False
    written_characters: int = 0
    block_count: int = 0
    tool_use_count: int = 0
    searches_tools: bool = False  # loads tools on demand


class _Kind(msgspec.Struct, gc=False):
    type: str = ""
    tool_use_id: str = ""
    name: str = ""


class PlainPart(msgspec.Struct, gc=False):
    """A part of a tool's result."""

    type: str = ""
    text: str | None = None


class PlainBlock(Written, gc=False):
    """A block of a plain line, as far as metrics need it."""

    tool_use_id: str = ""
    content: str | list[PlainPart] | None = None


class _Origin(msgspec.Struct, gc=False):
    kind: str | None = None


class PlainMessage(MessageHead, gc=False):
    """`content` None: absent or null."""

    content: list[PlainBlock] | str | None = None


class PlainLine(msgspec.Struct, rename=name_in_json, gc=False):
    """A line of a conversation whose every field is of the kind it should be: nearly all of a transcript."""

    parent_uuid: str | None = None
    is_sidechain: bool | None = None
    cwd: str | None = None
    session_id: str | None = None
    version: str | None = None
    git_branch: str | None = None
    agent_id: str | None = None
    type: str = ""
    message: PlainMessage | None = None
    request_id: str | None = None
    uuid: str | None = None
    timestamp: Time | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    request_ref: str | None = None
    prompt_cache_requested: str | None = None
    permission_mode: str | None = None
    origin: _Origin | None = None


_PLAIN = msgspec.json.Decoder(PlainLine)
_THINKING = ("thinking", "redacted_thinking")
_TOOL_USE = "tool_use"
_TOOL_SEARCH = ToolName.TOOL_SEARCH.value  # a plain text: compared at every block
_KINDS = msgspec.json.Decoder(list[_Kind])
_WRITTEN = msgspec.json.Decoder(list[Written])
_WORDS = ContentScan(has_words=True)
_RESULTS = ContentScan(has_results=True)


def read_plain_line(raw: bytes) -> PlainLine | None:
    """A line whose message, if any, has its role and content; None for what is odd in any way."""
    try:
        line = _PLAIN.decode(raw)
    except (ValueError, RecursionError):
        return None
    message = line.message
    if message is None or message.content is None or (message.role is not None and message.role != line.type):
        return None
    return line


def scan_written(blocks: list[PlainBlock], *, is_open: bool) -> ContentScan:
    """Return what the blocks of an answer are. Characters are counted unless a stop reason vouches for the reported
    output."""
    has_thinking, searches_tools, characters, tool_uses = False, False, 0, 0
    for block in blocks:
        kind = block.type
        if kind == _TOOL_USE:
            tool_uses += 1
            searches_tools = searches_tools or block.name == _TOOL_SEARCH
        elif kind in _THINKING:
            has_thinking = True
        if is_open:
            characters += count_block_characters(block)
    return ContentScan(has_thinking, False, False, characters, len(blocks), tool_uses, searches_tools)


def classify_result_blocks(blocks: list[PlainBlock]) -> tuple[bool, bool]:
    """Whether there are results of tools among them, and whether there is anything else."""
    has_results = has_words = False
    for block in blocks:
        if block.type == "tool_result" and block.tool_use_id:
            has_results = True
        else:
            has_words = True
    return has_results, has_words


def scan_content(message: Message) -> ContentScan:
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


def _look_at(raw: msgspec.Raw) -> ContentScan:
    blocks = _KINDS.decode(raw)
    kinds = {"" if block.type == "tool_result" and not block.tool_use_id else block.type for block in blocks}
    if kinds == {"tool_result"}:
        return _RESULTS
    tool_names = [block.name for block in blocks if block.type == _TOOL_USE]
    return ContentScan(
        has_thinking="thinking" in kinds or "redacted_thinking" in kinds,
        has_results="tool_result" in kinds,
        has_words=bool(kinds - {"tool_result"}),
        block_count=len(blocks),
        tool_use_count=len(tool_names),
        searches_tools=_TOOL_SEARCH in tool_names,
    )


def _look_at_answer(raw: msgspec.Raw) -> ContentScan:
    blocks = _WRITTEN.decode(raw)
    kinds = {block.type for block in blocks}
    tool_names = [block.name for block in blocks if block.type == _TOOL_USE]
    return ContentScan(
        has_thinking="thinking" in kinds or "redacted_thinking" in kinds,
        has_results="tool_result" in kinds,
        has_words=bool(kinds - {"tool_result"}),
        written_characters=sum(map(count_block_characters, blocks)),
        block_count=len(blocks),
        tool_use_count=len(tool_names),
        searches_tools=_TOOL_SEARCH in tool_names,
    )


def _look_at_blocks(message: Message) -> ContentScan:
    blocks: tuple[Block, ...] = tuple(message.content)
    is_open = message.role == "assistant" and message.stop_reason is None
    tool_names = [getattr(block, "name", "") for block in blocks if block.type == _TOOL_USE]
    return ContentScan(
        has_thinking=any(isinstance(block, ThinkingBlock) for block in blocks),
        has_results=any(isinstance(block, ToolResultBlock) for block in blocks),
        has_words=any(not isinstance(block, ToolResultBlock) for block in blocks),
        written_characters=count_written_characters(blocks) if is_open else 0,
        block_count=len(blocks),
        tool_use_count=len(tool_names),
        searches_tools=_TOOL_SEARCH in tool_names,
    )


def count_plain_tokens(blocks: Iterable[PlainBlock]) -> int | None:
    """The same for a line of tool results that was read without making its entry; None where that takes one."""
    tokens = 0
    for block in blocks:
        if block.type == "text" and block.text:
            tokens += count_text_tokens(block.text)
        elif block.type != "tool_result" or not block.tool_use_id:
            return None
        elif isinstance(block.content, str):
            tokens += count_text_tokens(block.content)
        else:
            for part in block.content or ():
                if part.type == "text" and part.text is not None:
                    tokens += count_text_tokens(part.text)
                elif part.type in _MEDIA_PARTS:
                    tokens += MEDIA_TOKENS
                else:
                    return None
    return tokens
