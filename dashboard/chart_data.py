"""What figures are drawn from: calls, lines, compactions, breaks, days, causes, parts of a context, as plain rows."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple


class TimelineAxis(StrEnum):
    """What a timeline runs along."""

    CALL = "call"
    TIME = "time"


class TimelineCall(NamedTuple):
    """One API call: its number in its thread, its tokens by kind, the sub-agent that made it, its key for details.

    `place` on the axis of calls: one of the conversation stands at its number, all others below the call they followed.
    A tuple: a session has thousands, and a dataclass takes five times as long to make.
    """

    place: float
    number: int
    at: datetime | None
    context_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    uncached_tokens: int
    output_tokens: int
    agent: str | None
    key: str


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """A threshold across the timeline; `style` is the level's name in the stylesheets."""

    name: str
    style: str
    tokens: int
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class TimelineCompaction:
    """A compaction right before the call with this key; right behind it where no call has followed yet."""

    key: str
    before_tokens: int
    after_tokens: int | None
    trigger: str
    is_behind: bool = False


@dataclass(frozen=True, slots=True)
class TimelineBreak:
    """A cache break at the call with this key; the dollars are None where the model has no price."""

    key: str
    usd: Decimal | None
    cause: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """All that one timeline shows. Calls of sub-agents are told by their `agent` and drawn in lanes of their own."""

    calls: tuple[TimelineCall, ...]
    lines: tuple[TimelineLine, ...] = ()
    compactions: tuple[TimelineCompaction, ...] = ()
    breaks: tuple[TimelineBreak, ...] = ()


@dataclass(frozen=True, slots=True)
class DaySpend:
    """What a day cost at list price and how much of that was lost to cache breaks; None where no price is known."""

    day: date
    spend_usd: Decimal | None
    lost_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class DayLoss:
    """What cache breaks cost on a day, and how much of it could have been avoided."""

    day: date
    breaks: int
    lost_usd: Decimal
    avoidable_usd: Decimal


@dataclass(frozen=True, slots=True)
class GroupLoss:
    """What the breaks of one cause, project, developer or model cost, and how much of it could have been avoided."""

    name: str
    breaks: int
    lost_usd: Decimal
    avoidable_usd: Decimal


@dataclass(frozen=True, slots=True)
class ContextPart:
    """Tokens of one part of a context: its category, and the tool and the file where it has them."""

    category: str
    tokens: int
    tool: str | None = None
    file: str | None = None
