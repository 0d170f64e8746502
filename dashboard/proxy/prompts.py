"""Requests as bytes: what is asked, by which kind of call, in whose session and thread. No Django here."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from compaction.prompt.fingerprint import Digest, Fingerprint, fingerprint_request
from compaction.prompt.request import Fields, PromptRequest, read_request, write_canonical
from compaction.transcripts.json_fields import get_fields, get_text
from compaction.transcripts.reader import load_json
from compaction.transcripts.user_lines import classify_blocks
from dashboard.proxy.message_prints import MessagePrints, SpeltRequest
from dashboard.proxy.responses import NotReadable, unpack
from dashboard.proxy.side_calls import ToolUsers, asks_for_summary, is_probe, read_billing_line
from dashboard.proxy.wire import Exchange

_SESSION_IN_USER_ID = re.compile(r"_session_([0-9a-fA-F-]{36})$")
_CLIENT_VERSION = re.compile(r"claude-cli/(\d+(?:\.\d+)+)")
_LONGEST_NAME = 200


class Purpose(StrEnum):
    """What a call is for. Of the last three the word is what `query_source` says: they stand beside the
    conversation."""

    MAIN = "main"
    SUB_AGENT = "sub-agent"
    COMPACTION = "compact"
    PROBE = "probe"
    SIDE = "side"  # a title, a page summed up, a search

    @property
    def query_source(self) -> str | None:
        return None if self in (Purpose.MAIN, Purpose.SUB_AGENT) else self.value


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request, understood."""

    purpose: Purpose
    session_id: str | None  # as the client says; None: it does not
    user_id: str
    agent_id: str | None
    client_version: str | None
    request: PromptRequest
    prints: Fingerprint
    shape: str  # digest of system prompt and tools
    starts_turn: bool


def read_prompt(
    exchange: Exchange, digest: Digest, *, key: bytes, messages: MessagePrints, tool_users: ToolUsers
) -> Prompt:
    """Raises NotReadable. `messages` makes the next request of a conversation cheap, `tool_users` tells side calls."""
    headers = exchange.request_headers
    data = unpack(exchange.request_body, headers.get("content-encoding", ""))
    betas = headers.get("anthropic-beta", "")
    try:
        spelt = messages.read(data, digest, key=key, betas=betas) or _read_whole(data, digest, betas)
    except (ValueError, RecursionError) as error:
        raise NotReadable("request not readable") from error
    body, request = spelt.body, spelt.request
    user_id = get_text(get_fields(body, "metadata"), "user_id") or ""
    session_id = (headers.get("x-claude-code-session-id") or find_session(user_id) or "")[:_LONGEST_NAME] or None
    purpose = find_purpose(body, request, headers)
    agent_id = _find_agent(headers, request, purpose, digest)
    if session_id is not None and purpose in (Purpose.MAIN, Purpose.SUB_AGENT):
        thread = (exchange.team_pk, exchange.owner_pk, session_id, agent_id or "")
        purpose = Purpose.SIDE if tool_users.is_beside(thread, body) else purpose
    version = _CLIENT_VERSION.match(headers.get("user-agent", ""))
    return Prompt(
        purpose=purpose,
        session_id=session_id,
        user_id=user_id,
        agent_id=agent_id,
        client_version=version[1] if version else None,
        request=request,
        prints=spelt.prints,
        shape=digest_shape(request, digest),
        starts_turn=_starts_turn(request) and purpose in (Purpose.MAIN, Purpose.SUB_AGENT),
    )


def _read_whole(data: bytes, digest: Digest, betas: str) -> SpeltRequest:
    body = load_json(data)
    if not isinstance(body, Mapping) or not isinstance(body.get("messages"), list):
        raise NotReadable("request not readable")
    request = read_request(body, betas=betas)
    return SpeltRequest(body, request, fingerprint_request(request, digest))


def find_session(user_id: str) -> str | None:
    """Claude Code names its session in metadata.user_id: newer versions as JSON, older ones at the end of the text."""
    if user_id.startswith("{"):
        try:
            told = json.loads(user_id)
        except (ValueError, RecursionError):
            return None
        return get_text(told, "session_id") if isinstance(told, dict) else None
    found = _SESSION_IN_USER_ID.search(user_id)
    return found[1] if found else None


def find_developer(user_id: str) -> str:
    """Return how a request names its person: Claude Code by account or device, other programs as they like."""
    if not user_id.startswith("{"):
        return _SESSION_IN_USER_ID.sub("", user_id).rstrip("_")
    try:
        told = json.loads(user_id)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(told, dict):
        return ""
    device = get_text(told, "device_id")
    return get_text(told, "account_uuid") or (f"device {device[:12]}" if device else "")


def find_purpose(body: Fields, request: PromptRequest, headers: Mapping[str, str]) -> Purpose:
    if is_probe(body):
        return Purpose.PROBE
    if get_fields(body, "compaction") or _asks_for_summary(request):
        return Purpose.COMPACTION
    is_agent = "x-claude-code-agent-id" in headers or "cc_is_subagent=true" in read_billing_line(body)
    return Purpose.SUB_AGENT if is_agent else Purpose.MAIN


def digest_shape(request: PromptRequest, digest: Digest) -> str:
    """As the decoder of transcripts does it: the same prompt has the same digest, whoever tells of it."""
    text = write_canonical((request.system, [tool.fields for tool in request.tools]))
    return digest(text.encode("utf-8", "surrogatepass"))


def _asks_for_summary(request: PromptRequest) -> bool:
    last = next((message for message in reversed(request.messages) if message.role != "system"), None)
    return last is not None and asks_for_summary(last.role, last.blocks)


def _find_agent(
    headers: Mapping[str, str], request: PromptRequest, purpose: Purpose, digest: Callable[[bytes], str]
) -> str | None:
    """The sub-agent's own id; of older clients, which do not say it, what its thread begins with."""
    if told := headers.get("x-claude-code-agent-id"):
        return told[:_LONGEST_NAME]
    if purpose is not Purpose.SUB_AGENT or not request.messages:
        return None
    first = write_canonical(request.messages[0].blocks)
    return f"a{digest(first.encode('utf-8', 'surrogatepass'))[:16]}"


def _starts_turn(request: PromptRequest) -> bool:
    """Return whether the model is called because of what a person typed."""
    spoken = [message for message in request.messages if message.role != "system"]
    return bool(spoken) and spoken[-1].role == "user" and classify_blocks(spoken[-1].blocks).starts_turn
