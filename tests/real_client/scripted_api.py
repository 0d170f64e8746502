"""A Messages API on the loopback for the real client: answers from a script, keeps what it was sent.

Its usage is that of a prompt cache which counts reads only for prefixes it has seen.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from uuid import uuid4

from tests.fakes.prompt_cache import PromptCache

Block = dict[str, Any]
OUTPUT_TOKENS = 20


class ScriptedApi:
    """`script`: the blocks of one answer after the other, to requests that carry tools; then a short word for ever."""

    def __init__(self, script: Sequence[Sequence[Block]] = ()) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.cache = PromptCache()
        self._count = 0
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.api = self  # type: ignore[attr-defined]
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._count += 1
            is_main = bool(body.get("tools"))
            blocks: Sequence[Block] = [{"type": "text", "text": "Done."}]
            if is_main:
                self.requests.append(body)
                blocks = self.script.pop(0) if self.script else blocks
            uses_tool = any(block["type"] == "tool_use" for block in blocks)
            return {
                "id": f"msg_{id(self):x}{self._count:04d}",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": list(blocks),
                "stop_reason": "tool_use" if uses_tool else "end_turn",
                "stop_sequence": None,
                "usage": self.cache.take(body).to_usage(OUTPUT_TOKENS),
            }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is the library's)
        """Nothing: the tests tell what went wrong."""

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionResetError:
            self.close_connection = True  # the client ends without a word

    def do_GET(self) -> None:
        self._send(b"{}", "application/json")

    def do_HEAD(self) -> None:
        self._send(b"", "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if self.path.startswith("/v1/messages/count_tokens"):
            self._send(b'{"input_tokens":1000}', "application/json")
        elif not self.path.startswith("/v1/messages"):
            self._send(b"{}", "application/json")
        else:
            message = self.server.api.answer(body)  # type: ignore[attr-defined]
            if body.get("stream"):
                self._send(b"".join(_stream(message)), "text/event-stream", message["id"])
            else:
                self._send(json.dumps(message).encode(), "application/json", message["id"])

    def _send(self, data: bytes, kind: str, message_id: str = "") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("request-id", message_id.replace("msg_", "req_") or f"req_{uuid4().hex}")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _stream(message: dict[str, Any]) -> Iterator[bytes]:
    yield _event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        start: Block = {"type": "text", "text": ""}
        if block["type"] == "text":
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield _event("content_block_start", index=index, content_block=start)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage=message["usage"])
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
