"""The calls of one thread, from its ordered facts: several lines and reports made one, with what preceded each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from compaction.cache.calls import ANNOUNCED, CONVERSATION_START, CacheCall, CachePolicy
from compaction.cache.causes import Cause
from compaction.cache.fact_order import NO_TIME
from compaction.cache.facts import Answer, LineFact, LineKind, Request
from compaction.cache.fingerprint import Fingerprint
from compaction.cache.invalidation import keeps_thinking
from compaction.cache.request import Marker
from compaction.transcripts.calls import settle_output
from compaction.transcripts.entries import Usage

TRANSCRIPT = "transcript"
# Who knows a call best: the proxy saw the bytes, telemetry has the client's final figures, lines may be half written.
SOURCES = ("proxy", "otlp", "api", TRANSCRIPT)

_HAPPENINGS: Mapping[LineKind, Cause] = {
    LineKind.BOUNDARY: Cause.COMPACTED,
    LineKind.OLDER_SUMMARY: Cause.COMPACTED,
    LineKind.MICRO: Cause.MICRO_COMPACTED,
    LineKind.COMMAND: Cause.COMMAND_STARTED,
    LineKind.RESTART: Cause.CLIENT_RESTARTED,
}


@dataclass(slots=True)
class FactCall:
    """One call: what it used, when, in which turn, and who told what (`provenance`: field -> source)."""

    call_id: str
    usage: Usage
    is_output_estimated: bool
    model: str | None
    started_at: datetime | None
    ended_at: datetime | None
    turn: int
    line_count: int
    stop_reason: str | None = None
    request_id: str | None = None
    version: str | None = None
    duration_seconds: float | None = None
    ttft_seconds: float | None = None
    provenance: tuple[tuple[str, str], ...] = ()
    is_after_compaction: bool = False
    cache_call: CacheCall = field(default=CacheCall("", NO_TIME, None, Usage()), repr=False)


@dataclass(slots=True)
class _Draft:
    """A call while its lines are gathered."""

    lines: list[LineFact] = field(default_factory=list)
    reports: list[LineFact] = field(default_factory=list)
    turn: int = 0
    starts_turn: bool = False
    happened: frozenset[Cause] = frozenset()


@dataclass(frozen=True, slots=True)
class _KnownRequest:
    fingerprint: Fingerprint | None
    started_at: datetime | None
    query_source: str | None


_NO_REQUEST = _KnownRequest(None, None, None)


def collect_fact_calls(
    facts: Sequence[LineFact], policy: CachePolicy, *, shapes: Mapping[str, Fingerprint] | None = None
) -> tuple[FactCall, ...]:
    """The calls of a thread in the order of their first lines. `shapes`: prints by the client's name for a shape."""
    drafts = _gather(facts)
    requests = _read_requests(facts, shapes)
    merged = {call_id: _merge(call_id, draft) for call_id, draft in drafts.items()}
    parents = _find_parents(facts, drafts, merged, policy)
    for position, call in enumerate(merged.values()):
        call.cache_call = _make_cache_call(call, drafts[call.call_id], position, requests, parents)
    return tuple(merged.values())


def _gather(facts: Iterable[LineFact]) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}
    reports: list[tuple[LineFact, Answer]] = []
    turn, has_words = 0, False
    pending: set[Cause] = set()
    for fact in facts:
        turn += fact.kind is LineKind.PROMPT
        has_words = has_words or fact.has_words
        happened = _HAPPENINGS.get(fact.kind)
        if happened is not None:
            pending.add(happened)
        answer = fact.answer
        if answer is None:
            continue
        if answer.source != TRANSCRIPT:
            reports.append((fact, answer))
            continue
        draft = drafts.get(answer.call_id)
        if draft is None:
            draft = drafts[answer.call_id] = _Draft(turn=turn, starts_turn=has_words, happened=frozenset(pending))
            pending.clear()
        has_words = False
        draft.lines.append(fact)
    _add_reports(drafts, reports)
    return drafts


