"""From entries to facts, and from the system prompt and tools of a request line to their prints."""

import hashlib
from collections.abc import Mapping

from compaction.context.tokens import count_entry_tokens, count_text_tokens
from compaction.prompt.fingerprint import Digest, Fingerprint, fingerprint_request
from compaction.prompt.request import PromptRequest, parse_marker, read_settings, read_shape, write_canonical
from compaction.timeline.fast_lines import (
    ContentScan,
    PlainBlock,
    PlainLine,
    classify_result_blocks,
    count_plain_tokens,
    read_plain_line,
    scan_content,
    scan_written,
)
from compaction.timeline.observations import (
    READING_VERSION,
    CompactionRecord,
    FailedCall,
    LineKind,
    Observation,
    RecordedRequest,
    Response,
    change_observation,
)
from compaction.transcripts.chain import is_boundary
from compaction.transcripts.client_protocol import CAVEAT, CAVEAT_TAG, NO_RESPONSE, starts_with_tag
from compaction.transcripts.entries import SYNTHETIC_MODEL, Entry, Message, SkippedLine, TextBlock
from compaction.transcripts.json_fields import get_fields, get_text, get_texts
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
from compaction.transcripts.titles import cut_title
from compaction.transcripts.usage import build_usage
from compaction.transcripts.user_lines import UserLine, UserLineKind, classify_entry, classify_text, extract_prompt_text

# Where a hook for resumed sessions ran; older clients write progress lines, newer ones attachments.
_HOOK_LINES = frozenset({"progress", "attachment"})
_RESUME_HOOK = b'"SessionStart:resume"'
_LONGEST_NAME, _LONGEST_MODE = 1000, 40
_MODE = b'"permissionMode"'
# Names of lines; LEAVING is the client's own command.
INTERRUPTED, NO_ANSWER, LOCAL_COMMAND, LEAVING = "interrupted", "no response", "caveat", "/exit"
_NOTHING_SEEN = ContentScan()
# Here and wherever each line is looked at: Python 3.11 finds the member of an enumeration ten times slower than a name.
_ANSWER, _PROMPT, _RESULT = LineKind.ANSWER, LineKind.PROMPT, LineKind.RESULT
_COMMAND, _OTHER = LineKind.COMMAND, LineKind.OTHER


def hash_line(raw: bytes) -> str:
    """An identity for a line without uuid: the same text is the same line."""
    return "#" + hashlib.blake2b(raw.strip(), digest_size=16).hexdigest()


def read_observation(entry: Entry, digest: Digest | None = None, *, keeps_words: bool = True) -> Observation:
    """The fact of one entry. Requests are printed only with a digest; without `keeps_words` no word of it stays."""
    message = entry.message
    seen = scan_content(message) if message is not None else _NOTHING_SEEN
    line = None if entry.is_compact_summary else classify_entry(entry)
    kind = _find_kind(entry, line)
    raw = entry.raw or b""
    fact = Observation(
        id=entry.uuid or hash_line(raw),
        kind=kind,
        type=entry.type,
        parent=entry.logical_parent_uuid if is_boundary(entry) else entry.parent_uuid,
        at=entry.at,
        agent_id=entry.agent_id,
        is_sidechain=entry.is_sidechain or (entry.agent_id is not None and entry.type.startswith("api-request")),
        has_words=seen.has_words and entry.type == "user",
        session_id=entry.session_id,
        version=entry.version,
        cwd=entry.cwd,
        branch=entry.git_branch,
        size_bytes=len(raw),
        answer=_read_answer(entry, seen) if kind is LineKind.ANSWER else None,
        tokens=count_entry_tokens(entry) if line is not None else None,
        name=_name_line(entry, line),
        reading=READING_VERSION,
        permission_mode=_cut_mode(get_text(entry.fields, "permissionMode")) if _MODE in raw else None,
    )
    if kind in _PLAIN_KINDS or (kind is LineKind.PROMPT and not keeps_words):
        return fact
    return _add_payload(fact, entry, digest, keeps_words=keeps_words)


