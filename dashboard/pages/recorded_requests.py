"""The two requests around a loss, where the client wrote its requests down: as prints always, with text where kept."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from compaction.prompt.fingerprint import Fingerprint, read_fingerprint
from compaction.prompt.request import PromptMessage, PromptRequest, RequestShape, read_shape
from compaction.timeline.build import build_timeline
from compaction.timeline.observations import Observation
from compaction.timeline.order import order_observations
from compaction.transcripts.json_fields import get_fields
from compaction.transcripts.transcript import read_transcript
from dashboard.ingest.picture.columns import fit_id
from dashboard.ingest.segments import expand
from dashboard.ingest.stored_lines import read_stored_lines
from dashboard.models import AgentSession, CacheBreak, PromptShape


class Missing(StrEnum):
    """Why there is nothing to compare."""

    NOT_RECORDED = "not recorded"  # by this client version
    INCOMPLETE = "incomplete"


@dataclass(frozen=True)
class RequestPair:
    """Both requests. Text is None where it is not kept or not asked for; messages are hashes of the client's."""

    before: Fingerprint
    after: Fingerprint
    before_text: PromptRequest | None = None
    after_text: PromptRequest | None = None


def read_request_pair(session: AgentSession, loss: CacheBreak, *, with_text: bool) -> RequestPair | Missing:
    """Two queries at most; the conversation itself is not unpacked."""
    lines = order_observations(read_stored_lines(session).facts.values())
    digests = {line.shape[0]: line.shape[1] for line in lines if line.shape}
    if not digests:
        return Missing.NOT_RECORDED
    shapes = _Shapes(session, digests, with_text=with_text)
    timeline = build_timeline(lines, shapes={digests[name]: prints for name, prints in shapes.prints.items()})
    thread = next((each for each in timeline.threads if fit_id(each.agent_id) == loss.agent_id), None)
    if thread is None:
        return Missing.INCOMPLETE
    prints = {fit_id(call.call_id): call.fingerprint for call in thread.calls}
    names = _name_shapes(thread.observations)
    pair = [prints.get(call_id) for call_id in (loss.previous_call_id, loss.call_id)]
    used = [names.get(call_id) for call_id in (loss.previous_call_id, loss.call_id)]
    before, after = pair
    # A shape that is not there would read as a prompt without tools.
    if before is None or after is None or any(name not in shapes.prints for name in used):
        return Missing.INCOMPLETE
    texts = [shapes.texts.get(name or "") for name in used]
    if texts[0] is None or texts[1] is None:
        return RequestPair(before, after)
    return RequestPair(before, after, _put_together(before, texts[0]), _put_together(after, texts[1]))


class _Shapes:
    """System prompts and tools by the client's name for them."""

    def __init__(self, session: AgentSession, digests: Mapping[str, str], *, with_text: bool) -> None:
        rows = PromptShape.objects.filter(uses__session=session, digest__in=set(digests.values())).order_by("pk")
        columns = ("digest", "prints", "content") if with_text else ("digest", "prints", "digest")
        found = {row[0]: row for row in rows.values_list(*columns)}
        self.prints = {name: read_fingerprint(found[digest][1]) for name, digest in digests.items() if digest in found}
        self.texts: dict[str, RequestShape] = {}
        for name, digest in digests.items():
            content = found[digest][2] if with_text and digest in found else None
            shape = _read_shape_line(expand(content)) if content is not None else None
            if shape is not None:
                self.texts[name] = shape


def _read_shape_line(line: bytes) -> RequestShape | None:
    entry = next(iter(read_transcript(line).entries), None)
    return None if entry is None else read_shape(get_fields(entry.fields, "shape"))


def _name_shapes(facts: Iterable[Observation]) -> dict[str, str | None]:
    """The shape of each call's request, by call."""
    lines = list(facts)
    of_request = {fact.request.id: fact.request.shape for fact in lines if fact.request}
    return {
        fit_id(fact.response.call_id): of_request.get(fact.response.request_ref or "")
        for fact in lines
        if fact.response and fact.response.request_ref
    }


def _put_together(prints: Fingerprint, shape: RequestShape) -> PromptRequest:
    return PromptRequest(
        model=prints.model,
        tools=shape.tools,
        system=shape.system,
        messages=tuple(PromptMessage("", opaque_hash=each) for each in prints.messages),
        markers=prints.markers,
        settings=prints.settings,
        are_messages_known=prints.are_messages_known,
    )
