"""Requests from elsewhere: shapes and markers of the `api-request*` lines of newer transcripts, and raw bodies that
telemetry carries. The requests themselves are put together in timeline.recorded_requests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from compaction.context.cache_ttl import DEFAULT_TTL
from compaction.errors import BodyUnreadable
from compaction.prompt.request import (
    Fields,
    Marker,
    PromptRequest,
    Tool,
    build_tool,
    read_request,
    strip_billing_line,
)
from compaction.transcripts.json_fields import get_items
from compaction.transcripts.payloads import CacheMarker
from compaction.transcripts.reader import load_json


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a request that many share: system prompt and tools, without markers and billing line."""

    system: tuple[Fields, ...]
    tools: tuple[Tool, ...]


def read_raw_body(body: bytes | str, *, betas: Iterable[str] = ()) -> PromptRequest:
    """A request body as telemetry carries it. Raises BodyUnreadable when it was cut."""
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    try:
        fields = load_json(data)
    except (ValueError, RecursionError) as error:
        raise BodyUnreadable(len(data)) from error
    if not isinstance(fields, Mapping):
        raise BodyUnreadable(len(data))
    return read_request(fields, betas=betas)


def read_shape(shape: Fields) -> Shape:
    """The shape as a request line spells it."""
    system, _ = strip_billing_line(get_items(shape, "system"))
    tools = get_items(shape, "tools")
    return Shape(
        system=tuple(
            _without_marker(item) if isinstance(item, Mapping) else {"type": "text", "text": str(item)}
            for item in system
        ),
        tools=tuple(build_tool(_without_marker(item)) for item in tools if isinstance(item, Mapping)),
    )


def _without_marker(fields: Fields) -> Fields:
    return {key: value for key, value in fields.items() if key != "cache_control"}


def parse_marker(marker: CacheMarker) -> Marker | None:
    """A marker of a request line as the linter and the diff know it; None where it marks nothing of the prompt."""
    if not marker.path or marker.path[0] not in ("tools", "system", "messages"):
        return None
    return Marker(marker.path, marker.ttl or DEFAULT_TTL)
