from decimal import Decimal
from typing import Any

import pytest

from compaction.cache.baseline import add_expected_causes, build_baseline
from compaction.cache.breaks import CacheOutcome, LossRule, judge_call, judge_thread
from compaction.cache.causes import Cause
from compaction.cache.policy import CachePolicy
from compaction.prompt.request import serialize_deletions
from compaction.timeline.calls import Call
from compaction.timeline.preceding import Condition, Event
from tests.compaction.cache.builders import baseline, call, prints, use

BOTH = (LossRule.READ_FELL, LossRule.PREFIX_MISSED)

LOSSES = [
    # previous read, previous written, read now, rules
    (50_000, 0, 50_000, ()),
    (50_000, 0, 47_501, ()),  # under 5%
    (50_000, 0, 47_500, ()),  # exactly 5% is no loss
    (50_000, 0, 47_499, BOTH),
    (30_000, 0, 28_000, ()),  # exactly 2,000 is no loss
    (30_000, 0, 27_999, BOTH),
    (39_000, 0, 37_001, ()),  # over 5% but not over 2,000
    (34_260, 119_108, 34_260, (LossRule.PREFIX_MISSED,)),  # a second miss: the read stays as low as it was
    (50_000, 4_000, 50_500, (LossRule.PREFIX_MISSED,)),
    (50_000, 2_000, 51_000, ()),
    (0, 0, 0, ()),
    (50_000, 5_000, 90_000, ()),
]


@pytest.mark.parametrize(("read", "written", "now", "rules"), LOSSES)
def test_loss_needs_more_than_5_percent_and_more_than_2000_tokens(
    read: int, written: int, now: int, rules: tuple[LossRule, ...]
) -> None:
    verdict = judge_call(baseline(read, written), call("now", now, 120_000))
    assert (verdict.loss.rules if verdict.loss else ()) == rules
    assert (verdict.outcome is CacheOutcome.BREAK) == bool(rules)


def test_break_says_what_was_lost_and_what_it_cost() -> None:
    verdict = judge_call(baseline(45_000, 800), call("now", 6_200, 40_000))
    assert verdict.loss is not None
    assert (verdict.loss.expected_tokens, verdict.loss.lost_tokens, verdict.loss.recreated_tokens) == (
        45_800, 39_600, 39_600,
    )  # fmt: skip
    assert verdict.lost_usd == Decimal(39_600) * (Decimal(5) - Decimal("0.20")) / 1_000_000
    assert (verdict.gap_seconds, verdict.ttl_in_force) == (0, "5m")


def test_recreated_tokens_are_bounded_by_what_was_written() -> None:
    verdict = judge_call(baseline(45_000, 0), call("now", 0, 3_000))
    assert verdict.loss is not None
    assert (verdict.loss.lost_tokens, verdict.loss.recreated_tokens) == (45_000, 3_000)


def test_unknown_price_gives_no_number() -> None:
    verdict = judge_call(baseline(model="glm-4"), call("now", 0, 51_000, model="glm-4"))
    assert verdict.outcome is CacheOutcome.BREAK
    assert verdict.lost_usd is None


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (Event.COMPACTED, Cause.COMPACTED),
        (Event.MICRO_COMPACTED, Cause.MICRO_COMPACTED),
        (Event.RESULTS_DELETED, Cause.DELETION_ANNOUNCED),
    ],
)
def test_announced_drop_is_an_expected_rebuild(event: Event, cause: Cause) -> None:
    by_call = judge_call(baseline(), call("now", 0, 51_000, events=frozenset({event})))
    by_state = judge_call(add_expected_causes(baseline(), frozenset({cause})), call("now", 0, 51_000))
    for verdict in (by_call, by_state):
        assert (verdict.outcome, verdict.rebuild, verdict.cause) == (CacheOutcome.EXPECTED, cause, cause)
        assert verdict.explanation is None
    assert judge_call(by_call.baseline, call("later", 0, 52_000)).outcome is CacheOutcome.BREAK


