from dataclasses import replace
from typing import Any

import pytest

from compaction.cache.causes import CAUSES, Cause, Grade
from compaction.cache.diagnosis import explain_loss
from compaction.timeline.preceding import Condition
from tests.compaction.cache.builders import baseline, body, call, prints, text, tool

OLD = "claude-sonnet-4-5"

# grade, cause, what the baseline had, what the call had
GRADED: list[tuple[Grade, Cause, dict[str, Any], dict[str, Any]]] = [
    (Grade.API, Cause.MODEL_CHANGED, {}, {"api_reason": "model_changed"}),
    (Grade.API, Cause.SYSTEM_CHANGED, {}, {"api_reason": "system_changed"}),
    (Grade.API, Cause.TOOLS_CHANGED, {}, {"api_reason": "tools_changed"}),
    (Grade.API, Cause.MESSAGES_REWRITTEN, {}, {"api_reason": "messages_changed"}),
    (Grade.API, Cause.NO_REASON_GIVEN, {}, {"api_reason": "unavailable"}),
    (Grade.API, Cause.NO_REASON_GIVEN, {}, {"api_reason": "previous_message_not_found"}),
    (Grade.CLIENT, Cause.MODEL_CHANGED, {}, {"client_reasons": ("model_changed",)}),
    (Grade.CLIENT, Cause.SYSTEM_CHANGED, {}, {"client_reasons": ("system_prompt_changed",)}),
    (Grade.CLIENT, Cause.TOOLS_CHANGED, {}, {"client_reasons": ("tools_changed",)}),
    (Grade.CLIENT, Cause.EFFORT_CHANGED, {}, {"client_reasons": ("effort_changed",)}),
    (Grade.CLIENT, Cause.MESSAGES_REWRITTEN, {}, {"client_reasons": ("messages_rewritten",)}),
    (Grade.CLIENT, Cause.TTL_EXPIRED_5M, {}, {"client_reasons": ("ttl_expired_5m",)}),
    (Grade.CLIENT, Cause.TTL_EXPIRED_1H, {}, {"client_reasons": ("ttl_expired_1h",)}),
    (Grade.CLIENT, Cause.LIKELY_SERVER_SIDE, {}, {"client_reasons": ("likely_server_side",)}),
    (Grade.REQUEST, Cause.EFFORT_CHANGED, {"fingerprint": prints()},
     {"fingerprint": prints(output_config={"effort": "low"})}),
    (Grade.INFERRED, Cause.MODEL_CHANGED, {}, {"model": "claude-sonnet-5-5"}),
    (Grade.INFERRED, Cause.SPEED_CHANGED, {}, {"usage_fields": {"speed": "fast"}}),
    (Grade.INFERRED, Cause.TTL_EXPIRED_5M, {"ttl": "5m"}, {"minutes": 6}),
    (Grade.INFERRED, Cause.TTL_EXPIRED_5M, {"ttl": "5m"}, {"minutes": 90}),
    (Grade.INFERRED, Cause.TTL_EXPIRED_1H, {"ttl": "1h"}, {"minutes": 61}),
    (Grade.INFERRED, Cause.TTL_EXPIRED_1H, {"ttl": None}, {"minutes": 61}),
    (Grade.INFERRED, Cause.CLIENT_UPDATED, {"client_version": "2.1.20"}, {"client_version": "2.1.25"}),
    (Grade.INFERRED, Cause.CLIENT_RESTARTED, {},
     {"conditions": (Condition.CLIENT_RESTARTED, Condition.COMMAND_STARTED)}),
    (Grade.INFERRED, Cause.TURN_WITHOUT_THINKING, {},
     {"conditions": (Condition.TURN_WITHOUT_THINKING, Condition.COMMAND_STARTED)}),
    (Grade.INFERRED, Cause.COMMAND_STARTED, {}, {"conditions": (Condition.COMMAND_STARTED, Condition.INTERRUPTED)}),
    (Grade.INFERRED, Cause.TTL_TIER_CHANGED, {"ttl": "1h"}, {}),
    (Grade.INFERRED, Cause.THINKING_DROPPED, {"has_thinking": True, "model": OLD},
     {"starts_turn": True, "model": OLD}),
    (Grade.UNKNOWN, Cause.LIKELY_SERVER_SIDE, {"fingerprint": prints()}, {"fingerprint": prints()}),
    (Grade.UNKNOWN, Cause.UNEXPLAINED, {}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("grade", "cause", "before", "now"), GRADED)
def test_cause_is_found_with_its_grade(grade: Grade, cause: Cause, before: dict[str, Any], now: dict[str, Any]) -> None:
    primary = explain_loss(baseline(**before), call("now", 0, 51_000, **now)).primary
    assert (primary.cause, primary.grade) == (cause, grade)
    assert grade in CAUSES[cause].grades


def test_every_grade_a_cause_can_have_is_in_the_tables() -> None:
    tabled = {(cause, grade) for grade, cause, _, _ in GRADED}
    missing = {
        (cause, grade)
        for cause, note in CAUSES.items()
        for grade in note.grades
        if (cause, grade) not in tabled and grade is not Grade.REQUEST and note.avoidability != "expected"
    }
    assert not missing


GAPS = [
    ("5m", 4.9, None), ("5m", 5.1, Cause.TTL_EXPIRED_5M), ("5m", 20, Cause.TTL_EXPIRED_5M),
    ("1h", 20, None), ("1h", 59, None), ("1h", 61, Cause.TTL_EXPIRED_1H), (None, 20, None),
]  # fmt: skip


@pytest.mark.parametrize(("ttl", "minutes", "cause"), GAPS)
def test_a_pause_is_a_cause_only_against_the_lifetime_in_force(
    ttl: str | None, minutes: float, cause: Cause | None
) -> None:
    hour = 51_000 if ttl == "1h" else 0
    primary = explain_loss(baseline(ttl=ttl), call("now", 0, 51_000, minutes=minutes, hour=hour)).primary
    assert primary.cause is (cause or Cause.UNEXPLAINED)


@pytest.mark.parametrize("model", ["claude-opus-4-5", "claude-sonnet-4-6", "claude-opus-5-5", "some-model"])
def test_newer_models_keep_their_thinking(model: str) -> None:
    lost = explain_loss(baseline(has_thinking=True, model=model), call("now", 0, 51_000, starts_turn=True, model=model))
    assert lost.primary.cause is Cause.UNEXPLAINED


def test_better_grades_are_believed_and_the_others_come_after() -> None:
    before = baseline(fingerprint=prints(), client_version="1")
    now = call(
        "now", 0, 51_000, minutes=10, client_version="2", api_reason="tools_changed", client_reasons=("tools_changed",),
        fingerprint=prints(tools=[tool("Bash")], output_config={"effort": "low"}),
    )  # fmt: skip
    explained = explain_loss(before, now)
    assert [(each.cause, each.grade) for each in explained.findings] == [
        (Cause.TOOLS_CHANGED, Grade.API),
        (Cause.EFFORT_CHANGED, Grade.REQUEST),
        (Cause.TTL_EXPIRED_5M, Grade.INFERRED),
        (Cause.CLIENT_UPDATED, Grade.INFERRED),
    ]
    assert explained.conflicts == ()


def test_grades_that_contradict_each_other_are_shown() -> None:
    before = baseline(fingerprint=prints())
    now = call("now", 0, 51_000, api_reason="system_changed", client_reasons=("effort_changed",), fingerprint=prints())
    explained = explain_loss(before, now)
    assert explained.primary.cause is Cause.SYSTEM_CHANGED
    assert [(each.better, each.other) for each in explained.conflicts] == [
        (Grade.API, Grade.CLIENT), (Grade.API, Grade.REQUEST), (Grade.CLIENT, Grade.REQUEST),
    ]  # fmt: skip
    assert explained.conflicts[1].sentence == ("The API: The system prompt changed. The two requests: nothing changed")


def test_client_and_equal_requests_agree_on_a_pause_or_the_server() -> None:
    for reason in ("ttl_expired_5m", "likely_server_side"):
        now = call("now", 0, 51_000, client_reasons=(reason,), fingerprint=prints())
        assert explain_loss(baseline(fingerprint=prints()), now).conflicts == ()


def test_a_pause_never_contradicts_a_change() -> None:
    now = call("now", 0, 51_000, minutes=30, api_reason="system_changed")
    explained = explain_loss(baseline(), now)
    assert explained.conflicts == ()
    assert [each.cause for each in explained.further] == [Cause.TTL_EXPIRED_5M]


def test_a_small_change_does_not_explain_a_total_loss_after_a_long_pause() -> None:
    words = [f"message {number} " * 200 for number in range(20)]
    before = baseline(fingerprint=prints(*words))
    rewritten = prints(*words[:-1], "other", "more")
    late = explain_loss(before, call("now", 0, 51_000, minutes=30, fingerprint=rewritten))
    assert late.primary.cause is Cause.TTL_EXPIRED_5M
    assert late.further[0].cause is Cause.MESSAGES_REWRITTEN
    assert late.prediction is not None
    assert late.prediction.reads_less
    soon = explain_loss(before, call("now", 0, 51_000, minutes=1, fingerprint=rewritten))
    assert soon.primary.cause is Cause.MESSAGES_REWRITTEN


def test_unavailable_steps_back_behind_what_two_requests_show() -> None:
    now = call("now", 0, 51_000, api_reason="unavailable", fingerprint=prints(tool_choice={"type": "any"}))
    primary = explain_loss(baseline(fingerprint=prints()), now).primary
    assert (primary.cause, primary.grade) == (Cause.TOOL_CHOICE_CHANGED, Grade.REQUEST)


def test_unavailable_steps_back_behind_a_lifetime_that_ran_out() -> None:
    primary = explain_loss(baseline(), call("now", 0, 51_000, minutes=9, api_reason="unavailable")).primary
    assert (primary.cause, primary.grade) == (Cause.TTL_EXPIRED_5M, Grade.INFERRED)


def test_opaque_and_own_hashes_are_not_compared() -> None:
    before = baseline(fingerprint=replace(prints("a"), are_messages_opaque=True, message_sizes=(), message_blocks=()))
    same = explain_loss(before, call("now", 0, 51_000, fingerprint=prints("other")))
    assert same.primary.cause is Cause.LIKELY_SERVER_SIDE
    system = [*body()["system"][:2], text("Hurry.", marked="5m")]
    now = call("now", 0, 51_000, fingerprint=prints("other", system=system))
    assert explain_loss(before, now).primary.cause is Cause.SYSTEM_CHANGED
