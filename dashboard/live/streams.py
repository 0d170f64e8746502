"""The open streams of this process, and the one task that looks for news on behalf of all of them."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

import orjson
from django.db import DatabaseError

from dashboard.live.board import Board, News
from dashboard.live.viewers import Viewer, Viewers
from dashboard.live.wakes import Ear
from dashboard.live.wanted import Wanted

STILL_HERE_SECONDS = 15.0
HEARD_PAUSE_SECONDS = 2.0  # between looks while Redis tells of changes
STILL_HERE = b"event: still\ndata: {}\n\n"
END = b"event: end\ndata: {}\n\n"

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Stream:
    """One open page."""

    session_key: str
    viewer: Viewer
    wanted: Wanted
    told: dict[str, int]
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False

    def end(self) -> None:
        self.is_over = True
        self.woken.set()


class Streams:
    def __init__(self, board: Board, viewers: Viewers, *, most: int) -> None:
        self.board, self.viewers, self.most = board, viewers, most
        self._open: set[Stream] = set()
        self._watcher: asyncio.Task[None] | None = None

    @property
    def is_full(self) -> bool:
        return len(self._open) >= self.most

    def __len__(self) -> int:
        return len(self._open)

    def end_all(self) -> None:
        """The process stops: pages come back to its successor."""
        for stream in self._open:
            stream.end()

    async def tell(self, session_key: str, viewer: Viewer, wanted: Wanted) -> AsyncIterator[bytes]:
        """Events for one page until it leaves, its person may not see anything of it any more, or the process stops."""
        stream = Stream(session_key, viewer, wanted, dict(wanted.since))
        self._open.add(stream)
        self._watch()
        try:
            yield STILL_HERE
            async with aclosing(self._list_news(stream)) as told:
                async for piece in told:
                    yield piece
            yield END
        finally:
            self._open.discard(stream)
            if not self._open and self._watcher is not None:
                self._watcher.cancel()

    async def _list_news(self, stream: Stream) -> AsyncGenerator[bytes]:
        said_at = checked_at = time.monotonic()
        await self._look(stream)
        while not stream.is_over:
            now = time.monotonic()
            if now - checked_at >= self.viewers.trusted_seconds:
                checked_at = now
                if not await self._may_stay(stream):
                    return
            news = self.board.find_news(stream.wanted, stream.told, stream.viewer.teams)
            if news is not None:
                stream.told, said_at = dict(news.teams), now
                yield spell_event(news)
            elif now - said_at >= STILL_HERE_SECONDS:
                said_at = now
                yield STILL_HERE
            stream.woken.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.viewers.trusted_seconds):
                    await stream.woken.wait()

    async def _look(self, stream: Stream) -> None:
        """What changed between the drawing of the page and the opening of its stream."""
        try:
            await self.board.look([team.pk for team in stream.viewer.teams])
        except DatabaseError:
            log.warning("changes cannot be read")

    async def _may_stay(self, stream: Stream) -> bool:
        """False when the person has signed out or has left every team of the page."""
        try:
            viewer = await self.viewers.find(stream.session_key)
        except DatabaseError:
            return True  # nothing can be read, so nothing is told either
        if viewer is None or not any(team.slug in stream.wanted.since for team in viewer.teams):
            return False
        stream.viewer = viewer
        return True

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        if self._watcher is None or self._watcher.done() or self._watcher.get_loop() is not loop:
            self._watcher = loop.create_task(self._look_on())

    async def _look_on(self) -> None:
        """One look for all streams, again and again, as long as there is one."""
        ear = Ear()
        try:
            while True:
                pause_seconds = HEARD_PAUSE_SECONDS if ear.listen() else self.board.pause_seconds
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_seconds):
                        await ear.woken.wait()
                        # What comes within a moment is told together.
                        await asyncio.sleep(self.board.pause_seconds / 4)
                ear.woken.clear()
                await self._look_once()
        finally:
            ear.close()

    async def _look_once(self) -> None:
        teams = {team.pk for stream in self._open for team in stream.viewer.teams if team.slug in stream.wanted.since}
        try:
            await self.board.look(teams, at_once=True)
        except DatabaseError:
            log.warning("changes cannot be read")
            return
        for stream in self._open:
            if self.board.find_news(stream.wanted, stream.told, stream.viewer.teams) is not None:
                stream.woken.set()


def spell_event(news: News) -> bytes:
    return b"event: changed\ndata: " + orjson.dumps(news.spell(), option=orjson.OPT_NON_STR_KEYS) + b"\n\n"
