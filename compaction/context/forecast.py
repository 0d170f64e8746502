"""Forecast: how many calls, turns and minutes are left until a line, as a range; and what a cold cache would cost.

The past growth of one thread comes in, no clock and no model of the future. Too little of it gives NotEnoughData.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from compaction.context.call_costs import cost_of
from compaction.llm.cache_ttl import DEFAULT_TTL, CacheTtl, find_written_ttl
from compaction.llm.prices import Price
from compaction.transcripts.calls import find_call_id
from compaction.transcripts.chain import is_boundary
from compaction.transcripts.entries import Entry, Iteration, Usage
from compaction.transcripts.frozen import Value, change_value
from compaction.transcripts.user_lines import classify_entry

# Chosen by replaying recorded threads: a shorter memory missed the change between reading and writing phases.
MEMORY_CALLS = 100
# Growth is judged in runs of calls: single calls vary too much, longer runs hide the slow and the fast phases.
RUN_CALLS = 8
LEAST_GROWTHS = 12
# The slow and the fast end of the range are these quantiles over all runs.
SLOW_QUANTILE, FAST_QUANTILE = 0.05, 0.95
# A young thread has not shown all its phases: the range is wider by 1 + (12 / calls) squared, 1.01 at 100 calls.
YOUNG_CALLS = 12
# One huge result counts as three times the third quartile, so that it does not foretell the next one.
HUGE_FACTOR = 3
# A standstill does not last for ever: the slow end is at least a sixth of the mean growth.
SLOWEST_SHARE = 6
# A context that shrinks by more was compacted, cleared or rewound: no growth to learn from.
DROP_SHARE = 0.05
# A longer pause is a person away, not work.
LONGEST_PAUSE_SECONDS = 300
LEAST_WHOLE_TURNS = 2
# Near enough to a line to say so beside the level.
SOON_CALLS, SOON_TURNS = 5, 2


class CallPoint(Value, frozen=True):
    """One call of a thread, in order: the context after it, when it was, and the turn it belongs to."""

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
class Forecast:
    """What is left until the line. Turns and minutes (of work, pauses left out) only where the calls tell them."""

    remaining_tokens: int
    growth_tokens_per_call: int
    calls: Range
    turns: Range | None = None
    minutes: Range | None = None

    @property
    def is_soon(self) -> bool:
        """Whether the line is not reached yet, and a few calls or turns will do."""
        if self.remaining_tokens == 0:
            return False
        return self.calls.likely <= SOON_CALLS or (self.turns is not None and self.turns.likely <= SOON_TURNS)


@dataclass(frozen=True, slots=True)
class NotEnoughData:
    """No forecast, and why."""

    sentence: str


@dataclass(frozen=True, slots=True)
class NextCallCost:
    """The prompt of the next call if the cache still holds and if it went cold; the answer costs the same in both."""

    prompt_tokens: int
    warm_usd: Decimal
    cold_usd: Decimal
    ttl: CacheTtl
    source: str

    @property
    def extra_usd(self) -> Decimal:
        """What a pause beyond the cache's lifetime would cost."""
        return self.cold_usd - self.warm_usd


def trace_calls(entries: Iterable[Entry]) -> tuple[CallPoint, ...]:
    """The calls of one thread's entries with their turns and compactions; the last line of a response counts."""
    points: dict[str, CallPoint] = {}
    turn = 0
    is_after_compaction = False
    for entry in entries:
        if is_boundary(entry):
            is_after_compaction = True
        elif (line := classify_entry(entry)) is not None and line.starts_turn:
            turn += 1
        call_id = find_call_id(entry)
        if call_id is None or entry.message is None or entry.message.usage is None:
            continue
        tokens = entry.message.usage.context_tokens
        if call_id in points:
            points[call_id] = change_value(points[call_id], context_tokens=tokens)
        else:
            points[call_id] = CallPoint(tokens, entry.at, turn, is_first_after_compaction=is_after_compaction)
            is_after_compaction = False
    return tuple(points.values())


