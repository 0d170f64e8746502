"""What a team may enter: every fault at its setting, and what is stored of the rest."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction.context.policy import Policy
from compaction.errors import BadPolicy
from dashboard.policies.thresholds import SETTINGS, clean_thresholds, find_faults, lay_flat, stand_up

STORED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "empty fields": ({"preset": "client", "auto_percent": "", "window_tokens": None, "models": {}}, {}),
    "form texts": (
        {"preset": "early", "warning_margin_tokens": " 50,000 ", "auto_percent": "82.5", "is_auto_enabled": "off"},
        {"preset": "early", "warning_margin_tokens": 50_000, "auto_percent": 82.5, "is_auto_enabled": False},
    ),
    "auto on, as the client has it": ({"is_auto_enabled": "on", "auto_percent": "80.0"}, {"auto_percent": 80}),
    "a zero": ({"blocking_margin_tokens": 0}, {"blocking_margin_tokens": 0}),
    "a model under another spelling": (
        {"models": {"us.anthropic.claude-opus-4-5-20251101-v1:0": {"window_tokens": "500000", "auto_percent": ""}}},
        {"models": {"claude-opus-4-5": {"window_tokens": 500_000}}},
    ),
    "a model that compacts though the team's do not": (
        {"is_auto_enabled": False, "models": {"claude-opus-4-5[1M]": {"is_auto_enabled": "on"}}},
        {"is_auto_enabled": False, "models": {"claude-opus-4-5[1m]": {"is_auto_enabled": True}}},
    ),
}
OPUS = "claude-opus-4-5"
REFUSED: dict[str, tuple[dict[str, Any], list[tuple[str, str | None]]]] = {
    "two values and a model's": (
        {"warning_margin_tokens": "many", "auto_percent": "101", "models": {OPUS: {"reserve_tokens": "-1"}}},
        [("warning_margin_tokens", None), ("auto_percent", None), ("reserve_tokens", OPUS)],
    ),
    "error below warning": ({"error_margin_tokens": 30_000}, [("error_margin_tokens", None)]),
    "auto above blocking": ({"auto_margin_tokens": 100}, [("auto_margin_tokens", None)]),
    "lines below nothing": ({"warning_margin_tokens": 190_000}, [("warning_margin_tokens", None)]),
    "only a model's lines": ({"models": {OPUS: {"error_margin_tokens": 30_000}}}, [("error_margin_tokens", OPUS)]),
    "a model's lines are not judged over a bad base": (
        {"auto_margin_tokens": 100, "models": {OPUS: {"warning_margin_tokens": 30_000}}},
        [("auto_margin_tokens", None)],
    ),
    "no such setting": ({"colour": "red"}, [("colour", None)]),
    "a switch that no page has yet": ({"is_micro_enabled": False}, [("is_micro_enabled", None)]),
    "no such preset": ({"preset": "late"}, [("preset", None)]),
    "a preset for a model": ({"models": {OPUS: {"preset": "early"}}}, [("preset", OPUS)]),
    "a model without a name": ({"models": {" ": {"window_tokens": 9}}}, [("models", " ")]),
    "a model without values": ({"models": {OPUS: {"window_tokens": ""}}}, [("models", OPUS)]),
    "a model twice": (
        {"models": {OPUS: {"window_tokens": 300_000}, f"anthropic/{OPUS}": {"window_tokens": 400_000}}},
        [("models", f"anthropic/{OPUS}")],
    ),
    "models as a list": ({"models": [OPUS]}, [("models", None)]),
    "too many models": ({"models": {f"model-{n}": {"window_tokens": 300_000} for n in range(21)}}, [("models", None)]),
}


@pytest.mark.parametrize("case", STORED)
def test_only_what_differs_is_stored_in_types_of_json(case: str) -> None:
    entered, stored = STORED[case]
    assert list(find_faults(entered)) == []
    assert clean_thresholds(entered) == stored
    assert json.loads(json.dumps(stored)) == stored
    assert clean_thresholds(stored) == stored


@pytest.mark.parametrize("case", REFUSED)
def test_every_fault_is_told_at_its_setting(case: str) -> None:
    entered, places = REFUSED[case]
    faults = list(find_faults(entered))
    assert [(fault.setting, fault.model) for fault in faults] == places
    assert all(fault.sentence.endswith(".") for fault in faults)
    with pytest.raises(BadPolicy) as refusal:
        clean_thresholds(entered)
    assert refusal.value.sentence == faults[0].sentence


VALUES = st.one_of(
    st.none(), st.sampled_from(["", "on", "off", "-1", "1e3", "80%"]), st.integers(-5, 10**9), st.text(max_size=6)
)
GIVEN = st.dictionaries(st.sampled_from(SETTINGS), VALUES)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(GIVEN, st.dictionaries(st.text(max_size=8), GIVEN, max_size=3))
def test_what_is_stored_draws_the_lines_that_were_entered(own: dict[str, object], models: dict[str, object]) -> None:
    entered = {**own, "models": models}
    if any(find_faults(entered)):
        return
    stored = clean_thresholds(entered)
    policy, again = Policy.from_team_values(entered), Policy.from_team_values(stored)
    assert [getattr(policy, setting) for setting in SETTINGS] == [getattr(again, setting) for setting in SETTINGS]
    assert policy.by_model == again.by_model
    assert stand_up(lay_flat(stored)) == stored
