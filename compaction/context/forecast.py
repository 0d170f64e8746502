"""Forecast: how many calls, turns and minutes are left until a threshold, as a range; and the cost of a cold cache.

The past calls of one thread give its pace, the pace and the tokens that are left give the forecast; no clock. The
figures are calibrated on one half of 150 recorded transcripts, split by session, and checked on the other half:
`python -m bench.forecast FOLDER` prints both.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

import msgspec

from compaction.context.cache_ttl import DEFAULT_TTL, CacheTtl, get_written_ttl
from compaction.context.call_costs import compute_cost
from compaction.llm.prices import Price
from compaction.transcripts.chain import is_boundary
from compaction.transcripts.entries import Entry, Iteration, Usage
from compaction.transcripts.user_lines import classify_entry

# A thread begins, or begins again after a compaction, by reading files: the five calls after the first add 2,200 to
# 7,000 tokens each on average, later ones 1,070 (352 and 3,185 calls of the tuning half).
OPENING_CALLS = 5
# Mean growth of a call after the opening, and for how many calls of the thread's own it counts: with 20, threads that
# were slow or fast so far come out nearer to their later pace (10 and 40 differ little).
USUAL_GROWTH_TOKENS = 1_100
USUAL_CALLS = 20
LEAST_GROWTHS = 3
# Shorter memories (20, 30, 50 calls) hold no better.
MEMORY_CALLS = 100
# The points that a pace is measured from: as many growths, the opening before them, and the first call.
MEMORY_POINTS = MEMORY_CALLS + OPENING_CALLS + 1
# A context that shrinks by more was compacted, cleared or rewound: no growth to learn from.
DROP_SHARE = 0.05
# A longer pause is a person away, not work.
LONGEST_PAUSE_SECONDS = 300
# Turns differ more than calls (one to 29 calls in 80% of 359 turns): fewer whole ones give no mean.
LEAST_WHOLE_TURNS = 4
# A threshold this near is shown as "soon" beside the level.
SOON_CALLS, SOON_TURNS = 5, 2


class CallPoint(msgspec.Struct, frozen=True, gc=False):
    """One call of a thread, as far as a pace depends on it: the context after it, its time and its turn."""

    context_tokens: int
    at: datetime | None = None
    turn: int | None = None
    is_first_after_compaction: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """From the soonest to the latest, with the likely value between them. Never negative."""

    low: int
    likely: int
    high: int


@dataclass(frozen=True, slots=True)
class GrowthQuantiles:
    """The distance of the actual value from the likely one: the range is likely x low to likely x high + slack.

    The slack is for the last calls before the threshold, where a single large result decides."""

    low: float
    high: float
    slack: int

    def compute_range(self, likely: float, least: int = 0) -> Range:
        """Return the range around a likely value, in whole units."""
        # Rounded first, so that 116.000001 does not become 117.
        low, high = round(self.low * likely, 3), round(self.high * likely + self.slack, 3)
        return Range(math.floor(low), max(least, round(likely)), math.ceil(high))


# Calibrated on 815 cases in 49 sessions of the tuning half (each height from 50,000 to 150,000 tokens that a session
# reached taken as its line, cut where it stood at 30 to 93% of it): 87% in range, 6% sooner, 7% later. With real auto
# lines (37 cases, 9 sessions): 78, 0 and 22%. To come sooner than shown is the worse of the two errors.
# Turns on the 189 of them with enough whole turns: work often ends within the turn that runs, so they begin near 0.
CALLS_SPREAD = GrowthQuantiles(0.4, 1.6, 3)
TURNS_SPREAD = GrowthQuantiles(0.15, 1.6, 1)
MINUTES_SPREAD = GrowthQuantiles(0.35, 1.8, 2)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a thread works: what a forecast needs of its past, whatever the threshold. Rounded, to be stored.

    Without times there are no seconds, without enough whole turns no calls per turn."""

    growth_tokens: int
    calls_per_turn: float | None = None
    seconds_per_call: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is left until the threshold. Turns and minutes (of work, without pauses) only where the calls have them."""

    remaining_tokens: int
    growth_tokens_per_call: int
    calls: Range
    turns: Range | None = None
    minutes: Range | None = None

    @property
    def is_soon(self) -> bool:
        """Return whether the threshold is not reached yet, but will be in a few calls or turns."""
        if self.remaining_tokens == 0:
            return False
        return self.calls.likely <= SOON_CALLS or (self.turns is not None and self.turns.likely <= SOON_TURNS)


@dataclass(frozen=True, slots=True)
class NotEnoughData:
    """The reason why there is no forecast."""

    sentence: str


@dataclass(frozen=True, slots=True)
class NextCallCost:
    """The cost of the next prompt with a warm and with a cold cache; the answer costs the same in both."""

    prompt_tokens: int
    warm_usd: Decimal
    cold_usd: Decimal
    ttl: CacheTtl
    source: str

    @property
    def extra_usd(self) -> Decimal:
        """What a pause longer than the cache's lifetime would cost."""
        return self.cold_usd - self.warm_usd


