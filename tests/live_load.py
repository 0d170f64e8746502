"""Many open pages on one web process: they hear of changes and fetch what changed, as static/js/live.js does."""

import asyncio
import http.client
import json
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any
from urllib.parse import urlsplit

from tests.dashboard.ingest.conversation import Conversation


@dataclass(frozen=True)
class Web:
    """A web process, and a person who is signed in there."""

    port: int
    cookie: str


@dataclass
class OpenPage:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int
    headers: dict[str, str]

    async def hear(self) -> AsyncIterator[tuple[str, dict[str, object]]]:
        """Events until the stream ends."""
        name = ""
        while line := await self.reader.readline():
            text = line.decode().strip()
            if text.startswith("event: "):
                name = text.removeprefix("event: ")
            elif text.startswith("data: "):
                yield name, json.loads(text.removeprefix("data: "))

    def close(self) -> None:
        self.writer.close()


def sign_in(port: int, link: str) -> Web:
    """By a link that works once, opened as a browser opens it."""
    shown: dict[str, Any] = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    status, headers, _ = request(port, urlsplit(link).path, **shown)
    assert status == 302, status
    cookie = next(value for name, value in headers if name == "set-cookie" and value.startswith("plimsoll_session="))
    return Web(port, cookie.split(";")[0])


def request(
    port: int, path: str, *, method: str = "GET", body: bytes = b"", **headers: str
) -> tuple[int, list[tuple[str, str]], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, [(name.lower(), value) for name, value in answer.getheaders()], answer.read()
    finally:
        connection.close()


def answers(port: int) -> bool:
    try:
        return request(port, "/health/live")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


async def open_page(web: Web, query: str) -> OpenPage:
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write(_spell_request(web, f"/live/stream?{query}"))
    status, headers = await _read_head(reader)
    return OpenPage(
        _Chunks(reader) if headers.get("transfer-encoding") == "chunked" else reader, writer, status, headers
    )


class _Chunks(asyncio.StreamReader):
    """Lines of a chunked answer; every chunk is a line or more."""

    def __init__(self, raw: asyncio.StreamReader) -> None:
        super().__init__()
        self._raw, self._lines = raw, list[bytes]()

    async def readline(self) -> bytes:
        while not self._lines:
            try:
                size = int((await self._raw.readline()).strip() or b"0", 16)
                data = (await self._raw.readexactly(size + 2))[:-2]
            except (asyncio.IncompleteReadError, ConnectionError):
                return b""
            if not size:
                return b""
            self._lines = data.splitlines(keepends=True)
        return self._lines.pop(0)


def _spell_request(web: Web, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {web.cookie}\r\n\r\n".encode()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    first = await reader.readline()
    if not first:
        raise EOFError("closed before an answer")
    status = int(first.split()[1])
    headers = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return status, headers


class Fetcher:
    """A connection that stays open, as a browser's does."""

    def __init__(self, web: Web) -> None:
        self.web = web
        self._connection: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def fetch(self, path: str) -> tuple[int, bytes, float]:
        """Status, body, milliseconds."""
        began_at = time.perf_counter()
        try:
            reader, status, headers = await self._ask(path)
        except (ConnectionError, EOFError):  # the server closes what was not used for seconds
            self.close()
            reader, status, headers = await self._ask(path)
        if "content-length" in headers:
            body = await reader.readexactly(int(headers["content-length"]))
        else:
            body = b""
            while size := int((await reader.readline()).strip(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        return status, body, (time.perf_counter() - began_at) * 1000

    async def _ask(self, path: str) -> tuple[asyncio.StreamReader, int, dict[str, str]]:
        if self._connection is None:
            self._connection = await asyncio.open_connection("127.0.0.1", self.web.port)
        reader, writer = self._connection
        writer.write(_spell_request(self.web, path))
        return reader, *(await _read_head(reader))

    def close(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
        self._connection = None


@dataclass
class Audience:
    """Pages that are open at once on one session; each fetches the header when it hears of a change. They are of one
    person, or of as many as there are in `people`."""

    web: Web
    session_pk: int
    since: str
    people: Sequence[Web] = ()
    pages: list[OpenPage] = field(default_factory=list)
    heard: int = 0
    fetched_ms: list[float] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    @asynccontextmanager
    async def seated(self, count: int) -> AsyncIterator["Audience"]:
        query = f"since={self.since}&sessions={self.session_pk}"
        viewers = list(islice(cycle(self.people or (self.web,)), count))
        for viewer in viewers:
            self.pages.append(await open_page(viewer, query))
        seats = zip(self.pages, viewers, strict=True)
        watching = [asyncio.ensure_future(self._watch(page, viewer)) for page, viewer in seats]
        try:
            yield self
        finally:
            for page in self.pages:
                page.close()
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _watch(self, page: OpenPage, viewer: Web) -> None:
        fetcher = Fetcher(viewer)
        try:
            async for name, _ in page.hear():
                if name == "changed":
                    self.heard += 1
                    status, _, took_ms = await fetcher.fetch(f"/live/sessions/{self.session_pk}?tab=timeline")
                    self.fetched_ms.append(took_ms)
                    if status != 200:
                        self.failed.append(status)
        finally:
            fetcher.close()


async def time_pages(web: Web, paths: Iterable[str]) -> list[float]:
    """Milliseconds of whole pages, one after the other."""
    fetcher = Fetcher(web)
    took = []
    for path in paths:
        status, _, took_ms = await fetcher.fetch(path)
        assert status == 200, (path, status)
        took.append(took_ms)
    fetcher.close()
    return took


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


class Talker:
    """A session that goes on: every piece is one more answer, sent to a web process with a key."""

    def __init__(self, port: int, key: str, name: str = "harbour") -> None:
        self.port, self.key = port, key
        self.talk = Conversation(name)
        self.calls = self._sent = 0

    def go_on(self) -> None:
        self.calls += 1
        self.talk.ask("And now?")
        self.talk.answer(f"msg_{self.talk.session_id}_{self.calls}", read=1_000 * self.calls, written=1_000)
        piece = b"".join(self.talk.lines[self._sent :])
        self._sent = len(self.talk.lines)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/x-ndjson"}
        path = f"/api/v1/ingest/transcripts?session={self.talk.session_id}"
        status, _, told = request(self.port, path, method="POST", body=piece, **headers)
        assert status == 200, told
