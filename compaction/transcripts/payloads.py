"""What transcript lines carry besides messages, and how it is read: boundaries, attachments, requests, costs, notes.

Only what the product uses is typed; everything else of a line is in `Entry.fields`. No JSON text is parsed here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from compaction.transcripts.client_protocol import COMPACT_BOUNDARY, MICRO_BOUNDARY
from compaction.transcripts.json_fields import get_count, get_fields, get_items, get_seconds, get_text, get_texts

Fields = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PreservedSegment:
    """Old lines that survive a compaction: from head to tail, placed after the anchor (the summary)."""

    head_uuid: str
    tail_uuid: str
    anchor_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Boundary:
    """`compact_boundary`: everything before it has left the context, but for the preserved segment."""

    trigger: str | None = None
    pre_tokens: int | None = None
    post_tokens: int | None = None
    duration_seconds: float | None = None
    messages_summarized: int | None = None
    preserved_segment: PreservedSegment | None = None
    discovered_tools: tuple[str, ...] = ()
    user_context: str | None = None
    cumulative_dropped_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class MicroBoundary:
    """`microcompact_boundary`: the tool results and attachments named here were cleared."""

    trigger: str | None = None
    pre_tokens: int | None = None
    tokens_saved: int | None = None
    compacted_tool_ids: tuple[str, ...] = ()
    cleared_attachment_uuids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attachment line. `rendered`: the text the model reads, where the client wrote it."""

    kind: str
    rendered: Sequence[str] = ()
    rendered_role: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a tool. `agent_progress` nests a sub-agent's message: never a call of the main thread."""

    kind: str
    tool_use_id: str | None = None
    parent_tool_use_id: str | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Title:
    """A `summary` line: a title for the branch that ends at the leaf; not a compaction."""

    text: str
    leaf_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class OlderSummary:
    """A `SummaryMessage` line of older clients: an observed compaction without boundary."""

    text: str
    original_turns: int | None = None
    tokens_saved: int | None = None


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """`file-history-snapshot`: which files the client backed up at a message."""

    message_id: str | None = None
    is_update: bool = False


@dataclass(frozen=True, slots=True)
class CacheMarker:
    """The path of a cache_control in a request, and its TTL."""

    path: tuple[str | int, ...]
    ttl: str | None = None


@dataclass(frozen=True, slots=True)
class ApiRequestLine:
    """`api-request`: message hashes are those of `base` up to `keep`, then `tail`; hashes are opaque."""

    id: str
    query_source: str | None = None
    shape_hash: str | None = None
    model: str | None = None
    base: str | None = None
    keep: int = 0
    tail: tuple[str, ...] = ()
    cache_markers: tuple[CacheMarker, ...] = ()
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class ApiRequestShape:
    """`api-request-shape`: system and tools of all requests with this hash; their text stays in `Entry.fields`."""

    shape_hash: str


@dataclass(frozen=True, slots=True)
class ApiRequestBlob:
    """`api-request-blob`: a message that no other line holds; it stays in `Entry.fields`."""

    hash: str


@dataclass(frozen=True, slots=True)
class CostState:
    """`cost-state`: the client's own running total, cumulative across resumes."""

    total_cost_usd: Decimal | None = None
    has_unknown_model_cost: bool = False


@dataclass(frozen=True, slots=True)
class TurnDuration:
    """`turn_duration`: how long the turn that just ended took."""

    duration_seconds: float | None = None
    message_count: int | None = None


@dataclass(frozen=True, slots=True)
class ApiError:
    """`api_error`: a call that failed and is tried again."""

    status: int | None = None
    retry_in_seconds: float | None = None
    retry_attempt: int | None = None
    max_retries: int | None = None
    error_type: str | None = None  # the API's code
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class QueueOperation:
    """`queue-operation`: a prompt typed while the agent worked."""

    operation: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class LastPrompt:
    """`last-prompt`: where the client would resume."""

    text: str | None = None
    leaf_uuid: str | None = None


Payload: TypeAlias = (
    Boundary
    | MicroBoundary
    | Attachment
    | Progress
    | Title
    | OlderSummary
    | FileSnapshot
    | ApiRequestLine
    | ApiRequestShape
    | ApiRequestBlob
    | CostState
    | TurnDuration
    | ApiError
    | QueueOperation
    | LastPrompt
)


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


def _read_request(fields: Fields) -> ApiRequestLine | None:
    request_id = get_text(fields, "id")
    if request_id is None:
        return None
    return ApiRequestLine(
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
    is_known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < 1e12
    return CostState(Decimal(str(cost)) if is_known else None, fields.get("hasUnknownModelCost") is True)


def _read_api_error(fields: Fields) -> ApiError:
    error = get_fields(fields, "error")
    envelope = get_fields(error, "error")
    return ApiError(
        status=get_count(error, "status"),
        retry_in_seconds=get_seconds(fields, "retryInMs"),
        retry_attempt=get_count(fields, "retryAttempt"),
        max_retries=get_count(fields, "maxRetries"),
        error_type=get_text(get_fields(envelope, "error"), "type") or get_text(envelope, "type"),
        request_id=get_text(error, "requestId") or get_text(error, "requestID"),
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
    """Return whether lines of this type have a payload that is read from their fields."""
    return (line_type, subtype) in _READERS


def read_payload(line_type: str, subtype: str | None, fields: Fields) -> Payload | None:
    """Return the typed payload of a line, or None where it has none."""
    reader = _READERS.get((line_type, subtype))
    return None if reader is None else reader(fields)
