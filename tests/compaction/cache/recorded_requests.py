"""The requests that a transcript records, as fingerprints and with the text of their system prompt and tools."""

from collections.abc import Iterable

from bench.threads import read_session_calls
from compaction.prompt.fingerprint import Fingerprint
from compaction.prompt.request import PromptMessage, PromptRequest, read_shape
from compaction.timeline.read_entries import read_observation
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_fields
from compaction.transcripts.payloads import ApiRequestLine, ApiRequestShape
from tests.compaction.cache.builders import digest


def list_requests(entries: Iterable[Entry]) -> list[tuple[str, Fingerprint, PromptRequest]]:
    """Every request that a call refers to, with its id."""
    lines = tuple(entries)
    payloads = [entry.payload for entry in lines]
    shapes = {
        entry.payload.shape_hash: read_shape(get_fields(entry.fields, "shape"))
        for entry in lines
        if isinstance(entry.payload, ApiRequestShape)
    }
    shape_of = {payload.id: payload.shape_hash for payload in payloads if isinstance(payload, ApiRequestLine)}
    answers = [fact.response for fact in map(read_observation, lines) if fact.response is not None]
    request_of = {answer.call_id: answer.request_ref for answer in answers if answer.request_ref in shape_of}
    found = []
    for calls in read_session_calls(lines, digest=digest).values():
        for call in calls:
            request_id, prints = request_of.get(call.call_id), call.fingerprint
            if request_id is not None and prints is not None:
                shape = shapes[shape_of[request_id] or ""]
                request = PromptRequest(
                    model=prints.model,
                    tools=shape.tools,
                    system=shape.system,
                    messages=tuple(PromptMessage("", opaque_hash=each) for each in prints.messages),
                    markers=prints.markers,
                    settings=prints.settings,
                    are_messages_known=prints.are_messages_known,
                )
                found.append((request_id, prints, request))
    return found
