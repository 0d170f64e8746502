"""A Messages API on the loopback: POST /v1/messages (streamed or whole) and /v1/messages/count_tokens.

    with MessagesApi() as api:
        api.script(replies.OVERLOADED, replies.GOOD)   # then GOOD for ever
        ...                                             # talk to api.url
        api.requests[0].body, .headers, .raw, .was_left

It keeps every request, refuses what the real one refuses, and counts cache reads only for prefixes it has seen.
"""

import json
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from tests.fakes import native_compaction
from tests.fakes.prompt_cache import CountedPrompt, PromptCache, count_prompt_tokens
from tests.fakes.replies import GOOD, NOT_COMPACTED, WRONG_KEY, Ending, Reply, refuse, write_summary
from tests.fakes.request_rules import find_fault

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
STALL_LIMIT_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.02


@dataclass
class KeptRequest:
    """One request as it came; `was_left` once the caller hung up before the answer was whole."""

    path: str
    query: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]
    was_left: bool = False

    @property
    def key(self) -> str:
        """What it was signed with, in either header."""
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")


@dataclass
class MessagesApi:
    """The server and what it was told. `known_key`: every other key is refused; empty takes any. `window_tokens`: a
    larger prompt is refused as too long; 0 takes any."""

    known_key: str = ""
    window_tokens: int = 0
    requests: list[KeptRequest] = field(default_factory=list)
    cache: PromptCache = field(default_factory=PromptCache)
    released: threading.Event = field(default_factory=threading.Event)
    _replies: deque[Reply] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _served: int = 0

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.api = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def messages(self) -> list[KeptRequest]:
        """The requests for messages, without those that only count."""
        return [request for request in self.requests if request.path == MESSAGES]

    def script(self, *replies: Reply) -> None:
        """The answers to the next requests, counting included; after them everything is GOOD."""
        with self._lock:
            self._replies.extend(replies)

    def keep(self, request: KeptRequest) -> tuple[Reply, str]:
        """The answer to a request, and the number in its ids."""
        with self._lock:
            self.requests.append(request)
            self._served += 1
            return self._choose(request), f"{self._served:04d}"

    def _choose(self, request: KeptRequest) -> Reply:
        if self.known_key and request.key != self.known_key:
            return WRONG_KEY
        version = request.headers.get("anthropic-version")
        fault = find_fault(request.body, version=version, is_count=request.path == COUNT)
        if fault is not None:
            return refuse(400, "invalid_request_error", fault)
        refusal = native_compaction.find_refusal(request.body, request.headers.get("anthropic-beta", ""))
        if refusal is not None:
            return refusal
        if self.window_tokens and (tokens := count_prompt_tokens(request.body)) > self.window_tokens:
            told = f"prompt is too long: {tokens} tokens > {self.window_tokens} maximum"
            return refuse(400, "invalid_request_error", told)
        return self._replies.popleft() if self._replies else GOOD


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the library's)
        """Nobody reads it."""

    def do_POST(self) -> None:
        try:
            self._answer()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = KeptRequest(parts.path, parts.query, headers, raw, json.loads(raw or b"{}"))
        api: MessagesApi = self.server.api  # type: ignore[attr-defined]
        self._api, self._request = api, request
        if parts.path not in (MESSAGES, COUNT):
            self._send(404, refuse(404, "not_found_error", "Not found").write_error("req_none"), {})
            return
        reply, number = api.keep(request)
        self._ids = {"request-id": f"req_{number}"}
        if reply.ending is Ending.SILENT:
            self._stall()
        elif reply.status != 200:
            self._send(reply.status, reply.write_error(f"req_{number}"), {**self._ids, **reply.headers})
        elif parts.path == COUNT:
            self._send(200, _dump({"input_tokens": count_prompt_tokens(request.body)}), self._ids)
        else:
            self._write_message(_Message.make(api, request.body, reply, number))

    def _write_message(self, message: "_Message") -> None:
        if not self._request.body.get("stream"):
            self._send(200, _dump(message.to_whole()), self._ids)
            return
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", "transfer-encoding": "chunked", **self._ids}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self._write_events(message)
        except (BrokenPipeError, ConnectionResetError):
            self._request.was_left = True
            raise

    def _write_events(self, message: "_Message") -> None:
        reply = message.reply
        for number, event in enumerate(message.list_events()):
            is_delta = event["type"] == "content_block_delta"
            if is_delta and reply.pause_seconds:
                self._pause(reply)
            # Two events open the message and its block; the deltas follow.
            if reply.ending is not Ending.WHOLE and number == 2 + reply.break_after:
                self._break_off(reply)
                return
            self._write_event(event)
        self._write_chunk(b"")

    def _pause(self, reply: Reply) -> None:
        for _ in range(reply.pings):
            time.sleep(reply.pause_seconds / (reply.pings + 1))
            self._write_event({"type": "ping"})
        time.sleep(reply.pause_seconds / (reply.pings + 1))

    def _break_off(self, reply: Reply) -> None:
        self.close_connection = True
        if reply.ending is Ending.STALL:
            self._stall()
        elif reply.ending is Ending.CLEAN:
            self._write_chunk(b"")
        elif reply.ending is Ending.ERROR:
            self._write_event({"type": "error", "error": {"type": reply.error_type, "message": reply.message}})
            self._write_chunk(b"")
        else:
            self.connection.shutdown(socket.SHUT_RDWR)

    def _stall(self) -> None:
        """Nothing more, until the caller hangs up or the server is closed."""
        self.close_connection = True
        until = time.monotonic() + STALL_LIMIT_SECONDS
        while time.monotonic() < until and not self._api.released.is_set():
            if select.select([self.connection], [], [], LOOK_EVERY_SECONDS)[0]:
                self._request.was_left = not self.connection.recv(1, socket.MSG_PEEK)
                return

    def _write_event(self, event: dict[str, object]) -> None:
        self._write_chunk(f"event: {event['type']}\n".encode() + b"data: " + _dump(event) + b"\n\n")

    def _write_chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@dataclass(frozen=True)
