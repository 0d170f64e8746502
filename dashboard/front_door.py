"""The raw ASGI layer before Django: limits of bodies and of how many requests at once, request id, one log line a
request.

Django's ASGI handler writes a whole body to disk before any view or middleware runs, so size, pace and key are checked
here. A place among the requests that are worked on is taken when the body is there: one that trickles holds none.
"""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from email.utils import formatdate
from functools import lru_cache
from typing import Any

from dashboard.ingest.otlp.statuses import write_status
from dashboard.logs import current_request_id, mask_tokens
from dashboard.places import Places, name_address

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
BODY_STALL_SECONDS = 30.0  # with nothing of a body
# A body may take so long, and a second more for so many bytes of it: 64 MiB over a thin line take two hours at most.
BODY_GRACE_SECONDS, BODY_BYTES_PER_SECOND = 30.0, 8 * 1024
# Longer than that a body is slow, and takes one of the places for slow ones.
BODY_PROMPT_SECONDS = 1.0
ANSWER_STALL_SECONDS = 60.0  # with a client that takes nothing of an answer
# Of one client. The 200 live pages of a process may belong to one office, and all of them ask at the same moment.
SHARE_OF_WORK, SHARE_OF_SLOW_BODIES = 7 / 8, 1 / 4
ALWAYS_ANSWERED = frozenset({"/health/live", "/health/ready"})
# What programs send, and send again when told to wait. Few of them at once, so that pages do not stand behind them.
SENDING_PATHS = ("/v1/", "/ingest/", "/api/v1/ingest/")
# Open for as long as somebody looks at a page; they have a limit of their own.
NOT_COUNTED = frozenset({"/live/stream"})
NEEDS_NO_PLACE = ALWAYS_ANSWERED | NOT_COUNTED
FILES = "/static/"  # for anybody, and some of them large: whoever takes them slowly holds no place of a page
MACHINE_PATHS = ("/api/", "/v1/", "/ingest/")
OTLP_PATHS = ("/v1/", "/ingest/otlp/")
PATH_SHOWN = 300

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BodyRules:
    """How large a body may be, by address, and how slowly it may arrive. Only time in which the client is waited for
    counts."""

    limits: Mapping[str, int] = field(default_factory=lambda: BODY_LIMITS)
    prompt_seconds: float = BODY_PROMPT_SECONDS
    stall_seconds: float = BODY_STALL_SECONDS
    grace_seconds: float = BODY_GRACE_SECONDS
    bytes_per_second: float = BODY_BYTES_PER_SECOND
    longest_wait_for_work_seconds: float = 5.0


@dataclass(frozen=True)
class KeyFinding:
    """What is known of a request's key before its body is read."""

    client: str = ""  # a name to count by
    refusal: tuple[int, str] | None = None


BODY_RULES = BodyRules()


async def require_no_key(scope: Scope) -> KeyFinding:  # noqa: ARG001 (a KeyCheck)
    return KeyFinding()


KeyCheck = Callable[[Scope], Awaitable[KeyFinding]]


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
    clients: tuple[str, ...] = ()  # whose shares of places count
    work_place: ExitStack = field(default_factory=ExitStack)
    slow_body_place: ExitStack = field(default_factory=ExitStack)
    is_working: bool = False

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
        async with asyncio.timeout(ANSWER_STALL_SECONDS):  # the server closes the connection when this raises
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
        if status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="Plimsoll"'))
        if retry_after_seconds is not None:
            headers.append((b"retry-after", str(retry_after_seconds).encode()))
        await self.pass_on({"type": "http.response.start", "status": status, "headers": headers})
        await self.pass_on({"type": "http.response.body", "body": body})
        self.refused = True

    async def refuse_for_now(self, detail: str = "Too many requests at once. Try again shortly.") -> None:
        await self.refuse(503, detail, retry_after_seconds=1)