def read_plain_observation(raw: bytes, *, keeps_words: bool = True) -> Observation | None:
    """What `read_observation` makes of a line's entry, without making the entry; None where that takes one."""
    line = read_plain_line(raw)
    if line is None or line.message is None:
        return None
    content, words, answer, tokens, name = line.message.content, None, None, None, None
    has_words = False
    if line.type == "assistant":
        if not isinstance(content, list) or line.message.model == SYNTHETIC_MODEL:
            return None
        answer = _read_plain_answer(line, content)
        kind = _OTHER if answer is None else _ANSWER
    elif line.type != "user" or line.is_compact_summary:
        return None
    elif isinstance(content, list):
        has_results, has_words = classify_result_blocks(content)
        tokens = count_plain_tokens(content) if has_results else None
        if tokens is None:
            return None
        kind = _COMMAND if line.is_meta is True else _RESULT
    else:
        has_words = True
        tokens = count_text_tokens(content or "")
        spoken = _classify_plain(line, content or "")
        kind = _sort_user_line(spoken, is_meta=line.is_meta is True)
        name = _name_user_line(spoken) if kind is not _COMMAND else _name_own_line(content or "")
        words = _begin_text(content) if content and keeps_words and kind is _PROMPT else None
    return Observation(
        line.uuid or hash_line(raw),
        kind,
        line.type,
        line.parent_uuid,
        line.timestamp,
        line.agent_id,
        line.is_sidechain is True,
        has_words,
        line.session_id,
        line.version,
        line.cwd,
        line.git_branch,
        len(raw),
        answer,
        tokens=tokens,
        words=words,
        name=name,
        reading=READING_VERSION,
        permission_mode=_cut_mode(line.permission_mode),
    )


def _cut_mode(mode: str | None) -> str | None:
    return mode[:_LONGEST_MODE] if mode else None


def read_problem(line: SkippedLine) -> Observation:
    """A line that could not be read, so that it is counted once however often it comes."""
    return Observation(
        id=hash_line(line.raw),
        kind=LineKind.PROBLEM,
        type=line.kind,
        size_bytes=line.size_bytes,
        name=line.reason,
        reading=READING_VERSION,
    )


def fingerprint_shape(entry: Entry, digest: Digest) -> tuple[str, Fingerprint] | None:
    """The digest of a shape line's system prompt and tools, and their prints; None for every other line."""
    if not isinstance(entry.payload, ApiRequestShape):
        return None
    shape = read_shape(get_fields(entry.fields, "shape"))
    prints = fingerprint_request(PromptRequest(model=None, tools=shape.tools, system=shape.system), digest)
    text = write_canonical((shape.system, [tool.fields for tool in shape.tools]))
    return digest(text.encode("utf-8", "surrogatepass")), prints