def _add_reports(drafts: dict[str, _Draft], reports: Iterable[tuple[LineFact, Answer]]) -> None:
    """Telemetry names the request, lines name message and request: either makes them one call."""
    by_request = {
        line.answer.request_id: call_id
        for call_id, draft in drafts.items()
        for line in draft.lines
        if line.answer and line.answer.request_id
    }
    for fact, answer in reports:
        call_id = by_request.get(answer.request_id or "", answer.call_id)
        drafts.setdefault(call_id, _Draft()).reports.append(fact)


def _merge(call_id: str, draft: _Draft) -> FactCall:
    lines, best = draft.lines, _order_reports(draft.reports)
    last = (lines or best)[-1 if lines else 0]
    answer = last.answer
    if answer is None:
        raise ValueError(call_id)  # drafts are made of answers alone
    open_characters = sum(
        line.answer.written_characters for line in lines if line.answer and line.answer.stop_reason is None
    )
    output_tokens = settle_output(answer.usage, answer.stop_reason, open_characters) if lines else 0
    is_estimated = bool(lines) and output_tokens > answer.usage.output_tokens
    usage = replace(answer.usage, output_tokens=output_tokens) if is_estimated else answer.usage
    call = FactCall(
        call_id=call_id,
        usage=usage,
        is_output_estimated=is_estimated,
        model=answer.model,
        started_at=(lines or best)[0].at,
        ended_at=last.at,
        turn=draft.turn,
        line_count=len(lines),
        stop_reason=answer.stop_reason,
        request_id=answer.request_id,
        version=last.version,
        is_after_compaction=Cause.COMPACTED in draft.happened,
    )
    for report in reversed(best):
        call = _believe(call, report)
    return call


def _order_reports(reports: Iterable[LineFact]) -> list[LineFact]:
    """The best-informed first; the order of arrival says nothing."""
    return sorted(reports, key=lambda fact: (_rank_source(fact), fact.id))


def _rank_source(fact: LineFact) -> int:
    source = fact.answer.source if fact.answer else ""
    return SOURCES.index(source) if source in SOURCES else len(SOURCES)


def _believe(call: FactCall, report: LineFact) -> FactCall:
    """A report's figures go before those of lines; what it does not know stays."""
    answer = report.answer
    if answer is None:
        return call
    known: dict[str, object] = {
        "usage": answer.usage,
        "model": answer.model,
        "stop_reason": answer.stop_reason,
        "duration_seconds": answer.duration_seconds,
        "ttft_seconds": answer.ttft_seconds,
        "request_id": answer.request_id,
    }
    told = {name: value for name, value in known.items() if value is not None}
    if call.line_count and answer.usage.cache_creation_1h_tokens == 0 < call.usage.cache_creation_1h_tokens:
        # Telemetry without the split counts all writes as short ones: the line's split stays.
        told["usage"] = replace(call.usage, output_tokens=answer.usage.output_tokens)
    provenance = dict(call.provenance) | dict.fromkeys(told, answer.source)
    return replace(call, **told, is_output_estimated=False, provenance=tuple(sorted(provenance.items())))  # type: ignore[arg-type]


def _make_cache_call(
    call: FactCall,
    draft: _Draft,
    position: int,
    requests: Mapping[str, _KnownRequest],
    parents: Mapping[str, str],
) -> CacheCall:
    answers = [line.answer for line in (draft.lines or draft.reports) if line.answer]
    request = requests.get(answers[0].request_ref or "", _NO_REQUEST)
    at = request.started_at or call.started_at or call.ended_at
    judges_thinking = not keeps_thinking(call.model)
    return CacheCall(
        call_id=call.call_id,
        at=at or NO_TIME,
        model=call.model,
        usage=call.usage,
        position=position,
        client_version=call.version,
        query_source=request.query_source,
        parent_call_id=parents.get(call.call_id),
        announced=tuple(cause for cause in ANNOUNCED if cause in draft.happened),
        noticed=tuple(sorted(draft.happened.difference(ANNOUNCED))),
        fingerprint=request.fingerprint,
        api_reason=answers[-1].miss_reason,
        requested_ttl=answers[0].requested_ttl,
        starts_turn=judges_thinking and draft.starts_turn,
        has_thinking=judges_thinking and any(answer.has_thinking for answer in answers),
    )