class _Message:
    """One message of the model."""

    id: str
    model: str
    text: str
    prompt: CountedPrompt
    reply: Reply
    block: dict[str, object] | None = None  # of a conversation that was compacted; then there is no text

    @classmethod
    def make(cls, api: MessagesApi, body: dict[str, Any], reply: Reply, number: str) -> Self:
        is_due = native_compaction.is_due(body) and native_compaction.pauses(body)
        write = native_compaction.write_content if is_due else write_summary
        text = write(body, reply.leaves_out) if reply.text is None else reply.text
        made = cls(f"msg_{number}", str(body.get("model")), text, api.cache.take(body), reply)
        if not is_due or reply is NOT_COMPACTED:
            return made
        return replace(made, block=native_compaction.sign_block(text or None))

    @property
    def output_tokens(self) -> int:
        return len(self.text.encode()) // 4 + 1

    @property
    def blocks(self) -> list[dict[str, object]]:
        blocks: list[dict[str, object]] = [{"type": "text", "text": self.text}] if self.text else []
        if self.reply.calls_tool:
            blocks.append({"type": "tool_use", "id": f"toolu_{self.id}", "name": "Read", "input": {}})
        return blocks

    def to_whole(self) -> dict[str, object]:
        blocks = self.blocks if self.block is None else [self.block]
        return self._head() | {"content": blocks, "stop_reason": self.stop_reason, "usage": self._count(is_end=True)}

    @property
    def stop_reason(self) -> str | None:
        return self.reply.stop_reason if self.block is None else "compaction"

    def _count(self, *, is_end: bool) -> dict[str, object]:
        if self.block is None:
            return self.prompt.to_usage(self.output_tokens if is_end else 1)
        usage = native_compaction.to_usage(self.prompt, self.output_tokens)
        return usage if is_end else {name: value for name, value in usage.items() if name != "iterations"}

    def _head(self) -> dict[str, object]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._count(is_end=False),
        }

    def list_events(self) -> Iterator[dict[str, object]]:
        yield {"type": "message_start", "message": self._head()}
        delta = {"stop_reason": self.stop_reason, "stop_sequence": None}
        usage: dict[str, object] = {"output_tokens": self.output_tokens}
        if self.block is not None:
            yield from native_compaction.list_block_events(self.block)
            usage = self._count(is_end=True)
        else:
            for index, block in enumerate(self.blocks):
                yield from self._list_block_events(index, block)
        yield {"type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}

    def _list_block_events(self, index: int, block: dict[str, object]) -> Iterator[dict[str, object]]:
        is_text = block["type"] == "text"
        start = {"type": "text", "text": ""} if is_text else block
        yield {"type": "content_block_start", "index": index, "content_block": start}
        size = max(1, -(-len(self.text) // self.reply.pieces))
        for at in range(0, len(self.text), size) if is_text else ():
            delta = {"type": "text_delta", "text": self.text[at : at + size]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


def _dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