class BodyGate:
    """The application's `receive`: counts the body while it arrives; stops it at the limit, or when it is too slow."""

    def __init__(self, door: "FrontDoor", exchange: Exchange, receive: Receive, *, limit_bytes: int) -> None:
        self.door, self.exchange = door, exchange
        self._receive = receive
        self.limit_bytes = limit_bytes
        self.bytes_in = 0
        self.waited_seconds = 0.0
        self.complete = self.is_slow = False

    async def receive(self) -> Message:
        if self.exchange.refused:
            return {"type": "http.disconnect"}
        if self.complete:  # from here on the application waits for the client to leave, as long as it likes
            return await self._receive()
        began = time.monotonic()
        message = await self._receive_in_time(began)
        self.waited_seconds += time.monotonic() - began
        if message["type"] == "http.request":
            self.bytes_in += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        if self.bytes_in > self.limit_bytes:
            await self.exchange.refuse(413, too_large(self.limit_bytes))
        elif self.complete:
            self.exchange.slow_body_place.close()
            if not await self._take_for_work():
                await self.exchange.refuse_for_now()
        return {"type": "http.disconnect"} if self.exchange.refused else message

    async def _receive_in_time(self, began: float) -> Message:
        while True:
            waited_seconds = self.waited_seconds + time.monotonic() - began
            try:
                async with asyncio.timeout(self._find_patience(waited_seconds)):
                    return await self._receive()
            except TimeoutError:
                if self.is_slow:
                    await self.exchange.refuse(408, "The request body arrived too slowly or not at all.")
                    return {"type": "http.disconnect"}
            self.is_slow = True
            if not self.door.slow_bodies.take(self.exchange.clients, self.exchange.slow_body_place):
                await self.exchange.refuse_for_now("Too many slow requests at once. Try again shortly.")
                return {"type": "http.disconnect"}

    async def _take_for_work(self) -> bool:
        """A body that took long to arrive is not thrown away because of a busy moment."""
        patience_seconds = min(self.waited_seconds, self.door.bodies.longest_wait_for_work_seconds)
        give_up_at = time.monotonic() + patience_seconds
        while not self.door.take_for_work(self.exchange):
            if time.monotonic() >= give_up_at:
                return False
            await asyncio.sleep(0.05)
        return True

    def _find_patience(self, waited_seconds: float) -> float:
        rules = self.door.bodies
        if not self.is_slow:
            return max(0.0, rules.prompt_seconds - waited_seconds)
        allowed_seconds = rules.grace_seconds + self.bytes_in / rules.bytes_per_second
        return min(rules.stall_seconds, max(0.0, allowed_seconds - waited_seconds))


class FrontDoor:
    """Wraps the application; `headers` go on every response that does not carry them already."""

    def __init__(
        self,
        application: Application,
        *,
        headers: Mapping[str, str],
        max_in_flight: int,
        max_sending: int,
        bodies: BodyRules = BODY_RULES,
        check_key: KeyCheck = require_no_key,
    ) -> None:
        self.application = application
        self.headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.bodies = bodies
        self.check_key = check_key
        self.work = Places(max_in_flight, share=SHARE_OF_WORK)
        self.telemetry = Places(max_sending, share=SHARE_OF_WORK)
        self.files = Places(max_in_flight, share=SHARE_OF_WORK)
        self.slow_bodies = Places(max_in_flight, share=SHARE_OF_SLOW_BODIES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await acknowledge_lifespan(receive, send)
        else:  # a WebSocket: refused before it is accepted
            await send({"type": "websocket.close", "code": 1000})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, send, self.headers, clients=(name_client(scope),))
        started = time.perf_counter()
        outside = current_request_id.set(exchange.id)
        try:
            with exchange.slow_body_place, exchange.work_place:
                await self._decide(exchange, receive)
        finally:
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
        scope = exchange.scope
        limit_bytes = find_body_limit(scope["path"], self.bodies.limits)
        if declared_length(scope) > limit_bytes:
            await exchange.refuse(413, too_large(limit_bytes))
        elif not (self._has_room(exchange) if brings_body(scope) else self.take_for_work(exchange)):
            await exchange.refuse_for_now()
        elif not brings_body(scope) or await self._accept_key(exchange):
            gate = BodyGate(self, exchange, receive, limit_bytes=limit_bytes)
            await self.application(scope, gate.receive, exchange.pass_on)

    async def _accept_key(self, exchange: Exchange) -> bool:
        found = await self.check_key(exchange.scope)
        if found.refusal is None:
            exchange.clients += (found.client,) if found.client else ()
            return True
        status, detail = found.refusal
        await exchange.refuse(status, detail, retry_after_seconds=1 if status == 503 else None)
        return False

    def _has_room(self, exchange: Exchange) -> bool:
        return all(places.has_room(exchange.clients) for places in self._find_places(exchange.scope["path"]))

    def take_for_work(self, exchange: Exchange) -> bool:
        """Take a place among the requests that are worked on, once; False when there is none."""
        if not exchange.is_working and self._has_room(exchange):
            exchange.is_working = True
            for places in self._find_places(exchange.scope["path"]):
                places.take(exchange.clients, exchange.work_place)
        return exchange.is_working

    def _find_places(self, path: str) -> tuple[Places, ...]:
        if path in NEEDS_NO_PLACE:
            return ()
        if path.startswith(FILES):
            return (self.files,)
        return (self.work, self.telemetry) if path.startswith(SENDING_PATHS) else (self.work,)


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


def brings_body(scope: Scope) -> bool:
    return declared_length(scope) > 0 or any(name == b"transfer-encoding" for name, _ in scope["headers"])


def name_client(scope: Scope) -> str:
    """Its address; behind a proxy on this machine the one that was forwarded (uvicorn puts it there)."""
    client = scope.get("client")
    return f"address {name_address(client[0])}" if client else "no address"


async def acknowledge_lifespan(receive: Receive, send: Send) -> None:
    """Django knows no lifespan events; a server that sends them expects an answer to each."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
