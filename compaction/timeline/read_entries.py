"""Reads transcript entries into observations: the slow path, for every line that `fast_lines` cannot read.

Also fingerprints the system prompt and tools of request lines, and scans a message's content without building blocks.
"""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from compaction.context.tokens import count_entry_tokens, count_text_tokens
from compaction.prompt.fingerprint import Digest, Fingerprint, fingerprint_request
from compaction.prompt.request import PromptRequest, parse_marker, read_settings, read_shape, write_canonical
from compaction.timeline.observations import (
    READING_VERSION,
    CompactionRecord,
    FailedCall,
    LineKind,
    Observation,
    RecordedRequest,
    Response,
)
from compaction.transcripts.chain import is_boundary
from compaction.transcripts.client_protocol import CAVEAT, CAVEAT_TAG, NO_RESPONSE, ToolName, starts_with_tag
from compaction.transcripts.entries import (
    SYNTHETIC_MODEL,
    Block,
    Entry,
    LazySequence,
    Message,
    SkippedLine,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from compaction.transcripts.json_fields import get_fields, get_text, get_texts
from compaction.transcripts.output_estimate import count_written_characters
from compaction.transcripts.payloads import (
    ApiError,
    ApiRequestLine,
    ApiRequestShape,
    Attachment,
    Boundary,
    CostState,
    MicroBoundary,
    OlderSummary,
    Title,
    TurnDuration,
)
from compaction.transcripts.reader import Written, count_block_characters
from compaction.transcripts.titles import cut_title
from compaction.transcripts.user_lines import UserLine, UserLineKind, classify_entry, extract_prompt_text

# Where a hook for resumed sessions ran; older clients write progress lines, newer ones attachments.
_HOOK_LINES = frozenset({"progress", "attachment"})
_RESUME_HOOK = b'"SessionStart:resume"'
_LONGEST_NAME, _LONGEST_MODE = 1000, 40
_MODE = b'"permissionMode"'
# Names of lines; LEAVING is the client's command to exit.
INTERRUPTED, NO_ANSWER, LOCAL_COMMAND, LEAVING = "interrupted", "no response", "caveat", "/exit"
# Names, because they are used for every line: Python 3.11 finds the member of an enumeration ten times slower.
_PROMPT, _RESULT, _COMMAND, _OTHER = LineKind.PROMPT, LineKind.RESULT, LineKind.COMMAND, LineKind.OTHER
_TOOL_SEARCH = ToolName.TOOL_SEARCH.value


class ContentScan(msgspec.Struct, frozen=True, gc=False):
    """What a message's content holds. `written_characters` is 0 for messages with a stop reason, whose reported output
    is complete."""

    has_thinking: bool = False
    has_user_content: bool = False  # anything but tool results
    written_characters: int = 0
    block_count: int = 0
    tool_use_count: int = 0
    searches_tools: bool = False  # loads tools on demand


_NO_CONTENT = ContentScan()
_TEXT = ContentScan(has_user_content=True)


def hash_line(raw: bytes) -> str:
    """Return an id for a line without uuid: the same text is the same line."""
    return "#" + hashlib.blake2b(raw.strip(), digest_size=16).hexdigest()


def read_observation(entry: Entry, digest: Digest | None = None, *, keeps_text: bool = True) -> Observation:
    """Return the observation of one entry. Requests are fingerprinted only with a digest; without `keeps_text` no text
    of the line is kept."""
    message = entry.message
    scan = scan_content(message) if message is not None else _NO_CONTENT
    user_line = None if entry.is_compact_summary else classify_entry(entry)
    kind = _classify_line(entry, user_line)
    raw = entry.raw or b""
    line = Observation(
        id=entry.uuid or hash_line(raw),
        kind=kind,
        type=entry.type,
        parent=entry.logical_parent_uuid if is_boundary(entry) else entry.parent_uuid,
        at=entry.at,
        agent_id=entry.agent_id,
        is_sidechain=entry.is_sidechain or (entry.agent_id is not None and entry.type.startswith("api-request")),
        has_user_content=scan.has_user_content and entry.type == "user",
        session_id=entry.session_id,
        version=entry.version,
        cwd=entry.cwd,
        branch=entry.git_branch,
        size_bytes=len(raw),
        response=_read_response(entry, scan) if kind is LineKind.RESPONSE else None,
        tokens=count_entry_tokens(entry) if user_line is not None else None,
        name=_get_line_name(entry, user_line),
        reading_version=READING_VERSION,
        permission_mode=cut_permission_mode(get_text(entry.fields, "permissionMode")) if _MODE in raw else None,
    )
    if kind in _WITHOUT_PAYLOAD or (kind is LineKind.PROMPT and not keeps_text):
        return line
    return _add_payload(line, entry, digest, keeps_text=keeps_text)


def cut_permission_mode(mode: str | None) -> str | None:
    return mode[:_LONGEST_MODE] if mode else None


def read_problem(line: SkippedLine) -> Observation:
    """Return the observation of a line that could not be read; the same line counts once."""
    return Observation(
        id=hash_line(line.raw),
        kind=LineKind.PROBLEM,
        type=line.kind,
        size_bytes=line.size_bytes,
        name=line.reason,
        reading_version=READING_VERSION,
    )


def fingerprint_shape(entry: Entry, digest: Digest) -> tuple[str, Fingerprint] | None:
    """Return the digest of a shape line's system prompt and tools, and their fingerprint; None for other lines."""
    if not isinstance(entry.payload, ApiRequestShape):
        return None
    shape = read_shape(get_fields(entry.fields, "shape"))
    fingerprint = fingerprint_request(PromptRequest(model=None, tools=shape.tools, system=shape.system), digest)
    text = write_canonical((shape.system, [tool.fields for tool in shape.tools]))
    return digest(text.encode("utf-8", "surrogatepass")), fingerprint


_WITHOUT_PAYLOAD = frozenset(
    {
        LineKind.RESPONSE,
        LineKind.RESULT,
        LineKind.COMMAND,
        LineKind.RESTART,
        LineKind.OTHER,
    }
)

_PAYLOAD_KINDS: Mapping[type, LineKind] = {
    Boundary: LineKind.BOUNDARY,
    MicroBoundary: LineKind.MICRO,
    OlderSummary: LineKind.OLDER_SUMMARY,
    ApiRequestLine: LineKind.REQUEST,
    ApiRequestShape: LineKind.SHAPE,
    Attachment: LineKind.ATTACHMENT,
    Title: LineKind.TITLE,
    CostState: LineKind.COST,
    TurnDuration: LineKind.TURN_END,
    ApiError: LineKind.FAILURE,
}


def _classify_line(entry: Entry, user_line: UserLine | None) -> LineKind:
    if entry.message is not None:
        if entry.call_id is not None:
            return LineKind.RESPONSE
        if entry.is_compact_summary and entry.type == "user":
            return LineKind.SUMMARY
        return LineKind.OTHER if user_line is None else classify_user_line(user_line, is_meta=entry.is_meta)
    if entry.type in _HOOK_LINES and entry.raw is not None and _RESUME_HOOK in entry.raw:
        return LineKind.RESTART
    if entry.type == "ai-title":
        return LineKind.TITLE
    return _PAYLOAD_KINDS.get(type(entry.payload), LineKind.OTHER)


def classify_user_line(user_line: UserLine, *, is_meta: bool) -> LineKind:
    """Return the kind of a user line. The client's own commands, their output and what the client adds start no
    turn."""
    if is_meta:
        return _COMMAND
    if user_line.kind is UserLineKind.TOOL_RESULT:
        return _RESULT
    return _PROMPT if user_line.starts_turn else _OTHER


def name_user_line(user_line: UserLine) -> str | None:
    """Return the name of an interruption or a client command; other text that a person typed is content."""
    if user_line.is_interruption:
        return INTERRUPTED
    return user_line.text if user_line.is_bare_client_command else None


def name_client_line(text: str) -> str | None:
    """Return the name of the line before a command that the client runs itself, without the model."""
    text = text.lstrip()
    return LOCAL_COMMAND if text.startswith(CAVEAT) or starts_with_tag(text, CAVEAT_TAG) else None


def _get_line_name(entry: Entry, user_line: UserLine | None) -> str | None:
    message = entry.message
    if user_line is not None:
        if not entry.is_meta:
            return name_user_line(user_line)
        is_text = message is not None and message.is_plain
        return name_client_line(_join_texts(message)) if is_text else None
    if message is not None and message.model == SYNTHETIC_MODEL:
        return NO_ANSWER if _join_texts(message) == NO_RESPONSE else None
    return None


def _join_texts(message: Message | None) -> str:
    return "\n".join(block.text for block in (message.content if message else ()) if isinstance(block, TextBlock))


def _read_response(entry: Entry, scan: ContentScan) -> Response | None:
    message, call_id = entry.message, entry.call_id
    if message is None or message.usage is None or call_id is None:
        return None
    # Only clients that record their requests refer to them; other lines are not decoded whole for it.
    names_request = entry.raw is None or b'"requestRef"' in entry.raw or b'"promptCacheRequested"' in entry.raw
    fields = entry.fields if names_request else {}
    return Response(
        call_id=call_id,
        usage=message.usage,
        model=message.model,
        stop_reason=message.stop_reason,
        miss_reason=message.cache_miss_reason,
        request_id=entry.request_id,
        written_characters=scan.written_characters,
        has_thinking=scan.has_thinking,
        request_ref=get_text(fields, "requestRef"),
        requested_ttl=get_text(fields, "promptCacheRequested"),
        block_count=scan.block_count,
        tool_use_count=scan.tool_use_count,
        searches_tools=scan.searches_tools,
    )


def _add_payload(line: Observation, entry: Entry, digest: Digest | None, *, keeps_text: bool) -> Observation:
    values: dict[str, object] = {}
    match entry.payload:
        case Boundary() | MicroBoundary() | OlderSummary() as payload:
            values["compaction"] = _read_compaction(payload)
        case ApiRequestLine() as payload:
            values["request"] = _read_request(payload, entry, digest)
        case ApiRequestShape() as payload:
            fingerprint = fingerprint_shape(entry, digest) if digest else None
            values["shape"] = (payload.shape_hash, fingerprint[0]) if fingerprint else None
        case Attachment() as payload:
            values |= {"name": payload.kind, "tokens": count_entry_tokens(entry)}
            values["text"] = _name_attachment(entry) if keeps_text else None
        case Title() as payload:
            values["text"] = payload.text[:_LONGEST_NAME] if keeps_text else None
        case ApiError() | CostState() as payload:
            values |= _read_figures(payload)
        case _ if line.kind is LineKind.PROMPT:
            values["text"] = _build_prompt_title(entry)
        case _ if line.kind is LineKind.SUMMARY:
            values["tokens"] = count_entry_tokens(entry)
        case _ if line.kind is LineKind.TITLE and keeps_text:
            values["text"] = (get_text(entry.fields, "aiTitle") or "")[:_LONGEST_NAME]
    return msgspec.structs.replace(line, **values)


def _read_figures(payload: ApiError | CostState) -> dict[str, object]:
    if isinstance(payload, CostState):
        return {"cost_usd": None if payload.total_cost_usd is None else str(payload.total_cost_usd)}
    failed_call = FailedCall(
        status=payload.status,
        reason=payload.error_type,
        request_id=payload.request_id,
        attempt=payload.retry_attempt,
    )
    return {"failed_call": failed_call}


def _read_compaction(payload: Boundary | MicroBoundary | OlderSummary) -> CompactionRecord:
    if isinstance(payload, Boundary):
        segment = payload.preserved_segment
        return CompactionRecord(
            trigger=payload.trigger,
            before_tokens=payload.pre_tokens,
            after_tokens=payload.post_tokens,
            duration_seconds=payload.duration_seconds,
            kept_from=segment.head_uuid if segment else None,
            kept_to=segment.tail_uuid if segment else None,
        )
    if isinstance(payload, MicroBoundary):
        return CompactionRecord(
            trigger=payload.trigger,
            before_tokens=payload.pre_tokens,
            saved_tokens=payload.tokens_saved,
            cleared_count=len(payload.compacted_tool_ids) + len(payload.cleared_attachment_uuids),
        )
    return CompactionRecord(saved_tokens=payload.tokens_saved, summary_tokens=count_text_tokens(payload.text))


def _read_request(payload: ApiRequestLine, entry: Entry, digest: Digest | None) -> RecordedRequest:
    settings: tuple[tuple[str, str], ...] = ()
    if digest is not None:
        params = get_fields(entry.fields, "params")
        request = PromptRequest(model=None, settings=read_settings(params, get_texts(params, "betas")))
        settings = fingerprint_request(request, digest).settings
    markers = (parse_marker(marker) for marker in payload.cache_markers)
    return RecordedRequest(
        id=payload.id,
        query_source=payload.query_source,
        shape=payload.shape_hash,
        model=payload.model,
        base=payload.base,
        keep=payload.keep,
        tail=payload.tail,
        markers=tuple((marker.path, marker.ttl) for marker in markers if marker is not None),
        settings=settings,
    )


def _build_prompt_title(entry: Entry) -> str | None:
    blocks = entry.message.content if entry.message else ()
    titles = (build_title(block.text) for block in blocks if isinstance(block, TextBlock))
    return next((title for title in titles if title), None)


def build_title(text: str) -> str | None:
    """Return the start of a prompt as a title; None when the client wrote all of it, which it puts in tags."""
    title = " ".join(extract_prompt_text(text)[:_LONGEST_NAME].split())
    return cut_title(title) if title else None


def _name_attachment(entry: Entry) -> str | None:
    attachment = get_fields(entry.fields, "attachment")
    name = get_text(attachment, "displayPath") or get_text(attachment, "filename") or get_text(attachment, "name")
    return name[:_LONGEST_NAME] if name else None


class _BlockHead(msgspec.Struct, gc=False):
    type: str = ""
    tool_use_id: str = ""
    name: str = ""


class _OpenBlock(Written, gc=False):
    tool_use_id: str = ""


_BLOCK_HEADS = msgspec.json.Decoder(list[_BlockHead])
_OPEN_BLOCKS = msgspec.json.Decoder(list[_OpenBlock])


def scan_content(message: Message) -> ContentScan:
    """Return the scan of a message, from the raw content where that was not decoded yet."""
    content = message.content
    raw = content.source if isinstance(content, LazySequence) else None
    is_open = message.role == "assistant" and message.stop_reason is None
    if not isinstance(raw, msgspec.Raw):
        return _scan_blocks(tuple(content), is_open=is_open)
    if message.is_plain and message.role == "user":
        return _TEXT
    try:
        return _scan_raw(raw, is_open=is_open)
    except (ValueError, RecursionError):
        return _scan_blocks(tuple(content), is_open=is_open)


def _scan_raw(raw: msgspec.Raw, *, is_open: bool) -> ContentScan:
    characters = 0
    blocks: Sequence[_BlockHead | _OpenBlock]
    if is_open:
        blocks = open_blocks = _OPEN_BLOCKS.decode(raw)
        characters = sum(map(count_block_characters, open_blocks))
    else:
        blocks = _BLOCK_HEADS.decode(raw)
    kinds = {"" if block.type == "tool_result" and not block.tool_use_id else block.type for block in blocks}
    tool_names = [block.name for block in blocks if block.type == "tool_use"]
    return ContentScan(
        has_thinking="thinking" in kinds or "redacted_thinking" in kinds,
        has_user_content=bool(kinds - {"tool_result"}),
        written_characters=characters,
        block_count=len(blocks),
        tool_use_count=len(tool_names),
        searches_tools=_TOOL_SEARCH in tool_names,
    )


def _scan_blocks(blocks: Sequence[Block], *, is_open: bool) -> ContentScan:
    tool_names = [getattr(block, "name", "") for block in blocks if block.type == "tool_use"]
    return ContentScan(
        has_thinking=any(isinstance(block, ThinkingBlock) for block in blocks),
        has_user_content=any(not isinstance(block, ToolResultBlock) for block in blocks),
        written_characters=count_written_characters(blocks) if is_open else 0,
        block_count=len(blocks),
        tool_use_count=len(tool_names),
        searches_tools=_TOOL_SEARCH in tool_names,
    )
