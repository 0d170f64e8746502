"""The way to the recorder: a bounded store of frames that no call ever waits for.

A frame stays until the recorder says that it is written down, so a recorder that is killed and started again misses
nothing that fits. What does not fit is counted, and the count is told as soon as the recorder listens again. The
journal keeps both for the recorder when this process is killed.
"""

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from pathlib import Path

from dashboard.proxy.journal import Journal
from dashboard.proxy.private_socket import NotPrivate, connect_privately
from dashboard.proxy.wire import ACK, FRAME_HEAD, Exchange, Lost, Message, write_frame

MOST_WAITING_BYTES = 64 * 1024 * 1024
RECONNECT_SECONDS = 0.2
IDLE_RECONNECT_SECONDS = 1.0
LAST_WORDS_SECONDS = 1.5
# Calls that end within a moment are told together: waking up for each of them would hold up those that pass.
GATHER_SECONDS = 0.02
WRITTEN_AT_ONCE_BYTES = 256 * 1024

QUEUE_FULL = "recorder too slow or away"
TOO_LARGE = "too large to record"

log = logging.getLogger(__name__)


class Feed:
    """`offer` never waits. Use within one event loop."""

    def __init__(
        self, path: Path, journal: Journal | None = None, *, most_waiting_bytes: int = MOST_WAITING_BYTES
    ) -> None:
        self._path, self._journal = path, journal
        self._most_bytes = most_waiting_bytes
        self._waiting: dict[int, bytes] = {}  # by number, in order, until answered
        self._message_ids: dict[int, str] = {}  # of those
        self._waiting_bytes = 0
        self._unsent: deque[int] = deque()
        self._number = 0
        self._id = secrets.token_hex(8)  # a loss that is told again is the same loss
        self._lost: dict[tuple[int, str], Lost] = {}
        self._lost_number = 0
        self._news, self._emptied = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._refusal = ""  # why the recorder's socket is not trusted

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def start(self) -> None:
        """Connects before there is anything to tell: a recorder that is stopped waits for those it knows."""
        self._wake()

    def begin(self, call_id: str, team_pk: int) -> None:
        """Called before a call is passed on; `offer` or `count_lost` follows."""
        if self._journal is not None:
            self._journal.begin(call_id, team_pk)

    def offer(self, exchange: Exchange) -> None:
        frame_bytes = len(exchange.request_body) + len(exchange.response_body)
        if frame_bytes > self._most_bytes:
            self.count_lost(exchange.team_pk, TOO_LARGE, exchange.id)
            return
        if self._waiting_bytes + frame_bytes > self._most_bytes:
            self.count_lost(exchange.team_pk, QUEUE_FULL, exchange.id)
            return
        frame = self._put(exchange)
        if self._journal is not None:
            self._journal.end(exchange.id, exchange.team_pk, memoryview(frame)[FRAME_HEAD.size :])

    def count_lost(self, team_pk: int, reason: str, call_id: str) -> None:
        lost = self._lost.get((team_pk, reason))
        if lost is None:
            self._lost_number += 1
            lost = Lost(f"{self._id}-lost-{self._lost_number}", team_pk, reason, 0)
        lost = self._lost[team_pk, reason] = Lost(lost.id, team_pk, reason, lost.count + 1)
        if self._journal is not None:
            self._journal.lose(lost, call_id)
        self._wake()

    def _put(self, message: Message) -> bytes:
        self._number += 1
        frame = write_frame(self._number, message)
        self._waiting[self._number] = frame
        self._message_ids[self._number] = message.id
        self._waiting_bytes += len(frame)
        self._unsent.append(self._number)
        self._wake()
        return frame

    def _wake(self) -> None:
        self._news.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while True:
            try:
                reader, writer = await asyncio.open_unix_connection(sock=connect_privately(self._path))
            except OSError as error:
                self._log_refusal(str(error) if isinstance(error, NotPrivate) else "")
                await asyncio.sleep(RECONNECT_SECONDS if self._waiting else IDLE_RECONNECT_SECONDS)
                continue
            self._log_refusal("")
            self._unsent = deque(self._waiting)
            listening = asyncio.create_task(self._heed_answers(reader, writer))
            try:
                await self._send_on(writer, listening)
            except (OSError, RuntimeError) as error:  # RuntimeError: uvloop's word for a transport that has closed
                log.warning("the recorder is gone", extra={"error": type(error).__name__})
            finally:
                listening.cancel()
                writer.transport.abort()
                await asyncio.gather(listening, return_exceptions=True)

    def _log_refusal(self, reason: str) -> None:
        """Once for each reason, not with every attempt."""
        if reason and reason != self._refusal:
            log.error("the recorder is not used: %s", reason)
        self._refusal = reason

    async def _send_on(self, writer: asyncio.StreamWriter, listening: "asyncio.Task[None]") -> None:
        """Returns or raises OSError when the recorder is gone."""
        while True:
            # First: whatever becomes new from here on, the end of the recorder too, ends the wait below.
            self._news.clear()
            if listening.done():
                return
            self._tell_lost()
            while frames := self._take_unsent():
                writer.writelines(frames)
                await writer.drain()
            await self._news.wait()
            await asyncio.sleep(GATHER_SECONDS)

    def _take_unsent(self) -> list[bytes]:
        """As many as are written at once; empty when all are sent."""
        frames: list[bytes] = []
        size_bytes = 0
        while self._unsent and size_bytes < WRITTEN_AT_ONCE_BYTES:
            frame = self._waiting.get(self._unsent.popleft())
            if frame is not None:
                frames.append(frame)
                size_bytes += len(frame)
        return frames

    async def _heed_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (number,) = ACK.unpack(await reader.readexactly(ACK.size))
                frame = self._waiting.pop(number, None)
                self._waiting_bytes -= len(frame) if frame else 0
                message_id = self._message_ids.pop(number, None)
                if self._journal is not None and message_id is not None:
                    self._journal.confirm(message_id)
                if not self._waiting:
                    self._emptied.set()
        except (asyncio.IncompleteReadError, OSError):
            writer.transport.abort()
        finally:
            self._news.set()

    def _tell_lost(self) -> None:
        losses, self._lost = self._lost, {}
        for lost in losses.values():
            self._put(lost)

    async def close(self) -> None:
        """Gives the recorder a moment to write down what is under way; what it does not stays in the journal."""
        if self._task is not None:
            await self._stop(self._task)
        if self._journal is not None:
            self._journal.close()

    async def _stop(self, task: "asyncio.Task[None]") -> None:
        if self._waiting or self._lost:
            self._emptied.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._emptied.wait(), LAST_WORDS_SECONDS)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if unwritten := len(self._waiting) + sum(lost.count for lost in self._lost.values()):
            log.warning("calls that passed are not recorded yet", extra={"calls": unwritten})
