"""The API calls of one thread: lines and reports of one call merged, with what preceded it.

What a later observation needs of earlier ones is in `CallCollector`: the open turn, what happened since the last call,
and the calls that may get more lines.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from compaction.context.cache_ttl import CacheTtl, get_written_ttl
from compaction.prompt.fingerprint import Fingerprint
from compaction.timeline.observations import LineKind, Observation, Response
from compaction.timeline.order import NO_TIME
from compaction.timeline.preceding import NO_EVENTS, Condition, Event, PrecedingTracker
from compaction.timeline.recorded_requests import NO_RECORD, RequestRecord, resolve_requests
from compaction.transcripts.client_protocol import is_beside_conversation
from compaction.transcripts.entries import Usage
from compaction.transcripts.output_estimate import compute_output_tokens

TRANSCRIPT = "transcript"
# Most reliable first: the proxy saw the bytes, telemetry has the client's final figures, lines may be half written.
SOURCES = ("proxy", "otlp", "api", TRANSCRIPT)
# The parent of a call whose ancestors hold no other call.
CONVERSATION_START = ""

_PROMPT = LineKind.PROMPT


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One API call of one thread, merged from its lines and reports."""

    call_id: str
    at: datetime  # when the request started, or its first line was written
    usage: Usage
    model: str | None = None
    position: int = 0
    turn: int = 0
    line_count: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    stop_reason: str | None = None
    request_id: str | None = None
    client_version: str | None = None
    duration_seconds: float | None = None
    ttft_seconds: float | None = None
    query_source: str | None = None
    is_output_estimated: bool = False
    is_beside: bool = False  # made for something other than the next turn: billed, but not part of the conversation
    added: tuple[str, ...] = ()  # what the proxy added to the request
    cleared_tokens: int = 0  # what the API left out of the prompt
    provenance: tuple[tuple[str, str], ...] = ()  # field -> source
    parent_call_id: str | None = None  # the call it continues, where known
    events: frozenset[Event] = NO_EVENTS  # since the call before it
    conditions: tuple[Condition, ...] = ()
    starts_turn: bool = False
    has_thinking: bool = False
    fingerprint: Fingerprint | None = None
    api_reason: str | None = None  # why the cache was missed, according to the API
    client_reasons: tuple[str, ...] = ()  # the same according to the client
    requested_ttl: str | None = None

    @property
    def written_ttl(self) -> CacheTtl | None:
        """Return the lifetime this call wrote with; None when it wrote nothing."""
        return get_written_ttl(self.usage.cache_creation_tokens, self.usage.cache_creation_1h_tokens)

    @property
    def is_after_compaction(self) -> bool:
        """Return whether a full compaction happened since the call before it."""
        return Event.COMPACTED in self.events


def belongs_to_conversation(line: Observation) -> bool:
    """Return whether a line or report is of a call of the conversation itself."""
    return line.answer is not None and not is_beside_conversation(line.answer.query_source)


def collect_calls(lines: Sequence[Observation], *, shapes: Mapping[str, Fingerprint] | None = None) -> tuple[Call, ...]:
    """Return the calls of a thread in the order of their first lines. `shapes`: prints by the client's name for a
    shape; without them requests get no fingerprint."""
    request_lines = [line for line in lines if line.request is not None]
    by_request, with_lines = _identify_reported(lines)
    collector = CallCollector(by_request, with_lines, _find_turn_requests(lines, request_lines))
    for line in lines:
        collector.add(line)
    drafts = collector.finish()
    requests = resolve_requests(request_lines, shapes)
    parents = _find_parents(lines, drafts)
    return tuple(
        _build_call(draft, position, requests, parents.get(draft.call_id))
        for position, draft in enumerate(drafts.values())
    )


class _CallDraft(msgspec.Struct, gc=False):
    """A call while its lines and reports are collected."""

    call_id: str
    turn: int
    starts_turn: bool = False
    events: frozenset[Event] = NO_EVENTS
    conditions: tuple[Condition, ...] = ()
    lines: list[Observation] = []
    reports: list[Observation] = []


