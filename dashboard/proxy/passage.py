"""One call on its way: the request to the upstream, the answer back, and what happens when somebody leaves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import lru_cache, partial

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from dashboard.front_door import Receive, Scope, Send
from dashboard.proxy.additions import HEADER, Enlarged
from dashboard.proxy.passed_headers import pass_request_headers, pass_response_headers
from dashboard.proxy.refusals import (
    BROKEN_ANSWER,
    CALLER_SILENT,
    UNREACHABLE,
    UPSTREAM_SILENT,
    Refusal,
    send_refusal,
    too_large,
)
from dashboard.proxy.tap import Tap
from dashboard.proxy.upstream_requests import is_reused
from dashboard.proxy.upstreams import Place, find_way_out
from dashboard.proxy.wire import Ending

_KNOWN_STATUS = range(100, 600)
CLOSED_IDLE_SECONDS = 0.5  # such an end comes back as fast as the network is; a later one is of a call at work


@lru_cache(maxsize=512)
def make_url(upstream: str, path: bytes, query: bytes) -> URL:
    """Nothing is quoted again: the upstream sees what the caller wrote."""
    tail = path + (b"?" + query if query else b"")
    return URL(upstream + tail.decode("latin-1"), encoded=True)


class Passage:
    """Runs once, in the task that `pass_on` is called in. `tap` is None for calls that are not recorded, `enlarge`
    for those that pass byte for byte."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        body_limit_bytes: int,
        tap: Tap | None,
        enlarge: Callable[[bytes], Enlarged | None] | None = None,
    ) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._body_limit_bytes = body_limit_bytes
        self._tap, self._enlarge = tap, enlarge
        self.enlarged: Enlarged | None = None
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._watch: asyncio.Task[None] | None = None
        self._ending: Ending | None = None
        self._refusal: Refusal | None = None
        self._is_body_whole = self._is_started = self._is_stream = self._is_over = False
        self.moved_at = self._loop.time()  # when a byte last passed
        self._waited_seconds = 0.0  # for the request's body
        self._waits_since: float | None = None
        self.status = 0
        self.bytes_in = self.bytes_out = 0

    async def pass_on(self, session: aiohttp.ClientSession, place: Place) -> Ending:
        """Never raises, but for the end of the whole process."""
        try:
            await self._run(session, place)
            ending = self._ending or Ending.WHOLE
        except asyncio.CancelledError:
            if self._ending is None or self._task is None:
                self._ending = Ending.STOPPED
                raise
            self._task.uncancel()
            ending = self._ending
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # A broken upstream may stand behind a caller who left: then nobody hears the answer.
            is_unreachable = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
            self._refusal = self._refusal or (UNREACHABLE if is_unreachable else BROKEN_ANSWER)
            ending = self._ending or Ending.UPSTREAM_FAILED
        finally:
            self._is_over = True
            if self._watch is not None:
                self._watch.cancel()
        self._ending = ending
        if self._refusal is not None and not self._is_started:
            self.status = self._refusal.status
            await send_refusal(self._send, self._refusal)
        # With an answer begun, returning without its end makes the server cut the connection, as the upstream did.
        return ending

    @property
    def ending(self) -> Ending:
        return self._ending or Ending.STOPPED

    @property
    def awaits_answer(self) -> bool:
        """Whether the upstream has all it needs, and nothing came back but perhaps the head of an answer in one
        piece."""
        return self._is_body_whole and not self._is_stream and not self.bytes_out

    def watch_caller(self) -> None:
        """Called from outside, again and again: most calls are over before their caller could think better of it."""
        if self._watch is None and self._is_body_whole and not self._is_over:
            self._watch = self._loop.create_task(self._wait_for_leaving())

    def end_silence(self) -> None:
        """Called from outside when nothing moved for too long."""
        self._leave(Ending.SILENT, UPSTREAM_SILENT if self._is_body_whole else CALLER_SILENT)

    @property
    def body_wait_seconds(self) -> float:
        """How long the caller was waited for while the request is not whole; time of a slow upstream does not count."""
        if self._is_body_whole or self._is_over:
            return 0.0
        under_way = self._loop.time() - self._waits_since if self._waits_since is not None else 0.0
        return self._waited_seconds + under_way

    def refuse(self, refusal: Refusal) -> None:
        """Called from outside, while the request arrives."""
        self._leave(Ending.STOPPED, refusal)

    def _leave(self, ending: Ending, refusal: Refusal | None = None) -> None:
        if self._is_over or self._ending is not None or self._task is None:
            return
        self._ending, self._refusal = ending, refusal
        self._task.cancel()

    async def _run(self, session: aiohttp.ClientSession, place: Place) -> None:
        first = await self._receive_part()
        if first is None:
            self._ending = Ending.CLIENT_LEFT
            return
        data: bytes | AsyncIterator[bytes] | None = first or None
        told = self._scope["headers"]
        if self._enlarge is not None:
            data = whole = b"".join([part async for part in self._read_on(first)])
            self.enlarged = self._enlarge(whole)
            if self.enlarged is not None:
                data, told = self.enlarged.body, self.enlarged.headers
        elif not self._is_body_whole:
            data = self._read_on(first)
        response = await self._ask(session, place, pass_request_headers(told), data)
        try:
            await self._answer(response)
        finally:
            response.close()

    async def _ask(
        self,
        session: aiohttp.ClientSession,
        place: Place,
        headers: "CIMultiDict[str]",
        data: bytes | AsyncIterator[bytes] | None,
    ) -> aiohttp.ClientResponse:
        """An upstream may close a connection that stood idle just when it is used again. Nobody has read the request
        then, and it goes over another connection, once; aiohttp does that by itself for other methods than POST. One
        that was closed later may have been worked on: it is not paid for twice."""
        is_reused.set(False)
        ask = partial(
            session.request,
            self._scope["method"],
            make_url(place.upstream, place.path, self._scope["query_string"]),
            headers=headers,
            data=data,
            allow_redirects=False,
            proxy=find_way_out(place.upstream),
        )
        began = self._loop.time()
        try:
            return await ask()
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            is_new = not is_reused.get() or isinstance(error, aiohttp.ClientConnectorError)
            is_late = self._loop.time() - began > CLOSED_IDLE_SECONDS
            again = data if isinstance(data, bytes) else self._copy_body()
            if is_new or is_late or again is None:
                raise
        return await ask(data=again)

    def _copy_body(self) -> bytes | None:
        """What was read of the caller and passed on, where it is whole and kept for the recorder anyway."""
        return self._tap.copy_request() if self._tap is not None and self._is_body_whole else None

    async def _answer(self, response: aiohttp.ClientResponse) -> None:
        if response.status not in _KNOWN_STATUS:
            raise ValueError(response.status)
        self.moved_at, self.status = self._loop.time(), response.status
        self._is_stream = response.content_type == "text/event-stream"
        tap, send, content = self._tap, self._send, response.content
        if tap is not None:
            tap.start_answer(response.status, response.raw_headers)
        headers = pass_response_headers(response.raw_headers, status=response.status)
        if self.enlarged is not None:
            headers.append((HEADER, ", ".join(self.enlarged.added).encode()))
        self._is_started = True
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        while chunk := await content.readany():
            self.moved_at = self._loop.time()
            self.bytes_out += len(chunk)
            if tap is not None:
                tap.add_answer(chunk)
            is_last = content.at_eof() and content.exception() is None
            await send({"type": "http.response.body", "body": chunk, "more_body": not is_last})
            if is_last:
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    # --- the caller ---

    async def _receive_part(self) -> bytes | None:
        """The next bytes of the body; None when the caller has left."""
        self._waits_since = began = self._loop.time()
        message = await self._receive()
        self._waits_since = None
        if message["type"] == "http.disconnect":
            return None
        self.moved_at = self._loop.time()
        self._waited_seconds += self.moved_at - began
        body: bytes = message.get("body", b"")
        self._is_body_whole = not message.get("more_body", False)
        self.bytes_in += len(body)
        if self._tap is not None and body:
            self._tap.add_request(body)
        return body

    async def _read_on(self, first: bytes) -> AsyncIterator[bytes]:
        """Runs in a task of the client library: whatever ends the call is told to its own task."""
        part: bytes | None = first
        while part is not None:
            if self.bytes_in > self._body_limit_bytes:
                self._leave(Ending.STOPPED, too_large(self._body_limit_bytes))
                await asyncio.sleep(3600)  # until that is heeded: an end here would be the body's end
            if part:
                yield part
            if self._is_body_whole:
                return
            part = await self._receive_part()
        self._leave(Ending.CLIENT_LEFT)
        await asyncio.sleep(3600)

    async def _wait_for_leaving(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            while (await self._receive())["type"] != "http.disconnect":
                pass
            self._leave(Ending.CLIENT_LEFT)
