"""Numbers in words, as tight tables."""

from decimal import Decimal

import pytest

from dashboard.words import (
    format_freed,
    format_retained,
    join_words,
    saves_nothing,
    say_model,
    say_percent,
    say_range,
    say_seconds,
    say_size,
    say_tokens,
    say_usd,
    title_compaction,
)


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (None, "unknown"),
        (0, "0"),
        (812, "812"),
        (999, "999"),
        (1000, "1.0k"),
        (167_000, "167.0k"),
        (171_449, "171.4k"),
        (999_949, "999.9k"),
        (999_950, "1.00M"),
        (1_204_000, "1.20M"),
        (-4_100, "-4.1k"),
    ],
)
def test_tokens_are_short_and_keep_a_unit(count: int | None, words: str) -> None:
    assert say_tokens(count) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0"), (200_000, "200k"), (1_000_000, "1M"), (167_040, "167k"), (1_048_576, "1.05M")]
)
def test_round_sizes_lose_their_zeros(count: int, words: str) -> None:
    assert say_size(count) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (None, "unknown"),
        (Decimal(0), "$0.00"),
        (Decimal("0.00001"), "<$0.0001"),
        (Decimal("0.0042"), "$0.0042"),
        (Decimal("0.00996"), "$0.01"),
        (Decimal("0.01"), "$0.01"),
        (Decimal("1.2449"), "$1.24"),
        (Decimal("1.245"), "$1.25"),
        (Decimal(48_200), "$48,200.00"),
        (Decimal("-12.5"), "\N{MINUS SIGN}$12.50"),
        (Decimal("-0.0042"), "\N{MINUS SIGN}$0.0042"),
    ],
)
def test_money_is_shown_in_cents_and_smaller_amounts_in_four_digits(amount: Decimal | None, words: str) -> None:
    assert say_usd(amount) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (None, "unknown"),
        (0.0, "0%"),
        (0.001, "<1%"),
        (0.914, "91%"),
        (0.998, ">99%"),
        (Decimal(1), "100%"),
        (1.004, "100%"),
    ],
)
def test_shares_are_shown_as_percent(share: float | Decimal | None, words: str) -> None:
    assert say_percent(share) == words


@pytest.mark.parametrize(
    ("percent", "text"),
    [(None, "unknown"), ("0", "~0%"), ("0.2", "<1%"), ("83.3", "~83%"), ("99.7", ">99%"), ("100.0", "~100%")],
)
def test_retained_is_shown_as_an_estimate(percent: str | None, text: str) -> None:
    assert format_retained(Decimal(percent) if percent else None) == text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "unknown"),
        (0.0, "0 ms"),
        (0.0388, "39 ms"),
        (5.07, "5.1 s"),
        (59.94, "59.9 s"),
        (59.97, "1 min"),
        (615.8, "10 min 16 s"),
        (3_600.0, "1 h"),
        (9_000.0, "2 h 30 min"),
        (90_000.0, "1 d 1 h"),
    ],
)
def test_spans_of_time_have_at_most_two_units(seconds: float | None, words: str) -> None:
    assert say_seconds(seconds) == words


@pytest.mark.parametrize(
    ("likely", "ends", "words"),
    [
        (12, (8, 20), "~12 turns (8-20)"),
        (1, (1, 1), "~1 turn"),
        (1_400, (900, 2_100), "~1,400 turns (900-2,100)"),
        (0, (0, 1), "less than a turn"),
        (0, (0, 3), "less than a turn (0-3)"),
    ],
)
def test_range_has_the_likely_value_first(likely: int, ends: tuple[int, int], words: str) -> None:
    assert say_range(likely, ends, "turn") == words


@pytest.mark.parametrize(
    ("parts", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_words_are_joined_as_in_a_sentence(parts: list[str], words: str) -> None:
    assert join_words(parts) == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude-opus-4-5-20251101", "opus-4-5"),
        ("claude-opus-4-5-20251101[1m]", "opus-4-5[1m]"),
        ("claude-sonnet-5-5", "sonnet-5-5"),
        ("gemma-2-20260101-local", "gemma-2-20260101-local"),
        ("", ""),
    ],
)
def test_models_are_named_without_maker_and_day(name: str, words: str) -> None:
    assert say_model(name) == words


@pytest.mark.parametrize(
    ("before", "after", "title", "freed"),
    [
        (168_000, 36_000, "Compacted 168k to 36k: 3 things lost", "132.0k freed"),
        (168_000, None, "Compacted 168k to unknown: 3 things lost", "unknown freed"),
        (None, 36_000, "Compacted unknown to 36k: 3 things lost", "unknown freed"),
        (23_000, 26_000, "Grew from 23k to 26k tokens: nothing saved", "grew, nothing saved"),
        (23_100, 23_200, "Grew from 23.1k to 23.2k tokens: nothing saved", "grew, nothing saved"),
        (23_110, 23_120, "Stayed at 23.1k tokens: nothing saved", "grew, nothing saved"),
        (23_000, 23_000, "Stayed at 23.0k tokens: nothing saved", "nothing saved"),
        (45_096, 45_046, "Compacted 45.1k to 45.0k: 3 things lost", "50 freed"),
        (None, None, "Compacted unknown to unknown: 3 things lost", "unknown freed"),
        (0, 0, "Stayed at 0 tokens: nothing saved", "nothing saved"),
    ],
)
def test_compaction_is_titled_by_what_it_did(before: int | None, after: int | None, title: str, freed: str) -> None:
    saved = None if before is None or after is None else max(0, before - after)
    assert title_compaction(before, after, ending=": 3 things lost") == title
    assert format_freed(before, after, saved) == freed
    assert saves_nothing(before, after) == title.endswith("nothing saved")


def test_estimates_in_a_title_are_marked() -> None:
    titles = [
        title_compaction(before, after, is_before_estimated=True, is_after_estimated=True)
        for before, after in ((168_000, 36_000), (23_000, 26_000))
    ]
    assert titles == ["Compacted ~168k to ~36k", "Grew from ~23k to ~26k tokens: nothing saved"]
    assert format_freed(168_000, 36_000, 132_000, is_estimated=True) == "~132.0k freed"
    assert format_freed(None, 36_000, None, is_estimated=True) == "unknown freed"
