"""What is added to a request where its team wants that: a question why the cache was missed, clearing of old tool
results. A request that says something about either itself is left as it is. No Django here."""

import logging
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from compaction.compactors.micro.api_context_editing import ContextEditingSettings, build_result_clearing
from compaction.prompt.request import PromptMessage, read_request
from compaction.transcripts.json_fields import get_fields, get_items, get_text
from dashboard.policies.proxy_additions import ProxyAdditions
from dashboard.proxy.conversations import mark_answer, mark_message
from dashboard.proxy.prompts import find_session
from dashboard.proxy.responses import NotReadable, read_reply, unpack
from dashboard.proxy.side_calls import ToolUsers, asks_for_summary, is_probe, list_own_tools
from dashboard.proxy.threads import AccountName, ThreadName
from dashboard.proxy.wire import Exchange

HEADER = b"x-plimsoll-added"
DIAGNOSIS, CLEARING = "cache-diagnosis", "clear-tool-uses"
BETAS = {DIAGNOSIS: "cache-diagnosis-2026-04-07", CLEARING: "context-management-2025-06-27"}
MOST_REMEMBERED = 5_000
LONGEST_NAME = 200
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_ENCODE = msgspec.json.Encoder().encode
_TELLING = ("tools", "system", "max_tokens", "metadata", "thinking", "context_management")

RawHeaders = list[tuple[bytes, bytes]]
Fields = dict[str, msgspec.Raw]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Enlarged:
    """A request with what was added to it; `thread` is whose answer the next question will be about."""

    body: bytes
    headers: RawHeaders
    added: tuple[str, ...]
    thread: ThreadName | None


@dataclass(frozen=True, slots=True)
class _LastAnswer:
    message_id: str
    mark: bytes  # what it said, as the next request repeats it


class Enlarger:
    """Of one web process: it knows the last message of each thread that it saw."""

    def __init__(self, *, most_remembered: int = MOST_REMEMBERED) -> None:
        self._most = most_remembered
        self._last: OrderedDict[ThreadName, _LastAnswer] = OrderedDict()
        self._tool_users = ToolUsers(most_threads=most_remembered)

    def enlarge(
        self, body: bytes, headers: RawHeaders, wanted: ProxyAdditions, *, account: AccountName
    ) -> Enlarged | None:
        """None where nothing is added: a body that is encoded, not readable, or speaks for itself. The fields that
        were there keep their bytes. Never raises."""
        try:
            return self._enlarge(body, headers, wanted, account)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        except Exception:  # the edge: whatever is odd about a request, it passes as it was written
            log.exception("a request was left as it is")
            return None

    def _enlarge(
        self, body: bytes, headers: RawHeaders, wanted: ProxyAdditions, account: AccountName
    ) -> Enlarged | None:
        told = dict(headers)
        if b"content-encoding" in told:
            return None
        fields = _FIELDS.decode(body)
        read = {name: msgspec.json.decode(fields[name]) for name in _TELLING if name in fields}
        if is_probe(read) or _wants_summary(fields):
            return None
        thread = self._find_thread(read, told, account) if wanted.asks_diagnosis else None
        added: dict[str, tuple[str, object]] = {}
        if thread is not None and "diagnostics" not in fields:
            added[DIAGNOSIS] = ("diagnostics", {"previous_message_id": self._find_previous(thread, fields)})
        if wanted.clears_results and (managed := _add_clearing(read, wanted)):
            added[CLEARING] = ("context_management", managed)
        if not added:
            return None
        fields |= {field: msgspec.Raw(_ENCODE(value)) for field, value in added.values()}
        spelt = b",".join(_ENCODE(name) + b":" + bytes(raw) for name, raw in fields.items())
        return Enlarged(b"{" + spelt + b"}", _add_betas(headers, added), tuple(added), thread)

    def _find_thread(
        self, read: Mapping[str, object], headers: Mapping[bytes, bytes], account: AccountName
    ) -> ThreadName | None:
        """None for clients that do not name their session, and for calls beside the conversation."""
        in_header = headers.get(b"x-claude-code-session-id", b"").decode("latin-1")
        session_id = in_header or find_session(get_text(get_fields(read, "metadata"), "user_id") or "")
        if not session_id:
            return None
        agent_id = headers.get(b"x-claude-code-agent-id", b"").decode("latin-1")
        thread = (*account, session_id[:LONGEST_NAME], agent_id[:LONGEST_NAME])
        return None if self._tool_users.is_beside(thread, read) else thread

    def _find_previous(self, thread: ThreadName, fields: Fields) -> str | None:
        """The message that the request goes on from. None where that is not the one seen last: the first of a thread,
        a conversation that was taken back, an answer that another web process passed on."""
        last = self._last.get(thread)
        return last.message_id if last is not None and last.mark == _mark_last_answer(fields) else None

    def remember(self, thread: ThreadName, exchange: Exchange) -> None:
        """The next request of the thread is compared with this one, if it goes on from its answer."""
        headers = exchange.response_headers
        try:
            data = unpack(exchange.response_body, headers.get("content-encoding", ""))
            reply = read_reply(data, headers.get("content-type", ""))
        except NotReadable:
            return
        if reply.is_whole and reply.message_id is not None:
            self._last[thread] = _LastAnswer(reply.message_id, mark_answer(reply.content))
            self._last.move_to_end(thread)
            if len(self._last) > self._most:
                self._last.popitem(last=False)


