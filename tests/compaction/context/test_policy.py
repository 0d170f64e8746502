"""Policies from a team, from a client's environment, by version: what is taken, ignored, refused."""

import dataclasses
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.cache_ttl import CacheTtl
from compaction.context.margins import Preset
from compaction.context.policy import Policy
from compaction.context.windows import Origin
from compaction.errors import BadPolicy


@pytest.mark.parametrize(
    ("environment", "setting", "value"),
    [
        ({}, "compacts_by_itself", True),
        ({"DISABLE_COMPACT": "1"}, "compacts_by_itself", False),
        ({"DISABLE_COMPACT": "1"}, "compacts_when_too_long", False),
        ({"DISABLE_AUTO_COMPACT": "true"}, "compacts_by_itself", False),
        ({"DISABLE_AUTO_COMPACT": "1"}, "compacts_when_too_long", True),
        ({"DISABLE_AUTO_COMPACT": "0"}, "compacts_by_itself", True),
        ({"autoCompactEnabled": False}, "compacts_by_itself", False),
        ({"autoCompactEnabled": True}, "compacts_by_itself", True),
        ({"autoCompactEnabled": True, "DISABLE_AUTO_COMPACT": "1"}, "compacts_by_itself", False),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, "auto_percent", Decimal(50)),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "72.5"}, "auto_percent", Decimal("72.5")),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "80%"}, "auto_percent", Decimal(80)),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "0"}, "auto_percent", None),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "0.5"}, "auto_percent", None),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "101"}, "auto_percent", None),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "-5"}, "auto_percent", None),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "half"}, "auto_percent", None),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}, "window_tokens", 200_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "99999"}, "window_tokens", None),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200k"}, "window_tokens", None),
        ({"autoCompactWindow": 150_000}, "window_tokens", 150_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "300000", "autoCompactWindow": 150_000}, "window_tokens", 300_000),
        ({"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8000"}, "max_output_tokens", 8_000),
        ({"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "lots"}, "max_output_tokens", None),
        ({}, "cache_ttl", None),
        ({"ENABLE_PROMPT_CACHING_1H": "1"}, "cache_ttl", CacheTtl.ONE_HOUR),
        ({"ENABLE_PROMPT_CACHING_1H": "1", "FORCE_PROMPT_CACHING_5M": "1"}, "cache_ttl", CacheTtl.FIVE_MINUTES),
        ({"FORCE_PROMPT_CACHING_5M": "1", "DISABLE_PROMPT_CACHING": "1"}, "cache_ttl", CacheTtl.OFF),
    ],
)
def test_client_settings_are_understood(environment: dict[str, object], setting: str, value: object) -> None:
    assert getattr(Policy.from_environment(environment), setting) == value


def test_what_the_client_ignores_is_noted() -> None:
    policy = Policy.from_environment({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "400", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "5"})
    assert policy.notes == (
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE is ignored: it is not a number from 1 to 100.",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW is ignored: it is not a whole number from 100,000 to 1,000,000.",
    )


@given(
    st.dictionaries(
        st.sampled_from([
            "DISABLE_COMPACT", "DISABLE_AUTO_COMPACT", "autoCompactEnabled", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW", "autoCompactWindow", "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "ENABLE_PROMPT_CACHING_1H",
        ]),
        st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.floats(), st.lists(st.integers(), max_size=2)),
    )
)  # fmt: skip
def test_no_environment_ever_raises(environment: dict[str, object]) -> None:
    Policy.from_environment(environment)


