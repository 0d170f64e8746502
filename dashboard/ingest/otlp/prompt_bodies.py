"""Raw bodies that Claude Code exports when told to: what a request asked with, and what its answer says of it.

System prompt and tools become a shape, messages only prints: their words are in the transcript.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from compaction.errors import BodyUnreadable
from compaction.prompt.fingerprint import Fingerprint, fingerprint_request
from compaction.prompt.request import read_raw_body
from compaction.timeline.observations import LineKind, RecordedRequest, Response
from compaction.transcripts.json_fields import get_count, get_fields, get_text
from compaction.transcripts.reader import load_json
from compaction.transcripts.usage import read_usage
from dashboard.ingest.observed import Rules
from dashboard.ingest.otlp.attributes import find_name, find_text
from dashboard.ingest.otlp.telling import SOURCE, About, Dropped, Told
from dashboard.ingest.otlp.values import Attributes
from dashboard.ingest.prompt_shapes import make_shape
from dashboard.ingest.transcripts import digest_text


def read_request_body(told: Attributes, about: About, rules: Rules, *, at: datetime | None, key: str) -> Told | Dropped:
    """The request and its shape. A body that the client cut cannot be compared with anything."""
    body_id = find_name(told, "request_body_id", "request_id") or key
    try:
        request = read_raw_body(find_text(told, "body") or "")
    except BodyUnreadable:
        return Dropped.CUT_BODY
    if not request.messages:
        return Dropped.CUT_BODY
    prints = fingerprint_request(request, partial(digest_text, rules.digest_key))
    shape, redaction_count = make_shape(request, rules)
    facts = (
        about.make_fact(LineKind.SHAPE, f"shape:{shape.digest}", None, shape=(shape.digest, shape.digest)),
        about.make_fact(
            LineKind.REQUEST,
            f"request:{body_id}",
            at,
            request=_make_request(body_id, shape.digest, prints, about.query_source),
        ),
    )
    return Told(about.session_id, facts, (shape,), redaction_count)


def _make_request(body_id: str, shape: str, prints: Fingerprint, query_source: str | None) -> RecordedRequest:
    return RecordedRequest(
        id=body_id,
        query_source=query_source,
        shape=shape,
        model=prints.model,
        tail=prints.messages,
        markers=tuple((marker.path, marker.ttl) for marker in prints.markers),
        settings=prints.settings,
    )


def read_response_body(told: Attributes, about: About, *, at: datetime | None, key: str) -> Told | Dropped:
    """Joins message, request and request body; says why the answer stopped."""
    message = _load_message(find_text(told, "body") or "")
    request_id = find_name(told, "request_id")
    message_id = find_name(told, "message.id") or get_text(message, "id")
    usage = get_fields(message, "usage")
    if get_count(usage, "output_tokens") is None or (request_id is None and message_id is None):
        return Dropped.CUT_BODY
    answer = Response(
        call_id=request_id or message_id or key,
        usage=read_usage(usage),
        model=get_text(message, "model") or find_name(told, "model"),
        stop_reason=get_text(message, "stop_reason"),
        request_id=request_id,
        request_ref=find_name(told, "request_body_id"),
        source=SOURCE,
        query_source=about.query_source,
    )
    # Named so that it stands behind the report of the call itself, whose figures are final.
    fact = about.make_fact(LineKind.RESPONSE, f"response:{answer.call_id}", at, response=answer)
    return Told(about.session_id, (fact,))


def _load_message(text: str) -> Mapping[str, object]:
    try:
        message = load_json(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, Mapping) else {}
