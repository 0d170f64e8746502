"""From an agent's items to facts of its sessions: calls are reports, messages and compactions become lines as a
transcript would have them. No Django here."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from msgspec import structs

from compaction.context.cache_ttl import get_shortest_ttl
from compaction.prompt.fingerprint import Digest, fingerprint_request, write_message_prints
from compaction.prompt.request import PromptRequest, read_request, serialize_deletions
from compaction.timeline.observations import (
    REPORT,
    ClientReport,
    CompactionRecord,
    LineKind,
    Observation,
    RecordedRequest,
    Response,
)
from compaction.transcripts.client_protocol import COMPACT_BOUNDARY
from compaction.transcripts.usage import build_usage
from compaction.transcripts.user_lines import classify_blocks
from dashboard.ingest.agent_items import (
    CallItem,
    ClientState,
    CompactionItem,
    Item,
    ItemRefused,
    MessageItem,
    PromptItem,
    RawItem,
    SessionItem,
    read_item,
)
from dashboard.ingest.observed import (
    ObservedLine,
    ObservedSession,
    ObservedShape,
    Piece,
    Prepared,
    Rules,
    merge_prepared,
)
from dashboard.ingest.prompt_shapes import make_shape
from dashboard.ingest.transcripts import clean_fact, digest_text, find_redactor, prepare

SOURCE = "api"
_CLEARING = {"micro": LineKind.MICRO, "deletion": LineKind.DELETION}
REFUSED = "item refused"


@dataclass(frozen=True, slots=True)
class ReadItems:
    """What can be stored, and a sentence for each item that cannot, by its index."""

    prepared: Prepared
    sessions: dict[int, str] = field(default_factory=dict)  # whose items they are
    refusals: dict[int, str] = field(default_factory=dict)


def prepare_items(raws: Sequence[RawItem], rules: Rules) -> ReadItems:
    """Everything that can be done without a database. Never raises for what an item holds."""
    parts: list[Prepared] = []
    sessions: dict[int, str] = {}
    refusals: dict[int, str] = {}
    for index, raw in enumerate(raws):
        try:
            item = read_item(raw)
            parts.append(_read(item, rules))
            sessions[index] = item.session
        except ItemRefused as refusal:
            refusals[index] = str(refusal)
    merged = merge_prepared(parts)
    drops = {REFUSED: len(refusals)} if refusals else {}
    return ReadItems(replace(merged, name=SOURCE, line_count=len(parts), drops=drops), sessions, refusals)


def _read(item: Item, rules: Rules) -> Prepared:
    match item:
        case SessionItem():
            return _observe(item.session, _tell_session(item, rules), rules)
        case PromptItem():
            return _read_prompt(item, rules)
        case CallItem():
            return _read_call(item, rules)
        case MessageItem():
            return _write_lines(item, [_write_message(item)], rules)
        case CompactionItem():
            return _read_compaction(item, rules)


def _observe(
    session_id: str,
    facts: Iterable[Observation],
    rules: Rules,
    shapes: tuple[ObservedShape, ...] = (),
    redacted: int = 0,
) -> Prepared:
    clean = find_redactor(rules).clean
    lines = tuple(ObservedLine(clean_fact(fact, clean)) for fact in facts)
    redactions = {"prompt": redacted} if redacted else {}
    return Prepared(SOURCE, (ObservedSession(session_id, lines, shapes),), redactions=redactions)


# --- sessions ---


def _tell_session(item: SessionItem, rules: Rules) -> Iterable[Observation]:
    yield Observation(
        id="api:session",
        kind=LineKind.OTHER,
        type=REPORT,
        at=item.at,
        cwd=item.folder,
        branch=item.branch,
        version=item.version,
        client=ClientReport(event="session"),
    )
    if item.title and rules.keeps_content:
        words, told = item.title, ClientReport(event="title")
        yield Observation(id="api:title", kind=LineKind.TITLE, type=REPORT, at=item.at, words=words, client=told)
    if item.ended_at is not None:
        told = ClientReport(event="SessionEnd")
        yield Observation(id="api:end", kind=LineKind.HOOK, type=REPORT, at=item.ended_at, client=told)


# --- prompts and calls ---


def _read_prompt(item: PromptItem, rules: Rules) -> Prepared:
    request = read_request({"system": item.system, "tools": item.tools})
    shape, redacted = make_shape(request, rules)
    fact = Observation(f"api:shape:{item.id}", LineKind.SHAPE, REPORT, shape=(item.id, shape.digest))
    return _observe(item.session, [fact], rules, (shape,), redacted)


def _read_call(item: CallItem, rules: Rules) -> Prepared:
    if item.keep and item.base is None:
        raise ItemRefused("`keep` counts the messages of `base`, which is left out.")
    if item.client_state is not None and item.request is None and item.message_hashes is None:
        raise ItemRefused("`client_state` tells more of a request: send `request` or `message_hashes` too.")
    item = _clean_words(item, rules)
    facts: list[Observation] = []
    shapes: tuple[ObservedShape, ...] = ()
    redacted = 0
    has_request = item.request is not None or item.message_hashes is not None
    ttl = None
    if has_request:
        spelt = _read_body(item)
        shape_name = item.prompt
        if spelt.system or spelt.tools:
            shape, redacted = make_shape(spelt, rules)
            shape_name, shapes = shape.digest, (shape,)
            facts.append(
                Observation(f"api:shape:{shape.digest}", LineKind.SHAPE, REPORT, shape=(shape.digest, shape.digest))
            )
        request = _make_request(item, spelt, shape_name, partial(digest_text, rules.digest_key))
        ttl = get_shortest_ttl(ttl for _, ttl in request.markers)
        facts.append(_make_fact(item, f"request:{item.id}", LineKind.REQUEST, request=request))
    kind = LineKind.OTHER if item.purpose else LineKind.ANSWER
    answer = _make_answer(item, ttl, has_request=has_request)
    facts.append(_make_fact(item, f"call:{item.id}", kind, answer=answer))
    return _observe(item.session, facts, rules, shapes, redacted)


def _clean_words(item: CallItem, rules: Rules) -> CallItem:
    clean = find_redactor(rules).clean
    purpose, stop_reason = (clean(told or "") or None for told in (item.purpose, item.stop_reason))
    return structs.replace(item, purpose=purpose, stop_reason=stop_reason)


def _read_body(item: CallItem) -> PromptRequest:
    body = item.request or {}
    messages = body.get("messages", [])
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise ItemRefused("`request.messages` is a list of messages, as the Messages API takes them.")
    return read_request(body, client_state=_spell_state(item.client_state or ClientState()))


def _spell_state(state: ClientState) -> dict[str, object]:
    return {
        "strategy": state.strategy,
        "auto_mode": "on" if state.auto_mode else None,
        "overage": "on" if state.overage else None,
        "cached_micro": serialize_deletions(state.cached_micro),
    }


def _make_request(item: CallItem, spelt: PromptRequest, shape: str | None, digest: Digest) -> RecordedRequest:
    prints = fingerprint_request(spelt, digest)
    is_opaque = item.message_hashes is not None
    markers = ((marker.path, marker.ttl) for marker in prints.markers)
    return RecordedRequest(
        id=item.id,
        query_source=item.purpose,
        shape=shape,
        model=item.model,
        base=item.base if item.keep else None,
        keep=item.keep,
        tail=tuple(item.message_hashes or ()) if is_opaque else write_message_prints(prints),
        markers=tuple((_shift(path, item.keep), ttl) for path, ttl in markers),
        settings=prints.settings,
        is_opaque=is_opaque,
        image_count=prints.image_count,
        has_citations=prints.has_citations,
        starts_turn=not item.purpose and _starts_turn(spelt),
    )


def _shift(path: tuple[str | int, ...], keep: int) -> tuple[str | int, ...]:
    """Where a marker stands in the whole conversation, of which the request spells only the end."""
    if len(path) > 1 and path[0] == "messages" and isinstance(path[1], int):
        return ("messages", path[1] + keep, *path[2:])
    return path


def _starts_turn(request: PromptRequest) -> bool:
    last = request.messages[-1] if request.messages else None
    return last is not None and last.role == "user" and classify_blocks(last.blocks).starts_turn


def _make_answer(item: CallItem, requested_ttl: str | None, *, has_request: bool) -> Response:
    # Calls are counted once in a team, so an id that is the caller's own carries the session's.
    return Response(
        call_id=item.message_id or item.request_id or f"call:{item.session}/{item.id}",
        usage=build_usage(item.usage),
        model=item.model,
        stop_reason=item.stop_reason,
        request_id=item.request_id,
        request_ref=item.id if has_request else None,
        requested_ttl=requested_ttl,
        source=SOURCE,
        duration_seconds=item.duration_seconds,
        ttft_seconds=item.ttft_seconds,
        query_source=item.purpose,
    )


def _make_fact(item: CallItem | CompactionItem, key: str, kind: LineKind, **values: object) -> Observation:
    return Observation(
        id=f"api:{key}",
        kind=kind,
        type=REPORT,
        at=item.at,
        agent_id=item.agent,
        is_sidechain=item.agent is not None,
        **values,  # type: ignore[arg-type]
    )


# --- messages and compactions ---


def _read_compaction(item: CompactionItem, rules: Rules) -> Prepared:
    compacted = CompactionRecord(
        trigger=item.trigger,
        before_tokens=item.before_tokens,
        after_tokens=item.after_tokens,
        saved_tokens=item.saved_tokens,
        duration_seconds=item.duration_seconds,
        cleared_count=item.cleared_count,
    )
    if item.failure is not None:
        reason = find_redactor(rules).clean(item.failure)
        key, kind = f"compaction:{item.id}", LineKind.COMPACTION_REPORT
        fact = _make_fact(item, key, kind, compacted=compacted, name=reason or "no reason given")
        return _observe(item.session, [fact], rules)
    if item.kind in _CLEARING:
        fact = _make_fact(item, f"micro:{item.id}", _CLEARING[item.kind], compacted=compacted)
        return _observe(item.session, [fact], rules)
    return _write_lines(item, list(_write_boundary(item)), rules)


def _write_boundary(item: CompactionItem) -> Iterable[dict[str, object]]:
    metadata = {
        "trigger": item.trigger,
        "preTokens": item.before_tokens,
        "postTokens": item.after_tokens,
        "durationMs": None if item.duration_seconds is None else item.duration_seconds * 1000,
    }
    told = {name: value for name, value in metadata.items() if value is not None}
    boundary = {"subtype": COMPACT_BOUNDARY, "logicalParentUuid": item.parent, "compactMetadata": told}
    # What comes next hangs under the compaction's id: that is the summary, where there is one.
    name = f"{item.id}:boundary" if item.summary else item.id
    yield _head(item, "system", name, None) | boundary
    if item.summary:
        message = {"role": "user", "content": item.summary}
        yield _head(item, "user", item.id, name) | {"isCompactSummary": True, "message": message}


def _write_message(item: MessageItem) -> dict[str, object]:
    return _head(item, item.role, item.id, item.parent) | {"message": {"role": item.role, "content": item.content}}


def _head(item: MessageItem | CompactionItem, line_type: str, name: str, parent: str | None) -> dict[str, object]:
    head: dict[str, object] = {
        "type": line_type,
        "uuid": name,
        "parentUuid": parent,
        "sessionId": item.session,
        "timestamp": item.at.isoformat(),
        "isSidechain": item.agent is not None,
    }
    return head | ({"agentId": item.agent} if item.agent else {})


def _write_lines(item: MessageItem | CompactionItem, lines: list[dict[str, object]], rules: Rules) -> Prepared:
    data = b"".join(json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for line in lines)
    prepared = prepare(Piece(data, SOURCE, session_id=item.session, agent_id=item.agent), rules)
    if prepared.problems:
        raise ItemRefused(prepared.problems[0].reason)
    return replace(prepared, redactions=Counter(prepared.redactions))
