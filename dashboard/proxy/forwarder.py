"""The forwarder: a raw ASGI application ahead of everything else. Below /proxy it passes calls on, the rest it leaves
to the application behind it.

What the upstream answers reaches the caller as it is: neither Plimsoll's headers nor its limits for pages touch it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from dashboard.front_door import Application, Message, Receive, Scope, Send, declared_length, name_client
from dashboard.logs import mask_tokens
from dashboard.places import Places
from dashboard.proxy.additions import Enlarged, Enlarger
from dashboard.proxy.callers import Caller, Callers
from dashboard.proxy.feed import Feed
from dashboard.proxy.journal import Journal
from dashboard.proxy.passage import Passage
from dashboard.proxy.passed_headers import KEY_HEADER
from dashboard.proxy.quotas import Quotas
from dashboard.proxy.refusals import (
    FROM_A_PAGE,
    NO_KEY,
    NOT_ASKED_HERE,
    TOO_MANY_AT_ONCE,
    TOO_MANY_SLOW,
    Refusal,
    bad_path,
    not_found,
    over_quota,
    send_refusal,
    too_large,
)
from dashboard.proxy.tap import Held, Tap
from dashboard.proxy.upstream_requests import UpstreamRequest
from dashboard.proxy.upstreams import ROOT, BadPath, NoSuchPlace, Place, find_place, is_loopback
from dashboard.proxy.wire import Ending

MESSAGES_PATH, COUNT_PATH = b"/v1/messages", b"/v1/messages/count_tokens"
PATH_SHOWN = 300
CONNECT_SECONDS = 10.0
LOOK_SECONDS = 0.2  # a caller who left is missed after that
IDLE_CONNECTION_SECONDS = 30.0
LONGEST_LINE_BYTES = 64 * 1024
MOST_ANSWER_HEADERS = 1000  # as many as no upstream has; by itself the client library takes 128
# A browser says these of every page; programs do not.
PAGE_HEADERS = frozenset({b"origin", b"sec-fetch-site", b"sec-fetch-dest"})
# Reverse proxies, tunnels and content networks say who asked them. None of it is said by a program that asks directly.
RELAY_HEADERS = frozenset(
    {
        *(b"forwarded", b"via", b"cdn-loop", b"x-real-ip", b"x-client-ip", b"client-ip", b"true-client-ip"),
        *(b"fastly-client-ip", b"fly-client-ip", b"x-cluster-client-ip", b"x-azure-clientip", b"x_forwarded_for"),
    }
)
RELAY_PREFIXES = (b"x-forwarded", b"x-original-", b"x-envoy-", b"cf-", b"tailscale-")
SLOW_BODY_SECONDS = 2.0  # waited for a request that is not whole
SLOW_BODY_BYTES_PER_SECOND = 1024  # less than that, after the time of silence, is no upload any more

Headers = dict[bytes, bytes]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """What one web process lets through."""

    body_bytes: int
    calls_per_minute: int
    calls_at_once: int
    silence_seconds: float
    answer_seconds: float  # before an answer begins: one that does not stream is silent until it is there


@dataclass(frozen=True)
class Doors:
    """Where calls may go, and who needs no key: programs on this machine that ask it by one of its own names."""

    upstreams: Mapping[str, str]
    is_local: bool
    hosts: frozenset[str]


class Forwarder:
    def __init__(
        self,
        application: Application,
        *,
        doors: Doors,
        limits: Limits,
        recorder_path: Path,
        journal: Journal | None = None,
    ) -> None:
        self._application = application
        self._doors, self._limits = doors, limits
        self._callers = Callers()
        self._quotas = Quotas()
        self._held = Held()
        self._enlarger = Enlarger()
        self._recorder_path, self._journal = recorder_path, journal
        self._feed: Feed | None = None
        self._session: aiohttp.ClientSession | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._passages: dict[Passage, str] = {}  # with the client that counts, in the order in which they began

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_below_proxy(scope["raw_path"]):
            await self._take(scope, receive, send)
        elif scope["type"] == "lifespan":

            async def heed() -> Message:
                message = await receive()
                if message["type"] == "lifespan.startup":
                    self._open_feed().start()
                elif message["type"] == "lifespan.shutdown":
                    await self.close()
                return message

            await self._application(scope, heed, send)
        else:
            await self._application(scope, receive, send)

    async def close(self) -> None:
        """Safe to call twice, and before the first call."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._feed is not None:
            await self._feed.close()
        if self._session is not None:
            await self._session.close()
        self._callers.close()

    async def _take(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        refusal: Refusal | None = None
        passage: Passage | None = None
        try:
            place = find_place(scope["raw_path"], self._doors.upstreams)
            decided = await self._decide(scope, place)
            if isinstance(decided, Refusal):
                refusal = decided
            else:
                tap = self._open_tap(scope, place, decided)
                passage = Passage(
                    scope,
                    hold_to_length(receive, declared_length(scope)),
                    send,
                    body_limit_bytes=self._limits.body_bytes,
                    tap=tap,
                    enlarge=self._find_enlarging(scope, place, decided),
                )
                await self._pass_on(passage, place, tap, client=name_caller(scope, decided))
        except BadPath as error:
            refusal = bad_path(str(error))
        except NoSuchPlace as error:
            refusal = not_found(f"Plimsoll: {error}")
        if refusal is not None:
            await send_refusal(send, refusal)
        self._tell(scope, passage, refusal, began)

    async def _decide(self, scope: Scope, place: Place) -> Caller | Refusal:
        headers: Headers = dict(scope["headers"])
        if not headers.keys().isdisjoint(PAGE_HEADERS):
            return FROM_A_PAGE
        if declared_length(scope) > self._limits.body_bytes:
            return too_large(self._limits.body_bytes)
        if len(self._passages) >= self._limits.calls_at_once:
            return TOO_MANY_AT_ONCE
        found = await self._find_caller(scope, place, headers)
        if isinstance(found, Refusal):
            return found
        limit = self._limits.calls_per_minute if found.calls_per_minute is None else found.calls_per_minute
        wait_seconds = self._quotas.take(found.purse, limit)
        return over_quota(wait_seconds) if wait_seconds else found

    async def _find_caller(self, scope: Scope, place: Place, headers: Headers) -> Caller | Refusal:
        in_header = headers.get(KEY_HEADER)
        key = in_header.decode("latin-1").strip() if in_header is not None else place.key
        if key is not None:
            return await self._callers.find_by_key(key)
        if not self._doors.is_local:
            return NO_KEY
        return await self._callers.find_local() if self._is_asked_here(scope, headers) else NOT_ASKED_HERE

    def _is_asked_here(self, scope: Scope, headers: Headers) -> bool:
        """From this machine, by one of its own names: a page elsewhere whose name leads here is not."""
        client = scope.get("client")
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        return client is not None and is_loopback(client[0]) and name in self._doors.hosts and not is_relayed(headers)

    def _open_tap(self, scope: Scope, place: Place, caller: Caller) -> Tap | None:
        if scope["method"] != "POST" or not place.path.endswith((MESSAGES_PATH, COUNT_PATH)):
            return None
        return Tap(caller, scope["headers"], self._held)

    def _find_enlarging(self, scope: Scope, place: Place, caller: Caller) -> Callable[[bytes], Enlarged | None] | None:
        """None where the request passes byte for byte: everywhere, unless its team decided otherwise."""
        if not caller.additions.is_any or scope["method"] != "POST" or not place.path.endswith(MESSAGES_PATH):
            return None
        headers = list(scope["headers"])
        return lambda body: self._enlarger.enlarge(body, headers, caller.additions, account=caller.account)

    async def _pass_on(self, passage: Passage, place: Place, tap: Tap | None, *, client: str) -> None:
        session = self._open_session()
        self._passages[passage] = client
        if tap is not None:
            self._open_feed().begin(tap.id, tap.caller.team_pk)
        try:
            await passage.pass_on(session, place)
        finally:
            del self._passages[passage]
            if tap is not None:
                self._hand_over(passage, tap)

    def _hand_over(self, passage: Passage, tap: Tap) -> None:
        enlarged = passage.enlarged
        if enlarged is not None:
            tap.added = enlarged.added
        exchange = tap.close(passage.ending)
        if enlarged is not None and enlarged.thread is not None and exchange is not None and exchange.status == 200:
            self._enlarger.remember(enlarged.thread, exchange)
        if exchange is None:
            self._open_feed().count_lost(tap.caller.team_pk, tap.overflow, tap.id)
        else:
            self._open_feed().offer(exchange)

    def _open_feed(self) -> Feed:
        if self._feed is None:
            self._feed = Feed(self._recorder_path, self._journal)
        return self._feed

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                max_line_size=LONGEST_LINE_BYTES,
                max_field_size=LONGEST_LINE_BYTES,
                max_headers=MOST_ANSWER_HEADERS,
                request_class=UpstreamRequest,
            )
            self._sweeper = asyncio.create_task(self._look_after_calls())
        return self._session

    async def _look_after_calls(self) -> None:
        """One look over all of them instead of a task for each call and a timer for every byte."""
        limits, loop = self._limits, asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for passage in list(self._passages):
                passage.watch_caller()
                limit_seconds = limits.answer_seconds if passage.awaits_answer else limits.silence_seconds
                if passage.moved_at < loop.time() - limit_seconds:
                    passage.end_silence()
            self._look_after_slow_bodies()

    def _look_after_slow_bodies(self) -> None:
        """They may hold half of the places, and a quarter for each client; the ones that began last are refused."""
        places = Places(max(1, self._limits.calls_at_once // 2), share=1 / 2)
        with ExitStack() as counted:
            for passage, client in list(self._passages.items()):
                wait_seconds = passage.body_wait_seconds
                if wait_seconds < SLOW_BODY_SECONDS:
                    continue
                if not places.take((client,), counted):
                    passage.refuse(TOO_MANY_SLOW)
                elif wait_seconds > self._limits.silence_seconds + passage.bytes_in / SLOW_BODY_BYTES_PER_SECOND:
                    passage.end_silence()

    def _tell(self, scope: Scope, passage: Passage | None, refusal: Refusal | None, began: float) -> None:
        """A line for what went wrong; for what went well only at DEBUG: it took a quarter of the time of a call, and
        the recorder keeps it anyway."""
        went_well = passage is not None and passage.ending is Ending.WHOLE and passage.status < 400
        level = logging.DEBUG if went_well else logging.INFO
        if not log.isEnabledFor(level):
            return
        log.log(
            level,
            "proxied" if passage is not None else "refused",
            extra={
                "method": scope["method"],
                # As it was written: decoded, what stands in the place of a key could look like more than one thing.
                "path": mask_tokens(scope["raw_path"].decode("latin-1"))[:PATH_SHOWN],
                "status": refusal.status if refusal else passage.status if passage else 0,
                "ending": passage.ending.value if passage else None,
                "ms": round((time.perf_counter() - began) * 1000, 1),
                "bytes_in": passage.bytes_in if passage else 0,
                "bytes_out": passage.bytes_out if passage else 0,
            },
        )


def is_relayed(headers: Headers) -> bool:
    return any(name in RELAY_HEADERS or name.startswith(RELAY_PREFIXES) for name in headers)


def hold_to_length(receive: Receive, declared_bytes: int) -> Receive:
    """A body that ends before the length its head told has lost its sender. Passed on as whole, it would make the
    upstream wait, and take the next call over that connection for the rest."""
    missing_bytes = declared_bytes

    async def receive_part() -> Message:
        nonlocal missing_bytes
        message = await receive()
        if message["type"] == "http.request":
            missing_bytes -= len(message.get("body", b""))
            if missing_bytes > 0 and not message.get("more_body", False):
                return {"type": "http.disconnect"}
        return message

    return receive_part if declared_bytes else receive


def name_caller(scope: Scope, caller: Caller) -> str:
    """By key; this machine's own programs have none, and share one name."""
    return f"key {caller.key_pk}" if caller.key_pk is not None else name_client(scope)


def is_below_proxy(raw_path: bytes) -> bool:
    return raw_path.startswith(ROOT) and raw_path[len(ROOT) : len(ROOT) + 1] in (b"", b"/")
