"""The forwarder on a real port, in this process, before a fake upstream: what tests of the proxy stand on."""

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import uvicorn

from dashboard.front_door import FrontDoor, Receive, Scope, Send
from dashboard.plain_http import PlainHttpProtocol
from dashboard.proxy.callers import Caller, Callers
from dashboard.proxy.forwarder import Doors, Forwarder, Limits
from dashboard.proxy.refusals import NO_RIGHT, UNKNOWN_KEY, Refusal
from dashboard.proxy.wire import Exchange

LIMITS = Limits(
    body_bytes=2 * 1024 * 1024, calls_per_minute=0, calls_at_once=300, silence_seconds=60, answer_seconds=60
)
KEY = "plk_" + "k" * 40
WEAK_KEY = "plk_" + "w" * 40
CALLER = Caller(team_pk=1, owner_pk=2, key_pk=3)


class KnownCallers(Callers):
    """Who calls without a database: one good key, one without the scope."""

    async def find_by_key(self, text: str) -> Caller | Refusal:
        known: dict[str, Caller | Refusal] = {KEY: CALLER, WEAK_KEY: NO_RIGHT}
        return known.get(text, UNKNOWN_KEY)

    async def find_local(self) -> Caller | Refusal:
        return replace(CALLER, key_pk=None)


async def say_page(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a page"})


@dataclass
class Serving:
    port: int
    forwarder: Forwarder
    exchanges: list[Exchange]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, path: str, body: bytes | None = None, *, method: str = "POST", headers: Mapping[str, str] = {}
    ) -> "Answered":
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, {"X-Plimsoll-Key": KEY, **headers})
            response = connection.getresponse()
            try:
                data, is_cut = response.read(), False
            except http.client.IncompleteRead as cut:
                data, is_cut = cut.partial, True
            except (ConnectionError, http.client.HTTPException):
                data, is_cut = b"", True
            return Answered(response.status, response.getheaders(), data, is_cut)
        finally:
            connection.close()

    def wait_for_exchange(self, count: int = 1, seconds: float = 5.0) -> Exchange:
        give_up_at = time.monotonic() + seconds
        while len(self.exchanges) < count:
            assert time.monotonic() < give_up_at, f"{len(self.exchanges)} of {count} calls were handed over"
            time.sleep(0.01)
        return self.exchanges[count - 1]


@dataclass(frozen=True)
class Answered:
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    is_cut: bool = False

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@contextmanager
def serving(
    upstream_url: str, folder: Path, *, limits: Limits = LIMITS, is_local: bool = False, **upstreams: str
) -> Iterator[Serving]:
    doors = Doors(
        {"default": upstream_url, **upstreams}, is_local=is_local, hosts=frozenset({"127.0.0.1", "localhost"})
    )
    pages = FrontDoor(say_page, headers={}, max_in_flight=10, max_sending=10)
    forwarder = Forwarder(pages, doors=doors, limits=limits, recorder_path=folder / "no-recorder")
    forwarder._callers = KnownCallers()
    exchanges: list[Exchange] = []
    forwarder._feed = CatchingFeed(exchanges)  # type: ignore[assignment]
    config = uvicorn.Config(
        forwarder,
        loop="uvloop",
        http=PlainHttpProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield Serving(listening.getsockname()[1], forwarder, exchanges)
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()


class CatchingFeed:
    """Keeps what the recorder would get."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self._exchanges = exchanges
        self.lost: list[tuple[int, str]] = []

    def start(self) -> None:
        return

    def begin(self, call_id: str, team_pk: int) -> None:
        assert call_id
        assert team_pk

    def offer(self, exchange: Exchange) -> None:
        self._exchanges.append(exchange)

    def count_lost(self, team_pk: int, reason: str, call_id: str) -> None:
        assert call_id
        self.lost.append((team_pk, reason))

    async def close(self) -> None:
        return