@pytest.mark.parametrize(
    ("before", "now", "cause"),
    [
        ((), ("a",), Cause.DELETION_ANNOUNCED),
        (("a",), ("a", "b"), Cause.DELETION_ANNOUNCED),
        (("a",), ("a",), Cause.LIKELY_SERVER_SIDE),
        (("a", "b"), ("a",), Cause.CACHED_MICRO_CHANGED),
        (("a",), ("b", "c"), Cause.CACHED_MICRO_CHANGED),
    ],
)
def test_request_that_deletes_more_from_the_cache_announces_it(
    before: tuple[str, ...], now: tuple[str, ...], cause: Cause
) -> None:
    old, new = (prints(state={"cached_micro": serialize_deletions(names)}) for names in (before, now))
    verdict = judge_call(baseline(fingerprint=old), call("now", 0, 51_000, fingerprint=new))
    assert verdict.cause is cause
    assert (verdict.outcome is CacheOutcome.EXPECTED) == (cause is Cause.DELETION_ANNOUNCED)
    assert judge_call(baseline(), call("now", 0, 51_000, fingerprint=new)).outcome is CacheOutcome.BREAK


@pytest.mark.parametrize(
    ("before", "now", "outcome"),
    [
        (0, 40_000, CacheOutcome.EXPECTED),
        (7_000, 40_000, CacheOutcome.EXPECTED),
        (7_000, 7_000, CacheOutcome.BREAK),
        (7, 0, "break"),
    ],
)
def test_answer_that_counts_more_deleted_tokens_announces_a_lower_read(before: int, now: int, outcome: str) -> None:
    known = build_baseline(None, call("before", 0, 51_000, usage_fields={"cache_deleted_tokens": before}))
    verdict = judge_call(known, call("now", 9_000, 42_500, usage_fields={"cache_deleted_tokens": now}))
    assert verdict.outcome == outcome
    assert (verdict.rebuild is Cause.DELETION_ANNOUNCED) == (outcome is CacheOutcome.EXPECTED)


def test_first_call_is_an_expected_rebuild() -> None:
    verdict = judge_call(None, call("now", 0, 51_000))
    assert (verdict.outcome, verdict.rebuild, verdict.loss) == (CacheOutcome.EXPECTED, Cause.FIRST_CALL, None)


def test_compaction_outweighs_what_else_was_announced() -> None:
    now = call("now", 0, 51_000, events=frozenset({Event.COMPACTED}))
    assert judge_call(baseline(), now, parent_call_id="older").rebuild is Cause.COMPACTED


@pytest.mark.parametrize(
    ("written", "fields", "cause"),
    [
        (20_000, {}, Cause.PROMPT_SHORTENED),
        (38_900, {}, Cause.UNEXPLAINED),  # shorter by 2,000 or less
        (20_000, {"minutes": 6}, Cause.TTL_EXPIRED_5M),
        (20_000, {"conditions": (Condition.CLIENT_RESTARTED,)}, Cause.CLIENT_RESTARTED),
        (20_000, {"conditions": (Condition.INTERRUPTED,)}, Cause.PROMPT_SHORTENED),
    ],
)
def test_shorter_prompt_that_nothing_else_explains_is_an_expected_rebuild(
    written: int, fields: dict[str, Any], cause: Cause
) -> None:
    verdict = judge_call(baseline(50_000, 1_000), call("now", 10_100, written, **fields))
    assert verdict.cause is cause
    assert (verdict.outcome is CacheOutcome.EXPECTED) == (cause is Cause.PROMPT_SHORTENED)


def test_continuing_from_another_call_is_a_rewind() -> None:
    assert judge_call(baseline(), call("now", 0, 51_000), parent_call_id="older").rebuild is Cause.REWOUND
    assert judge_call(baseline(), call("now", 0, 51_000), parent_call_id="before").outcome is CacheOutcome.BREAK


def test_nothing_lost_after_an_announcement_is_nothing_and_uses_it_up() -> None:
    verdict = judge_call(add_expected_causes(baseline(), frozenset({Cause.COMPACTED})), call("now", 51_000, 100))
    assert verdict.outcome is CacheOutcome.NOTHING
    assert judge_call(verdict.baseline, call("later", 0, 51_000)).outcome is CacheOutcome.BREAK


