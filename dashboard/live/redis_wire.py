"""Redis as a wire between processes. Loaded where Redis is the broker: the library takes most of a second."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import redis
import redis.asyncio
from django.conf import settings

CHANNEL = "plimsoll:changes"
SILENT_AFTER_FAILURE_SECONDS = 5.0
SUBSCRIBE_SECONDS = 2.0

log = logging.getLogger(__name__)


class Speaker:
    """Publishes that a team changed, in the background: no request waits for Redis."""

    def __init__(self) -> None:
        self._silent_until = 0.0
        self._publishing = ThreadPoolExecutor(1, thread_name_prefix="live-changes")

    def say(self, team_pk: int) -> None:
        if time.monotonic() >= self._silent_until:
            self._publishing.submit(self._publish, team_pk)

    def _publish(self, team_pk: int) -> None:
        if time.monotonic() < self._silent_until:
            return
        try:
            _connect().publish(CHANNEL, team_pk)
        except (redis.RedisError, OSError) as error:
            self._silent_until = time.monotonic() + SILENT_AFTER_FAILURE_SECONDS
            log.warning("Redis cannot be told of a change", extra={"error": type(error).__name__})


speaker = Speaker()


@cache
def _connect() -> "redis.Redis":
    return redis.Redis.from_url(settings.BROKER_URL, socket_connect_timeout=1, socket_timeout=1)


async def hear(woken: asyncio.Event) -> None:
    """Sets the event with every change that is told; returns when Redis is not there or goes away."""
    client = redis.asyncio.Redis.from_url(settings.BROKER_URL, socket_connect_timeout=1)
    try:
        async with client.pubsub(ignore_subscribe_messages=True) as heard:
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                await heard.subscribe(CHANNEL)
            async for _ in heard.listen():
                woken.set()
    except (redis.RedisError, OSError) as error:
        log.warning("Redis tells of no changes: looking for them", extra={"error": type(error).__name__})
    finally:
        await client.aclose()
