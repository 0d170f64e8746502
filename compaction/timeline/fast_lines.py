"""The fast path of `read_entries.read_observation`: reads a plain line, as nearly all are, without building its entry.

A line that is unusual in any way gives None and takes the slow path; both give the same observation.
"""

from collections.abc import Iterable

import msgspec

from compaction.context.tokens import MEDIA_TOKENS, count_text_tokens
from compaction.timeline.observations import READING_VERSION, LineKind, Observation, Response
from compaction.timeline.read_entries import (
    ContentScan,
    build_title,
    classify_user_line,
    cut_permission_mode,
    hash_line,
    name_client_line,
    name_user_line,
)
from compaction.transcripts.client_protocol import ToolName
from compaction.transcripts.entries import SYNTHETIC_MODEL
from compaction.transcripts.reader import MessageHead, Time, Written, count_block_characters, name_in_json
from compaction.transcripts.usage import build_usage
from compaction.transcripts.user_lines import UserLine, UserLineKind, classify_text

# Names, because this runs for every line: Python 3.11 finds the member of an enumeration ten times slower.
_RESPONSE, _PROMPT, _RESULT = LineKind.RESPONSE, LineKind.PROMPT, LineKind.RESULT
_COMMAND, _OTHER = LineKind.COMMAND, LineKind.OTHER
_TOOL_SEARCH = ToolName.TOOL_SEARCH.value
_TOOL_USE = "tool_use"
_THINKING = ("thinking", "redacted_thinking")
_MEDIA_PARTS = ("image", "document")


class PlainPart(msgspec.Struct, gc=False):
    """A part of a tool's result."""

    type: str = ""
    text: str | None = None


class PlainBlock(Written, gc=False):
    """A content block of a plain line, as far as metrics need it."""

    tool_use_id: str = ""
    content: str | list[PlainPart] | None = None


class _Origin(msgspec.Struct, gc=False):
    kind: str | None = None


class PlainMessage(MessageHead, gc=False):
    """A message with its content; None when it is absent or null."""

    content: list[PlainBlock] | str | None = None


class PlainLine(msgspec.Struct, rename=name_in_json, gc=False):
    """A line of a conversation in which every field has its expected type."""

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


_DECODER = msgspec.json.Decoder(PlainLine)


def read_plain_observation(raw: bytes, *, keeps_text: bool = True) -> Observation | None:
    """Return the observation of a plain line; None for a line that needs `read_observation`."""
    line = _decode_line(raw)
    if line is None or line.message is None:
        return None
    content, text, response, tokens, name = line.message.content, None, None, None, None
    has_user_content = False
    if line.type == "assistant":
        if not isinstance(content, list) or line.message.model == SYNTHETIC_MODEL:
            return None
        response = _read_response(line, line.message, content)
        kind = _OTHER if response is None else _RESPONSE
    elif line.type != "user" or line.is_compact_summary:
        return None
    elif isinstance(content, list):
        has_results, has_user_content = _classify_result_blocks(content)
        tokens = _count_tokens(content) if has_results else None
        if tokens is None:
            return None
        kind = _COMMAND if line.is_meta is True else _RESULT
    else:
        has_user_content = True
        tokens = count_text_tokens(content or "")
        user_line = _classify_text(line, content or "")
        kind = classify_user_line(user_line, is_meta=line.is_meta is True)
        name = name_user_line(user_line) if kind is not _COMMAND else name_client_line(content or "")
        text = build_title(content) if content and keeps_text and kind is _PROMPT else None
    return Observation(
        line.uuid or hash_line(raw),
        kind,
        line.type,
        line.parent_uuid,
        line.timestamp,
        line.agent_id,
        line.is_sidechain is True,
        has_user_content,
        session_id=line.session_id,
        version=line.version,
        cwd=line.cwd,
        branch=line.git_branch,
        size_bytes=len(raw),
        response=response,
        tokens=tokens,
        text=text,
        name=name,
        reading_version=READING_VERSION,
        permission_mode=cut_permission_mode(line.permission_mode),
    )


def _decode_line(raw: bytes) -> PlainLine | None:
    """Return a line whose message, if any, has content and the right role; None for every other line."""
    try:
        line = _DECODER.decode(raw)
    except (ValueError, RecursionError):
        return None
    message = line.message
    if message is None or message.content is None or (message.role is not None and message.role != line.type):
        return None
    return line


def _read_response(line: PlainLine, message: PlainMessage, blocks: list[PlainBlock]) -> Response | None:
    if message.usage is None:
        return None
    call_id = message.id or line.request_id or line.uuid
    if call_id is None:
        return None
    scan = _scan_blocks(blocks, is_open=message.stop_reason is None)
    return Response(
        call_id,
        build_usage(message.usage),
        message.model,
        message.stop_reason,
        message.miss_reason if message.diagnostics else None,
        line.request_id,
        scan.written_characters,
        scan.has_thinking,
        request_ref=line.request_ref,
        requested_ttl=line.prompt_cache_requested,
        block_count=scan.block_count,
        tool_use_count=scan.tool_use_count,
        searches_tools=scan.searches_tools,
    )


def _scan_blocks(blocks: list[PlainBlock], *, is_open: bool) -> ContentScan:
    """Return what the blocks of a response are. Characters are counted only without a stop reason (`is_open`)."""
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
    return ContentScan(has_thinking, False, characters, len(blocks), tool_uses, searches_tools)


def _classify_result_blocks(blocks: list[PlainBlock]) -> tuple[bool, bool]:
    """Return whether there are tool results among the blocks, and whether there is anything else."""
    has_results = has_other = False
    for block in blocks:
        if block.type == "tool_result" and block.tool_use_id:
            has_results = True
        else:
            has_other = True
    return has_results, has_other


def _classify_text(line: PlainLine, text: str) -> UserLine:
    user_line = classify_text(text)
    is_of_client = line.is_meta is True or (line.origin is not None and line.origin.kind not in (None, "human"))
    if is_of_client and (user_line.text or user_line.starts_turn):
        return UserLine(UserLineKind.MACHINE_TEXT)
    return user_line


def _count_tokens(blocks: Iterable[PlainBlock]) -> int | None:
    """Return the estimated tokens of a line with tool results; None when its entry is needed to count them."""
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
