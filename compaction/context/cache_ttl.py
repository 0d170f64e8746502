"""Lifetimes of cache writes, 5 minutes and 1 hour: which one a call gets, which one counts, and when it expires.

Which calls get the hour is decided once for a session, because another answer would change every marker.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase

# Calls of conversations long enough for an hour to pay; a trailing * matches any ending.
ALLOWED_SOURCES = ("repl_main_thread*", "sdk", "agent:*")
# One to three calls: nothing they write is read a second time.
SHORT_LIVED_SOURCES = ("session_memory", "speculation", "prompt_suggestion")
COMPACT_SOURCE = "compact"


class CacheTtl(StrEnum):
    """How long the cache keeps what a call writes; OFF: nothing is written. The values are the API's own."""

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
    """Return the shortest lifetime of several markers, which a client can count on; None without markers."""
    return min(ttls, default=None, key=lambda ttl: ttl != CacheTtl.FIVE_MINUTES)


def compute_expiry(used_at: datetime, ttl: str) -> datetime | None:
    """Return when an entry last written or read at this time expires; None where the lifetime is not known."""
    return used_at + timedelta(seconds=CacheTtl(ttl).seconds) if ttl in LIFETIMES else None


def get_expired_ttl(ttl: str | None, gap_seconds: float) -> CacheTtl | None:
    """Return the lifetime that a pause exceeded, else None.

    Without a known lifetime the longest one counts: no entry outlives it.
    """
    lifetime = CacheTtl(ttl) if ttl in LIFETIMES else CacheTtl.ONE_HOUR
    return lifetime if gap_seconds > lifetime.seconds else None


class Provider(StrEnum):
    """Who serves the model."""

    FIRST_PARTY = "first party"
    BEDROCK = "bedrock"
    VERTEX = "vertex"
    FOUNDRY = "foundry"


@dataclass(frozen=True, slots=True)
class CacheAccount:
    """What decides whether an account gets the hour. `has_opted_in`: the provider's or the client's switch for it."""

    provider: Provider = Provider.FIRST_PARTY
    is_staff: bool = False
    is_subscriber: bool = False
    is_in_overage: bool = False
    has_opted_in: bool = False


@dataclass(frozen=True, slots=True)
class TtlChoice:
    """The lifetime of a call's markers, and the rule that decided it."""

    ttl: CacheTtl
    reason: str


@dataclass(frozen=True, slots=True)
class TtlLatch:
    """What the first call of a session decided. Deciding again could change every marker, and so the cache key, when a
    quota runs out in between."""

    is_eligible: bool
    reason: str
    allowed_sources: tuple[str, ...] = ALLOWED_SOURCES


def latch_ttl(
    latched: TtlLatch | None, account: CacheAccount, allowed_sources: Sequence[str] = ALLOWED_SOURCES
) -> TtlLatch:
    """Return the session's latch: the existing one, or a new one from its first call."""
    if latched is not None:
        return latched
    is_eligible, reason = _decide_eligibility(account)
    return TtlLatch(is_eligible, reason, tuple(allowed_sources))


def choose_ttl(
    latch: TtlLatch, source: str, *, parent_source: str | None = None, switch: CacheTtl | None = None
) -> TtlChoice:
    """Return the lifetime for one call. The client's switches come first; a compaction has its parent's."""
    if switch is CacheTtl.OFF:
        return TtlChoice(CacheTtl.OFF, "DISABLE_PROMPT_CACHING is set.")
    if switch is CacheTtl.FIVE_MINUTES:
        return TtlChoice(CacheTtl.FIVE_MINUTES, "FORCE_PROMPT_CACHING_5M is set.")
    effective_source = parent_source if source == COMPACT_SOURCE and parent_source is not None else source
    refusal = _refuse_source(effective_source, latch.allowed_sources)
    if refusal is not None:
        return TtlChoice(CacheTtl.FIVE_MINUTES, refusal)
    if switch is CacheTtl.ONE_HOUR:
        return TtlChoice(CacheTtl.ONE_HOUR, "ENABLE_PROMPT_CACHING_1H is set.")
    return TtlChoice(CacheTtl.ONE_HOUR if latch.is_eligible else CacheTtl.FIVE_MINUTES, latch.reason)


def _refuse_source(source: str, allowed_sources: Sequence[str]) -> str | None:
    if source in SHORT_LIVED_SOURCES:
        return f"{source} ends before an hour could pay."
    if not any(fnmatchcase(source, pattern) for pattern in allowed_sources):
        return f"{source} is not on the list of calls that get an hour."
    return None


def _decide_eligibility(account: CacheAccount) -> tuple[bool, str]:
    if account.has_opted_in:
        return True, "The hour was asked for."
    if account.provider is not Provider.FIRST_PARTY:
        return False, f"{account.provider.value.title()} gives 5 minutes unless the hour is asked for."
    if account.is_staff:
        return True, "The staff flag is set."
    if account.is_subscriber:
        if account.is_in_overage:
            return False, "The subscription is running on usage credits."
        return True, "A subscription within its quota gets the hour."
    return False, "An API key gets 5 minutes unless the hour is asked for."