EXCLUDED: list[dict[str, Any]] = [
    {"model": "claude-haiku-4-5-20251001"},
    {"model": "us.anthropic.claude-haiku-5-5-v1:0"},
    {"query_source": "probe"},
    {"query_source": "session_memory"},
    {"usage": use(plain=0)},
]


@pytest.mark.parametrize("fields", EXCLUDED)
def test_excluded_calls_are_neither_judged_nor_a_baseline(fields: dict[str, Any]) -> None:
    before = baseline()
    verdict = judge_call(before, call("now", 0, 51_000, **fields))
    assert (verdict.outcome, verdict.baseline) == (CacheOutcome.NOTHING, before)
    assert judge_call(None, call("now", 0, 51_000, **fields)).baseline is None


def test_announcement_survives_an_excluded_call() -> None:
    haiku = call("side", 0, 9_000, model="claude-haiku-4-5", events=frozenset({Event.COMPACTED}))
    after = judge_call(baseline(), haiku).baseline
    assert judge_call(after, call("now", 0, 51_000)).rebuild is Cause.COMPACTED


def test_call_that_wrote_a_summary_announces_the_compaction() -> None:
    before = baseline()
    after = judge_call(before, call("summary", 0, 51_000, query_source="compact")).baseline
    assert after is not None
    assert after.call_id == before.call_id
    assert judge_call(after, call("now", 0, 51_000)).rebuild is Cause.COMPACTED


def test_policy_can_judge_haiku_too() -> None:
    policy = CachePolicy(unjudged_models=())
    assert (
        judge_call(baseline(), call("now", 0, 51_000, model="claude-haiku-4-5"), policy).outcome is CacheOutcome.BREAK
    )


LIFETIMES = [(5_000, 0, "5m"), (5_000, 5_000, "1h"), (5_000, 100, "5m"), (0, 0, "1h")]


@pytest.mark.parametrize(("written", "hour", "ttl"), LIFETIMES)
def test_lifetime_in_force_is_the_shorter_of_a_mix_and_stays_when_nothing_was_written(
    written: int, hour: int, ttl: str
) -> None:
    assert build_baseline(baseline(ttl="1h"), call("now", 50_000, written, hour=hour)).ttl == ttl


def test_requested_lifetime_counts_when_nothing_was_written_yet() -> None:
    assert build_baseline(None, call("now", 50_000, 0, requested_ttl="1h")).ttl == "1h"


def test_repeated_call_is_judged_once() -> None:
    first = judge_call(baseline(), call("now", 0, 51_000))
    again = judge_call(first.baseline, call("now", 0, 51_000))
    assert (again.outcome, again.baseline) == (CacheOutcome.NOTHING, first.baseline)


def test_parent_that_is_not_judged_is_skipped() -> None:
    calls = [
        call("first", 0, 50_000, position=0),
        call("title", 0, 900, minutes=1, position=1, model="claude-haiku-4-5", parent_call_id="first"),
        call("next", 50_000, 1_000, minutes=2, position=2, parent_call_id="title"),
        call("rewound", 0, 51_000, minutes=3, position=3, parent_call_id="title"),
    ]
    verdicts = judge_thread(calls)
    assert [verdict.parent_call_id for verdict in verdicts] == [None, None, "first", "first"]
    assert (verdicts[2].outcome, verdicts[3].rebuild) == (CacheOutcome.NOTHING, Cause.REWOUND)


def test_late_call_is_judged_by_judging_again_from_the_baseline_before_it() -> None:
    calls = [call(f"c{number}", 10_000 * number, 10_000, minutes=number) for number in range(6)]
    whole = judge_thread(calls)
    without = judge_thread([*calls[:3], *calls[4:]])
    assert without[3].outcome is CacheOutcome.NOTHING
    again = judge_thread(calls[3:], baseline=without[2].baseline)
    assert again == whole[3:]


def test_example_of_a_second_miss_is_flagged() -> None:
    calls: list[Call] = [
        call("a", 152_000, 314, minutes=0),
        call("b", 34_260, 119_108, minutes=1),
        call("c", 34_260, 119_840, minutes=2),
    ]
    assert [verdict.outcome for verdict in judge_thread(calls)] == [
        CacheOutcome.EXPECTED,
        CacheOutcome.BREAK,
        CacheOutcome.BREAK,
    ]
