"""The calls of one thread, from its ordered facts: several lines and reports made one, with what preceded each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from compaction.cache.calls import (
    ANNOUNCED,
    CONVERSATION_START,
    CacheCall,
    CachePolicy,
    is_beside_conversation,
)
from compaction.cache.causes import Cause
from compaction.cache.conditions import Condition
from compaction.llm.names import keeps_thinking
from compaction.prompt.fingerprint import Fingerprint, read_message_print
from compaction.prompt.request import Marker
from compaction.timeline.observations import LineFact, LineKind, Request
from compaction.timeline.order import NO_TIME
from compaction.timeline.preconditions import ConditionWatch
from compaction.transcripts.calls import settle_output
from compaction.transcripts.entries import Usage
from compaction.transcripts.frozen import Draft, change_value

TRANSCRIPT = "transcript"
# Who knows a call best: the proxy saw the bytes, telemetry has the client's final figures, lines may be half written.
SOURCES = ("proxy", "otlp", "api", TRANSCRIPT)

_PROMPT, _COMPACTED = LineKind.PROMPT, Cause.COMPACTED
_HAPPENINGS: Mapping[LineKind, Cause] = {
    LineKind.BOUNDARY: Cause.COMPACTED,
    LineKind.OLDER_SUMMARY: Cause.COMPACTED,
    LineKind.MICRO: Cause.MICRO_COMPACTED,
    LineKind.DELETION: Cause.DELETION_ANNOUNCED,
}


class FactCall(Draft):
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
    added: tuple[str, ...] = ()  # by the proxy, to the request
    cleared_tokens: int = 0  # by the API, from the prompt
    is_beside: bool = False  # made for something else than the next turn: paid for, but not part of the conversation
    cache_call: CacheCall = CacheCall("", NO_TIME, None, Usage())


_NOTHING_HAPPENED: frozenset[Cause] = frozenset()


class _Draft(Draft):
    """A call while its lines are gathered."""

    lines: list[LineFact] = []
    reports: list[LineFact] = []
    turn: int = 0
    starts_turn: bool = False
    happened: frozenset[Cause] = _NOTHING_HAPPENED
    noticed: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class _KnownRequest:
    fingerprint: Fingerprint | None
    started_at: datetime | None
    query_source: str | None


_NO_REQUEST = _KnownRequest(None, None, None)


def answers_turn(fact: LineFact) -> bool:
    """Whether a line or report is of a call of the conversation itself."""
    return fact.answer is not None and not is_beside_conversation(fact.answer.query_source)


def collect_fact_calls(
    facts: Sequence[LineFact], policy: CachePolicy, *, shapes: Mapping[str, Fingerprint] | None = None
) -> tuple[FactCall, ...]:
    """The calls of a thread in the order of their first lines. `shapes`: prints by the client's name for a shape."""
    asked = [fact for fact in facts if fact.request is not None]
    drafts = _gather(facts, _find_starters(facts, asked))
    requests = _read_requests(asked, shapes)
    merged = {call_id: _merge(call_id, draft) for call_id, draft in drafts.items()}
    parents = _find_parents(facts, drafts, merged, policy)
    for position, call in enumerate(merged.values()):
        call.cache_call = _make_cache_call(call, drafts[call.call_id], position, requests, parents)
    return tuple(merged.values())


def _gather(facts: Sequence[LineFact], starters: frozenset[str]) -> dict[str, _Draft]:
    """Calls in the order of the conversation. Reports stand with the lines of their call, or for a call alone.
    `starters`: requests that begin a turn."""
    by_request, with_lines = _name_calls(facts)
    drafts: dict[str, _Draft] = {}
    reports: list[tuple[str, LineFact]] = []
    turn, has_words = 0, False
    pending: set[Cause] = set()
    watch = ConditionWatch()
    for fact in facts:
        kind = fact.kind
        turn += kind is _PROMPT
        has_words = has_words or fact.has_words
        cause = _HAPPENINGS.get(kind)
        if cause is not None:
            pending.add(cause)
        answer = fact.answer
        if answer is None:
            watch.see_line(fact)
            continue
        call_id = answer.call_id
        if answer.source != TRANSCRIPT:
            call_id = by_request.get(answer.request_id or "", call_id)
            reports.append((call_id, fact))
            if call_id in with_lines:
                continue
            if is_beside_conversation(answer.query_source):
                drafts.setdefault(call_id, _Draft(turn=turn))
                continue
        draft = drafts.get(call_id)
        if draft is None:
            starts = answer.request_ref in starters
            turn, has_words = turn + starts, has_words or starts
            happened = frozenset(pending) if pending else _NOTHING_HAPPENED
            draft = drafts[call_id] = _Draft([], [], turn, has_words, happened, watch.begin_call())
            pending.clear()
        has_words = False
        if answer.source == TRANSCRIPT:
            draft.lines.append(fact)
            watch.see_answer(answer)
    for call_id, fact in reports:
        drafts[call_id].reports.append(fact)
    return drafts


