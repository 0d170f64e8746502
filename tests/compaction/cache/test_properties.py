from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.cache.avoidable import compute_avoidable
from compaction.cache.baseline import Baseline
from compaction.cache.breaks import EXPECTED_CAUSES, CacheOutcome, find_judged_parents, judge_call, judge_thread
from compaction.cache.causes import Cause
from compaction.cache.costs import compute_cost_usd
from compaction.cache.policy import DEFAULT_POLICY
from compaction.timeline.calls import Call
from compaction.timeline.preceding import Condition, Event
from tests.compaction.cache.builders import START, prints, use

PRINTS = (None, prints("a"), prints("a", "b", "c"), prints("X", "b"), prints("a", output_config={"effort": "low"}))
MODELS = ("claude-opus-5-5", "claude-sonnet-4-5", "claude-haiku-4-5", "glm-4", None)


@st.composite
def calls(draw: st.DrawFn) -> Call:
    written = draw(st.sampled_from((0, 900, 4_000, 60_000)))
    return Call(
        call_id=f"m{draw(st.integers(0, 12))}",
        at=START + timedelta(seconds=draw(st.sampled_from((0, 1, 10, 299, 301, 3_599, 3_601, 9_999)))),
        model=draw(st.sampled_from(MODELS)),
        usage=use(
            draw(st.sampled_from((0, 10_000, 60_000, 61_000))),
            written,
            hour=draw(st.integers(0, written)),
            output=draw(st.integers(0, 9)),
        ),
        position=draw(st.integers(0, 5)),
        client_version=draw(st.sampled_from((None, "2.1.20", "2.1.25"))),
        parent_call_id=draw(st.sampled_from((None, "m1", "m2"))),
        events=frozenset(draw(st.sets(st.sampled_from(list(Event)), max_size=1))),
        conditions=draw(st.sampled_from(((), (Condition.COMMAND_STARTED,), (Condition.CLIENT_RESTARTED,)))),
        fingerprint=draw(st.sampled_from(PRINTS)),
        api_reason=draw(st.sampled_from((None, "unavailable", "tools_changed"))),
        starts_turn=draw(st.booleans()),
        has_thinking=draw(st.booleans()),
    )


THREADS = st.lists(calls(), max_size=14, unique_by=lambda call: call.call_id)


def order_calls(thread: list[Call]) -> list[Call]:
    return sorted(thread, key=lambda call: (call.at, call.position, call.call_id))


@settings(max_examples=100, deadline=None)
@given(THREADS, st.randoms(use_true_random=False))
def test_order_of_arrival_changes_no_verdict(thread: list[Call], random: object) -> None:
    shuffled = list(thread)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert judge_thread(shuffled) == judge_thread(thread)


@settings(max_examples=60, deadline=None)
@given(THREADS)
def test_one_by_one_gives_the_same_as_all_at_once(thread: list[Call]) -> None:
    state: Baseline | None = None
    verdicts = []
    whole = judge_thread(thread)
    for call, judged in zip(order_calls(thread), whole, strict=True):
        verdict = judge_call(state, call, parent_call_id=judged.parent_call_id)
        verdicts.append(verdict)
        state = verdict.baseline
    assert tuple(verdicts) == whole


@settings(max_examples=60, deadline=None)
@given(THREADS, st.integers(0, 14))
def test_thread_can_be_judged_again_from_any_place(thread: list[Call], place: int) -> None:
    ordered, whole = order_calls(thread), judge_thread(thread)
    before = whole[place - 1].baseline if 0 < place <= len(whole) else None
    parents = find_judged_parents(ordered, DEFAULT_POLICY)
    again = judge_thread(ordered[place:] if before else ordered, baseline=before, parents=parents)
    assert again == (whole[place:] if before else whole)


@settings(max_examples=60, deadline=None)
@given(THREADS)
def test_recreated_tokens_never_exceed_what_was_written_or_lost(thread: list[Call]) -> None:
    for call, verdict in zip(order_calls(thread), judge_thread(thread), strict=True):
        if verdict.loss is not None:
            assert 0 <= verdict.loss.recreated_tokens <= call.usage.cache_creation_tokens
            assert verdict.loss.recreated_tokens <= verdict.loss.lost_tokens
            assert verdict.lost_usd is None or verdict.lost_usd >= 0


@settings(max_examples=60, deadline=None)
@given(THREADS)
def test_no_more_is_avoidable_than_was_lost_and_no_more_lost_than_paid(thread: list[Call]) -> None:
    ordered, verdicts = order_calls(thread), judge_thread(thread)
    avoidable = compute_avoidable(ordered, verdicts)
    lost = {verdict.call_id: verdict.lost_usd for verdict in verdicts if verdict.outcome is CacheOutcome.BREAK}
    assert avoidable.keys() <= lost.keys()
    assert sum(each or 0 for each in avoidable.values()) <= sum(each or 0 for each in lost.values())
    for call in ordered:
        cost, loss = compute_cost_usd(call.usage, call.model, call.at), lost.get(call.call_id)
        assert not loss or (cost is not None and 0 < loss <= cost)


@settings(max_examples=60, deadline=None)
@given(THREADS)
def test_every_break_has_one_primary_cause_and_no_cause_twice(thread: list[Call]) -> None:
    for verdict in judge_thread(thread):
        if verdict.outcome is CacheOutcome.BREAK:
            assert verdict.explanation is not None
            causes = [finding.cause for finding in verdict.explanation.findings]
            assert len(causes) == len(set(causes))
            assert all(finding.grade in finding.info.grades for finding in verdict.explanation.findings)
        elif verdict.outcome is CacheOutcome.EXPECTED:
            assert verdict.rebuild in (Cause.FIRST_CALL, Cause.PROMPT_SHORTENED, *EXPECTED_CAUSES)
