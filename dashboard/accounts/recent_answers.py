"""Answers of the database that the event loop waits for: asked in a thread, remembered for less than a second."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from django.db import DatabaseError, InterfaceError, connection

# A revoked key must stop within a second (S7): counted from before it was looked up.
KEPT_SECONDS = 0.8
PATIENCE_SECONDS = 2.0  # with a database that does not answer
MOST_KEPT = 4096

T = TypeVar("T")


class RecentAnswers(Generic[T]):
    """Many that ask for one name at once ask the database once."""

    def __init__(self, *, unreadable: T, kept_seconds: float = KEPT_SECONDS, thread_name: str) -> None:
        self._unreadable = unreadable
        self._kept_seconds = kept_seconds
        self._known: OrderedDict[bytes, tuple[float, T]] = OrderedDict()
        self._asked: dict[bytes, asyncio.Task[T]] = {}
        # One thread: it keeps its database connection, and more could not look up faster than requests come.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=thread_name)

    async def find(self, name: bytes, look_up: Callable[[], T]) -> T:
        kept = self._known.get(name)
        if kept is not None and time.monotonic() - kept[0] < self._kept_seconds:
            return kept[1]
        task = self._asked.get(name)
        if task is None:
            task = self._asked[name] = asyncio.create_task(self._ask(name, look_up))
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                return await asyncio.shield(task)
        except TimeoutError:
            return self._recall(name)

    def may_recall(self, name: bytes, age_seconds: float) -> bool:  # noqa: ARG002 (for subclasses)
        """Whether an old answer counts while the database cannot be read."""
        return False

    def close(self) -> None:
        self._thread.submit(connection.close)
        self._thread.shutdown(wait=False)

    async def _ask(self, name: bytes, look_up: Callable[[], T]) -> T:
        began = time.monotonic()
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._thread, _without_old_connection, look_up)
        except (DatabaseError, InterfaceError):
            return self._recall(name)
        finally:
            del self._asked[name]
        self._known[name] = (began, answer)
        self._known.move_to_end(name)
        if len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
        return answer

    def _recall(self, name: bytes) -> T:
        kept = self._known.get(name)
        if kept is not None and self.may_recall(name, time.monotonic() - kept[0]):
            return kept[1]
        return self._unreadable


def _without_old_connection(look_up: Callable[[], T]) -> T:
    """A connection that broke while nobody asked is replaced by a new one, once."""
    try:
        return look_up()
    except (DatabaseError, InterfaceError):
        connection.close()
        return look_up()