def _find_parents(
    facts: Sequence[LineFact], drafts: Mapping[str, _Draft], calls: Mapping[str, FactCall], policy: CachePolicy
) -> dict[str, str]:
    """The judged call that each call continues: the nearest one among the ancestors of its first line. A chain that
    ends at a line which is not there says nothing."""
    by_id = {fact.id: fact for fact in facts}
    judged = {call_id for call_id, call in calls.items() if policy.judges(call.model, None, call.usage)}
    nearest: dict[str | None, str | None] = {None: CONVERSATION_START}
    parents = {}
    for call_id, draft in drafts.items():
        found = _find_nearest(draft.lines[0].parent, by_id, judged, nearest) if draft.lines else None
        if found is not None and found != call_id:
            parents[call_id] = found
    return parents


def _find_nearest(
    name: str | None, by_id: Mapping[str, LineFact], judged: set[str], nearest: dict[str | None, str | None]
) -> str | None:
    """The judged call at or above a line; each line is walked once for all calls."""
    path: list[str] = []
    while name is not None and name not in nearest:
        fact = by_id.get(name)
        if fact is None:
            nearest[name] = None
        elif fact.answer is not None and fact.answer.call_id in judged:
            nearest[name] = fact.answer.call_id
        else:
            path.append(name)
            nearest[name] = None  # until the way up is known: a circle leads nowhere
            name = fact.parent
    found = nearest[name]
    for step in path:
        nearest[step] = found
    return found


def _read_requests(facts: Iterable[LineFact], shapes: Mapping[str, Fingerprint] | None) -> dict[str, _KnownRequest]:
    """What request lines add to their calls; fingerprints only where the prints of shapes are at hand."""
    lines = {fact.request.id: fact for fact in facts if fact.request is not None}
    known: dict[str, _KnownRequest] = {}
    hashes: dict[str, tuple[str, ...] | None] = {}
    for name, fact in lines.items():
        request = fact.request
        if request is None:
            continue
        prints = None if shapes is None else _print_request(request, _find_hashes(name, lines, hashes), shapes)
        known[name] = _KnownRequest(prints, fact.at, request.query_source)
    return known


def _find_hashes(
    name: str, lines: Mapping[str, LineFact], hashes: dict[str, tuple[str, ...] | None]
) -> tuple[str, ...] | None:
    """The message hashes of a request through its bases; None where a base is not there."""
    path: list[Request] = []
    below: str | None = name
    while below is not None and below not in hashes:
        fact = lines.get(below)
        request = fact.request if fact else None
        if request is None or any(step.id == below for step in path):
            hashes[below] = None
            break
        path.append(request)
        below = request.base
    kept: tuple[str, ...] | None = hashes[below] if below is not None else ()
    for request in reversed(path):
        is_whole = kept is not None and len(kept) >= request.keep
        kept = (*(kept or ())[: request.keep], *request.tail) if is_whole else None
        hashes[request.id] = kept
    return hashes[name]


_NO_SHAPE = Fingerprint(None, (), (), (), (), (), (), (), ())


def _print_request(request: Request, hashes: tuple[str, ...] | None, shapes: Mapping[str, Fingerprint]) -> Fingerprint:
    return replace(
        shapes.get(request.shape or "", _NO_SHAPE),
        model=request.model,
        messages=hashes or (),
        settings=request.settings,
        markers=tuple(Marker(path, ttl) for path, ttl in request.markers),
        are_messages_known=hashes is not None,
        are_messages_opaque=bool(hashes),
    )
