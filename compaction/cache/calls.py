"""Calls as break detection sees them, the baseline the next one is judged against, and the policy of judging.

How calls are found in stored facts: see fact_calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from compaction.cache.causes import Cause
from compaction.cache.conditions import Condition
from compaction.cache.fingerprint import Fingerprint
from compaction.llm.cache_ttl import CacheTtl, find_written_ttl
from compaction.llm.names import UNJUDGED_FAMILIES
from compaction.llm.prices import Price, find_team_price
from compaction.transcripts.entries import Usage
from compaction.transcripts.frozen import Value, change_value

# Both must be passed for a loss; the client's own figures.
LOSS_SHARE_PERCENT = 5
LOSS_TOKENS = 2_000
# These models cache differently; the client neither judges them nor compares with them.
UNJUDGED_MODELS = UNJUDGED_FAMILIES
# Forks and side calls that share a session's id but not its conversation.
UNJUDGED_SOURCES = ("compact", "session_memory", "speculation", "prompt_suggestion")

# How the client names calls of a conversation; what it calls for otherwise (titles, suggestions) stands beside it.
CONVERSATION_SOURCES = ("repl_main_thread", "sdk", "agent:")

# What announces that the next read will be lower, the weightiest first.
ANNOUNCED = (Cause.COMPACTED, Cause.MICRO_COMPACTED, Cause.DELETION_ANNOUNCED, Cause.REWOUND)

# The parent of a call whose ancestors hold no other call.
CONVERSATION_START = ""


def is_beside_conversation(source: str | None) -> bool:
    """Whether a call was made for something else than the next turn. A call whose source nobody told is a turn's."""
    return source is not None and not source.startswith(CONVERSATION_SOURCES)


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """What counts as a loss, which calls are left out, and a team's own prices by the base names of models."""

    loss_share_percent: int = LOSS_SHARE_PERCENT
    loss_tokens: int = LOSS_TOKENS
    unjudged_models: tuple[str, ...] = UNJUDGED_MODELS
    unjudged_sources: tuple[str, ...] = UNJUDGED_SOURCES
    prices: Mapping[str, Price] = field(default_factory=dict)

    def find_price(self, model: str | None) -> Price | None:
        """Return the team's own price of a model, which goes before every list."""
        return find_team_price(self.prices, model)

    def judges(self, model: str | None, source: str | None, usage: Usage) -> bool:
        """Whether a call is judged and becomes a baseline; empty usage (errors, placeholders) is neither."""
        if source in self.unjudged_sources or is_beside_conversation(source) or usage.prompt_tokens == 0:
            return False
        return not _has_any(model or "", self.unjudged_models)


@lru_cache(maxsize=256)
def _has_any(name: str, parts: tuple[str, ...]) -> bool:
    return any(part in name.lower() for part in parts)


class CacheCall(Value, frozen=True):
    """One API call of one thread. `at` is when the request started, or its first line was written.

    `announced` is what happened since the call before it and makes a rebuild expected; `noticed` is what often goes
    with a loss. `parent_call_id` is the call it continues, where known.
    """

    call_id: str
    at: datetime
    model: str | None
    usage: Usage
    position: int = 0
    client_version: str | None = None
    query_source: str | None = None
    parent_call_id: str | None = None
    announced: tuple[Cause, ...] = ()
    noticed: tuple[Condition, ...] = ()
    fingerprint: Fingerprint | None = None
    api_reason: str | None = None
    client_reasons: tuple[str, ...] = ()
    requested_ttl: str | None = None
    starts_turn: bool = False
    has_thinking: bool = False

    @property
    def written_ttl(self) -> CacheTtl | None:
        """Return the lifetime this call wrote with; None when it wrote nothing."""
        return find_written_ttl(self.usage.cache_creation_tokens, self.usage.cache_creation_1h_tokens)


class Baseline(Value, frozen=True):
    """What the next call of the thread is judged against: the last judged call, and what was announced since."""

    call_id: str
    at: datetime
    model: str | None
    read_tokens: int
    written_tokens: int
    ttl: str | None = None
    client_version: str | None = None
    speed: str | None = None
    has_thinking: bool = False
    fingerprint: Fingerprint | None = None
    announced: tuple[Cause, ...] = ()
    deleted_tokens: int = 0

    @property
    def cached_tokens(self) -> int:
        """The prefix the next call should find."""
        return self.read_tokens + self.written_tokens


def make_baseline(previous: Baseline | None, call: CacheCall) -> Baseline:
    """The baseline after a judged call. A call that wrote nothing leaves the lifetime in force as it was."""
    usage = call.usage
    carried = previous.ttl if previous else None
    return Baseline(
        call.call_id,
        call.at,
        call.model,
        usage.cache_read_tokens,
        usage.cache_creation_tokens,
        call.written_ttl or carried or call.requested_ttl,
        call.client_version,
        usage.speed,
        call.has_thinking or (previous is not None and previous.has_thinking and not call.starts_turn),
        call.fingerprint,
        deleted_tokens=usage.cache_deleted_tokens,
    )


def announce(baseline: Baseline | None, *causes: Cause) -> Baseline | None:
    """The baseline with something announced: a compaction, cleared results, a deletion, a step back."""
    if baseline is None or not causes:
        return baseline
    known = {*baseline.announced, *causes}
    return change_value(baseline, announced=tuple(cause for cause in ANNOUNCED if cause in known))


def merge_calls(calls: "list[CacheCall]") -> CacheCall:
    """One call from several reports of it (lines, proxy, telemetry), whatever order they came in."""
    if len(calls) == 1:
        return calls[0]
    known = {cause for call in calls for cause in call.announced}
    first = min(calls, key=lambda call: (call.at, call.position))
    prints = [call.fingerprint for call in calls if call.fingerprint is not None]
    return CacheCall(
        call_id=first.call_id,
        at=first.at,
        position=first.position,
        usage=max((call.usage for call in calls), key=_order_usage),
        model=_pick(call.model for call in calls),
        client_version=_pick(call.client_version for call in calls),
        query_source=_pick(call.query_source for call in calls),
        parent_call_id=_pick(call.parent_call_id for call in calls),
        announced=tuple(cause for cause in ANNOUNCED if cause in known),
        noticed=tuple(condition for condition in Condition if any(condition in call.noticed for call in calls)),
        fingerprint=max(prints, key=_order_fingerprint, default=None),
        api_reason=_pick(call.api_reason for call in calls),
        client_reasons=max((call.client_reasons for call in calls), key=lambda names: (len(names), names)),
        requested_ttl=_pick(call.requested_ttl for call in calls),
        starts_turn=any(call.starts_turn for call in calls),
        has_thinking=any(call.has_thinking for call in calls),
    )


def _pick(values: Any) -> Any:
    """One known value out of several reports, the same one in every order of arrival."""
    return max((value for value in values if value is not None), default=None)


def _order_usage(usage: Usage) -> tuple[int, ...]:
    """The last line of a response has the largest output; a report with a 1-hour split knows more than one without."""
    return (
        usage.output_tokens,
        usage.prompt_tokens,
        usage.cache_creation_1h_tokens,
        usage.cache_read_tokens,
        usage.cache_creation_tokens,
    )


def _order_fingerprint(prints: Fingerprint) -> tuple[bool, int, tuple[str, ...], str]:
    return (not prints.are_messages_opaque, len(prints.messages), prints.messages, repr(prints.settings))
