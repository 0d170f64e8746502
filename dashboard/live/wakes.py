"""Telling other processes at once that something changed, where Redis is the broker.

Nothing depends on it: without Redis, or while it is away, every process looks for itself a few times a second.
"""

import asyncio
import time
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

# By their paths: what they load takes long, and most installations have no Redis.
SPEAKER = "dashboard.live.redis_wire.speaker"
HEAR = "dashboard.live.redis_wire.hear"
AGAIN_AFTER_SECONDS = 10.0


def has_redis() -> bool:
    return bool(settings.BROKER_URL.startswith(("redis://", "rediss://")))


def say_changed(*, team_pk: int, **_: Any) -> None:
    """A receiver of dashboard.models.sessions_changed."""
    if has_redis():
        import_string(SPEAKER).say(team_pk)


class Ear:
    """Hears of changes as long as Redis is there, and tries again when it was away."""

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self._hearing: asyncio.Future[None] | None = None
        self._tried_at = 0.0

    def listen(self) -> bool:
        """Whether somebody listens now."""
        if self._hearing is not None and not self._hearing.done():
            return True
        if has_redis() and time.monotonic() - self._tried_at > AGAIN_AFTER_SECONDS:
            self._tried_at = time.monotonic()
            self._hearing = asyncio.ensure_future(import_string(HEAR)(self.woken))
            return True
        return False

    def close(self) -> None:
        if self._hearing is not None:
            self._hearing.cancel()