def list_call_points(entries: Iterable[Entry]) -> tuple[CallPoint, ...]:
    """Return the calls of one thread's entries with their turns and compactions; the last line of a response counts."""
    points: dict[str, CallPoint] = {}
    turn = 0
    is_after_compaction = False
    for entry in entries:
        if is_boundary(entry):
            is_after_compaction = True
        elif (line := classify_entry(entry)) is not None and line.starts_turn:
            turn += 1
        call_id = entry.call_id
        if call_id is None or entry.message is None or entry.message.usage is None:
            continue
        tokens = entry.message.usage.context_tokens
        if call_id in points:
            points[call_id] = msgspec.structs.replace(points[call_id], context_tokens=tokens)
        else:
            points[call_id] = CallPoint(tokens, entry.at, turn, is_first_after_compaction=is_after_compaction)
            is_after_compaction = False
    return tuple(points.values())


def measure_pace(calls: Sequence[CallPoint]) -> Pace | NotEnoughData:
    """Return the pace of a thread from its last calls; those before MEMORY_POINTS change nothing."""
    recent = calls[-MEMORY_POINTS:]
    growths = list(_list_growths(recent))
    if len(growths) < LEAST_GROWTHS:
        missing = _count_opening_left(recent) + LEAST_GROWTHS - len(growths)
        return NotEnoughData(f"No forecast yet: {missing} more {'call' if missing == 1 else 'calls'} needed.")
    growth = (sum(growths) + USUAL_CALLS * USUAL_GROWTH_TOKENS) / (len(growths) + USUAL_CALLS)
    return Pace(round(growth), _measure_turns(recent), _measure_seconds(recent))


def forecast_threshold(
    calls: Sequence[CallPoint], line_tokens: int, *, used_tokens: int | None = None
) -> Forecast | NotEnoughData:
    """Return the forecast of a thread for a threshold. `used_tokens`: what its window holds now, including what arrived
    since its last call."""
    if not calls:
        return NotEnoughData("No API calls recorded yet.")
    used = calls[-1].context_tokens if used_tokens is None else used_tokens
    return forecast_remaining(measure_pace(calls), line_tokens - used)


def forecast_remaining(pace: Pace | NotEnoughData, remaining_tokens: int) -> Forecast | NotEnoughData:
    """Return the forecast at this pace, or why there is none. At the threshold nothing is left at any pace."""
    if remaining_tokens <= 0:
        zero = Range(0, 0, 0)
        return Forecast(0, pace.growth_tokens if isinstance(pace, Pace) else 0, zero, zero, zero)
    if isinstance(pace, NotEnoughData):
        return pace
    calls = remaining_tokens / pace.growth_tokens
    turns, minutes = None, None
    if pace.calls_per_turn is not None:
        turns = TURNS_SPREAD.compute_range(calls / pace.calls_per_turn)
    if pace.seconds_per_call is not None:
        minutes = MINUTES_SPREAD.compute_range(calls * pace.seconds_per_call / 60)
    in_calls = CALLS_SPREAD.compute_range(calls, least=1)
    return Forecast(remaining_tokens, pace.growth_tokens, in_calls, turns, minutes)


