"""The raw ASGI layer before Django: body limit, concurrency limit, request id, one log line a request.

Django's ASGI handler writes a whole body to disk before any view or middleware runs, so size is decided here.
"""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from typing import Any

from dashboard.ingest.otlp.statuses import write_status
from dashboard.logs import current_request_id, mask_tokens

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MIB = 1024 * 1024
BODY_LIMIT_BYTES = 5 * MIB
# A longer prefix wins over a shorter one; what is not named here has BODY_LIMIT_BYTES.
BODY_LIMITS: Mapping[str, int] = {
    "/api/v1/ingest/transcripts": 64 * MIB,
    "/api/v1/ingest/lines": 64 * MIB,
    "/api/v1/ingest/items": 32 * MIB,
    "/upload/": 65 * MIB,
    # As much as is unpacked of a compressed one: exporters do not send again what is too large.
    "/v1/": 20 * MIB,
    "/ingest/otlp/": 20 * MIB,
    # A whole conversation: a window of a million tokens is 4 MiB of English and more than twice that of Chinese.
    "/api/v1/check": 32 * MIB,
    "/api/v1/compact": 32 * MIB,
    "/api/v1/prompt/": 32 * MIB,
}
BODY_STALL_SECONDS = 30.0
ALWAYS_ANSWERED = frozenset({"/health/live"})
# What programs send, and send again when told to wait. Few of them at once, so that pages do not stand behind them.
SENDING_PATHS = ("/v1/", "/ingest/", "/api/v1/ingest/")
# Open for as long as somebody looks at a page; they have a limit of their own.
NOT_COUNTED = frozenset({"/live/stream"})
MACHINE_PATHS = ("/api/", "/v1/", "/ingest/")
OTLP_PATHS = ("/v1/", "/ingest/otlp/")
PATH_SHOWN = 300

log = logging.getLogger(__name__)


