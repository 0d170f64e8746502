"""Requests from elsewhere: the `api-request*` lines of newer transcripts, and raw bodies that telemetry carries."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compaction.errors import BodyUnreadable
from compaction.llm.cache_ttl import DEFAULT_TTL
from compaction.prompt.request import (
    Fields,
    Marker,
    PromptMessage,
    PromptRequest,
    Tool,
    make_tool,
    read_request,
    read_settings,
    strip_billing_line,
)
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import ApiRequest, ApiRequestShape, CacheMarker
from compaction.transcripts.reader import load_json
from compaction.transcripts.values import get_fields, get_items, get_texts


@dataclass(frozen=True, slots=True)
class Shape:
    """The part of a request that many share: system prompt and tools, without markers and billing line."""

    system: tuple[Fields, ...]
    tools: tuple[Tool, ...]


@dataclass(slots=True)
class RequestBook:
    """Follows the request lines of one transcript and puts each request together; lines must come in file order."""

    _shapes: dict[str, Shape] = field(default_factory=dict)
    _hashes: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, entry: Entry) -> tuple[str, PromptRequest] | None:
        """The request this line completes, by its id; None for every other line."""
        payload = entry.payload
        if isinstance(payload, ApiRequestShape):
            self._shapes[payload.shape_hash] = read_shape(get_fields(entry.fields, "shape"))
        if not isinstance(payload, ApiRequest):
            return None
        return payload.id, self._put_together(payload, get_fields(entry.fields, "params"))

    def _put_together(self, line: ApiRequest, params: Fields) -> PromptRequest:
        kept = self._hashes.get(line.base) if line.base else ()
        is_known = kept is not None and len(kept) >= line.keep
        hashes = (*(kept or ())[: line.keep], *line.tail) if is_known else ()
        if is_known:
            self._hashes[line.id] = hashes
        shape = self._shapes.get(line.shape_hash or "", Shape((), ()))
        return PromptRequest(
            model=line.model,
            tools=shape.tools,
            system=shape.system,
            messages=tuple(PromptMessage("", opaque_hash=each) for each in hashes),
            markers=tuple(marker for each in line.cache_markers if (marker := convert_marker(each)) is not None),
            settings=read_settings(params, get_texts(params, "betas")),
            are_messages_known=is_known,
        )


def collect_requests(entries: Iterable[Entry]) -> dict[str, PromptRequest]:
    """Every request that a transcript's lines describe, by the id that responses refer to."""
    book = RequestBook()
    return dict(found for entry in entries if (found := book.add(entry)) is not None)


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
        tools=tuple(make_tool(_without_marker(item)) for item in tools if isinstance(item, Mapping)),
    )


def _without_marker(fields: Fields) -> Fields:
    return {key: value for key, value in fields.items() if key != "cache_control"}


def convert_marker(marker: CacheMarker) -> Marker | None:
    """A marker of a request line as the linter and the diff know it; None where it marks nothing of the prompt."""
    if not marker.path or marker.path[0] not in ("tools", "system", "messages"):
        return None
    return Marker(marker.path, marker.ttl or DEFAULT_TTL)