def _find_starters(facts: Sequence[LineFact], asked: Iterable[LineFact]) -> frozenset[str]:
    """Requests that begin a turn, where no line tells of prompts."""
    found = frozenset(fact.request.id for fact in asked if fact.request and fact.request.starts_turn)
    return frozenset() if found and any(fact.kind is _PROMPT for fact in facts) else found


def _name_calls(facts: Sequence[LineFact]) -> tuple[dict[str, str], frozenset[str]]:
    """Telemetry names the request, lines name message and request: either makes them one call. Call ids by request,
    those of lines before those of reports, and the calls that have lines; nothing where nobody reports."""
    if {fact.answer.source for fact in facts if fact.answer} <= {TRANSCRIPT}:
        return {}, frozenset()
    by_request: dict[str, str] = {}
    with_lines = set()
    answers = [(_rank_source(fact), fact.answer) for fact in facts if fact.answer]
    for _, answer in sorted(answers, key=lambda told: (told[1].source != TRANSCRIPT, told[0], told[1].call_id)):
        if answer.source == TRANSCRIPT:
            with_lines.add(answer.call_id)
        if answer.request_id:
            by_request.setdefault(answer.request_id, answer.call_id)
    return by_request, frozenset(with_lines)


def _merge(call_id: str, draft: _Draft) -> FactCall:
    lines, best = draft.lines, _order_reports(draft.reports) if draft.reports else []
    last = (lines or best)[-1 if lines else 0]
    answer = last.answer
    if answer is None:
        raise ValueError(call_id)  # drafts are made of answers alone
    usage, is_estimated = answer.usage, False
    if lines and answer.stop_reason is None:
        open_answers = [line.answer for line in lines if line.answer and line.answer.stop_reason is None]
        written_characters = sum([open_answer.written_characters for open_answer in open_answers])
        output_tokens = settle_output(usage, None, written_characters)
        if output_tokens > usage.output_tokens:
            usage, is_estimated = usage.changed(output_tokens=output_tokens), True
    call = FactCall(
        call_id,
        usage,
        is_estimated,
        answer.model,
        lines[0].at if lines else _find_start(best[0]),
        last.at,
        draft.turn,
        len(lines),
        answer.stop_reason,
        answer.request_id,
        last.version,
        is_after_compaction=_COMPACTED in draft.happened,
    )
    for report in reversed(best):
        call = _believe(call, report)
        call.is_beside = call.is_beside or not answers_turn(report)
    if best:
        told = [report.answer for report in best if report.answer]
        call.added = next((answer.added for answer in told if answer.added), ())
        call.cleared_tokens = max(answer.cleared_tokens for answer in told)
    return call


def _find_start(report: LineFact) -> datetime | None:
    """A report is made when the call is over; a line when something of the answer was there."""
    seconds = report.answer.duration_seconds if report.answer else None
    return report.at - timedelta(seconds=seconds) if report.at and seconds else report.at


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
        # A line has the name of the model that answered, a report that of the model that was asked for.
        "model": None if call.line_count and call.model else answer.model,
        "stop_reason": answer.stop_reason,
        "duration_seconds": answer.duration_seconds,
        "ttft_seconds": answer.ttft_seconds,
        "request_id": answer.request_id,
    }
    told = {name: value for name, value in known.items() if value is not None}
    if call.line_count and answer.usage.cache_creation_1h_tokens == 0 < call.usage.cache_creation_1h_tokens:
        # Telemetry without the split counts all writes as short ones: the line's split stays.
        told["usage"] = call.usage.changed(output_tokens=answer.usage.output_tokens)
    provenance = dict(call.provenance) | dict.fromkeys(told, answer.source)
    is_estimated = answer.is_output_estimated
    return change_value(call, **told, is_output_estimated=is_estimated, provenance=tuple(sorted(provenance.items())))


