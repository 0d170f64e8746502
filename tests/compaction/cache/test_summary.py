from decimal import Decimal

from compaction.cache.causes import Cause
from compaction.cache.summary import TierChange, add_summaries, find_tier_changes, summarise_thread
from tests.compaction.cache.builders import call


def test_thread_is_summed_up() -> None:
    summary = summarise_thread(
        [
            call("a", 0, 50_000, minutes=0),
            call("b", 50_000, 1_000, minutes=1),
            call("c", 0, 52_000, minutes=10),
            call("d", 20_000, 33_000, minutes=11),
            call("e", 10_000, 5_000, minutes=12, announced=(Cause.COMPACTED,)),
        ]
    )
    assert (summary.calls, summary.breaks, summary.expected_rebuilds) == (5, 2, 2)
    assert dict(summary.rebuilds) == {Cause.FIRST_CALL: 1, Cause.COMPACTED: 1}
    assert [(total.cause, total.recreated_tokens) for total in summary.by_cause] == [
        (Cause.TTL_EXPIRED_5M, 51_000), (Cause.UNEXPLAINED, 32_000),
    ]  # fmt: skip
    assert summary.lost_usd == Decimal(83_000) * Decimal("4.80") / 1_000_000
    assert summary.avoidable_usd == 0  # 90,000 tokens written for an hour would have cost more than was lost
    assert summary.rebuilt_usd == Decimal(5_000) * Decimal("4.80") / 1_000_000
    assert summary.hit_ratio == 80_000 / (80_000 + 141_000 + 50)
    assert summary.lost_share is not None
    assert 0 < summary.lost_share < 1


def test_empty_thread_has_no_ratio() -> None:
    summary = summarise_thread([])
    assert (summary.calls, summary.hit_ratio, summary.lost_share) == (0, None, None)
    assert add_summaries([]) == summary


def test_calls_without_a_price_are_counted_and_cost_nothing() -> None:
    summary = summarise_thread([call("a", 0, 50_000, model="glm"), call("b", 0, 50_000, minutes=1, model="glm")])
    assert (summary.unpriced_calls, summary.unpriced_breaks, summary.breaks) == (2, 1, 1)
    assert summary.lost_usd == summary.spent_usd == 0


def test_hour_pays_back_only_when_read_after_5_minutes_and_before_a_loss() -> None:
    calls = [
        call("paid", 0, 50_000, hour=50_000, minutes=0),
        call("paid too", 50_000, 1_000, hour=1_000, minutes=1),
        call("reads late", 51_000, 2_000, hour=2_000, minutes=20),
        call("soon after", 53_000, 3_000, hour=3_000, minutes=21),
        call("too late", 0, 56_000, hour=56_000, minutes=120),
    ]
    summary = summarise_thread(calls)
    assert summary.unread_1h_tokens == 2_000 + 3_000 + 56_000
    assert summary.unread_1h_usd == Decimal(61_000) * Decimal(3) / 1_000_000
    assert summary.written_1h_tokens == 112_000
    assert summary.written_5m_tokens == 0


def test_change_of_tier_is_found() -> None:
    calls = [call("a", 0, 9, hour=9), call("b", 9, 0), call("c", 9, 9), call("d", 9, 9, hour=9)]
    assert find_tier_changes(calls) == (TierChange("c", "1h", "5m"), TierChange("d", "5m", "1h"))


def test_summaries_of_threads_add_up() -> None:
    one = summarise_thread([call("a", 0, 50_000), call("b", 0, 50_000, minutes=9)])
    other = summarise_thread([call("c", 0, 60_000), call("d", 0, 60_000, minutes=9), call("e", 0, 60_000, minutes=9.5)])
    both = add_summaries([one, other])
    assert both.breaks == 3
    assert both.lost_usd == one.lost_usd + other.lost_usd == sum(total.lost_usd for total in both.by_cause)
    assert {total.cause: total.count for total in both.by_cause} == {Cause.TTL_EXPIRED_5M: 2, Cause.UNEXPLAINED: 1}
