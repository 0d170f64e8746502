"""Where Claude Code compacts by itself, and the settings that make it compact where a policy says."""

from typing import Any

import pytest

from compaction.context.policy import Policy
from compaction.context.policy_parsing import CLIENT_WINDOW_RANGE
from compaction.context.thresholds import compute_thresholds
from compaction.context.windows import ModelInUse
from dashboard.policies.client_thresholds import ClientThreshold, compute_client_thresholds

WINDOW, PERCENT = "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"


def compute(**values: Any) -> tuple[ClientThreshold, ClientThreshold]:
    short, long = compute_client_thresholds(Policy.from_team_values(values))
    return short, long


def test_client_compacts_at_the_measured_tokens() -> None:
    short, long = compute()
    assert (short.client_tokens, short.one_response_tokens) == (167_000, 177_000)
    assert (long.client_tokens, long.one_response_tokens) == (967_000, 977_000)
    assert [each.client_tokens for each in (short, long)] == [
        each.window_tokens - each.reserve_tokens - each.margin_tokens for each in (short, long)
    ]


def test_same_threshold_needs_a_window_where_the_client_was_not_seen_to_compact() -> None:
    short, long = compute()
    assert short.settings == ((WINDOW, "200000"),)
    assert short.is_seen_only_with_window
    assert (long.settings, long.is_seen_only_with_window) == ((), False)
    assert short.is_exact
    assert long.is_exact


def test_lower_threshold_is_a_smaller_window() -> None:
    short, long = compute(auto_margin_tokens=60_000)
    assert (short.policy_tokens, short.settings) == (120_000, ((WINDOW, "153000"),))
    assert (long.policy_tokens, long.settings) == (920_000, ((WINDOW, "953000"),))
    assert short.is_exact
    assert long.is_exact


def test_percentage_of_the_policy_stays_a_percentage() -> None:
    short, long = compute(auto_percent="50")
    assert short.text == f"{WINDOW}=200000\n{PERCENT}=50"
    assert (short.reached_tokens, long.reached_tokens) == (90_000, 490_000)  # as measured
    assert long.text == f"{PERCENT}=50"


def test_threshold_below_the_smallest_window_is_met_by_a_percentage_from_below() -> None:
    short, _ = compute(auto_margin_tokens=130_000)
    assert short.policy_tokens == 50_000
    assert short.settings == ((WINDOW, "200000"), (PERCENT, "27"))
    assert (short.reached_tokens, short.is_exact) == (48_600, False)


def test_later_threshold_is_out_of_reach_and_off_is_off() -> None:
    short, long = compute(auto_margin_tokens=5_000)
    assert (short.is_out_of_reach, short.settings) == (True, ())
    assert (long.is_out_of_reach, long.settings) == (True, ())
    for each in compute(is_auto_enabled="off"):
        assert (each.policy_tokens, each.reached_tokens, each.text) == (None, None, "DISABLE_AUTO_COMPACT=1")


@pytest.mark.parametrize("margin", range(13_000, 150_000, 9_500))
def test_settings_are_valid_and_lead_to_the_threshold(margin: int) -> None:
    for each in compute(auto_margin_tokens=margin, warning_margin_tokens=0, error_margin_tokens=0):
        settings = dict(each.settings)
        policy = Policy.from_environment(settings)
        assert policy.notes == ()
        assert int(settings.get(WINDOW, 200_000)) in CLIENT_WINDOW_RANGE
        lines = compute_thresholds(policy, ModelInUse(model="", reported_window_tokens=each.window_tokens))
        assert lines is not None
        assert lines.auto.tokens == each.reached_tokens
        assert each.policy_tokens is not None
        assert each.policy_tokens - each.window_tokens // 100 <= lines.auto.tokens <= each.policy_tokens
