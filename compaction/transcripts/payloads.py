"""What transcript lines carry besides messages: boundaries, attachments, progress, requests, costs and small notes.

Only what the product asks for is typed; everything else of a line stays reachable through `Entry.fields`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class PreservedSegment:
    """Old lines that survive a compaction: from head to tail, hung under the anchor (the summary)."""

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
    """An attachment line; `rendered` is the text the model was given where the client wrote it down."""

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
    """Where a request carried cache_control, and which TTL it named."""

    path: tuple[str | int, ...]
    ttl: str | None = None


@dataclass(frozen=True, slots=True)
class ApiRequest:
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
    error_type: str | None = None  # the API's word for it
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
    | ApiRequest
    | ApiRequestShape
    | ApiRequestBlob
    | CostState
    | TurnDuration
    | ApiError
    | QueueOperation
    | LastPrompt
)
