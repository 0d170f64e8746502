"""Writes entries as bytes: untouched lines exactly as they were read, new and changed ones as compact JSON."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from compaction.errors import LineNotKept
from compaction.transcripts.blocks import write_content
from compaction.transcripts.entries import Entry, Item, Message, SkippedLine, Usage
from compaction.transcripts.json_fields import get_fields
from compaction.transcripts.payloads import Attachment, Boundary, MicroBoundary

# Entry attributes that a line carries under its own name, in the order the client writes them.
_KEYS = {
    "parent_uuid": "parentUuid",
    "logical_parent_uuid": "logicalParentUuid",
    "session_id": "sessionId",
    "agent_id": "agentId",
    "version": "version",
    "cwd": "cwd",
    "git_branch": "gitBranch",
    "request_id": "requestId",
    "type": "type",
    "subtype": "subtype",
    "uuid": "uuid",
}
_FLAGS = {
    "is_sidechain": "isSidechain",
    "is_meta": "isMeta",
    "is_compact_summary": "isCompactSummary",
    "is_api_error": "isApiErrorMessage",
}


def write_items(items: Iterable[Item]) -> Iterator[bytes]:
    """Yield the bytes of each item; an unended line gets its ending before a new line follows."""
    is_ended = True
    for item in items:
        if isinstance(item, SkippedLine):
            if item.kind == "too_long":
                raise LineNotKept(item.line_number, item.size_bytes)
            raw = item.raw
        elif item.raw is not None:
            raw = item.raw
        else:
            raw = write_entry(item) if is_ended else b"\n" + write_entry(item)
        yield raw
        is_ended = raw.endswith(b"\n") if raw else is_ended


def write_entry(entry: Entry) -> bytes:
    """Return one line with its ending: the raw one if untouched, else the fields it was read with and the changes."""
    if entry.raw is not None:
        return entry.raw
    line: dict[str, object] = dict(entry.fields)
    for attribute, key in _KEYS.items():
        value = getattr(entry, attribute)
        if value is not None or key in line:
            line[key] = value
    for attribute, key in _FLAGS.items():
        if getattr(entry, attribute) or key in line:
            line[key] = getattr(entry, attribute)
    if entry.message is not None:
        line["message"] = _write_message(entry.message, line)
    line.update(_write_payload(entry, line))
    if entry.at is not None:
        line["timestamp"] = _write_time(entry.at)
    # A surrogate half becomes its own JSON escape.
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"


def _write_time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write_message(message: Message, line: dict[str, object]) -> dict[str, object]:
    optional = {"id": message.id, "model": message.model, "stop_reason": message.stop_reason}
    written: dict[str, object] = {**get_fields(line, "message"), "role": message.role}
    written.update({key: value for key, value in optional.items() if value is not None or key in written})
    written["content"] = write_content(message.content, is_plain=message.is_plain)
    if message.usage is not None and "usage" not in written:
        written["usage"] = _write_usage(message.usage)
    return written


def _write_usage(usage: Usage) -> dict[str, object]:
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_creation_5m_tokens,
            "ephemeral_1h_input_tokens": usage.cache_creation_1h_tokens,
        },
        "output_tokens": usage.output_tokens,
        "service_tier": usage.service_tier,
    }


def _write_payload(entry: Entry, line: dict[str, object]) -> dict[str, object]:
    """Return the fields of payloads that Plimsoll itself makes; others stay as they were read."""
    payload = entry.payload
    if isinstance(payload, Boundary):
        return {"compactMetadata": {**get_fields(line, "compactMetadata"), **_write_boundary(payload)}}
    if isinstance(payload, MicroBoundary):
        return {"microcompactMetadata": {**get_fields(line, "microcompactMetadata"), **_write_micro(payload)}}
    if isinstance(payload, Attachment) and "attachment" not in line:
        rendered = [{"content": text} for text in payload.rendered]
        return {"attachment": {"type": payload.kind}, "rendered": rendered, "renderedRole": payload.rendered_role}
    return {}


def _write_boundary(boundary: Boundary) -> dict[str, object]:
    segment = boundary.preserved_segment
    seconds = boundary.duration_seconds
    written: dict[str, object] = {
        "trigger": boundary.trigger,
        "preTokens": boundary.pre_tokens,
        "postTokens": boundary.post_tokens,
        "durationMs": None if seconds is None else round(seconds * 1000),
        "messagesSummarized": boundary.messages_summarized,
        "preservedSegment": segment
        and {"headUuid": segment.head_uuid, "anchorUuid": segment.anchor_uuid, "tailUuid": segment.tail_uuid},
        "preCompactDiscoveredTools": list(boundary.discovered_tools) or None,
        "userContext": boundary.user_context,
        "cumulativeDroppedTokens": boundary.cumulative_dropped_tokens,
    }
    return {key: value for key, value in written.items() if value is not None}


def _write_micro(boundary: MicroBoundary) -> dict[str, object]:
    written: dict[str, object] = {
        "trigger": boundary.trigger,
        "preTokens": boundary.pre_tokens,
        "tokensSaved": boundary.tokens_saved,
        "compactedToolIds": list(boundary.compacted_tool_ids),
        "clearedAttachmentUUIDs": list(boundary.cleared_attachment_uuids),
    }
    return {key: value for key, value in written.items() if value is not None}
