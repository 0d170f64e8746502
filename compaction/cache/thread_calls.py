"""The calls of one transcript thread as break detection wants them: order, ancestry, compactions, known requests."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from compaction.cache.breaks import DEFAULT_POLICY
from compaction.cache.calls import ANNOUNCED, CONVERSATION_START, CacheCall, CachePolicy
from compaction.cache.causes import Cause
from compaction.cache.fingerprint import Digest, Fingerprint, take_fingerprint
from compaction.cache.invalidation import keeps_thinking
from compaction.cache.request_lines import RequestBook
from compaction.transcripts.calls import Call, collect_calls, find_call_id
from compaction.transcripts.chain import Thread, is_boundary, split_threads
from compaction.transcripts.entries import Entry, ThinkingBlock, ToolResultBlock
from compaction.transcripts.payloads import ApiRequest, Boundary, MicroBoundary, OlderSummary
from compaction.transcripts.values import get_text


@dataclass(frozen=True, slots=True)
class _Request:
    """What a request line adds to its call."""

    fingerprint: Fingerprint | None
    started_at: datetime | None
    query_source: str | None
    requested_ttl: str | None = None


# Where a hook for resumed sessions ran; older clients write progress lines, newer ones attachments.
_HOOK_LINES = frozenset({"progress", "attachment"})
_RESUME_HOOK = b'"SessionStart:resume"'
_UNKNOWN_REQUEST = _Request(None, None, None)
# Calls without any time come first, in the order of their lines.
_NO_TIME = datetime.min.replace(tzinfo=UTC)


def read_session_calls(
    entries: Iterable[Entry], policy: CachePolicy = DEFAULT_POLICY, *, digest: Digest | None = None
) -> dict[str | None, tuple[CacheCall, ...]]:
    """The calls of every thread of a transcript, by the sub-agent's id; None is the main conversation."""
    return {
        thread.agent_id: read_thread_calls(thread, policy, digest=digest)
        for thread in split_threads(_put_in_threads(entries))
    }


def read_thread_calls(
    thread: Thread, policy: CachePolicy = DEFAULT_POLICY, *, digest: Digest | None = None
) -> tuple[CacheCall, ...]:
    """The calls of one thread. Requests are fingerprinted only when a digest is given."""
    entries = thread.entries
    calls = collect_calls(entries)
    first_lines = _find_first_lines(entries)
    requests = _read_requests(entries, digest)
    parents = _find_parents(entries, calls, first_lines, policy)
    happened = _find_happened(entries, calls)
    turns = _find_turn_starts(entries, calls)
    return tuple(
        _make_call(
            call,
            position,
            request=_find_request(first_lines[call.message_id], requests),
            parent_call_id=parents.get(call.message_id),
            happened=happened.get(call.message_id, frozenset()),
            turn=turns.get(call.message_id, (False, False)),
        )
        for position, call in enumerate(calls)
    )


