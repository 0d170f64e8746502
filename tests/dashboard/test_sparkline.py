"""The sparkline: a fixed scale, gaps for what is not known, and the same in words."""

import re

import pytest

from dashboard.pages.sparkline import draw_hits, draw_sparkline


@pytest.mark.parametrize(
    ("shares", "path", "words"),
    [
        ([0.0, 1.0], "M2.0 16.0L70.0 2.0", "hit rate of the last call 100%, between 0% and 100% before"),
        ([0.5], "M2.0 9.0", "hit rate of the last call 50%, between 50% and 50% before"),
        (
            [1.0, None, 1.0, 0.0],
            "M2.0 2.0M47.3 2.0L70.0 16.0",
            "hit rate of the last call 0%, between 0% and 100% before",
        ),
        ([0.5, None], "M2.0 9.0", "hit rate of the last call 50%, between 50% and 50% before"),
        ([-1.0, 7.0], "M2.0 16.0L70.0 2.0", "hit rate of the last call 700%, between -100% and 700% before"),
    ],
)
def test_shares_are_drawn_on_one_scale(shares: list[float | None], path: str, words: str) -> None:
    drawn = draw_sparkline(shares)
    assert re.findall(r'<path d="([^"]*)"', drawn) == [path]
    assert f'aria-label="{words}"' in drawn


@pytest.mark.parametrize("shares", [[], [None, None]])
def test_nothing_known_is_said(shares: list[float | None]) -> None:
    assert draw_sparkline(shares) == '<span class="dim">unknown</span>'


def test_name_is_escaped() -> None:
    assert "<b>" not in draw_sparkline([0.5], "<b>")


@pytest.mark.parametrize("percents", [[], [0], [100, 0, 50], list(range(101)), [29, 57, 99], [-5, 120]])
def test_whole_percents_are_drawn_as_their_shares(percents: list[int]) -> None:
    assert draw_hits(percents) == draw_sparkline([percent / 100 for percent in percents])
