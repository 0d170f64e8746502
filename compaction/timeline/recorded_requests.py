"""Requests that a client or the proxy recorded: messages put together from their bases, as fingerprints."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from compaction.prompt.fingerprint import Fingerprint, read_message_print
from compaction.prompt.request import Marker
from compaction.timeline.observations import Observation, RecordedRequest


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What is known of the request of a call; no fingerprint unless the shapes were given."""

    fingerprint: Fingerprint | None = None
    started_at: datetime | None = None
    query_source: str | None = None


NO_RECORD = RequestRecord()
_NO_SHAPE = Fingerprint(None, (), (), (), (), (), (), (), ())


def resolve_requests(
    lines: Iterable[Observation], shapes: Mapping[str, Fingerprint] | None
) -> dict[str, RequestRecord]:
    """Return the requests of these lines by id. `shapes`: system prompts and tools by the client's name for them."""
    requests = {line.request.id: (line.request, line.at) for line in lines if line.request is not None}
    messages: dict[str, tuple[str, ...] | None] = {}
    return {
        name: RequestRecord(
            None if shapes is None else _build_fingerprint(request, _resolve(name, requests, messages), shapes),
            at,
            request.query_source,
        )
        for name, (request, at) in requests.items()
    }


def _resolve(
    name: str,
    requests: Mapping[str, tuple[RecordedRequest, datetime | None]],
    resolved: dict[str, tuple[str, ...] | None],
) -> tuple[str, ...] | None:
    """Return the message hashes of a request through its bases; None when a base is missing."""
    path: list[RecordedRequest] = []
    base: str | None = name
    while base is not None and base not in resolved:
        request, _ = requests.get(base, (None, None))
        if request is None or any(step.id == base for step in path):
            resolved[base] = None
            break
        path.append(request)
        base = request.base
    messages: tuple[str, ...] | None = resolved[base] if base is not None else ()
    for request in reversed(path):
        is_complete = messages is not None and len(messages) >= request.keep
        messages = (*(messages or ())[: request.keep], *request.tail) if is_complete else None
        resolved[request.id] = messages
    return resolved[name]


def _build_fingerprint(
    request: RecordedRequest, messages: tuple[str, ...] | None, shapes: Mapping[str, Fingerprint]
) -> Fingerprint:
    fingerprint = replace(
        shapes.get(request.shape or "", _NO_SHAPE),
        model=request.model,
        settings=request.settings,
        markers=tuple(Marker(path, ttl) for path, ttl in request.markers),
    )
    if messages is None or request.is_opaque:
        return replace(
            fingerprint,
            messages=messages or (),
            are_messages_known=messages is not None,
            are_messages_opaque=bool(messages),
        )
    # Recorded whole: sizes and blocks of its messages are known too.
    prints = [read_message_print(message) for message in messages]
    return replace(
        fingerprint,
        messages=tuple(each.digest for each in prints),
        message_sizes=tuple(each.size_characters for each in prints),
        message_blocks=tuple(each.block_count for each in prints),
        system_messages=tuple(index for index, each in enumerate(prints) if each.is_system),
        image_count=request.image_count,
        has_citations=request.has_citations,
    )