def _read_backwards(fields: Fields) -> Iterator[PromptMessage]:
    """The last message first, each decoded when it is asked for: a conversation may be long."""
    for raw in reversed(_ITEMS.decode(fields["messages"]) if "messages" in fields else []):
        yield from read_request({"messages": [msgspec.json.decode(raw)]}).messages


def _mark_last_answer(fields: Fields) -> bytes | None:
    answers = (message for message in _read_backwards(fields) if message.role == "assistant")
    last = next(answers, None)
    return None if last is None else mark_message(last)


def _wants_summary(fields: Fields) -> bool:
    """A summary is to be made of everything."""
    if "compaction" in fields:
        return True
    spoken = (message for message in _read_backwards(fields) if message.role != "system")
    last = next(spoken, None)
    return last is not None and asks_for_summary(last.role, last.blocks)


def _add_clearing(read: Mapping[str, object], wanted: ProxyAdditions) -> dict[str, object] | None:
    """What the client asks for, and clearing behind it; None where it asks for that itself or has no tools."""
    names = list_own_tools(get_items(read, "tools"))
    managed = get_fields(read, "context_management")
    edits = get_items(managed, "edits")
    if not names or any(_is_clearing(edit) for edit in edits):
        return None
    settings = ContextEditingSettings(
        trigger_tokens=wanted.clear_above_tokens, target_tokens=wanted.clear_above_tokens - wanted.least_cleared_tokens
    )
    edit = build_result_clearing(names, kept_uses=wanted.kept_results, settings=settings)
    return {**managed, "edits": [*edits, edit]}


def _is_clearing(edit: object) -> bool:
    return isinstance(edit, Mapping) and (get_text(edit, "type") or "").startswith("clear_tool_uses")


def _add_betas(headers: RawHeaders, added: Mapping[str, object]) -> RawHeaders:
    """The length is said anew by who sends it."""
    told = b",".join(value for name, value in headers if name == b"anthropic-beta")
    known = {name.strip() for name in told.decode("latin-1").split(",") if name.strip()}
    missing = [BETAS[name] for name in added if BETAS[name] not in known]
    others = [(name, value) for name, value in headers if name not in (b"anthropic-beta", b"content-length")]
    return [*others, (b"anthropic-beta", b",".join([*([told] if told else []), *(beta.encode() for beta in missing)]))]
