"""Windows by report and table, reserves by client version."""

import pytest

from compaction.context.windows import ModelInUse, Origin, compute_reserve, get_window, read_client_version


@pytest.mark.parametrize(
    ("model", "agent", "tokens"),
    [
        ("claude-opus-5-5", "claude-code", 1_000_000),
        ("claude-haiku-5-5", "claude-code", 1_000_000),
        ("claude-fable-5-2", "claude-code", 1_000_000),
        ("claude-mythos-5-2", "claude-code", 1_000_000),
        ("claude-opus-4-6", "claude-code", 200_000),
        ("claude-opus-4-6", "other", 1_000_000),
        ("claude-opus-4-6[1m]", "claude-code", 1_000_000),
        ("claude-sonnet-4-6", "claude-code", 200_000),
        ("claude-sonnet-4-6", "other", 1_000_000),
        ("claude-sonnet-4-5[1m]", "other", 1_000_000),
        ("claude-sonnet-4-5-20250929", "claude-code", 200_000),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0[1m]", "claude-code", 1_000_000),
        ("claude-opus-4-5@20251101", "other", 200_000),
        ("claude-3-5-sonnet-20241022", "claude-code", 200_000),
        ("claude-mythos-5-2", "other", None),
        ("claude-opus-6", "claude-code", None),
        ("gpt-5", "claude-code", None),
        ("gpt-5", "other", None),
        ("gpt-5[1m]", "other", None),
        ("opus", "claude-code", None),
    ],
)
def test_the_window_comes_from_the_table_of_whoever_runs_the_model(model: str, agent: str, tokens: int | None) -> None:
    window = get_window(ModelInUse(model, is_claude_code=agent == "claude-code"))
    assert (window.tokens if window else None) == tokens


def test_what_the_client_reports_goes_before_the_table() -> None:
    window = get_window(ModelInUse("claude-opus-4-6", reported_window_tokens=1_000_000))
    assert window is not None
    assert (window.tokens, window.origin) == (1_000_000, Origin.REPORTED)
    unknown = get_window(ModelInUse("gpt-5", reported_window_tokens=400_000))
    assert unknown is not None
    assert unknown.tokens == 400_000
    assert get_window(ModelInUse("gpt-5", reported_window_tokens=0)) is None


@pytest.mark.parametrize(
    ("version", "tokens"),
    [
        ("2.1.20", 32_000), ("2.0.76", 32_000), ("1.0.98", 32_000), ("2.1.21", 20_000), ("2.1.25", 20_000),
        ("2.1.325", 20_000), (None, 20_000), ("unknown", 20_000), ("10.0.0", 20_000),
    ],
)  # fmt: skip
def test_the_reserve_follows_the_client_version(version: str | None, tokens: int) -> None:
    assert compute_reserve(ModelInUse("claude-opus-4-5", client_version=version)).tokens == tokens


def test_the_reserve_says_where_it_comes_from() -> None:
    reserve = compute_reserve(ModelInUse("claude-opus-4-6"))
    assert reserve.description == "reserve 20,000 from min(max output 64,000, 20,000)"
    small = compute_reserve(ModelInUse("claude-opus-4-6", reported_max_output_tokens=8_000))
    assert (small.tokens, small.origin) == (8_000, Origin.REPORTED)
    other_agent = compute_reserve(ModelInUse("claude-opus-4-5", is_claude_code=False, client_version="2.0.0"))
    assert other_agent.tokens == 20_000


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2.1.20", (2, 1, 20)),
        ("v2.1.3", (2, 1, 3)),
        ("2.1.325.a3f", (2, 1, 325)),
        ("2.1", None),
        ("", None),
        (None, None),
    ],
)
def test_a_client_version_is_read_as_numbers(text: str | None, numbers: tuple[int, int, int] | None) -> None:
    assert read_client_version(text) == numbers
