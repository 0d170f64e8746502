"""Lifetimes: who gets the 1-hour cache, for which calls, and why the answer is held for the whole session."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from compaction.llm.cache_ttl import CacheTtl

# Calls that live long enough for an hour to pay; a trailing * stands for any ending.
ALLOWED_SOURCES = ("repl_main_thread*", "sdk", "agent:*")
# One to three calls and gone: nothing they write is read a second time.
SHORT_LIVED_SOURCES = ("session_memory", "speculation", "prompt_suggestion")
COMPACT_SOURCE = "compact"


class Provider(StrEnum):
    """Who serves the model."""

    FIRST_PARTY = "first party"
    BEDROCK = "bedrock"
    VERTEX = "vertex"
    FOUNDRY = "foundry"


@dataclass(frozen=True, slots=True)
class Account:
    """What decides about the hour. `has_opted_in` is the provider's or the client's switch for it."""

    provider: Provider = Provider.FIRST_PARTY
    is_staff: bool = False
    is_subscriber: bool = False
    is_in_overage: bool = False
    has_opted_in: bool = False


@dataclass(frozen=True, slots=True)
class TtlChoice:
    """The lifetime of a call's markers, and the rule that decided."""

    ttl: CacheTtl
    reason: str


@dataclass(frozen=True, slots=True)
class TtlLatch:
    """The answers of a session's first call. Were they asked again, a quota that runs out in between would change
    every marker and with it the cache key."""

    is_eligible: bool
    reason: str
    allowed_sources: tuple[str, ...] = ALLOWED_SOURCES


def latch_ttl(latched: TtlLatch | None, account: Account, allowed_sources: Sequence[str] = ALLOWED_SOURCES) -> TtlLatch:
    """The session's latch: the one it has, or a new one from its first call."""
    if latched is not None:
        return latched
    is_eligible, reason = _decide_eligibility(account)
    return TtlLatch(is_eligible, reason, tuple(allowed_sources))


def choose_ttl(
    latch: TtlLatch, source: str, *, parent_source: str | None = None, switch: CacheTtl | None = None
) -> TtlChoice:
    """The lifetime for one call. The client's switches go first; a compaction asks as the call it summarises would."""
    if switch is CacheTtl.OFF:
        return TtlChoice(CacheTtl.OFF, "DISABLE_PROMPT_CACHING is set.")
    if switch is CacheTtl.FIVE_MINUTES:
        return TtlChoice(CacheTtl.FIVE_MINUTES, "FORCE_PROMPT_CACHING_5M is set.")
    asked = parent_source if source == COMPACT_SOURCE and parent_source is not None else source
    refusal = _refuse_source(asked, latch.allowed_sources)
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


def _decide_eligibility(account: Account) -> tuple[bool, str]:
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
