"""The forecast on made-up growth, its invariants, and its price of a cold cache."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.forecast import (
    CallPoint,
    Forecast,
    NotEnoughData,
    Range,
    forecast_line,
    price_next_call,
    trace_calls,
)
from compaction.llm.cache_ttl import CacheTtl
from compaction.transcripts.entries import Entry, Iteration, Message, TextBlock, ToolResultBlock, Usage
from compaction.transcripts.payloads import Boundary

START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)


def grow(start: int, growths: list[int], *, seconds: int = 30, calls_per_turn: int = 5) -> list[CallPoint]:
    points = [CallPoint(start, START, 1)]
    for number, growth in enumerate(growths, start=1):
        at = START + timedelta(seconds=seconds * number)
        points.append(CallPoint(points[-1].context_tokens + growth, at, 1 + number // calls_per_turn))
    return points


def foresee(points: list[CallPoint], line: int) -> Forecast:
    found = forecast_line(points, line)
    assert isinstance(found, Forecast)
    return found


def test_steady_growth_is_foreseen_closely() -> None:
    found = foresee(grow(20_000, [1_000] * 100), 220_000)
    assert found.remaining_tokens == 100_000
    assert found.growth_tokens_per_call == 1_000
    assert found.calls == Range(98, 100, 102)
    assert found.turns == Range(19, 20, 21)
    assert found.minutes == Range(49, 50, 51)


def test_a_young_thread_gets_a_wider_range() -> None:
    assert foresee(grow(20_000, [1_000] * 12), 132_000).calls == Range(50, 100, 200)
    assert foresee(grow(20_000, [1_000] * 30), 150_000).calls == Range(86, 100, 116)


def test_uneven_growth_gives_a_range_around_the_likely_value() -> None:
    found = foresee(grow(20_000, [200] * 10 + [2_000] * 10 + [400] * 10), 167_000)
    assert found.calls.low < found.calls.likely < found.calls.high


def test_a_single_huge_result_hardly_moves_the_forecast() -> None:
    calm = foresee(grow(20_000, [1_000] * 40), 167_000)
    shaken = foresee(grow(20_000, [1_000] * 20 + [60_000] + [1_000] * 19), 167_000 + 59_000)
    assert shaken.remaining_tokens == calm.remaining_tokens
    assert abs(shaken.calls.likely - calm.calls.likely) <= calm.calls.likely * 0.1


def test_a_compaction_is_no_growth() -> None:
    before = grow(20_000, [2_000] * 20)
    after = grow(45_000, [2_000] * 5)
    expected = foresee(grow(5_000, [2_000] * 25), 167_000)
    dropped = foresee(before + after, 167_000)
    assert dropped.calls == expected.calls
    assert dropped.growth_tokens_per_call == 2_000
    marked = [CallPoint(60_500, is_first_after_compaction=True), CallPoint(62_500)]
    assert foresee(before + marked, 102_500).growth_tokens_per_call == 2_000


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([], "There is no call yet."),
        (grow(20_000, [500] * 11), "A forecast needs 12 calls in which the context grew on; there are 11."),
        (grow(20_000, [0] * 12), "The context did not grow over the last 12 calls."),
    ],
)
def test_too_little_data_gives_no_guess(points: list[CallPoint], sentence: str) -> None:
    assert forecast_line(points, 167_000) == NotEnoughData(sentence)


def test_at_the_line_nothing_is_left() -> None:
    found = foresee(grow(167_000, []), 167_000)
    assert (found.calls, found.turns, found.minutes) == (Range(0, 0, 0),) * 3


def test_pauses_are_not_counted_as_work() -> None:
    points = grow(20_000, [1_000] * 20)
    away = [CallPoint(p.context_tokens + 21_000, p.at and p.at + timedelta(hours=5), 9) for p in points]
    minutes = foresee(points + away, 81_000).minutes
    assert minutes is not None
    assert minutes.likely == 10


def test_without_times_and_turns_only_calls_are_foreseen() -> None:
    points = [CallPoint(tokens) for tokens in range(20_000, 40_000, 1_000)]
    found = foresee(points, 49_000)
    assert (found.calls.likely, found.turns, found.minutes) == (10, None, None)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2_000_000),
            st.booleans(),
            st.integers(-1_000, 100_000),
            st.one_of(st.none(), st.integers(0, 9)),
        ),
        max_size=150,
    ),
    st.integers(0, 2_000_000),
)  # fmt: skip
def test_ranges_are_ordered_and_never_negative(calls: list[tuple[int, bool, int, int | None]], line: int) -> None:
    points = [
        CallPoint(tokens, START + timedelta(seconds=seconds), turn, is_first_after_compaction=is_first)
        for tokens, is_first, seconds, turn in calls
    ]
    found = forecast_line(points, line)
    if isinstance(found, Forecast):
        for part in (found.calls, found.turns, found.minutes):
            assert part is None or 0 <= part.low <= part.likely <= part.high


def say(role: str, *, usage: Usage | None = None, message_id: str | None = None, is_result: bool = False) -> Entry:
    block = ToolResultBlock("toolu_1") if is_result else TextBlock("words")
    kind = "assistant" if usage else "user"
    return Entry(kind, at=START, message=Message(role, (block,), id=message_id, model="claude-opus-5-5", usage=usage))


def test_calls_are_traced_with_turns_and_compactions() -> None:
    entries = [
        say("user"),
        say("assistant", usage=Usage(input_tokens=100, output_tokens=1), message_id="a"),
        say("assistant", usage=Usage(input_tokens=100, output_tokens=50), message_id="a"),
        say("user", is_result=True),
        say("assistant", usage=Usage(input_tokens=200), message_id="b"),
        Entry("system", subtype="compact_boundary", payload=Boundary()),
        say("user"),
        say("assistant", usage=Usage(input_tokens=90), message_id="c"),
    ]
    points = trace_calls(entries)
    assert [point.context_tokens for point in points] == [150, 200, 90]
    assert [point.turn for point in points] == [1, 1, 2]
    assert [point.is_first_after_compaction for point in points] == [False, False, True]


def test_a_cold_cache_costs_a_write_instead_of_a_read() -> None:
    last = Usage(input_tokens=1_000, cache_read_tokens=90_000, cache_creation_tokens=8_000, output_tokens=1_000)
    cost = price_next_call(last, "claude-opus-4-6", START, added_tokens=2_000)
    assert cost is not None
    assert (cost.prompt_tokens, cost.ttl) == (102_000, CacheTtl.FIVE_MINUTES)
    assert cost.warm_usd == Decimal("0.049") + Decimal("0.025")
    assert cost.cold_usd == Decimal("0.6375")
    assert cost.extra_usd == Decimal("0.5635")


def test_the_write_price_follows_the_lifetime_in_force() -> None:
    last = Usage(cache_read_tokens=90_000, cache_creation_tokens=10_000, cache_creation_1h_tokens=10_000)
    cost = price_next_call(last, "claude-opus-4-6", START)
    assert cost is not None
    assert (cost.ttl, cost.cold_usd, cost.warm_usd) == (CacheTtl.ONE_HOUR, Decimal(1), Decimal("0.05"))


def test_without_caching_there_is_nothing_to_lose() -> None:
    cost = price_next_call(Usage(input_tokens=100_000), "claude-opus-4-6", START)
    assert cost is not None
    assert (cost.ttl, cost.warm_usd, cost.extra_usd) == (CacheTtl.OFF, Decimal("0.5"), Decimal(0))


def test_the_next_prompt_is_sized_by_the_last_message_iteration() -> None:
    summary = Iteration("compaction", input_tokens=180_000, output_tokens=4_000)
    message = Iteration("message", cache_read_tokens=20_000, cache_creation_tokens=9_000, output_tokens=1_000)
    last = Usage(cache_read_tokens=20_000, output_tokens=1_000, iterations=(summary, message))
    cost = price_next_call(last, "claude-opus-4-6", START)
    assert cost is not None
    assert cost.prompt_tokens == 30_000


def test_an_unknown_model_gives_no_price_of_the_next_call() -> None:
    assert price_next_call(Usage(input_tokens=1), "some-model", START) is None