@pytest.mark.parametrize(
    ("values", "setting", "sentence"),
    [
        ({"error_margin_tokens": 30_000}, "error_margin_tokens",
         "The error threshold would be below the warning threshold: its margin of 30,000 tokens is larger than the "
         "warning margin of 20,000."),
        ({"auto_margin_tokens": "2000"}, "auto_margin_tokens",
         "The auto-compact threshold would be above the blocking threshold: its margin of 2,000 tokens is smaller than "
         "the blocking margin of 3,000."),
        ({"warning_margin_tokens": 190_000}, "warning_margin_tokens",
         "The lowest threshold would be at -23,000 tokens. Lower the margins, or raise the window or the percentage."),
        ({"window_tokens": 40_000}, "window_tokens",
         "The lowest threshold would be at -13,000 tokens. Lower the margins, or raise the window or the percentage."),
        ({"auto_percent": 5}, "auto_percent",
         "The lowest threshold would be at -11,000 tokens. Lower the margins, or raise the window or the percentage."),
        ({"window_tokens": 5}, "window_tokens",
         "The lowest threshold would be at -52,995 tokens. Lower the margins, or raise the window or the percentage."),
        ({"window_tokens": 100_000, "warning_margin_tokens": 90_000}, "warning_margin_tokens",
         "The lowest threshold would be at -23,000 tokens. Lower the margins, or raise the window or the percentage."),
        ({"is_auto_enabled": "off", "error_margin_tokens": 1_000}, "error_margin_tokens",
         "With auto-compact off, the error threshold would be above the blocking threshold: its margin of 1,000 tokens "
         "is smaller than the blocking margin of 3,000."),
        ({"warning_margin_tokens": -1}, "warning_margin_tokens",
         "The warning margin must be from 0 to 100,000,000 tokens, not -1."),
        ({"window_tokens": "big"}, "window_tokens", 'The window must be a whole number of tokens, not "big".'),
        ({"window_tokens": "9" * 50}, "window_tokens",
         f'The window must be a whole number of tokens, not "{"9" * 40}...".'),
        ({"window_tokens": 0}, "window_tokens", "The window must be from 1 to 100,000,000 tokens, not 0."),
        ({"auto_percent": "101"}, "auto_percent",
         "The auto-compact percentage must be a number from 1 to 100, not 101."),
        ({"auto_percent": "most"}, "auto_percent",
         "The auto-compact percentage must be a number from 1 to 100, not most."),
        ({"auto_percent": "NaN"}, "auto_percent",
         "The auto-compact percentage must be a number from 1 to 100, not NaN."),
        ({"is_micro_enabled": "maybe"}, "is_micro_enabled", 'A switch is either on or off, not "maybe".'),
        ({"preset": "late"}, "preset", 'Unknown preset "late". Choose "client" or "early".'),
        ({"colour": "red"}, "colour", 'Unknown setting "colour".'),
        ({"origins": ()}, "origins", 'Unknown setting "origins".'),
        ({"models": ["x"]}, "models", "Per-model values must be keyed by the model's name."),
        ({"models": {"claude-opus-5-5": 3}}, "models", "The values for claude-opus-5-5 must be given by name."),
        ({"models": {"claude-opus-5-5": {"auto_margin_tokens": 1}}}, "auto_margin_tokens",
         "The auto-compact threshold for claude-opus-5-5 would be above the blocking threshold: its margin of 1 tokens "
         "is smaller than the blocking margin of 3,000."),
    ],
)  # fmt: skip
def test_a_teams_bad_values_are_refused_with_a_sentence(values: dict[str, object], setting: str, sentence: str) -> None:
    with pytest.raises(BadPolicy) as refused:
        Policy.from_team_values(values)
    assert (refused.value.setting, str(refused.value)) == (setting, sentence)


def test_a_teams_values_come_from_a_form_as_text() -> None:
    policy = Policy.from_team_values(
        {
            "preset": "early",
            "window_tokens": "300,000",
            "auto_percent": "80",
            "is_micro_enabled": "off",
            "reserve_tokens": "",
        }
    )
    assert (policy.window_tokens, policy.auto_percent, policy.is_micro_enabled) == (300_000, Decimal(80), False)
    assert policy.warning_margin_tokens == 40_000
    assert policy.reserve_tokens is None
    assert policy.get_origin("window_tokens") is Origin.TEAM
    assert policy.get_origin("auto_margin_tokens") is Origin.CLIENT_RULE


def test_a_model_may_have_values_of_its_own() -> None:
    policy = Policy.from_team_values(
        {"models": {"claude-opus-4-6": {"window_tokens": 500_000}, "claude-opus-4-6[1m]": {"window_tokens": 900_000}}}
    )
    assert policy.for_model("us.anthropic.claude-opus-4-6-v1:0").window_tokens == 500_000
    assert policy.for_model("claude-opus-4-6[1m]").window_tokens == 900_000
    assert policy.for_model("claude-opus-5-5") is policy


def test_a_models_own_values_are_checked_in_its_own_window() -> None:
    wide = {"warning_margin_tokens": 300_000}
    assert Policy.from_team_values({"models": {"claude-opus-5-5": wide}}).by_model
    with pytest.raises(BadPolicy, match="for claude-opus-4-6 would be at -133,000 tokens"):
        Policy.from_team_values({"models": {"claude-opus-4-6": wide}})


def test_a_policy_cannot_be_changed() -> None:
    policy = Policy.from_preset(Preset.EARLY)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.window_tokens = 1  # type: ignore[misc]
    assert hash(policy) == hash(Policy.from_preset(Preset.EARLY))