def forecast_line(
    calls: Sequence[CallPoint], line_tokens: int, *, used_tokens: int | None = None
) -> Forecast | NotEnoughData:
    """How far a thread is from a line, from its own growth over the last calls. `used_tokens`: what its window holds
    now, with what arrived since the last of them."""
    if not calls:
        return NotEnoughData("There is no call yet.")
    remaining = max(0, line_tokens - (calls[-1].context_tokens if used_tokens is None else used_tokens))
    recent = calls[-(MEMORY_CALLS + 1) :]
    growths = _tame(list(_list_growths(recent)))
    if remaining == 0:
        zero = Range(0, 0, 0)
        return Forecast(0, round(sum(growths) / len(growths)) if growths else 0, zero, zero, zero)
    if len(growths) < LEAST_GROWTHS:
        sentence = f"A forecast needs {LEAST_GROWTHS} calls in which the context grew on; there are {len(growths)}."
        return NotEnoughData(sentence)
    mean = sum(growths) / len(growths)
    if mean <= 0:
        return NotEnoughData(f"The context did not grow over the last {len(growths)} calls.")
    in_calls = _convert_to_calls(remaining, growths, mean)
    return Forecast(
        remaining_tokens=remaining,
        growth_tokens_per_call=round(mean),
        calls=in_calls,
        turns=_convert_to_turns(in_calls, recent),
        minutes=_convert_to_minutes(in_calls, recent),
    )


def price_next_call(
    last: Usage, model: str, at: datetime | None, *, added_tokens: int = 0, team_price: Price | None = None
) -> NextCallCost | None:
    """What the next prompt costs warm and cold, from the last call's usage and what was added since; None if unpriced.

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
        written = find_written_ttl(message.cache_creation_tokens, message.cache_creation_1h_tokens)
        ttl = written or DEFAULT_TTL
        cold_usage = _with_writes(terms, prompt, ttl)
        warm_usage = _with_writes(terms, prompt - cached, ttl).changed(cache_read_tokens=cached)
    warm = cost_of(warm_usage, model, at, team_price=team_price)
    cold = cost_of(cold_usage, model, at, team_price=team_price)
    if warm is None or cold is None:
        return None
    return NextCallCost(prompt, warm.total_usd, cold.total_usd, ttl, warm.source)


def _convert_to_calls(remaining_tokens: int, growths: Sequence[float], mean: float) -> Range:
    runs = _average_runs(growths)
    widening = 1 + (YOUNG_CALLS / len(growths)) ** 2
    slowest, fastest = _find_quantiles(runs, SLOW_QUANTILE, FAST_QUANTILE)
    fast = max(fastest, mean) * widening
    slow = min(max(slowest, mean / SLOWEST_SHARE), mean) / widening
    # Rounded first, so that 116.000001 does not become 117.
    return Range(
        max(1, math.floor(round(remaining_tokens / fast, 3))),
        max(1, round(remaining_tokens / mean)),
        max(1, math.ceil(round(remaining_tokens / slow, 3))),
    )


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
    for previous, call in pairwise(calls):
        is_drop = call.context_tokens < previous.context_tokens * (1 - DROP_SHARE)
        if not is_drop and not call.is_first_after_compaction:
            yield max(0, call.context_tokens - previous.context_tokens)


def _tame(growths: list[int]) -> list[float]:
    if not growths:
        return []
    cap = HUGE_FACTOR * _find_between(sorted(growths), 0.75)
    return [min(growth, cap) for growth in growths]


def _average_runs(values: Sequence[float]) -> list[float]:
    length = min(RUN_CALLS, len(values) // 2)
    total = sum(values[:length])
    averages = [total / length]
    for position in range(length, len(values)):
        total += values[position] - values[position - length]
        averages.append(total / length)
    return averages


def _find_quantiles(values: Sequence[float], low_share: float, high_share: float) -> tuple[float, float]:
    ordered = sorted(values)
    return _find_between(ordered, low_share), _find_between(ordered, high_share)


def _find_between(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def _convert_to_turns(calls: Range, recent: Sequence[CallPoint]) -> Range | None:
    sizes: dict[int, int] = {}
    for call in recent:
        if call.turn is not None:
            sizes[call.turn] = sizes.get(call.turn, 0) + 1
    # The first turn may be cut off by the memory and the last one is still going on.
    whole = list(sizes.values())[1:-1]
    if len(whole) < LEAST_WHOLE_TURNS:
        return None
    mean = sum(whole) / len(whole)
    smaller, larger = _find_quantiles(whole, 0.25, 0.75)
    large, small = max(larger, mean), min(smaller, mean)
    return Range(math.floor(calls.low / large), round(calls.likely / mean), math.ceil(calls.high / small))


def _convert_to_minutes(calls: Range, recent: Sequence[CallPoint]) -> Range | None:
    times = [call.at for call in recent if call.at is not None]
    pauses = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    working = [pause for pause in pauses if 0 <= pause <= LONGEST_PAUSE_SECONDS]
    if len(working) < LEAST_GROWTHS:
        return None
    runs = _average_runs(working)
    quick, steady = _find_quantiles(runs, 0.25, 0.75)
    likely = sum(working) / len(working)
    low, high = min(quick, likely), max(steady, likely)
    return Range(math.floor(calls.low * low / 60), round(calls.likely * likely / 60), math.ceil(calls.high * high / 60))
