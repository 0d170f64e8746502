"""From a call that passed to facts of its session: the request, the answer, a failure. No Django here."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from compaction.context.cache_ttl import get_shortest_ttl
from compaction.prompt.fingerprint import Digest, Fingerprint, write_message_prints
from compaction.prompt.request import write_json
from compaction.timeline.api_clearing import BY_API
from compaction.timeline.observations import (
    REPORT,
    WITHOUT_ANSWER,
    WITHOUT_USAGE,
    CompactionRecord,
    FailedCall,
    LineKind,
    Observation,
    RecordedRequest,
    Response,
)
from compaction.transcripts.json_fields import get_text
from compaction.transcripts.titles import LONGEST_TITLE
from compaction.transcripts.user_lines import extract_prompt_text
from dashboard.ingest.observed import ObservedLine, ObservedShape, Rules
from dashboard.ingest.transcripts import Redaction, change_names, find_redactor
from dashboard.proxy.conversation_owners import take_kin
from dashboard.proxy.conversations import Asked, Conversations
from dashboard.proxy.message_prints import MessagePrints
from dashboard.proxy.prompts import Prompt, Purpose, find_developer, read_prompt
from dashboard.proxy.responses import NotReadable, Reply, read_reply, unpack
from dashboard.proxy.side_calls import ToolUsers
from dashboard.proxy.threads import KnownThread, KnownThreads, count_shared
from dashboard.proxy.wire import Ending, Exchange
from dashboard.proxy.written_lines import write_lines

SOURCE = "proxy"
FAILED_AT_FIRST = "failed before its conversation was known"
_LONGEST_NAME = 200
_LONGEST_DEVELOPER = 150


@dataclass(frozen=True)
class WholeRequest:
    """A request of the conversation as it was sent, before anything was taken out of it."""

    agent_id: str
    call_id: str
    at: datetime
    ttl: str
    version: str
    betas: tuple[str, ...]
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Report:
    """What one call says about one session. `request` only where the team keeps content and the answer came whole."""

    session_id: str
    lines: tuple[ObservedLine, ...]
    shapes: tuple[ObservedShape, ...] = ()
    request: WholeRequest | None = None
    developer: str = ""  # as the request names its person


@dataclass(frozen=True)
class _Call:
    exchange: Exchange
    prompt: Prompt
    reply: Reply
    rules: Rules

    @property
    def id(self) -> str:
        return self.reply.message_id or self.exchange.response_headers.get("request-id") or self.exchange.id

    @property
    def agent_id(self) -> str | None:
        """As the prompt has it, but cut when secrets are out of it."""
        told = self.exchange.request_headers.get("x-claude-code-agent-id") or self.prompt.agent_id
        return _find_redaction(self.rules).clean_start(told, _LONGEST_NAME) if told else None

    @property
    def started_at(self) -> datetime:
        return datetime.fromtimestamp(self.exchange.started_at, UTC)

    @property
    def ended_at(self) -> datetime:
        return self.started_at + timedelta(seconds=self.exchange.duration_seconds)

    def make_fact(self, prefix: str, kind: LineKind, at: datetime | None, **values: object) -> Observation:
        agent_id = self.agent_id
        return Observation(
            id=f"{prefix}:{self.id}",
            kind=kind,
            type=REPORT,
            at=at,
            agent_id=agent_id,
            is_sidechain=agent_id is not None,
            version=self.prompt.client_version,
            **values,  # type: ignore[arg-type]
        )


@dataclass
class Reporter:
    """Reads exchanges one after the other; remembers what makes the next one short."""

    conversations: Conversations = field(default_factory=Conversations)
    threads: KnownThreads = field(default_factory=KnownThreads)
    messages: MessagePrints = field(default_factory=MessagePrints)
    tool_users: ToolUsers = field(default_factory=ToolUsers)

    def read(self, exchange: Exchange, rules: Rules) -> Report | None:
        """None where there is nothing to tell. Raises NotReadable with a reason."""
        digest: Digest = partial(digest_text, rules.digest_key)
        prompt = read_prompt(exchange, digest, key=rules.digest_key, messages=self.messages, tool_users=self.tool_users)
        reply = _read_answer(exchange)
        call = _Call(exchange, prompt, reply, rules)
        if reply.usage is None:
            named = prompt.session_id or self.conversations.recall(_ask_whose(call))
            return _tell_unanswered(call, named)
        session_id = prompt.session_id
        written: tuple[ObservedLine, ...] = ()
        if session_id is None:
            session_id = self.conversations.find(_ask_whose(call), reply.content)
        known = self.threads.find((exchange.team_pk, exchange.owner_pk, session_id, prompt.agent_id or ""))
        if prompt.session_id is None and prompt.purpose is Purpose.MAIN:
            written = write_lines(
                prompt, reply, exchange, session_id=session_id, rules=rules, is_known=bool(known.request_id)
            )
        facts, shapes = _tell_call(call, known)
        lines = (*written, *map(ObservedLine, facts))
        return Report(session_id, lines, shapes, _take_request(call), _find_developer(call))


def _ask_whose(call: _Call) -> Asked:
    exchange, prompt = call.exchange, call.prompt
    return Asked(
        scope=f"{call.rules.digest_key.hex()} {exchange.key_pk} {prompt.user_id}",
        messages=prompt.request.messages,
        kin=take_kin(prompt.shape, prompt.prints),
        team_pk=exchange.team_pk,
        call_id=call.id,
        started_at=exchange.started_at,
        ended_at=exchange.started_at + exchange.duration_seconds,
        is_whole=call.reply.is_whole,
        is_step=prompt.purpose.query_source is None,
    )


def digest_text(key: bytes, data: bytes) -> str:
    """The same as the decoder of transcripts uses: equal prompts compare, nothing can be read back."""
    return hashlib.blake2b(data, digest_size=16, key=key).hexdigest()


def _read_answer(exchange: Exchange) -> Reply:
    if not exchange.response_body:
        return Reply()
    data = unpack(exchange.response_body, exchange.response_headers.get("content-encoding", ""))
    try:
        return read_reply(data, exchange.response_headers.get("content-type", ""))
    except NotReadable:
        if exchange.ending is Ending.WHOLE and exchange.status < 400:
            raise
        return Reply()  # a page of a gateway in place of an error, or half of an answer


def _tell_unanswered(call: _Call, session_id: str | None) -> Report | None:
    """A call that no model answered. Nobody's session is made for it where the client names none and no answer tells
    which conversation it goes on with: a failure is counted then, a number that was asked for is not."""
    exchange = call.exchange
    is_count = call.reply.counted_tokens is not None
    if session_id is None:
        if is_count:
            return None
        raise NotReadable(FAILED_AT_FIRST)
    reason = None if is_count else _find_reason(call)
    unanswered = FailedCall(
        status=exchange.status or None,
        reason=reason,
        request_id=exchange.response_headers.get("request-id"),
        model=call.prompt.prints.model,
        duration_seconds=round(exchange.duration_seconds, 4),
        attempt=_find_attempt(exchange.request_headers),
        counted_tokens=call.reply.counted_tokens,
        source=SOURCE,
        added=exchange.added,
    )
    prefix, kind = ("proxied-count", LineKind.COUNT) if is_count else ("proxied-failure", LineKind.FAILURE)
    fact = call.make_fact(prefix, kind, call.ended_at, name=reason, unanswered=unanswered)
    return Report(session_id, (ObservedLine(fact),))


def _find_reason(call: _Call) -> str:
    exchange, reply = call.exchange, call.reply
    if reply.error_type:
        return _find_redaction(call.rules).clean_start(reply.error_type, _LONGEST_NAME)
    if exchange.status >= 400:
        return f"status {exchange.status}"
    if exchange.ending is not Ending.WHOLE:
        return exchange.ending.value
    return WITHOUT_USAGE if reply.content or reply.message_id else WITHOUT_ANSWER


def _find_attempt(headers: Mapping[str, str]) -> int | None:
    """Which retry it was, as the SDKs say it. Claude Code says 0 of every one: its transcript knows better."""
    spelt = headers.get("x-stainless-retry-count", "")
    return int(spelt) or None if spelt.isdecimal() and len(spelt) < 10 else None


def _tell_call(call: _Call, known: KnownThread) -> tuple[list[Observation], tuple[ObservedShape, ...]]:
    prompt, request_id = call.prompt, f"proxied-request:{call.id}"
    facts: list[Observation] = []
    shapes: tuple[ObservedShape, ...] = ()
    if prompt.shape not in known.shapes:
        known.shapes.add(prompt.shape)
        facts.append(Observation(f"proxied-shape:{prompt.shape}", LineKind.SHAPE, REPORT, shape=(prompt.shape,) * 2))
        shapes = (_keep_shape(call),)
    request = _make_request(call, known, request_id)
    words = _begin_conversation(call)
    size_bytes = 400 + 50 * len(request.tail)
    facts.append(
        call.make_fact(
            "proxied-request",
            LineKind.REQUEST,
            call.started_at,
            request=request,
            words=words,
            size_bytes=size_bytes,
        )
    )
    if cleared := _find_cleared(call, known):
        facts.append(call.make_fact("proxied-edits", LineKind.MICRO, call.started_at, compacted=cleared))
    kind = LineKind.OTHER if prompt.purpose.query_source else LineKind.ANSWER
    facts.append(call.make_fact("proxied", kind, call.ended_at, answer=_make_answer(call, request_id), size_bytes=400))
    return facts, shapes


def _make_request(call: _Call, known: KnownThread, request_id: str) -> RecordedRequest:
    """Only what is new since the last request of the thread is spelt out."""
    prompt, prints = call.prompt, call.prompt.prints
    messages = write_message_prints(prints)
    keep = count_shared(known.messages, messages) if known.request_id else 0
    base = known.request_id if keep else None
    if prompt.purpose.query_source is None:
        known.request_id, known.messages = request_id, messages
    return RecordedRequest(
        id=request_id,
        query_source=prompt.purpose.query_source,
        shape=prompt.shape,
        model=prints.model,
        base=base,
        keep=keep,
        tail=messages[keep:],
        markers=tuple((marker.path, marker.ttl) for marker in prints.markers),
        settings=prints.settings,
        is_opaque=False,
        image_count=prints.image_count,
        has_citations=prints.has_citations,
        starts_turn=prompt.starts_turn,
    )


def _make_answer(call: _Call, request_id: str) -> Response:
    exchange, reply = call.exchange, call.reply
    stop_reason = reply.stop_reason
    if not reply.is_whole:
        stop_reason = f"error: {_find_reason(call)}" if reply.error_type else exchange.ending.value
    return Response(
        call_id=call.id,
        usage=reply.settle_usage(),
        model=reply.model or call.prompt.prints.model,
        stop_reason=stop_reason,
        miss_reason=reply.miss_reason,
        request_id=exchange.response_headers.get("request-id"),
        written_characters=reply.written_characters,
        has_thinking=reply.has_thinking,
        request_ref=request_id,
        requested_ttl=get_shortest_ttl(marker.ttl for marker in call.prompt.prints.markers),
        source=SOURCE,
        duration_seconds=round(exchange.duration_seconds, 4),
        ttft_seconds=None if exchange.first_byte_seconds is None else round(exchange.first_byte_seconds, 4),
        query_source=call.prompt.purpose.query_source,
        is_output_estimated=not reply.is_whole,
        added=exchange.added,
        cleared_tokens=_count_cleared(reply),
    )


def _take_request(call: _Call) -> WholeRequest | None:
    """What a summary of the conversation could be asked for behind."""
    prompt, headers = call.prompt, call.exchange.request_headers
    if not call.rules.keeps_content or not call.reply.is_whole or prompt.purpose.query_source is not None:
        return None
    return WholeRequest(
        agent_id=call.agent_id or "",
        call_id=call.id,
        at=call.started_at,
        ttl=get_shortest_ttl(marker.ttl for marker in prompt.prints.markers) or "",
        version=headers.get("anthropic-version", ""),
        betas=tuple(name.strip() for name in headers.get("anthropic-beta", "").split(",") if name.strip()),
        body=unpack(call.exchange.request_body, headers.get("content-encoding", "")),
    )


def _find_cleared(call: _Call, known: KnownThread) -> CompactionRecord | None:
    """What the server cleared beyond last time: it clears anew with every call, as the client sends all again. Of a
    thread that is not remembered all of it, which is held against the calls before when the session is drawn."""
    if call.prompt.purpose.query_source is not None:
        return None
    tokens = _count_cleared(call.reply)
    news = tokens - known.cleared_tokens
    known.cleared_tokens = tokens
    if news <= 0:
        return None
    count = sum(edit.cleared_tool_uses + edit.cleared_thinking_turns for edit in call.reply.edits)
    return CompactionRecord(trigger=BY_API, saved_tokens=news, cleared_count=count)


def _count_cleared(reply: Reply) -> int:
    return sum(edit.cleared_input_tokens for edit in reply.edits)


def _keep_shape(call: _Call) -> ObservedShape:
    prompt, rules = call.prompt, call.rules
    redaction = _find_redaction(rules)
    bare = Fingerprint(None, prompt.prints.tools, prompt.prints.system, (), (), (), (), (), ())
    content, is_redacted = None, False
    if rules.keeps_content:
        spelt = {"system": list(prompt.request.system), "tools": [tool.fields for tool in prompt.request.tools]}
        line = {"type": "api-request-shape", "shapeHash": prompt.shape, "shape": spelt}
        content, counts = redaction.redact_one(write_json(line).encode("utf-8", "replace"))
        is_redacted = bool(counts)
    prints = change_names(bare, redaction.clean).to_fields()
    return ObservedShape(prompt.shape, prints, content, is_redacted, rules.redaction_version)


def _find_developer(call: _Call) -> str:
    return _find_redaction(call.rules).clean_start(find_developer(call.prompt.user_id), _LONGEST_DEVELOPER)


def _begin_conversation(call: _Call) -> str | None:
    """How the first request of a conversation begins, for a title; what a client wrapped in tags is not a person's."""
    messages = call.prompt.request.messages
    if not call.rules.keeps_content or call.prompt.purpose is not Purpose.MAIN:
        return None
    if any(message.role == "assistant" for message in messages):
        return None
    texts = (
        extract_prompt_text(get_text(block, "text") or "")
        for message in messages
        if message.role == "user"
        for block in message.blocks
    )
    words = next((text for text in texts if text), "")
    return _find_redaction(call.rules).clean_title(words, LONGEST_TITLE) or None


def _find_redaction(rules: Rules) -> Redaction:
    return find_redactor(rules)
