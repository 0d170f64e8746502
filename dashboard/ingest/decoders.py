"""Decoding on all cores: a pool of processes that decode, while the one that started them writes.

They leave Ctrl-C to the process that started them, and end when it is gone, however it went.
"""

import contextlib
import fcntl
import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait
from types import TracebackType
from typing import TypeVar

import msgspec

from compaction.llm.prices import get_list_price
from dashboard.ingest.decoding import Decoded, decode_files, decode_piece
from dashboard.ingest.looks import PIECE_BYTES, NextLook
from dashboard.ingest.observed import Piece, Rules
from dashboard.loading import loading

PIPE_BYTES = 1024 * 1024  # the most that Linux lets a user have
MOST_PROCESSES = 8  # one writer cannot keep up with more
DecodersLost = BrokenProcessPool

# Ten times faster there, four times back, than pickle over the facts of a session.
_PACKER = msgspec.msgpack.Encoder()
_UNPACKER = msgspec.msgpack.Decoder(Decoded)
_Work = TypeVar("_Work")


@dataclass(frozen=True, slots=True)
class Underway:
    """Work that some process does."""

    _packed: "Future[bytes]"

    def wait(self) -> Decoded:
        """Raises DecodersLost when a process was killed."""
        return _UNPACKER.decode(self._packed.result())


class Decoders:
    """Work is handed in and waited for in any order; without processes it is done at once."""

    def __init__(self, rules: Rules, *, processes: int) -> None:
        self.rules = rules  # what is handed in from then on is decoded by them
        self._pool: ProcessPoolExecutor | None = None
        if processes:
            # A fork shares what is loaded already; where it is not safe, a fresh start is the default.
            context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
            with loading():
                get_list_price("claude-opus-4-5", None)  # the first question loads the tables: once, before they part
            self._pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_settle_in)
            _widen(self._pool)
            self._pool.submit(int)  # starts them all, now: what is opened from here on is not theirs

    def __enter__(self) -> "Decoders":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def read_on(self, looks: tuple[NextLook, ...]) -> Underway:
        return self._submit(decode_files, looks)

    def take(self, piece: Piece) -> Underway:
        return self._submit(decode_piece, piece)

    def _submit(self, decode: Callable[[_Work, Rules], Decoded], work: _Work) -> Underway:
        if self._pool is not None:
            return Underway(self._pool.submit(_decode_and_pack, decode, work, self.rules))
        done: Future[bytes] = Future()
        done.set_result(_decode_and_pack(decode, work, self.rules))
        return Underway(done)


def count_processes(work_bytes: int) -> int:
    """None for little work: they would take longer to start than it takes."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return 0 if work_bytes <= PIECE_BYTES or cores == 1 else min(cores, MOST_PROCESSES)


def prepare_process() -> None:
    """For one that writes what decoders make: a million small objects and hardly a cycle. Looking for cycles took a
    sixth of the time, and the thread that hands out work must not wait long for the one that writes."""
    gc.freeze()  # what is loaded by now stays, and after a fork stays shared
    gc.set_threshold(100_000, 20, 100)
    sys.setswitchinterval(0.0005)


def _widen(pool: ProcessPoolExecutor) -> None:
    """What is decoded comes back in megabytes, through a pipe of 64 KB: a fiftieth of the time goes into waking each
    other up. The standard library has no way to say so."""
    queue = getattr(pool, "_result_queue", None)
    writer = getattr(queue, "_writer", None)
    if sys.platform == "linux" and writer is not None:
        with contextlib.suppress(OSError):  # one who has many pipes may have no wide ones
            fcntl.fcntl(writer.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _decode_and_pack(decode: Callable[[_Work, Rules], Decoded], work: _Work, rules: Rules) -> bytes:
    return _PACKER.encode(decode(work, rules))


def _settle_in() -> None:
    """First thing in a new process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(10)  # everybody waits for the one who writes
    gc.disable()  # it lives as long as one import, and makes hardly a cycle
    threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()


def _end_with_parent() -> None:
    """The kernel tells, even after kill -9. A sibling started later holds this pipe too, but ends before."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
