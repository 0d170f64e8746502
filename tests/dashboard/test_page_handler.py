"""Django behind ASGI: one thread a request, answers whole and streamed."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from django.contrib.auth.decorators import login_not_required
from django.core.signals import request_finished, request_started
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import override_settings
from django.urls import path

from dashboard import page_handler
from dashboard.logs import current_request_id
from dashboard.page_handler import PageHandler

LAST = "last"


@login_not_required
def tell_thread(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{threading.get_ident()} {current_request_id.get()}")


@login_not_required
def stream(request: HttpRequest) -> HttpResponseBase:
    async def parts() -> AsyncIterator[str]:
        try:
            yield "first"
            if "endless" in request.GET:
                await asyncio.sleep(3600)
            yield LAST
        finally:
            left.append(request.path)

    return StreamingHttpResponse(parts())


@login_not_required
def break_off(request: HttpRequest) -> HttpResponseBase:
    async def parts() -> AsyncIterator[str]:
        yield "first"
        raise LookupError("nothing behind it")

    return StreamingHttpResponse(parts())


@login_not_required
def wait_long(request: HttpRequest) -> HttpResponse:
    release.wait(30)
    return HttpResponse("at last")


@login_not_required
async def be_live(request: HttpRequest) -> HttpResponse:
    return HttpResponse("live")


urlpatterns = [
    path("thread/", tell_thread),
    path("stream/", stream),
    path("broken/", break_off),
    path("long/", wait_long),
    path("health/live", be_live),
    path("health/ready", tell_thread),
]
release = threading.Event()
left: list[str] = []


@pytest.fixture(autouse=True)
def _own_pages() -> Iterator[None]:
    left.clear()
    with override_settings(ROOT_URLCONF=__name__):
        yield


async def ask(handler: PageHandler, address: str, *, leaves: bool = False) -> tuple[int, bytes]:
    """`leaves`: the client is gone after the first part of the answer."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[dict[str, Any]] = []
    has_first = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await (has_first.wait() if leaves else asyncio.Event().wait())
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message.get("body"):
            has_first.set()

    where, _, query = address.partition("?")
    scope = {"type": "http", "method": "GET", "path": where, "query_string": query.encode(), "scheme": "http"}
    await handler({**scope, "headers": [(b"host", b"localhost")]}, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_requests_share_threads_none_of_which_is_the_loops_own() -> None:
    async def walk() -> list[int]:
        handler = PageHandler()
        return [int((await ask(handler, "/thread/"))[1].split()[0]) for _ in range(8)]

    threads = asyncio.run(walk())
    assert len(set(threads)) < len(threads)
    assert threading.get_ident() not in threads


def test_the_id_of_the_request_goes_along_into_the_thread() -> None:
    async def walk() -> bytes:
        current_request_id.set("abc123")
        return (await ask(PageHandler(), "/thread/"))[1]

    assert asyncio.run(walk()).split()[1] == b"abc123"


def test_beginning_and_end_of_a_request_are_told_in_its_thread() -> None:
    told: list[int] = []

    def note(**_: object) -> None:
        told.append(threading.get_ident())

    request_started.connect(note)
    request_finished.connect(note)
    try:
        _, body = asyncio.run(ask(PageHandler(), "/thread/"))
    finally:
        request_started.disconnect(note)
        request_finished.disconnect(note)
    assert told == [int(body.split()[0])] * 2


def test_a_stream_is_sent_to_its_end() -> None:
    assert asyncio.run(ask(PageHandler(), "/stream/")) == (200, b"firstlast")


def test_a_stream_ends_when_the_client_leaves() -> None:
    assert asyncio.run(ask(PageHandler(), "/stream/?endless=1", leaves=True)) == (200, b"first")
    assert left == ["/stream/"]


def test_a_stream_that_fails_is_not_taken_for_a_whole_one() -> None:
    with pytest.raises(LookupError):
        asyncio.run(ask(PageHandler(), "/broken/"))


def test_probes_are_answered_while_every_thread_of_pages_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_handler, "MOST_THREADS", 2)

    async def walk() -> None:
        handler = PageHandler()
        busy = [asyncio.create_task(ask(handler, "/long/")) for _ in range(4)]
        await asyncio.sleep(0.05)
        try:
            async with asyncio.timeout(20):
                assert (await ask(handler, "/health/live"))[0] == 200
                assert (await ask(handler, "/health/ready"))[0] == 200
        finally:
            release.set()
        assert {status for status, _ in await asyncio.gather(*busy)} == {200}

    asyncio.run(walk())
