"""Django behind ASGI with one hop into a thread for each request, and threads that keep their database connection.
What open pages ask for needs no thread.

Django's own handler changes between the event loop and a thread at every middleware that knows only one of them, and
starts a thread for every request, which opens the database anew.
"""

import asyncio
import io
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from http import HTTPStatus
from tempfile import SpooledTemporaryFile
from typing import Any, TypeVar, cast

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestAborted, SuspiciousOperation
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.db import close_old_connections
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import ResolverMatch, set_script_prefix

from dashboard.addresses import find_view
from dashboard.front_door import spell_refusal

# Started when no idle one is there. So many that a page does not wait behind uploads that wait for the database.
MOST_THREADS = 64
# Beyond it a request is refused before anything of it was done: the threads wait for a database that does not answer.
THREAD_WAIT_SECONDS = 1.0
LIVE = "/live/"  # dashboard/views/live.py: asynchronous to the last, and they find out themselves who is asking
ANSWERED_IN_LOOP = (LIVE, "/health/live")
# A probe does not wait behind pages that wait for the database.
PROBE, PROBE_THREADS = "/health/ready", 2

_T = TypeVar("_T")
_Body = SpooledTemporaryFile[bytes]
_Message = Mapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]

log = logging.getLogger(__name__)


class NoFreeThread(Exception):
    """Every thread is busy, and has been for a while."""


class PageHandler(ASGIHandler):
    """Streamed answers are sent as ever; an async view runs in a loop of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="page")
        self._probe_threads = ThreadPoolExecutor(PROBE_THREADS, thread_name_prefix="probe")

    def load_middleware(self, is_async: bool = False) -> None:  # noqa: ARG002, FBT001 (Django's signature)
        super().load_middleware(is_async=False)

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        request.resolver_match = view = find_view(request.path_info)
        return view

    async def __call__(self, scope: dict[str, Any], receive: _Receive, send: _Send) -> None:
        if scope["path"].startswith(ANSWERED_IN_LOOP):
            await self.answer_in_loop(scope, receive, send)
            return
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            threads = self._probe_threads if scope["path"] == PROBE else self._threads
            try:
                response = await self._hop(self._answer, scope, body, threads=threads, start_within=THREAD_WAIT_SECONDS)
            except NoFreeThread:
                response = refuse_for_now(scope)
            if response.streaming:
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)

    def _answer(self, scope: dict[str, Any], body: _Body) -> HttpResponseBase:
        set_script_prefix(get_script_prefix(scope))
        request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response = self.get_response(request) if request else cast("HttpResponseBase", refusal)
        if not response.streaming:
            response.close()  # it is all here; what ends with the request, ends in the thread it was in
            return response
        close_old_connections()
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        return response

    async def _stream(self, response: HttpResponseBase, receive: _Receive, send: _Send) -> None:
        """Until it ends or the client leaves."""
        async with ThreadSensitiveContext():
            gone = asyncio.create_task(self.listen_for_disconnect(receive))
            sent = asyncio.create_task(self.send_response(response, send))
            try:
                await asyncio.wait((gone, sent), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (gone, sent):
                    task.cancel()
                _, failure = await asyncio.gather(gone, sent, return_exceptions=True)
                await self._hop(response.close)
            if isinstance(failure, Exception):
                raise failure

    async def _hop(
        self,
        function: Callable[..., _T],
        *arguments: Any,
        threads: ThreadPoolExecutor | None = None,
        start_within: float | None = None,
    ) -> _T:
        """The executor's own futures are made for threads that wait; nobody here does.

        Raises NoFreeThread if no thread has started it within `start_within` seconds; then it never starts.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[_T] = loop.create_future()
        context = copy_context()  # what the front door noted of the request, its id, goes along

        def work() -> None:
            try:
                result = context.run(function, *arguments)
            except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
                loop.call_soon_threadsafe(settle, waiting.set_exception, error)
            else:
                loop.call_soon_threadsafe(settle, waiting.set_result, result)

        def settle(tell: Callable[[Any], None], what: object) -> None:
            if not waiting.done():  # the request was given up meanwhile
                tell(what)

        def give_up() -> None:
            if submitted.cancel():  # False once a thread has started it
                settle(waiting.set_exception, NoFreeThread())

        submitted = (threads or self._threads).submit(work)
        if start_within is None:
            return await waiting
        timer = loop.call_later(start_within, give_up)
        try:
            return await waiting
        finally:
            timer.cancel()

    async def answer_in_loop(self, scope: dict[str, Any], receive: _Receive, send: _Send) -> None:
        """Without middleware and threads. Whoever leaves ends the stream that was opened for them."""
        response = await ask_view(self.request_class(scope, io.BytesIO()))
        if not response.streaming:
            await self.send_response(response, send)
            return
        sending = asyncio.ensure_future(self.send_response(response, send))
        leaving = asyncio.ensure_future(wait_for_leave(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)


async def ask_view(request: HttpRequest) -> HttpResponseBase:
    try:
        request.get_host()  # refuses names that are not ours, as the middleware does for pages
        view = find_view(request.path_info)
        response: HttpResponseBase = await view.func(request, *view.args, **view.kwargs)
    except (Http404, PermissionDenied, SuspiciousOperation) as refusal:
        return say(STATUSES[next(kind for kind in STATUSES if isinstance(refusal, kind))])
    except Exception:
        log.exception("a part of a page cannot be drawn", extra={"path": request.path[:300]})
        return say(HTTPStatus.INTERNAL_SERVER_ERROR)
    return response


STATUSES: dict[type[Exception], HTTPStatus] = {
    Http404: HTTPStatus.NOT_FOUND,
    PermissionDenied: HTTPStatus.FORBIDDEN,
    SuspiciousOperation: HTTPStatus.BAD_REQUEST,
}


def say(status: HTTPStatus) -> HttpResponse:
    return HttpResponse(f"{status.phrase}\n", status=status, content_type="text/plain; charset=utf-8")


def refuse_for_now(scope: dict[str, Any]) -> HttpResponse:
    content_type, body = spell_refusal(scope, "The server is busy. Try again shortly.")
    response = HttpResponse(body, status=HTTPStatus.SERVICE_UNAVAILABLE, content_type=content_type.decode())
    response["Retry-After"] = str(settings.RETRY_AFTER_SECONDS)
    return response


async def wait_for_leave(receive: _Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
