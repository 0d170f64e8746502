"""The four lines, the level among them, what is left, and what was observed against them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.policy import Policy
from compaction.context.thresholds import (
    NOT_SEEN_REMARK,
    DriftKind,
    Level,
    Thresholds,
    ThresholdState,
    classify_usage,
    compute_drift,
    compute_percent_left,
    compute_thresholds,
)
from compaction.context.windows import ModelInUse, Origin
from compaction.errors import BadPolicy


def draw(policy: Policy, model: str = "claude-opus-4-6", version: str | None = None) -> Thresholds:
    lines = compute_thresholds(policy, ModelInUse(model, client_version=version))
    assert lines is not None
    return lines


@pytest.mark.parametrize(
    ("environment", "model", "version", "warning", "auto", "blocking"),
    [
        ({}, "claude-opus-4-6", None, 147_000, 167_000, 177_000),
        ({}, "claude-opus-4-6", "2.1.25", 147_000, 167_000, 177_000),
        ({}, "claude-opus-5-5", None, 947_000, 967_000, 977_000),
        ({}, "claude-opus-4-6[1m]", None, 947_000, 967_000, 977_000),
        ({}, "claude-sonnet-4-5", "2.1.20", 135_000, 155_000, 165_000),
        ({"DISABLE_AUTO_COMPACT": "1"}, "claude-opus-4-6", None, 160_000, 167_000, 177_000),
        ({"DISABLE_COMPACT": "1"}, "claude-opus-5-5", None, 960_000, 967_000, 977_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}, "claude-opus-5-5", None, 147_000, 167_000, 177_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}, "claude-opus-5-5", None, 47_000, 67_000, 77_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "150000"}, "claude-haiku-4-5", None, 97_000, 117_000, 127_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1000000"}, "claude-haiku-4-5", None, 147_000, 167_000, 177_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}, "claude-opus-5-5",
         None, 70_000, 90_000, 177_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, "claude-opus-5-5", None, 470_000, 490_000, 977_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "99"}, "claude-opus-4-6", None, 147_000, 167_000, 177_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "33.3"}, "claude-opus-4-6", None, 39_940, 59_940, 177_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "0"}, "claude-opus-4-6", None, 147_000, 167_000, 177_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "101"}, "claude-opus-4-6", None, 147_000, 167_000, 177_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "1"}, "claude-opus-4-6", None, 0, 1_800, 177_000),
        ({"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8000"}, "claude-opus-4-6", None, 159_000, 179_000, 189_000),
        ({"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "64000"}, "claude-opus-4-6", None, 147_000, 167_000, 177_000),
    ],
)  # fmt: skip
def test_lines_of_the_client(
    environment: dict[str, object], model: str, version: str | None, warning: int, auto: int, blocking: int
) -> None:
    lines = draw(Policy.from_environment(environment), model, version)
    assert (lines.warning.tokens, lines.auto.tokens, lines.blocking.tokens) == (warning, auto, blocking)
    assert lines.error.tokens == warning


def test_the_clients_version_decides_the_reserve() -> None:
    assert draw(Policy(), version="2.1.20").auto.tokens == 155_000
    assert draw(Policy(), version="2.1.21").auto.tokens == 167_000
    assert draw(Policy(), version=None).auto.tokens == 167_000


def test_the_early_preset_warns_before_it_errs() -> None:
    lines = draw(Policy.from_team_values({"preset": "early"}))
    assert (lines.warning.tokens, lines.error.tokens, lines.auto.tokens) == (127_000, 147_000, 167_000)


def test_each_line_shows_its_formula_and_the_origin_of_every_term() -> None:
    lines = draw(Policy(), "claude-opus-4-6")
    assert lines.available.formula == "available = window - 20,000 = 180,000"
    assert lines.auto.formula == "auto = available - 13,000 = 167,000"
    assert lines.warning.formula == "warning = auto - 20,000 = 147,000"
    assert lines.blocking.formula == "blocking = available - 3,000 = 177,000"
    assert [term.description for term in lines.auto.terms] == [
        "window 200,000 from the client's table for claude-opus-4-6",
        "reserve 20,000 from min(max output 64,000, 20,000)",
        "13,000 from Claude Code's rule",
    ]
    off = draw(Policy.from_environment({"DISABLE_AUTO_COMPACT": "1"}))
    assert off.warning.formula == "warning = available - 20,000 = 160,000"
    half = draw(Policy.from_environment({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}), "claude-opus-5-5")
    assert half.auto.formula == "auto = floor(available x 50 / 100) = 490,000"
    assert half.auto.terms[-1].origin is Origin.CLIENT_SETTING


@pytest.mark.parametrize(
    ("used", "level", "flags", "percent_left"),
    [
        (0, Level.OK, (False, False, False, False), 100),
        (126_999, Level.OK, (False, False, False, False), 24),
        (127_000, Level.WARNING, (True, False, False, False), 24),
        (147_000, Level.ERROR, (True, True, False, False), 12),
        (166_999, Level.ERROR, (True, True, False, False), 0),
        (167_000, Level.AUTO_COMPACT, (True, True, True, False), 0),
        (177_000, Level.BLOCKING, (True, True, True, True), 0),
        (400_000, Level.BLOCKING, (True, True, True, True), 0),
    ],
)
def test_the_level_is_the_highest_line_reached(
    used: int, level: Level, flags: tuple[bool, ...], percent_left: int
) -> None:
    reading = classify_usage(draw(Policy.from_team_values({"preset": "early"})), used)
    assert reading.level is level
    assert (
        reading.is_above_warning, reading.is_above_error, reading.is_above_auto, reading.is_at_blocking
    ) == flags  # fmt: skip
    assert reading.percent_left == percent_left


def test_with_auto_compact_off_its_flag_is_never_raised() -> None:
    lines = draw(Policy.from_environment({"DISABLE_AUTO_COMPACT": "1"}))
    assert lines.auto_state is ThresholdState.OFF
    assert classify_usage(lines, 170_000).level is Level.ERROR
    assert not classify_usage(lines, 170_000).is_above_auto
    assert classify_usage(lines, 177_000).level is Level.BLOCKING
    assert classify_usage(lines, 90_000).percent_left == 50


def test_an_unknown_window_is_said_to_be_unknown() -> None:
    lines = compute_thresholds(Policy(), ModelInUse("some-model"))
    assert lines is None
    reading = classify_usage(lines, 50_000)
    assert (reading.level, reading.percent_left, reading.used_tokens) == (Level.NOT_KNOWN, None, 50_000)


def test_a_team_can_give_an_unknown_model_its_window() -> None:
    policy = Policy.from_team_values({"models": {"some-model": {"window_tokens": 128_000}}})
    lines = compute_thresholds(policy, ModelInUse("some-model", is_claude_code=False))
    assert lines is not None
    assert lines.auto.tokens == 95_000


@pytest.mark.parametrize(
    ("limit", "used", "percent"),
    [
        (200, 199, 1),
        (200, 200, 0),
        (1_000, 995, 1),
        (1_000, 996, 0),
        (1_000, 5, 100),
        (1_000, 6, 99),
        (0, 5, 0),
        (-5, 0, 0),
    ],
)
def test_percent_left_rounds_half_up(limit: int, used: int, percent: int) -> None:
    assert compute_percent_left(used, limit) == percent


@given(st.integers(), st.integers())
def test_percent_left_is_from_0_to_100(used: int, limit: int) -> None:
    assert 0 <= compute_percent_left(used, limit) <= 100


TEAM_VALUES = st.fixed_dictionaries(
    {},
    optional={
        "preset": st.sampled_from(["client", "early"]),
        "warning_margin_tokens": st.integers(0, 250_000),
        "error_margin_tokens": st.integers(0, 250_000),
        "auto_margin_tokens": st.integers(0, 100_000),
        "blocking_margin_tokens": st.integers(0, 100_000),
        "auto_percent": st.decimals(1, 100, allow_nan=False, places=2),
        "window_tokens": st.integers(1, 2_000_000),
        "max_output_tokens": st.integers(1, 200_000),
        "reserve_tokens": st.integers(0, 200_000),
        "is_auto_enabled": st.booleans(),
    },
)
MODELS = st.sampled_from(["claude-opus-5-5", "claude-opus-4-6", "claude-haiku-4-5", "claude-sonnet-4-5[1m]"])
VERSIONS = st.sampled_from([None, "1.0.98", "2.1.20", "2.1.25", "2.1.325"])


def assert_ordered(lines: Thresholds) -> None:
    drawn = [lines.warning.tokens, lines.error.tokens]
    drawn += [lines.auto.tokens] if lines.is_auto_on else []
    drawn += [lines.blocking.tokens, lines.available.tokens]
    assert drawn == sorted(drawn)
    assert drawn[0] >= 0


@given(TEAM_VALUES, MODELS, VERSIONS)
def test_lines_are_ordered_for_every_accepted_policy(
    values: dict[str, object], model: str, version: str | None
) -> None:
    try:
        policy = Policy.from_team_values(values)
    except BadPolicy:
        return
    assert_ordered(draw(policy, model, version))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "DISABLE_AUTO_COMPACT": st.sampled_from(["1", "0"]),
            "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": st.integers(-10, 200).map(str),
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW": st.integers(1, 2_000_000).map(str),
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": st.integers(0, 300_000).map(str),
        },
    ),
    MODELS, VERSIONS, st.integers(0, 3_000_000),
)  # fmt: skip
def test_lines_are_ordered_under_a_clients_settings(
    environment: dict[str, object], model: str, version: str | None, used: int
) -> None:
    lines = draw(Policy.from_environment(environment), model, version)
    assert_ordered(lines)
    percent_left = classify_usage(lines, used).percent_left
    assert percent_left is not None
    assert 0 <= percent_left <= 100


def test_client_settings_that_give_negative_lines_are_held_at_0() -> None:
    lines = draw(Policy(window_tokens=10_000, auto_percent=Decimal(10)))
    assert (lines.available.tokens, lines.auto.tokens, lines.blocking.tokens) == (0, 0, 0)
    assert lines.warning.formula.endswith("= -20,000, held at 0")


@pytest.mark.parametrize(
    ("model", "version", "environment", "state"),
    [
        ("claude-haiku-4-5", "2.1.325", {}, ThresholdState.NOT_SEEN),
        ("claude-sonnet-4-5", "2.1.197", {}, ThresholdState.NOT_SEEN),
        ("claude-haiku-4-5", "2.1.325", {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}, ThresholdState.IN_FORCE),
        ("claude-haiku-4-5", "2.1.325", {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "20"}, ThresholdState.NOT_SEEN),
        ("claude-haiku-4-5", "2.1.126", {}, ThresholdState.IN_FORCE),
        ("claude-haiku-4-5", None, {}, ThresholdState.IN_FORCE),
        ("claude-opus-5-5", "2.1.325", {}, ThresholdState.IN_FORCE),
        ("claude-haiku-4-5", "2.1.325", {"DISABLE_AUTO_COMPACT": "1"}, ThresholdState.OFF),
    ],
)
def test_a_line_not_seen_in_force_is_said_to_be_so(
    model: str, version: str | None, environment: dict[str, object], state: ThresholdState
) -> None:
    lines = draw(Policy.from_environment(environment), model, version)
    assert lines.auto_state is state
    assert (NOT_SEEN_REMARK in lines.remarks) == (state is ThresholdState.NOT_SEEN)


def test_with_one_response_the_line_that_acts_is_named() -> None:
    lines = compute_thresholds(Policy(), ModelInUse("claude-opus-5-5", responses=1))
    assert lines is not None
    assert lines.remarks[0] == "With only one response so far, the client compacts at 977,000 tokens."
    other = compute_thresholds(Policy(), ModelInUse("claude-opus-5-5", is_claude_code=False, responses=1))
    assert other is not None
    assert other.remarks == ()


@pytest.mark.parametrize(
    ("observed", "kind"),
    [
        (158_650, None), (158_649, DriftKind.EARLY), (167_000, None), (176_700, None), (197_000, None),
        (197_001, DriftKind.LATE),
    ],
)  # fmt: skip
def test_an_observed_compaction_is_compared_with_its_line(observed: int, kind: DriftKind | None) -> None:
    drift = compute_drift(draw(Policy()), observed)
    assert (drift.kind if drift else None) is kind


def test_drift_is_told_in_a_sentence() -> None:
    lines = draw(Policy())
    early = compute_drift(lines, 82_572)
    assert early is not None
    assert early.sentence == "Compacted at 82,572 tokens, 84,428 below the threshold 167,000."
    assert compute_drift(lines, 82_572, trigger="manual") is None
    assert compute_drift(lines, 240_000, is_reactive=True) is None
    off = compute_drift(draw(Policy.from_environment({"DISABLE_AUTO_COMPACT": "1"})), 167_100)
    assert off is not None
    assert off.kind is DriftKind.THOUGH_OFF
