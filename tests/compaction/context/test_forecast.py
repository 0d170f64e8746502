"""The forecast on made-up growth, its invariants, and its price of a cold cache."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.cache_ttl import CacheTtl
from compaction.context.forecast import (
    CallPoint,
    Forecast,
    NotEnoughData,
    Pace,
    Range,
    compute_next_call_cost,
    forecast_remaining,
    forecast_threshold,
    list_call_points,
    measure_pace,
)
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
    found = forecast_threshold(points, line)
    assert isinstance(found, Forecast)
    return found


def test_steady_growth_gives_all_three_units() -> None:
    found = foresee(grow(20_000, [1_100] * 105), 245_500)
    assert (found.remaining_tokens, found.growth_tokens_per_call) == (110_000, 1_100)
    assert found.calls == Range(40, 100, 163)
    assert found.turns == Range(3, 20, 33)
    assert found.minutes == Range(17, 50, 92)


def test_opening_calls_of_a_thread_and_of_a_compaction_say_nothing_of_its_pace() -> None:
    opening = [30_000, 8_000, 8_000, 4_000, 2_000]
    young = measure_pace(grow(20_000, [*opening, *[1_100] * 3]))
    assert isinstance(young, Pace)
    assert young.growth_tokens == 1_100
    before = grow(20_000, [1_100] * 20)
    after = grow(15_000, opening)
    marked = [
        CallPoint(point.context_tokens, is_first_after_compaction=number == 0) for number, point in enumerate(after)
    ]
    pace = measure_pace(before + marked)
    assert isinstance(pace, Pace)
    assert pace.growth_tokens == 1_100


def test_pace_of_a_young_thread_lies_near_the_usual_one() -> None:
    paces = [measure_pace(grow(20_000, [300] * count)) for count in (8, 25, 105, 300)]
    assert [pace.growth_tokens for pace in paces if isinstance(pace, Pace)] == [996, 700, 433, 433]


def test_one_huge_result_moves_the_forecast_by_less_than_its_range() -> None:
    """It counts as one of the last hundred results: where one came another may."""
    calm = foresee(grow(20_000, [1_000] * 60), 167_000)
    shaken = foresee(grow(20_000, [1_000] * 30 + [30_000] + [1_000] * 29), 167_000 + 29_000)
    assert shaken.remaining_tokens == calm.remaining_tokens
    assert calm.calls.low < shaken.calls.likely < calm.calls.likely < shaken.calls.high


def test_a_compaction_is_no_growth() -> None:
    before = grow(20_000, [2_000] * 20)
    after = grow(45_000, [2_000] * 9)
    marked = [
        CallPoint(point.context_tokens, is_first_after_compaction=number == 0) for number, point in enumerate(after)
    ]
    # 15 growths of 2,000 before it beyond the opening, and as many of the calls after it as are beyond theirs.
    for calls, growths in ((before + marked[:6], 15), (before + marked, 19), (before + after, 24)):
        pace = measure_pace(calls)
        assert isinstance(pace, Pace)
        assert pace.growth_tokens == round((2_000 * growths + 1_100 * 20) / (growths + 20))


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([], "No API calls recorded yet."),
        (grow(20_000, []), "No forecast yet: 8 more calls needed."),
        (grow(20_000, [500] * 5), "No forecast yet: 3 more calls needed."),
        (grow(20_000, [500] * 7), "No forecast yet: 1 more call needed."),
    ],
)
def test_too_little_data_gives_no_guess(points: list[CallPoint], sentence: str) -> None:
    assert forecast_threshold(points, 167_000) == NotEnoughData(sentence)


YOUNG = st.lists(st.sampled_from(("grows", "drops", "compacted")), min_size=1, max_size=40)


@given(YOUNG)
def test_as_many_more_calls_as_named_give_a_forecast_and_one_fewer_does_not(steps: list[str]) -> None:
    points: list[CallPoint] = []
    for step in steps:
        tokens = (points[-1].context_tokens if points else 40_000) + 1_100
        is_compacted = step == "compacted"
        points.append(CallPoint(tokens if step == "grows" else 20_000, is_first_after_compaction=is_compacted))
    found = measure_pace(points)
    if isinstance(found, Pace):
        return
    words = re.fullmatch(r"No forecast yet: (\d+) more calls? needed\.", found.sentence)
    assert words is not None
    missing = int(words[1])
    assert ("calls" in found.sentence) == (missing != 1)
    later = [CallPoint(points[-1].context_tokens + 1_100 * number) for number in range(1, missing + 1)]
    assert isinstance(measure_pace(points + later), Pace)
    assert isinstance(measure_pace(points + later[:-1]), NotEnoughData)


def test_turns_need_whole_ones() -> None:
    """The last turn is still going on."""
    points = grow(20_000, [1_100] * 24)
    assert [point.turn for point in points[::5]] == [1, 2, 3, 4, 5]
    assert foresee(points, 167_000).turns is not None
    assert foresee(points[:20], 167_000).turns is None


def test_at_the_line_nothing_is_left() -> None:
    found = foresee(grow(167_000, []), 167_000)
    assert (found.calls, found.turns, found.minutes) == (Range(0, 0, 0),) * 3
    assert not found.is_soon


def test_pauses_are_not_counted_as_work() -> None:
    points = grow(20_000, [1_100] * 20)
    away = [CallPoint(p.context_tokens + 23_100, p.at and p.at + timedelta(hours=5), 9) for p in points]
    minutes = foresee(points + away, away[-1].context_tokens + 22_000).minutes
    assert minutes is not None
    assert minutes.likely == 10


def test_without_times_and_turns_only_calls_are_foreseen() -> None:
    points = [CallPoint(tokens) for tokens in range(20_000, 42_000, 1_100)]
    found = foresee(points, points[-1].context_tokens + 11_000)
    assert (found.calls, found.turns, found.minutes) == (Range(4, 10, 19), None, None)


def test_what_arrived_since_the_last_call_counts() -> None:
    points = grow(20_000, [1_100] * 30)
    used = points[-1].context_tokens + 22_000
    found = forecast_threshold(points, 167_000, used_tokens=used)
    assert isinstance(found, Forecast)
    assert found.remaining_tokens == 167_000 - used


@pytest.mark.parametrize(
    ("remaining", "calls_per_turn", "is_soon"),
    [(5_000, None, True), (6_000, None, False), (24_000, 10, True), (26_000, 10, False), (0, 10, False)],
)
def test_soon_is_at_most_five_calls_or_two_turns(
    remaining: int, calls_per_turn: float | None, *, is_soon: bool
) -> None:
    found = forecast_remaining(Pace(1_000, calls_per_turn), remaining)
    assert isinstance(found, Forecast)
    assert found.is_soon is is_soon


PACES = st.builds(
    Pace,
    st.integers(1, 100_000),
    st.none() | st.floats(1, 500),
    st.none() | st.floats(0, 300),
)


@given(PACES, st.integers(-1_000, 2_000_000), st.integers(0, 100_000))
def test_more_left_never_means_sooner(pace: Pace, remaining: int, more: int) -> None:
    near, far = forecast_remaining(pace, remaining), forecast_remaining(pace, remaining + more)
    assert isinstance(near, Forecast)
    assert isinstance(far, Forecast)
    pairs = [(near.calls, far.calls)]
    # At the line nothing is left in any unit; before it only in those that are known.
    pairs += [
        (one, other)
        for one, other in ((near.turns, far.turns), (near.minutes, far.minutes))
        if one is not None and other is not None
    ]
    for one, other in pairs:
        assert 0 <= one.low <= one.likely <= one.high
        assert one.low <= other.low
        assert one.likely <= other.likely
        assert one.high <= other.high


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
    found = forecast_threshold(points, line)
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
    points = list_call_points(entries)
    assert [point.context_tokens for point in points] == [150, 200, 90]
    assert [point.turn for point in points] == [1, 1, 2]
    assert [point.is_first_after_compaction for point in points] == [False, False, True]


def test_a_cold_cache_costs_a_write_instead_of_a_read() -> None:
    last = Usage(input_tokens=1_000, cache_read_tokens=90_000, cache_creation_tokens=8_000, output_tokens=1_000)
    cost = compute_next_call_cost(last, "claude-opus-4-6", START, added_tokens=2_000)
    assert cost is not None
    assert (cost.prompt_tokens, cost.ttl) == (102_000, CacheTtl.FIVE_MINUTES)
    assert cost.warm_usd == Decimal("0.049") + Decimal("0.025")
    assert cost.cold_usd == Decimal("0.6375")
    assert cost.extra_usd == Decimal("0.5635")


def test_the_write_price_follows_the_lifetime_in_force() -> None:
    last = Usage(cache_read_tokens=90_000, cache_creation_tokens=10_000, cache_creation_1h_tokens=10_000)
    cost = compute_next_call_cost(last, "claude-opus-4-6", START)
    assert cost is not None
    assert (cost.ttl, cost.cold_usd, cost.warm_usd) == (CacheTtl.ONE_HOUR, Decimal(1), Decimal("0.05"))


def test_without_caching_there_is_nothing_to_lose() -> None:
    cost = compute_next_call_cost(Usage(input_tokens=100_000), "claude-opus-4-6", START)
    assert cost is not None
    assert (cost.ttl, cost.warm_usd, cost.extra_usd) == (CacheTtl.OFF, Decimal("0.5"), Decimal(0))


def test_the_next_prompt_is_sized_by_the_last_message_iteration() -> None:
    summary = Iteration("compaction", input_tokens=180_000, output_tokens=4_000)
    message = Iteration("message", cache_read_tokens=20_000, cache_creation_tokens=9_000, output_tokens=1_000)
    last = Usage(cache_read_tokens=20_000, output_tokens=1_000, iterations=(summary, message))
    cost = compute_next_call_cost(last, "claude-opus-4-6", START)
    assert cost is not None
    assert cost.prompt_tokens == 30_000


def test_an_unknown_model_gives_no_price_of_the_next_call() -> None:
    assert compute_next_call_cost(Usage(input_tokens=1), "some-model", START) is None