def compute_next_call_cost(
    last: Usage, model: str, at: datetime | None, *, added_tokens: int = 0, team_price: Price | None = None
) -> NextCallCost | None:
    """Return what the next prompt costs warm and cold, from the last usage and what was added since; None if unpriced.

    Without any cached token in the last call caching is off, and both are the plain input price.
    """
    message = _find_last_message(last)
    cached = message.cache_read_tokens + message.cache_creation_tokens
    prompt = message.context_tokens + added_tokens
    terms = Usage(service_tier=last.service_tier, speed=last.speed, inference_geo=last.inference_geo)
    if cached == 0:
        ttl = CacheTtl.OFF
        warm_usage = cold_usage = terms.changed(input_tokens=prompt)
    else:
        written = get_written_ttl(message.cache_creation_tokens, message.cache_creation_1h_tokens)
        ttl = written or DEFAULT_TTL
        cold_usage = _with_writes(terms, prompt, ttl)
        warm_usage = _with_writes(terms, prompt - cached, ttl).changed(cache_read_tokens=cached)
    warm = compute_cost(warm_usage, model, at, team_price=team_price)
    cold = compute_cost(cold_usage, model, at, team_price=team_price)
    if warm is None or cold is None:
        return None
    return NextCallCost(prompt, warm.total_usd, cold.total_usd, ttl, warm.source)


def _find_last_message(usage: Usage) -> Iteration | Usage:
    messages = [iteration for iteration in usage.iterations if iteration.type == "message"]
    return messages[-1] if messages else usage


def _with_writes(terms: Usage, tokens: int, ttl: CacheTtl) -> Usage:
    long_tokens = tokens if ttl is CacheTtl.ONE_HOUR else 0
    return terms.changed(
        cache_creation_tokens=tokens,
        cache_creation_1h_tokens=long_tokens,
        cache_creation_5m_tokens=tokens - long_tokens,
    )


def _list_growths(calls: Sequence[CallPoint]) -> Iterator[int]:
    """Yield what each call added, without the opening ones of the thread and of each compaction."""
    opened = 0
    for previous, call in pairwise(calls):
        opened = 0 if call.is_first_after_compaction else opened + 1
        is_drop = call.context_tokens < previous.context_tokens * (1 - DROP_SHARE)
        if opened > OPENING_CALLS and not is_drop:
            yield max(0, call.context_tokens - previous.context_tokens)


def _count_opening_left(calls: Sequence[CallPoint]) -> int:
    """Return how many calls are still to come of the opening ones of the thread, or of its last compaction."""
    if not calls:
        return OPENING_CALLS + 1
    since = next((back for back, call in enumerate(reversed(calls)) if call.is_first_after_compaction), len(calls) - 1)
    return max(0, OPENING_CALLS - since)


def _measure_turns(recent: Sequence[CallPoint]) -> float | None:
    sizes: dict[int, int] = {}
    for call in recent:
        if call.turn:
            sizes[call.turn] = sizes.get(call.turn, 0) + 1
    # The last one is still going on, and the first may be cut off by the memory.
    whole = list(sizes.values())[1 if len(recent) == MEMORY_POINTS else 0 : -1]
    return round(sum(whole) / len(whole), 2) if len(whole) >= LEAST_WHOLE_TURNS else None


def _measure_seconds(recent: Sequence[CallPoint]) -> float | None:
    """Return the mean time from one call to the next, pauses left out."""
    times = [call.at for call in recent if call.at is not None]
    steps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    working = [step for step in steps if 0 <= step <= LONGEST_PAUSE_SECONDS]
    return round(sum(working) / len(working), 2) if len(working) >= LEAST_GROWTHS else None