@dataclass
class Exchange:
    """One request and what became of it, as far as the log line tells."""

    scope: Scope
    send: Send
    fixed_headers: Iterable[tuple[bytes, bytes]]
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    status: int = 0
    bytes_out: int = 0
    refused: bool = False  # answered from here: what the application still sends is dropped

    async def pass_on(self, message: Message) -> None:
        """The application's `send`."""
        if self.refused:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            present = {bytes(name).lower() for name, _ in headers}
            headers += [(name, value) for name, value in self.fixed_headers if name not in present]
            if b"date" not in present:
                headers.append((b"date", spell_date(int(time.time()))))
            headers.append((b"x-request-id", self.id.encode()))
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body":
            self.bytes_out += len(message.get("body", b""))
        await self.send(message)

    async def refuse(self, status: int, detail: str, *, retry_after_seconds: int | None = None) -> None:
        """Answer from here, unless an answer is already under way."""
        if self.status:
            self.refused = True
            return
        content_type, body = spell_refusal(self.scope, detail)
        headers = [
            (b"content-type", content_type),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if retry_after_seconds is not None:
            headers.append((b"retry-after", str(retry_after_seconds).encode()))
        await self.pass_on({"type": "http.response.start", "status": status, "headers": headers})
        await self.pass_on({"type": "http.response.body", "body": body})
        self.refused = True


class BodyGate:
    """The application's `receive`: counts the body while it arrives and stops it at the limit."""

    def __init__(self, exchange: Exchange, receive: Receive, *, limit_bytes: int, stall_seconds: float) -> None:
        self.exchange = exchange
        self._receive = receive
        self.limit_bytes = limit_bytes
        self.stall_seconds = stall_seconds
        self.bytes_in = 0
        self.complete = False

    async def receive(self) -> Message:
        if self.exchange.refused:
            return {"type": "http.disconnect"}
        if self.complete:  # from here on the application waits for the client to leave, as long as it likes
            return await self._receive()
        try:
            async with asyncio.timeout(self.stall_seconds):
                message = await self._receive()
        except TimeoutError:
            await self.exchange.refuse(408, "The rest of the request body did not arrive.")
            return {"type": "http.disconnect"}
        if message["type"] == "http.request":
            self.bytes_in += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        if self.bytes_in > self.limit_bytes:
            await self.exchange.refuse(413, too_large(self.limit_bytes))
            return {"type": "http.disconnect"}
        return message


class FrontDoor:
    """Wraps the application; `headers` go on every response that does not carry them already."""

    def __init__(
        self,
        application: Application,
        *,
        headers: Mapping[str, str],
        max_in_flight: int,
        max_sending: int,
        body_limits: Mapping[str, int] = BODY_LIMITS,
        stall_seconds: float = BODY_STALL_SECONDS,
    ) -> None:
        self.application = application
        self.headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.max_in_flight = max_in_flight
        self.body_limits = body_limits
        self.stall_seconds = stall_seconds
        self.max_sending = max_sending
        self.in_flight = self.sending = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await acknowledge_lifespan(receive, send)
        else:  # a WebSocket: refused before it is accepted
            await send({"type": "websocket.close", "code": 1000})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, send, self.headers)
        started = time.perf_counter()
        is_sending = scope["path"].startswith(SENDING_PATHS)
        is_counted = scope["path"] not in NOT_COUNTED
        self.in_flight += is_counted
        self.sending += is_sending
        outside = current_request_id.set(exchange.id)
        try:
            await self._decide(exchange, receive)
        finally:
            self.in_flight -= is_counted
            self.sending -= is_sending
            log.info(
                "request",
                extra={
                    "method": scope["method"],
                    "path": mask_tokens(scope["path"])[:PATH_SHOWN],
                    "status": exchange.status,
                    "ms": round((time.perf_counter() - started) * 1000, 1),
                    "bytes_out": exchange.bytes_out,
                },
            )
            current_request_id.reset(outside)

    async def _decide(self, exchange: Exchange, receive: Receive) -> None:
        path = exchange.scope["path"]
        limit_bytes = find_body_limit(path, self.body_limits)
        if self._is_full(path):
            await exchange.refuse(503, "Too many requests at once. Try again shortly.", retry_after_seconds=1)
        elif declared_length(exchange.scope) > limit_bytes:
            await exchange.refuse(413, too_large(limit_bytes))
        else:
            gate = BodyGate(exchange, receive, limit_bytes=limit_bytes, stall_seconds=self.stall_seconds)
            await self.application(exchange.scope, gate.receive, exchange.pass_on)

    def _is_full(self, path: str) -> bool:
        if path in ALWAYS_ANSWERED:
            return False
        return self.in_flight > self.max_in_flight or (
            self.sending > self.max_sending and path.startswith(SENDING_PATHS)
        )


def find_body_limit(path: str, limits: Mapping[str, int] = BODY_LIMITS) -> int:
    """Of a body as it is sent, and of what it unpacks to where an address has no limit of its own for that."""
    named = [prefix for prefix in limits if path.startswith(prefix)]
    return limits[max(named, key=len)] if named else BODY_LIMIT_BYTES


@lru_cache(maxsize=2)
def spell_date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode()


def too_large(limit_bytes: int) -> str:
    return f"The request body is larger than {limit_bytes / MIB:g} MiB."


def spell_refusal(scope: Scope, detail: str) -> tuple[bytes, bytes]:
    """Content type and body, in the way of whoever asked."""
    if scope["path"].startswith(OTLP_PATHS):
        sent = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
        in_protobuf = b"protobuf" in sent.lower()
        content_type = b"application/x-protobuf" if in_protobuf else b"application/json"
        return content_type, write_status(detail, in_protobuf=in_protobuf)
    if scope["path"].startswith(MACHINE_PATHS):
        return b"application/json", json.dumps({"detail": detail}).encode()
    return b"text/plain; charset=utf-8", f"{detail}\n".encode()


def declared_length(scope: Scope) -> int:
    """Content-Length, or 0: the server has refused what is not a number, and what arrives is counted anyway."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else 0
    return 0


async def acknowledge_lifespan(receive: Receive, send: Send) -> None:
    """Django knows no lifespan events; a server that sends them expects an answer to each."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
