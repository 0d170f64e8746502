"""Calls as the forwarder hands them over: a small client that talks, and an API that answers with figures."""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dashboard.proxy.wire import Ending, Exchange

START = datetime(2026, 11, 16, 10, 0, tzinfo=UTC).timestamp()
MODEL = "claude-opus-5-5"
SESSION = "11111111-1111-4111-8111-111111111111"
READ: dict[str, Any] = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}
MCP: dict[str, Any] = {"name": "mcp__maps__find", "description": "Finds.", "input_schema": {"type": "object"}}
SUM_UP = "CRITICAL: Respond with TEXT ONLY. Write an <analysis> block, then a <summary> block."
Event = dict[str, Any]


def write_events(events: Sequence[Event]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def make_usage(*, read: int = 0, written: int = 0, long: int = 0, plain: int = 3, output: int = 1) -> dict[str, Any]:
    return {
        "input_tokens": plain,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written + long,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": long},
        "output_tokens": output,
    }


def stream_answer(
    message_id: str,
    usage: dict[str, Any],
    *,
    words: str = "Well then.",
    output: int = 40,
    stop: str = "end_turn",
    model: str = MODEL,
    **delta: Any,
) -> list[Event]:
    message = {"id": message_id, "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": part}}
            for part in (words[:3], words[3:])
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": output}, **delta},
        {"type": "message_stop"},
    ]


@dataclass
class Client:
    """One conversation. `headers` say who it is; without them it is a plain SDK client."""

    headers: dict[str, str] = field(default_factory=lambda: {"x-claude-code-session-id": SESSION})
    system: str = "You sail."
    tools: list[dict[str, Any]] = field(default_factory=lambda: [READ])
    messages: list[dict[str, Any]] = field(default_factory=list)
    model: str = MODEL
    extra: dict[str, Any] = field(default_factory=dict)
    team_pk: int = 1
    owner_pk: int | None = None
    now: float = START
    count: int = 0

    def body(self) -> dict[str, Any]:
        marked = json.loads(json.dumps(self.messages))
        if marked and isinstance(marked[-1]["content"], str):
            text = {"type": "text", "text": marked[-1]["content"], "cache_control": {"type": "ephemeral"}}
            marked[-1]["content"] = [text]
        system = [{"type": "text", "text": self.system, "cache_control": {"type": "ephemeral"}}]
        fields = {"model": self.model, "max_tokens": 1000, "stream": True, "system": system, "tools": self.tools}
        return {**fields, "messages": marked, **self.extra}

    def call(
        self,
        words: str,
        message_id: str,
        *,
        usage: dict[str, Any] | None = None,
        events: Sequence[Event] | None = None,
        reply: str = "Well then.",
        **changes: Any,
    ) -> Exchange:
        """Says something, and is answered."""
        self.messages.append({"role": "user", "content": words})
        told = usage if usage is not None else make_usage(written=5000)
        answer = write_events(events if events is not None else stream_answer(message_id, told, words=reply))
        exchange = self.send(answer, message_id, **changes)
        self.messages.append({"role": "assistant", "content": [{"type": "text", "text": reply}]})
        return exchange

    def send(self, answer: bytes, message_id: str, **changes: Any) -> Exchange:
        self.now += 20
        self.count += 1
        values: dict[str, Any] = {
            "id": f"exchange-{message_id}",
            "team_pk": self.team_pk,
            "owner_pk": self.owner_pk,
            "key_pk": None,
            "started_at": self.now,
            "first_byte_seconds": 0.4,
            "duration_seconds": 2.0,
            "status": 200,
            "ending": Ending.WHOLE,
            "request_headers": dict(self.headers),
            "response_headers": {"content-type": "text/event-stream", "request-id": f"req_{message_id}"},
            "request_body": json.dumps(self.body()).encode(),
            "response_body": answer,
        }
        return Exchange(**values | changes)


def pack(exchange: Exchange, encoding: str, data: bytes) -> dict[str, Any]:
    """The changes that make an answer an encoded one."""
    headers: Mapping[str, str] = {**exchange.response_headers, "content-encoding": encoding}
    return {"response_headers": dict(headers), "response_body": data}


def zip_answer(data: bytes) -> bytes:
    return gzip.compress(data)
