"""The demo's proxied calls on their way: client, forwarder, the fake API over HTTP on loopback, frames of the recorder.

The forwarder stamps a call with the time at which it passes, and these are days old: only the frames are set back.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from aiohttp import web

from dashboard.demo.fake_api import FakeApi
from dashboard.front_door import Message, Receive, Scope, Send
from dashboard.proxy.callers import Caller, Callers
from dashboard.proxy.feed import Feed
from dashboard.proxy.forwarder import Doors, Forwarder, Limits
from dashboard.proxy.wire import FRAME_HEAD, Exchange, read_message, write_frame

_LARGEST_BYTES = 16 * 1024 * 1024
_LIMITS = Limits(
    body_bytes=_LARGEST_BYTES, calls_per_minute=0, calls_at_once=1, silence_seconds=60.0, answer_seconds=60.0
)
_HOST = "127.0.0.1"


class Traffic:
    """Calls of one person's client, one after the other, and what the forwarder hands over of each."""

    def __init__(self, loop: asyncio.Runner, forwarder: "_DemoForwarder", upstream: "_Upstream") -> None:
        self._loop, self._forwarder, self._upstream = loop, forwarder, upstream

    def post(self, api: FakeApi, body: bytes, headers: Mapping[str, str]) -> bytes:
        """What the caller of the proxy gets back."""
        self._upstream.api = api
        return self._loop.run(_ask(self._forwarder, body, headers))

    def take_exchanges(self) -> list[Exchange]:
        """As the recorder reads them, in order."""
        frames, self._forwarder.tray.frames = self._forwarder.tray.frames, []
        messages = (read_message(frame[FRAME_HEAD.size :]) for frame in frames)
        return [message for message in messages if isinstance(message, Exchange)]


@contextmanager
def open_traffic(caller: Caller) -> Iterator[Traffic]:
    with asyncio.Runner() as loop:
        upstream = _Upstream()
        address = loop.run(upstream.listen())
        forwarder = _DemoForwarder(caller, address)
        try:
            yield Traffic(loop, forwarder, upstream)
        finally:
            loop.run(forwarder.close())
            loop.run(upstream.close())


def set_back(exchange: Exchange, *, at: float, seconds: float, name: str) -> Exchange:
    """As if it had passed then, and so slowly. The name is the same however often the demo is made."""
    return msgspec.structs.replace(
        exchange, id=name, started_at=at, first_byte_seconds=seconds / 4, duration_seconds=seconds
    )


class _Upstream:
    """The fake API as a server."""

    def __init__(self) -> None:
        self.api: FakeApi | None = None
        application = web.Application(client_max_size=_LARGEST_BYTES)
        application.router.add_post("/v1/messages", self._answer)
        self._runner = web.AppRunner(application, access_log=None)

    async def listen(self) -> str:
        await self._runner.setup()
        await web.TCPSite(self._runner, _HOST, 0).start()
        return f"http://{_HOST}:{self._runner.addresses[0][1]}"

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        if self.api is None:
            raise web.HTTPNotFound
        answer = self.api.answer(await request.read(), request.headers)
        headers = {"Content-Type": "text/event-stream", "request-id": answer.request_id}
        return web.Response(body=answer.body, headers=headers)


class _Tray(Feed):
    """Where frames stay instead of going to the recorder of this installation, which would take them for calls of
    today."""

    def __init__(self) -> None:
        super().__init__(Path())
        self.frames: list[bytes] = []

    def offer(self, exchange: Exchange) -> None:
        self.frames.append(write_frame(len(self.frames) + 1, exchange))


class _OneCaller(Callers):
    """The demo takes no keys: whose client it is, is known."""

    def __init__(self, caller: Caller) -> None:
        super().__init__()
        self._caller = caller

    async def find_local(self) -> Caller:
        return self._caller


class _DemoForwarder(Forwarder):
    def __init__(self, caller: Caller, upstream: str) -> None:
        doors = Doors({"default": upstream}, is_local=True, hosts=frozenset({_HOST}))
        super().__init__(_leave_alone, doors=doors, limits=_LIMITS, recorder_path=Path())
        self.tray = _Tray()
        self._callers = _OneCaller(caller)

    def _open_feed(self) -> Feed:
        return self.tray


async def _leave_alone(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """There are no pages behind this forwarder."""


async def _ask(forwarder: Forwarder, body: bytes, headers: Mapping[str, str]) -> bytes:
    """One request as a web server hands it to the application."""
    parts: list[bytes] = []
    asked: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    over = asyncio.Event()

    async def receive() -> Message:
        if asked:
            return asked.pop()
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        parts.append(message.get("body", b""))

    named = {"host": _HOST, "content-type": "application/json", "content-length": str(len(body)), **headers}
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/proxy/v1/messages",
        "raw_path": b"/proxy/v1/messages",
        "query_string": b"",
        "client": (_HOST, 0),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    try:
        await forwarder(scope, receive, send)
    finally:
        over.set()
    return b"".join(parts)