def _put_in_threads(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Request lines of a sub-agent carry its id but no sidechain flag: give them the flag, so they stay with it."""
    for entry in entries:
        is_stray = entry.agent_id is not None and not entry.is_sidechain and entry.type.startswith("api-request")
        yield entry.changed(is_sidechain=True) if is_stray else entry


def _make_call(
    call: Call,
    position: int,
    *,
    request: _Request,
    parent_call_id: str | None,
    happened: frozenset[Cause],
    turn: tuple[bool, bool],
) -> CacheCall:
    at = request.started_at or call.started_at or call.ended_at
    return CacheCall(
        call_id=call.message_id,
        at=at or _NO_TIME,
        model=call.model,
        usage=call.counted_usage,
        position=position,
        client_version=call.version,
        query_source=request.query_source,
        parent_call_id=parent_call_id,
        announced=tuple(cause for cause in ANNOUNCED if cause in happened),
        noticed=tuple(sorted(happened.difference(ANNOUNCED))),
        fingerprint=request.fingerprint,
        api_reason=call.cache_miss_reason,
        requested_ttl=request.requested_ttl,
        starts_turn=turn[0],
        has_thinking=turn[1],
    )


def _find_request(line: Entry, requests: Mapping[str, _Request]) -> _Request:
    """The request a response refers to; lines are decoded whole only where the transcript holds requests at all."""
    if not requests:
        return _UNKNOWN_REQUEST
    request = requests.get(get_text(line.fields, "requestRef") or "", _UNKNOWN_REQUEST)
    return replace(request, requested_ttl=get_text(line.fields, "promptCacheRequested"))


def _find_first_lines(entries: Sequence[Entry]) -> dict[str, Entry]:
    lines: dict[str, Entry] = {}
    for entry in entries:
        call_id = find_call_id(entry)
        if call_id is not None:
            lines.setdefault(call_id, entry)
    return lines


def _read_requests(entries: Sequence[Entry], digest: Digest | None) -> dict[str, _Request]:
    book = RequestBook()
    requests = {}
    for entry in entries:
        found = book.add(entry) if entry.type.startswith("api-request") else None
        if found is not None:
            prints = None if digest is None else take_fingerprint(found[1], digest)
            source = entry.payload.query_source if isinstance(entry.payload, ApiRequest) else None
            requests[found[0]] = _Request(prints, entry.at, source)
    return requests


def _find_parents(
    entries: Sequence[Entry], calls: Sequence[Call], first_lines: Mapping[str, Entry], policy: CachePolicy
) -> dict[str, str]:
    """The judged call that each call continues: the nearest one among the ancestors of its first line. A chain that
    ends at a line which is not there says nothing."""
    by_uuid = {entry.uuid: entry for entry in entries if entry.uuid is not None}
    judged = {call.message_id for call in calls if policy.judges(call.model, None, call.usage)}
    parents = {}
    for call_id, line in first_lines.items():
        parent = _walk_to_call(line, by_uuid, call_id, judged)
        if parent is not None:
            parents[call_id] = parent
    return parents


def _walk_to_call(line: Entry, by_uuid: Mapping[str, Entry], call_id: str, judged: set[str]) -> str | None:
    seen: set[str] = set()
    uuid = line.parent_uuid
    while uuid is not None and uuid not in seen and uuid in by_uuid:
        seen.add(uuid)
        entry = by_uuid[uuid]
        found = find_call_id(entry)
        if found is not None and found != call_id and found in judged:
            return found
        uuid = entry.logical_parent_uuid if is_boundary(entry) else entry.parent_uuid
    return CONVERSATION_START if uuid is None else None


def _find_happened(entries: Sequence[Entry], calls: Sequence[Call]) -> dict[str, frozenset[Cause]]:
    """What the lines between the call before and each call show."""
    waiting = {call.message_id for call in calls}
    found: dict[str, frozenset[Cause]] = {}
    pending: set[Cause] = set()
    for entry in entries:
        cause = _read_happening(entry)
        if cause is not None:
            pending.add(cause)
        call_id = find_call_id(entry)
        if call_id is not None and call_id in waiting:
            waiting.discard(call_id)
            if pending:
                found[call_id] = frozenset(pending)
                pending.clear()
    return found


def _read_happening(entry: Entry) -> Cause | None:
    if isinstance(entry.payload, Boundary | OlderSummary):
        return Cause.COMPACTED
    if isinstance(entry.payload, MicroBoundary):
        return Cause.MICRO_COMPACTED
    # The text of a command or skill is a user line of the client's own making.
    if entry.type == "user" and entry.is_meta:
        return Cause.COMMAND_STARTED
    if entry.type in _HOOK_LINES and entry.raw is not None and _RESUME_HOOK in entry.raw:
        return Cause.CLIENT_RESTARTED
    return None


def _find_turn_starts(entries: Sequence[Entry], calls: Sequence[Call]) -> dict[str, tuple[bool, bool]]:
    """For models that drop earlier thinking: whether a new prompt precedes a call, and whether it thought itself."""
    if all(keeps_thinking(call.model) for call in calls):
        return {}
    found: dict[str, tuple[bool, bool]] = {}
    has_prompt = False
    for entry in entries:
        call_id = find_call_id(entry)
        if call_id is not None and entry.message is not None:
            starts_turn, has_thinking = found.get(call_id, (has_prompt, False))
            has_prompt = False
            thinks = any(isinstance(block, ThinkingBlock) for block in entry.message.content)
            found[call_id] = (starts_turn, has_thinking or thinks)
        elif entry.type == "user" and entry.message is not None:
            has_prompt = has_prompt or any(not isinstance(block, ToolResultBlock) for block in entry.message.content)
    return found
