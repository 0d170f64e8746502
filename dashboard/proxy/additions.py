"""What is added to a request where its team wants that: a question why the cache was missed, clearing of old tool
results. A request that says something about either itself is left as it is. No Django here."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from compaction.transcripts.values import get_items, get_text
from dashboard.policies.proxy_additions import ProxyAdditions
from dashboard.proxy.prompts import find_session
from dashboard.proxy.responses import NotReadable, unpack

HEADER = b"x-plimsoll-added"
DIAGNOSIS, CLEARING = "cache-diagnosis", "clear-tool-uses"
BETAS = {DIAGNOSIS: "cache-diagnosis-2026-04-07", CLEARING: "context-management-2025-06-27"}
MOST_REMEMBERED = 5_000
LONGEST_NAME = 200
# Of a request, its instruction to sum up stands at the end; of an answer, its message id at the beginning.
_END_BYTES, _HEAD_BYTES = 16 * 1024, 16 * 1024
_MESSAGE_ID = re.compile(rb'"id"\s*:\s*"(msg_[A-Za-z0-9_-]{1,100})"')
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENCODE = msgspec.json.Encoder().encode

RawHeaders = list[tuple[bytes, bytes]]
ThreadName = tuple[int, str, str]  # team, session, sub-agent
Fields = dict[str, msgspec.Raw]


@dataclass(frozen=True, slots=True)
class Enlarged:
    """A request with what was added to it; `thread` is whose answer the next question will be about."""

    body: bytes
    headers: RawHeaders
    added: tuple[str, ...]
    thread: ThreadName | None


class Enlarger:
    """Of one web process: it knows the last message of each thread that it saw."""

    def __init__(self, *, most_remembered: int = MOST_REMEMBERED) -> None:
        self._most = most_remembered
        self._last: OrderedDict[ThreadName, str] = OrderedDict()

    def enlarge(self, body: bytes, headers: RawHeaders, wanted: ProxyAdditions, *, team_pk: int) -> Enlarged | None:
        """None where nothing is added: a body that is encoded, not readable, or speaks for itself. The fields that
        were there keep their bytes."""
        told = dict(headers)
        if b"content-encoding" in told:
            return None
        try:
            fields = _FIELDS.decode(body)
            thread = find_thread(fields, told, team_pk) if wanted.asks_diagnosis else None
            added = self._list_additions(fields, wanted, thread)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if not added:
            return None
        fields |= {field: msgspec.Raw(_ENCODE(value)) for field, value in added.values()}
        spelt = b",".join(_ENCODE(name) + b":" + bytes(raw) for name, raw in fields.items())
        return Enlarged(b"{" + spelt + b"}", _add_betas(headers, added), tuple(added), thread)

    def _list_additions(
        self, fields: Fields, wanted: ProxyAdditions, thread: ThreadName | None
    ) -> dict[str, tuple[str, object]]:
        added: dict[str, tuple[str, object]] = {}
        if thread is not None and "diagnostics" not in fields:
            # Of the first call that is seen of a thread there is nothing to compare with.
            added[DIAGNOSIS] = ("diagnostics", {"previous_message_id": self._last.get(thread)})
        if wanted.clears_results and "tools" in fields and not _asks_for_summary(fields):
            managed = _decode(fields, "context_management")
            edits = get_items(managed, "edits")
            if not any(_is_clearing(edit) for edit in edits):
                added[CLEARING] = ("context_management", {**managed, "edits": [*edits, _make_edit(wanted)]})
        return added

    def remember(self, thread: ThreadName, answer: bytes, encoding: str) -> None:
        """`answer`: as it came, or how it begins."""
        try:
            head = unpack(answer[:_HEAD_BYTES], encoding)
        except NotReadable:
            return
        found = _MESSAGE_ID.search(head)
        if found is not None:
            self._last[thread] = found[1].decode()
            self._last.move_to_end(thread)
            if len(self._last) > self._most:
                self._last.popitem(last=False)


def find_thread(fields: Fields, headers: Mapping[bytes, bytes], team_pk: int) -> ThreadName | None:
    """None for clients that do not name their session, and for calls beside the conversation."""
    if "tools" not in fields or _asks_for_summary(fields):
        return None
    in_header = headers.get(b"x-claude-code-session-id", b"").decode("latin-1")
    session_id = in_header or find_session(get_text(_decode(fields, "metadata"), "user_id") or "")
    agent_id = headers.get(b"x-claude-code-agent-id", b"").decode("latin-1")
    return (team_pk, session_id[:LONGEST_NAME], agent_id[:LONGEST_NAME]) if session_id else None


def _decode(fields: Fields, name: str) -> dict[str, object]:
    value = msgspec.json.decode(fields[name]) if name in fields else None
    return value if isinstance(value, dict) else {}


def _asks_for_summary(fields: Fields) -> bool:
    """A summary is to be made of everything."""
    end = bytes(fields.get("messages", msgspec.Raw()))[-_END_BYTES:]
    return "compaction" in fields or (b"<analysis>" in end and b"<summary>" in end)


def _is_clearing(edit: object) -> bool:
    return isinstance(edit, Mapping) and (get_text(edit, "type") or "").startswith("clear_tool_uses")


def _make_edit(wanted: ProxyAdditions) -> dict[str, object]:
    return {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": wanted.clear_above_tokens},
        "keep": {"type": "tool_uses", "value": wanted.kept_results},
    }


def _add_betas(headers: RawHeaders, added: Mapping[str, object]) -> RawHeaders:
    """The length is said anew by who sends it."""
    told = b",".join(value for name, value in headers if name == b"anthropic-beta")
    known = {name.strip() for name in told.decode("latin-1").split(",") if name.strip()}
    missing = [BETAS[name] for name in added if BETAS[name] not in known]
    others = [(name, value) for name, value in headers if name not in (b"anthropic-beta", b"content-length")]
    return [*others, (b"anthropic-beta", b",".join([*([told] if told else []), *(beta.encode() for beta in missing)]))]
