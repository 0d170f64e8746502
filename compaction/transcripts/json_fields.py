"""From the decoded fields of a line to its typed payload; lines without one give None. No JSON is parsed here."""

from collections.abc import Callable, Mapping
from decimal import Decimal

from compaction.transcripts.client_protocol import COMPACT_BOUNDARY, MICRO_BOUNDARY
from compaction.transcripts.payloads import (
    ApiError,
    ApiRequest,
    ApiRequestBlob,
    ApiRequestShape,
    Boundary,
    CacheMarker,
    CostState,
    FileSnapshot,
    LastPrompt,
    MicroBoundary,
    OlderSummary,
    Payload,
    PreservedSegment,
    QueueOperation,
    Title,
    TurnDuration,
)
from compaction.transcripts.values import get_count, get_fields, get_items, get_seconds, get_text, get_texts

Fields = Mapping[str, object]


def _read_segment(metadata: Fields) -> PreservedSegment | None:
    segment = get_fields(metadata, "preservedSegment")
    head, tail = get_text(segment, "headUuid"), get_text(segment, "tailUuid")
    if head is None or tail is None:
        return None
    return PreservedSegment(head, tail, get_text(segment, "anchorUuid"))


def _read_boundary(fields: Fields) -> Boundary:
    metadata = get_fields(fields, "compactMetadata")
    return Boundary(
        trigger=get_text(metadata, "trigger"),
        pre_tokens=get_count(metadata, "preTokens"),
        post_tokens=get_count(metadata, "postTokens"),
        duration_seconds=get_seconds(metadata, "durationMs"),
        messages_summarized=get_count(metadata, "messagesSummarized"),
        preserved_segment=_read_segment(metadata),
        discovered_tools=get_texts(metadata, "preCompactDiscoveredTools"),
        user_context=get_text(metadata, "userContext"),
        cumulative_dropped_tokens=get_count(metadata, "cumulativeDroppedTokens"),
    )


def _read_micro_boundary(fields: Fields) -> MicroBoundary:
    metadata = get_fields(fields, "microcompactMetadata")
    return MicroBoundary(
        trigger=get_text(metadata, "trigger"),
        pre_tokens=get_count(metadata, "preTokens"),
        tokens_saved=get_count(metadata, "tokensSaved"),
        compacted_tool_ids=get_texts(metadata, "compactedToolIds"),
        cleared_attachment_uuids=get_texts(metadata, "clearedAttachmentUUIDs"),
    )


def _read_markers(fields: Fields) -> tuple[CacheMarker, ...]:
    markers = []
    for item in get_items(fields, "cacheControl"):
        if isinstance(item, Mapping):
            path = tuple(step for step in get_items(item, "path") if isinstance(step, str | int))
            markers.append(CacheMarker(path, get_text(get_fields(item, "value"), "ttl")))
    return tuple(markers)


def _read_request(fields: Fields) -> ApiRequest | None:
    request_id = get_text(fields, "id")
    if request_id is None:
        return None
    return ApiRequest(
        id=request_id,
        query_source=get_text(fields, "querySource"),
        shape_hash=get_text(fields, "shapeHash"),
        model=get_text(get_fields(fields, "params"), "model"),
        base=get_text(fields, "base"),
        keep=get_count(fields, "keep") or 0,
        tail=get_texts(fields, "tail"),
        cache_markers=_read_markers(fields),
        digest=get_text(fields, "requestDigest"),
    )


def _read_shape(fields: Fields) -> ApiRequestShape | None:
    shape_hash = get_text(fields, "shapeHash")
    return None if shape_hash is None else ApiRequestShape(shape_hash)


def _read_blob(fields: Fields) -> ApiRequestBlob | None:
    blob_hash = get_text(fields, "hash")
    return None if blob_hash is None else ApiRequestBlob(blob_hash)


def _read_cost_state(fields: Fields) -> CostState:
    cost = fields.get("totalCostUSD")
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e12
    return CostState(Decimal(str(cost)) if known else None, fields.get("hasUnknownModelCost") is True)


def _read_api_error(fields: Fields) -> ApiError:
    told = get_fields(fields, "error")
    said = get_fields(get_fields(told, "error"), "error")  # the body of the refusal, in its envelope
    return ApiError(
        status=get_count(told, "status"),
        retry_in_seconds=get_seconds(fields, "retryInMs"),
        retry_attempt=get_count(fields, "retryAttempt"),
        max_retries=get_count(fields, "maxRetries"),
        error_type=get_text(said, "type") or get_text(get_fields(told, "error"), "type"),
        request_id=get_text(told, "requestId") or get_text(told, "requestID"),
    )


def _read_title(fields: Fields) -> Title:
    return Title(get_text(fields, "summary") or "", get_text(fields, "leafUuid"))


def _read_older_summary(fields: Fields) -> OlderSummary:
    return OlderSummary(
        get_text(fields, "content") or "", get_count(fields, "originalTurns"), get_count(fields, "tokensSaved")
    )


_READERS: dict[tuple[str, str | None], Callable[[Fields], Payload | None]] = {
    ("system", COMPACT_BOUNDARY): _read_boundary,
    ("system", MICRO_BOUNDARY): _read_micro_boundary,
    ("system", "turn_duration"): lambda fields: TurnDuration(
        get_seconds(fields, "durationMs"), get_count(fields, "messageCount")
    ),
    ("system", "api_error"): _read_api_error,
    ("summary", None): _read_title,
    ("SummaryMessage", None): _read_older_summary,
    ("file-history-snapshot", None): lambda fields: FileSnapshot(
        get_text(fields, "messageId"), fields.get("isSnapshotUpdate") is True
    ),
    ("api-request", None): _read_request,
    ("api-request-shape", None): _read_shape,
    ("api-request-blob", None): _read_blob,
    ("cost-state", None): _read_cost_state,
    ("queue-operation", None): lambda fields: QueueOperation(
        get_text(fields, "operation") or "", get_text(fields, "content")
    ),
    ("last-prompt", None): lambda fields: LastPrompt(get_text(fields, "lastPrompt"), get_text(fields, "leafUuid")),
}


def has_payload(line_type: str, subtype: str | None) -> bool:
    """Whether lines of this type are typed further from their whole JSON."""
    return (line_type, subtype) in _READERS


def read_payload(line_type: str, subtype: str | None, fields: Fields) -> Payload | None:
    """The typed payload of a line, or None where it has none."""
    reader = _READERS.get((line_type, subtype))
    return None if reader is None else reader(fields)