class CallCollector:
    """Groups the ordered lines and reports of a thread by call. A report joins the lines of its call, or is a call of
    its own when there are none."""

    def __init__(
        self, by_request: Mapping[str, str], with_lines: frozenset[str], turn_requests: frozenset[str]
    ) -> None:
        self._by_request = by_request
        self._with_lines = with_lines
        self._turn_requests = turn_requests
        self._drafts: dict[str, _CallDraft] = {}
        self._reports: list[tuple[str, Observation]] = []
        self._turn = 0
        self._is_prompted = False
        self._preceding = PrecedingTracker()

    def add(self, line: Observation) -> None:
        """Take in the next line or report of the thread."""
        self._turn += line.kind is _PROMPT
        self._is_prompted = self._is_prompted or line.has_words
        response = line.answer
        if response is None:
            self._preceding.add_line(line)
        elif response.source == TRANSCRIPT:
            self._open(response.call_id, response).lines.append(line)
            self._is_prompted = False
            self._preceding.add_response(response)
        else:
            self._add_report(line, response)

    def finish(self) -> dict[str, _CallDraft]:
        """Return the calls in the order of the conversation, each with its reports."""
        for call_id, report in self._reports:
            self._drafts[call_id].reports.append(report)
        return self._drafts

    def _add_report(self, line: Observation, response: Response) -> None:
        call_id = self._by_request.get(response.request_id or "", response.call_id)
        self._reports.append((call_id, line))
        if call_id in self._with_lines:
            return
        if is_beside_conversation(response.query_source):
            self._drafts.setdefault(call_id, _CallDraft(call_id, self._turn))
            return
        self._open(call_id, response)
        self._is_prompted = False

    def _open(self, call_id: str, response: Response) -> _CallDraft:
        draft = self._drafts.get(call_id)
        if draft is None:
            if response.request_ref in self._turn_requests:
                self._turn += 1
                self._is_prompted = True
            events, conditions = self._preceding.begin_call()
            draft = _CallDraft(call_id, self._turn, self._is_prompted, events, conditions)
            self._drafts[call_id] = draft
        return draft


def _find_turn_requests(lines: Sequence[Observation], request_lines: Iterable[Observation]) -> frozenset[str]:
    """Return the requests that begin a turn, for threads whose prompts no line records."""
    found = frozenset(line.request.id for line in request_lines if line.request and line.request.starts_turn)
    return frozenset() if found and any(line.kind is _PROMPT for line in lines) else found


def _identify_reported(lines: Sequence[Observation]) -> tuple[dict[str, str], frozenset[str]]:
    """Return call ids by request id (those of lines before those of reports), and the calls that have lines; nothing
    for a thread without reports. Telemetry names the request, lines name message and request: either makes them one
    call."""
    if {line.answer.source for line in lines if line.answer} <= {TRANSCRIPT}:
        return {}, frozenset()
    by_request: dict[str, str] = {}
    with_lines = set()
    responses = [(_rank_source(line), line.answer) for line in lines if line.answer]
    for _, response in sorted(responses, key=lambda each: (each[1].source != TRANSCRIPT, each[0], each[1].call_id)):
        if response.source == TRANSCRIPT:
            with_lines.add(response.call_id)
        if response.request_id:
            by_request.setdefault(response.request_id, response.call_id)
    return by_request, frozenset(with_lines)


class _Figures(msgspec.Struct, gc=False):
    """What a call used and when, merged from its lines and reports."""

    usage: Usage
    is_output_estimated: bool = False
    model: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    stop_reason: str | None = None
    request_id: str | None = None
    client_version: str | None = None
    duration_seconds: float | None = None
    ttft_seconds: float | None = None
    provenance: dict[str, str] = {}

    def take_from(self, report: Response, *, has_lines: bool) -> None:
        """Replace figures by those of a report; what the report does not know stays."""
        usage = report.usage
        if has_lines and usage.cache_creation_1h_tokens == 0 < self.usage.cache_creation_1h_tokens:
            # Telemetry without the split counts all writes as short ones: the split of the line stays.
            usage = self.usage.changed(output_tokens=usage.output_tokens)
        self._set("usage", usage, report.source)
        # A line names the model that answered, a report the model that was asked for.
        if not (has_lines and self.model):
            self._set("model", report.model, report.source)
        for name in ("stop_reason", "duration_seconds", "ttft_seconds", "request_id"):
            self._set(name, getattr(report, name), report.source)
        self.is_output_estimated = report.is_output_estimated

    def _set(self, name: str, value: object, source: str) -> None:
        if value is not None:
            setattr(self, name, value)
            self.provenance[name] = source