def _make_cache_call(
    call: FactCall,
    draft: _Draft,
    position: int,
    requests: Mapping[str, _KnownRequest],
    parents: Mapping[str, str],
) -> CacheCall:
    facts = [*_order_reports(draft.reports), *draft.lines] if draft.reports else draft.lines
    request = _NO_REQUEST
    source = miss_reason = requested_ttl = None
    client_reasons: tuple[str, ...] = ()
    has_thinking = False
    for fact in facts:  # the best-informed of those who know it first
        answer = fact.answer
        if answer is None:
            continue
        if requests and request is _NO_REQUEST:
            request = requests.get(answer.request_ref or "", _NO_REQUEST)
        source = answer.query_source if source is None else source
        miss_reason = answer.miss_reason if miss_reason is None else miss_reason
        requested_ttl = answer.requested_ttl if requested_ttl is None else requested_ttl
        client_reasons = client_reasons or answer.client_reasons
        has_thinking = has_thinking or answer.has_thinking
    judges_thinking = (draft.starts_turn or has_thinking) and not keeps_thinking(call.model)
    happened = draft.happened
    return CacheCall(
        call.call_id,
        request.started_at or call.started_at or call.ended_at or NO_TIME,
        call.model,
        call.usage,
        position,
        call.version,
        request.query_source or source,
        parents.get(call.call_id),
        tuple(cause for cause in ANNOUNCED if cause in happened) if happened else (),
        draft.noticed,
        request.fingerprint,
        miss_reason,
        client_reasons,
        requested_ttl,
        judges_thinking and draft.starts_turn,
        judges_thinking and has_thinking,
    )


def _find_parents(
    facts: Sequence[LineFact], drafts: Mapping[str, _Draft], calls: Mapping[str, FactCall], policy: CachePolicy
) -> dict[str, str]:
    """The judged call that each call continues: the nearest one among the ancestors of its first line. A chain that
    ends at a line which is not there says nothing, and the call counts as going on from the one before it: the line
    before it in the file would say the same, or invent a rewind."""
    by_id = {fact.id: fact for fact in facts}
    judged = {call_id for call_id, call in calls.items() if policy.judges(call.model, None, call.usage)}
    nearest: dict[str | None, str | None] = {None: CONVERSATION_START}
    parents = {}
    for call_id, draft in drafts.items():
        first = draft.lines[0] if draft.lines else None
        # Sub-agent lines nested in the main transcript record no parent, so a missing parent is no new start.
        has_chain = first is not None and not (first.is_sidechain and first.parent is None)
        found = _find_nearest(first.parent, by_id, judged, nearest) if first and has_chain else None
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


def _read_requests(asked: Iterable[LineFact], shapes: Mapping[str, Fingerprint] | None) -> dict[str, _KnownRequest]:
    """What request lines add to their calls; fingerprints only where the prints of shapes are at hand."""
    lines = {fact.request.id: fact for fact in asked if fact.request is not None}
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
    if hashes is not None and not request.is_opaque:
        return _print_whole_request(request, hashes, shapes)
    return replace(
        shapes.get(request.shape or "", _NO_SHAPE),
        model=request.model,
        messages=hashes or (),
        settings=request.settings,
        markers=tuple(Marker(path, ttl) for path, ttl in request.markers),
        are_messages_known=hashes is not None,
        are_messages_opaque=bool(hashes),
    )


def _print_whole_request(request: Request, messages: tuple[str, ...], shapes: Mapping[str, Fingerprint]) -> Fingerprint:
    """Of a request that was seen whole: sizes and blocks of its messages are known too."""
    prints = [read_message_print(each) for each in messages]
    return replace(
        shapes.get(request.shape or "", _NO_SHAPE),
        model=request.model,
        messages=tuple(each.digest for each in prints),
        message_sizes=tuple(each.size_characters for each in prints),
        message_blocks=tuple(each.block_count for each in prints),
        system_messages=tuple(index for index, each in enumerate(prints) if each.is_system),
        settings=request.settings,
        markers=tuple(Marker(path, ttl) for path, ttl in request.markers),
        image_count=request.image_count,
        has_citations=request.has_citations,
    )