_PLAIN_KINDS = frozenset(
    {
        LineKind.ANSWER,
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


def _find_kind(entry: Entry, line: UserLine | None) -> LineKind:
    if entry.message is not None:
        if entry.call_id is not None:
            return LineKind.ANSWER
        if entry.is_compact_summary and entry.type == "user":
            return LineKind.SUMMARY
        return LineKind.OTHER if line is None else _sort_user_line(line, is_meta=entry.is_meta)
    if entry.type in _HOOK_LINES and entry.raw is not None and _RESUME_HOOK in entry.raw:
        return LineKind.RESTART
    if entry.type == "ai-title":
        return LineKind.TITLE
    return _PAYLOAD_KINDS.get(type(entry.payload), LineKind.OTHER)


def _sort_user_line(line: UserLine, *, is_meta: bool) -> LineKind:
    """The client's own commands, what they print and what it adds by itself begin no turn, though the line is a
    user's."""
    if is_meta:
        return _COMMAND
    if line.kind is UserLineKind.TOOL_RESULT:
        return _RESULT
    return _PROMPT if line.starts_turn else _OTHER


def _classify_plain(line: PlainLine, text: str) -> UserLine:
    spoken = classify_text(text)
    is_of_client = line.is_meta is True or (line.origin is not None and line.origin.kind not in (None, "human"))
    return UserLine(UserLineKind.MACHINE_TEXT) if is_of_client and (spoken.text or spoken.starts_turn) else spoken


def _name_user_line(line: UserLine) -> str | None:
    """Commands of the client alone: what a person typed besides is content."""
    if line.is_interruption:
        return INTERRUPTED
    return line.text if line.is_bare_client_command else None


def _name_own_line(text: str) -> str | None:
    """Name the line before a command that the client performs itself: nothing is started for the model."""
    text = text.lstrip()
    return LOCAL_COMMAND if text.startswith(CAVEAT) or starts_with_tag(text, CAVEAT_TAG) else None


def _name_line(entry: Entry, line: UserLine | None) -> str | None:
    message = entry.message
    if line is not None:
        if not entry.is_meta:
            return _name_user_line(line)
        is_text = message is not None and message.is_plain
        return _name_own_line(_join_texts(message)) if is_text else None
    if message is not None and message.model == SYNTHETIC_MODEL:
        return NO_ANSWER if _join_texts(message) == NO_RESPONSE else None
    return None


def _join_texts(message: Message | None) -> str:
    return "\n".join(block.text for block in (message.content if message else ()) if isinstance(block, TextBlock))


def _read_answer(entry: Entry, seen: ContentScan) -> Response | None:
    message, call_id = entry.message, entry.call_id
    if message is None or message.usage is None or call_id is None:
        return None
    # Only clients that write their requests down refer to them; other lines are not decoded whole for it.
    names_request = entry.raw is None or b'"requestRef"' in entry.raw or b'"promptCacheRequested"' in entry.raw
    fields = entry.fields if names_request else {}
    return Response(
        call_id=call_id,
        usage=message.usage,
        model=message.model,
        stop_reason=message.stop_reason,
        miss_reason=message.cache_miss_reason,
        request_id=entry.request_id,
        written_characters=seen.written_characters,
        has_thinking=seen.has_thinking,
        request_ref=get_text(fields, "requestRef"),
        requested_ttl=get_text(fields, "promptCacheRequested"),
        block_count=seen.block_count,
        tool_use_count=seen.tool_use_count,
        searches_tools=seen.searches_tools,
    )


def _read_plain_answer(line: PlainLine, blocks: list[PlainBlock]) -> Response | None:
    message = line.message
    if message is None or message.usage is None:
        return None
    call_id = message.id or line.request_id or line.uuid
    if call_id is None:
        return None
    seen = scan_written(blocks, is_open=message.stop_reason is None)
    return Response(
        call_id,
        build_usage(message.usage),
        message.model,
        message.stop_reason,
        message.miss_reason if message.diagnostics else None,
        line.request_id,
        seen.written_characters,
        seen.has_thinking,
        line.request_ref,
        line.prompt_cache_requested,
        block_count=seen.block_count,
        tool_use_count=seen.tool_use_count,
        searches_tools=seen.searches_tools,
    )


def _add_payload(fact: Observation, entry: Entry, digest: Digest | None, *, keeps_words: bool) -> Observation:
    values: dict[str, object] = {}
    match entry.payload:
        case Boundary() | MicroBoundary() | OlderSummary() as payload:
            values["compacted"] = _read_compacted(payload)
        case ApiRequestLine() as payload:
            values["request"] = _read_request(payload, entry, digest)
        case ApiRequestShape() as payload:
            printed = fingerprint_shape(entry, digest) if digest else None
            values["shape"] = (payload.shape_hash, printed[0]) if printed else None
        case Attachment() as payload:
            values |= {"name": payload.kind, "tokens": count_entry_tokens(entry)}
            values["words"] = _name_attachment(entry) if keeps_words else None
        case Title() as payload:
            values["words"] = payload.text[:_LONGEST_NAME] if keeps_words else None
        case ApiError() | CostState() as payload:
            values |= _read_figures(payload)
        case _ if fact.kind is LineKind.PROMPT:
            values["words"] = _begin_prompt(entry)
        case _ if fact.kind is LineKind.SUMMARY:
            values["tokens"] = count_entry_tokens(entry)
        case _ if fact.kind is LineKind.TITLE and keeps_words:
            values["words"] = (get_text(entry.fields, "aiTitle") or "")[:_LONGEST_NAME]
    return change_observation(fact, **values)


def _read_figures(payload: ApiError | CostState) -> dict[str, object]:
    if isinstance(payload, CostState):
        return {"cost_usd": None if payload.total_cost_usd is None else str(payload.total_cost_usd)}
    unanswered = FailedCall(
        status=payload.status,
        reason=payload.error_type,
        request_id=payload.request_id,
        attempt=payload.retry_attempt,
    )
    return {"unanswered": unanswered}


def _read_compacted(payload: Boundary | MicroBoundary | OlderSummary) -> CompactionRecord:
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
        spelt = PromptRequest(model=None, settings=read_settings(params, get_texts(params, "betas")))
        settings = fingerprint_request(spelt, digest).settings
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


def _begin_prompt(entry: Entry) -> str | None:
    """How a prompt begins, for a title; what the client wrapped in tags is not the person's own."""
    blocks = entry.message.content if entry.message else ()
    titles = (_begin_text(block.text) for block in blocks if isinstance(block, TextBlock))
    return next((title for title in titles if title), None)


def _begin_text(text: str) -> str | None:
    words = " ".join(extract_prompt_text(text)[:_LONGEST_NAME].split())
    return cut_title(words) if words else None


def _name_attachment(entry: Entry) -> str | None:
    attachment = get_fields(entry.fields, "attachment")
    name = get_text(attachment, "displayPath") or get_text(attachment, "filename") or get_text(attachment, "name")
    return name[:_LONGEST_NAME] if name else None