def _build_call(
    draft: _CallDraft, position: int, requests: Mapping[str, RequestRecord], parent_call_id: str | None
) -> Call:
    reports = sorted(draft.reports, key=lambda report: (_rank_source(report), report.id)) if draft.reports else []
    figures = _merge_figures(draft.lines, reports)
    responses = [line.answer for line in (*reports, *draft.lines) if line.answer]  # the most reliable first
    reported = [report.answer for report in reports if report.answer]
    request = next((requests[ref] for each in responses if (ref := each.request_ref or "") in requests), NO_RECORD)
    return Call(
        call_id=draft.call_id,
        at=request.started_at or figures.started_at or figures.ended_at or NO_TIME,
        usage=figures.usage,
        model=figures.model,
        position=position,
        turn=draft.turn,
        line_count=len(draft.lines),
        started_at=figures.started_at,
        ended_at=figures.ended_at,
        stop_reason=figures.stop_reason,
        request_id=figures.request_id,
        client_version=figures.client_version,
        duration_seconds=figures.duration_seconds,
        ttft_seconds=figures.ttft_seconds,
        query_source=request.query_source or _first(each.query_source for each in responses),
        is_output_estimated=figures.is_output_estimated,
        is_beside=any(is_beside_conversation(each.query_source) for each in reported),
        added=next((each.added for each in reported if each.added), ()),
        cleared_tokens=max((each.cleared_tokens for each in reported), default=0),
        provenance=tuple(sorted(figures.provenance.items())),
        parent_call_id=parent_call_id,
        events=draft.events,
        conditions=draft.conditions,
        starts_turn=draft.starts_turn,
        has_thinking=any(each.has_thinking for each in responses),
        fingerprint=request.fingerprint,
        api_reason=_first(each.miss_reason for each in responses),
        client_reasons=next((each.client_reasons for each in responses if each.client_reasons), ()),
        requested_ttl=_first(each.requested_ttl for each in responses),
    )


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value is not None), None)


def _merge_figures(lines: Sequence[Observation], reports: Sequence[Observation]) -> _Figures:
    last = lines[-1] if lines else reports[0]
    response = last.answer
    if response is None:
        raise ValueError(last.id)  # calls are collected from responses alone
    figures = _Figures(
        response.usage,
        model=response.model,
        started_at=lines[0].at if lines else _find_start(reports[0]),
        ended_at=last.at,
        stop_reason=response.stop_reason,
        request_id=response.request_id,
        client_version=last.version,
    )
    if lines and response.stop_reason is None:
        written = [line.answer.written_characters for line in lines if line.answer and line.answer.stop_reason is None]
        output_tokens = compute_output_tokens(response.usage, None, sum(written))
        if output_tokens > response.usage.output_tokens:
            figures.usage, figures.is_output_estimated = response.usage.changed(output_tokens=output_tokens), True
    for report in reversed(reports):
        if report.answer is not None:
            figures.take_from(report.answer, has_lines=bool(lines))
    return figures


def _find_start(report: Observation) -> datetime | None:
    """A report is made when the call is over; a line when something of the response has arrived."""
    seconds = report.answer.duration_seconds if report.answer else None
    return report.at - timedelta(seconds=seconds) if report.at and seconds else report.at


def _rank_source(line: Observation) -> int:
    source = line.answer.source if line.answer else ""
    return SOURCES.index(source) if source in SOURCES else len(SOURCES)


def _find_parents(lines: Sequence[Observation], drafts: Mapping[str, _CallDraft]) -> dict[str, str]:
    """Return the call that each call continues: the nearest one among the ancestors of its first line.

    A chain that ends at a missing line proves nothing, so such calls have no parent.
    """
    by_id = {line.id: line for line in lines}
    nearest: dict[str | None, str | None] = {None: CONVERSATION_START}
    parents = {}
    for call_id, draft in drafts.items():
        first = draft.lines[0] if draft.lines else None
        # Sub-agent lines nested in the main transcript record no parent, so a missing parent is no new start.
        has_chain = first is not None and not (first.is_sidechain and first.parent is None)
        parent = _find_nearest(first.parent, by_id, nearest) if first and has_chain else None
        if parent is not None and parent != call_id:
            parents[call_id] = parent
    return parents


def _find_nearest(
    line_id: str | None, by_id: Mapping[str, Observation], nearest: dict[str | None, str | None]
) -> str | None:
    """Return the call at or above a line; each line is visited once for all calls."""
    path: list[str] = []
    while line_id is not None and line_id not in nearest:
        line = by_id.get(line_id)
        if line is None:
            nearest[line_id] = None
        elif line.answer is not None:
            nearest[line_id] = line.answer.call_id
        else:
            path.append(line_id)
            nearest[line_id] = None  # until the way up is known: a cycle leads nowhere
            line_id = line.parent
    found = nearest[line_id]
    for step in path:
        nearest[step] = found
    return found
