"""Avoidable dollars: only where something on offer would have held, net of what it would have cost more."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.cache.avoidable import compute_avoidable
from compaction.cache.breaks import CacheOutcome, judge_thread
from compaction.cache.costs import compute_cost_usd
from compaction.cache.policy import CachePolicy
from compaction.llm.prices import Price, Rates
from compaction.timeline.calls import Call
from compaction.transcripts.entries import Usage
from tests.compaction.cache.builders import START, call

MODEL = "claude-opus-5-5"  # $4 input: $5 a 5-minute write, $8 a 1-hour write, $0.20 a read per million tokens


def pause(minutes: float, *, ttl: str = "5m", model: str = MODEL) -> list[Call]:
    """Return a thread whose whole prefix is written again after a pause."""
    hour = {"5m": 0, "1h": 1}[ttl]
    return [
        call("first", 0, 100_000, hour=hour * 100_000, minutes=0),
        call("next", 100_000, 1_000, hour=hour * 1_000, minutes=1),
        call("lost", 0, 103_000, hour=hour * 103_000, minutes=1 + minutes, model=model),
    ]


# 101,000 tokens are lost. With the hour 101,000 are written up to the pause, and 2,000 after it, for $3 more a million.
LOST = Decimal(101_000) * Decimal("4.80") / 1_000_000
SURCHARGE = Decimal(103_000) * 3 / 1_000_000


@pytest.mark.parametrize(
    ("thread", "expected"),
    [
        (pause(4), None),  # nothing explains it
        (pause(6), LOST - SURCHARGE),
        (pause(60), LOST - SURCHARGE),
        (pause(60.1), None),  # no lifetime on offer is longer
        (pause(61, ttl="1h"), None),
        (pause(30, ttl="1h"), None),  # the hour was in force
        (pause(2, model="claude-sonnet-5"), "lost"),  # keeping the model would have cost nothing
        (pause(90, model="claude-sonnet-5"), None),  # and held nothing after such a pause
    ],
)
def test_what_could_have_been_avoided(thread: list[Call], expected: Decimal | str | None) -> None:
    verdicts = judge_thread(thread)
    assert verdicts[-1].outcome is CacheOutcome.BREAK
    lost_usd = verdicts[-1].lost_usd
    assert compute_avoidable(thread, verdicts) == (
        {} if expected is None else {"lost": lost_usd if expected == "lost" else expected}
    )


def test_hour_that_would_have_cost_more_than_it_saved_avoids_nothing() -> None:
    thread = [
        call("first", 0, 200_000, minutes=0),
        call("rewritten", 20_000, 200_000, minutes=1),
        call("lost", 190_000, 30_000, minutes=10),
    ]
    verdicts = judge_thread(thread)
    assert compute_avoidable(thread, verdicts) == {"lost": 0}


def test_without_a_price_of_the_hour_nothing_is_said() -> None:
    rates = Rates(Decimal(4), Decimal(20), Decimal(5), None, Decimal("0.2"))
    policy = CachePolicy(prices={MODEL: Price(MODEL, rates, "own")})
    thread = pause(6)
    assert compute_avoidable(thread, judge_thread(thread, policy), policy) == {"lost": None}


@st.composite
def threads(draw: st.DrawFn) -> list[Call]:
    """Draw a thread of one model with 5-minute writes, some of it lost now and then."""
    calls, at, cached = [], START, 0
    for number in range(draw(st.integers(1, 9))):
        at += timedelta(seconds=draw(st.sampled_from((20, 290, 310, 2_000, 3_590, 3_700))))
        read = draw(st.sampled_from((cached, cached, cached // 2, 0)))
        written = draw(st.sampled_from((0, 500, 20_000, 90_000))) + cached - read
        usage = Usage(input_tokens=9, cache_creation_tokens=written, cache_read_tokens=read, output_tokens=50)
        calls.append(Call(call_id=f"m{number}", at=at, model=MODEL, usage=usage, position=number))
        cached = read + written
    return calls


@settings(max_examples=200, deadline=None)
@given(threads())
def test_sum_over_a_thread_is_what_the_hour_would_have_saved(thread: list[Call]) -> None:
    """The bill of the thread less that of the same thread with the hour, worked out from whole bills here."""
    verdicts = judge_thread(thread)
    avoidable = compute_avoidable(thread, verdicts)
    paid = sum((compute_cost_usd(each.usage, MODEL, each.at) or 0 for each in thread), Decimal(0))
    with_hour = Decimal(0)
    for each, verdict in zip(thread, verdicts, strict=True):
        kept = verdict.loss.recreated_tokens if each.call_id in avoidable and verdict.loss else 0
        written = each.usage.cache_creation_tokens - kept
        usage = each.usage.changed(
            cache_creation_tokens=written,
            cache_creation_1h_tokens=written,
            cache_read_tokens=each.usage.cache_read_tokens + kept,
        )
        with_hour += compute_cost_usd(usage, MODEL, each.at) or 0
    amounts = [amount for amount in avoidable.values() if amount is not None]
    assert len(amounts) == len(avoidable)
    if avoidable:
        assert sum(amounts) == max(Decimal(0), paid - with_hour)
    lost = {verdict.call_id: verdict.lost_usd or 0 for verdict in verdicts}
    assert all(0 <= (amount or 0) <= lost[call_id] for call_id, amount in avoidable.items())
