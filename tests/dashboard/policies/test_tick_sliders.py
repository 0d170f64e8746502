"""Sliders of thresholds: every end of a range is a policy that is accepted and draws the threshold there."""

from typing import Any

import pytest

from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, compute_thresholds
from compaction.context.windows import ModelInUse
from dashboard.pages.tick_sliders import TickSlider, list_sliders

POLICIES: list[dict[str, Any]] = [
    {},
    {"preset": "early"},
    {"is_auto_enabled": "off"},
    {"auto_margin_tokens": 40_000, "warning_margin_tokens": 60_000},
]


def list_of(values: dict[str, Any], window: int = 200_000) -> list[TickSlider]:
    return list(list_sliders(Policy.from_team_values(values), draw(values, window)))


def draw(values: dict[str, Any], window: int) -> Thresholds:
    lines = compute_thresholds(Policy.from_team_values(values), ModelInUse(model="", reported_window_tokens=window))
    assert lines is not None
    return lines


@pytest.mark.parametrize("values", POLICIES)
@pytest.mark.parametrize("end", ["lowest", "highest", "tokens"])
def test_margin_at_the_end_of_a_range_draws_the_threshold_there(values: dict[str, Any], end: str) -> None:
    for slider in list_of(values):
        wanted = getattr(slider, end)
        moved = draw(values | {slider.field: slider.limit_tokens - wanted}, 200_000)
        assert getattr(moved, slider.style).tokens == wanted, slider.name


def test_sliders_say_tokens_and_share_of_the_window() -> None:
    sliders = list_of({})
    assert [(each.name, each.value_words) for each in sliders] == [
        ("Warning", "147,000 tokens, 74% of the window"),
        ("Error", "147,000 tokens, 74% of the window"),
        ("Auto-compact", "167,000 tokens, 84% of the window"),
        ("Blocking", "177,000 tokens, 88% of the window"),
    ]
    assert [each.field for each in sliders][2:] == ["auto_margin_tokens", "blocking_margin_tokens"]


def test_auto_compact_that_is_off_has_no_slider() -> None:
    names = [each.name for each in list_of({"is_auto_enabled": "off"}, 1_000_000)]
    assert names == ["Warning", "Error", "Blocking"]


def test_percentage_only_lowers_auto_compact() -> None:
    auto = next(each for each in list_of({"auto_percent": "50"}) if each.style == "auto")
    assert (auto.tokens, auto.highest) == (90_000, 167_000)
