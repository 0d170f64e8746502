"""The two lifetimes of a cache write, 5 minutes and 1 hour, and the one that counts where several were asked for.

Below `context`, because policies and forecasts need it; who gets which lifetime is decided in prompt/lifetimes.py.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum


class CacheTtl(StrEnum):
    """The lifetime of what a call writes to the cache; OFF: nothing is written. The values are the API's own."""

    FIVE_MINUTES = "5m"
    ONE_HOUR = "1h"
    OFF = "off"

    @property
    def seconds(self) -> int:
        return _SECONDS[self]


_SECONDS = {CacheTtl.OFF: 0, CacheTtl.FIVE_MINUTES: 5 * 60, CacheTtl.ONE_HOUR: 60 * 60}
# What a marker without a lifetime asks for.
DEFAULT_TTL = CacheTtl.FIVE_MINUTES
LIFETIMES = (CacheTtl.FIVE_MINUTES, CacheTtl.ONE_HOUR)


def get_written_ttl(written_tokens: int, written_1h_tokens: int) -> CacheTtl | None:
    """Return the lifetime a call wrote with, the shorter one of a mix; None when it wrote nothing."""
    if written_tokens == 0:
        return None
    return CacheTtl.ONE_HOUR if written_1h_tokens >= written_tokens else CacheTtl.FIVE_MINUTES


def get_shortest_ttl(ttls: Iterable[str]) -> str | None:
    """Return the shortest lifetime of several markers: the one a client can count on. None without markers."""
    return min(ttls, default=None, key=lambda ttl: ttl != CacheTtl.FIVE_MINUTES)


def compute_expiry(used_at: datetime, ttl: str) -> datetime | None:
    """Return when an entry expires that was written or read at this time; None where the lifetime is not known."""
    return used_at + timedelta(seconds=CacheTtl(ttl).seconds) if ttl in LIFETIMES else None


def get_expired_ttl(ttl: str | None, gap_seconds: float) -> CacheTtl | None:
    """Return the lifetime that ran out in a pause; None when it did not, or when it cannot be known.

    Without a known lifetime the longest is taken: no entry outlives it.
    """
    lifetime = CacheTtl(ttl) if ttl in LIFETIMES else CacheTtl.ONE_HOUR
    return lifetime if gap_seconds > lifetime.seconds else None
