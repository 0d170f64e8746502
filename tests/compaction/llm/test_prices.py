"""Prices against the client's own table and the published list; modifiers, tiers, iterations, and what has no price."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest
from genai_prices import data_snapshot
from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Tier, TieredPrices
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from compaction.context.call_costs import compute_cost, compute_total_usd
from compaction.llm.prices import Price, Rates, _compute_price, get_list_price
from compaction.transcripts.entries import Iteration, Usage

NOW = datetime(2026, 11, 16, tzinfo=UTC)

# Claude Code 2.1.325, worked out from what it charged: input, output, read, 5m write, 1h write.
CLIENT_TABLE = [
    ("claude-opus-5-5", "4", "20", "0.20", "5", "8"),
    ("claude-sonnet-5-5", "2", "10", "0.10", "2.5", "4"),
    ("claude-haiku-5-5", "0.1", "0.5", "0.01", "0.125", "0.2"),
    ("claude-fable-5-2", "8", "40", "0.20", "10", "16"),
    ("claude-sonnet-4-5", "3", "15", "0.30", "3.75", "6"),
    ("claude-sonnet-4-6", "3", "15", "0.30", "3.75", "6"),
    ("claude-opus-4-5", "5", "25", "0.50", "6.25", "10"),
    ("claude-opus-4-6", "5", "25", "0.50", "6.25", "10"),
    ("claude-haiku-4-5", "1", "5", "0.10", "1.25", "2"),
]
# The published list: input, output, 5m write, 1h write, read.
PUBLISHED = [
    ("claude-opus-5-5", "4", "20", "5", "8", "0.20"),
    ("claude-sonnet-5-5", "2", "10", "2.5", "4", "0.10"),
    ("claude-haiku-5-5", "0.10", "0.50", "0.125", "0.20", "0.01"),
    ("claude-fable-5-1", "10", "50", "12.5", "20", "0.25"),
    ("claude-mythos-5-1", "10", "50", "12.5", "20", "0.25"),
    ("claude-fable-5", "10", "50", "12.5", "20", "1.00"),
    ("claude-mythos-5", "10", "50", "12.5", "20", "1.00"),
    ("claude-opus-5", "5", "25", "6.25", "10", "0.50"),
    ("claude-opus-4-8", "5", "25", "6.25", "10", "0.50"),
    ("claude-opus-4-7", "5", "25", "6.25", "10", "0.50"),
    ("claude-opus-4-6", "5", "25", "6.25", "10", "0.50"),
    ("claude-opus-4-5", "5", "25", "6.25", "10", "0.50"),
    ("claude-sonnet-5", "2", "10", "2.5", "4", "0.20"),
    ("claude-sonnet-4-6", "3", "15", "3.75", "6", "0.30"),
    ("claude-sonnet-4-5", "3", "15", "3.75", "6", "0.30"),
    ("claude-haiku-4-5", "1", "5", "1.25", "2", "0.10"),
]
BUCKETS = [
    Usage(input_tokens=100_000),
    Usage(output_tokens=100_000),
    Usage(cache_read_tokens=100_000),
    Usage(cache_creation_tokens=100_000, cache_creation_5m_tokens=100_000),
    Usage(cache_creation_tokens=100_000, cache_creation_1h_tokens=100_000),
]


def total(usage: Usage, model: str, at: datetime | None = NOW) -> Decimal | None:
    """Both ways to it agree."""
    cost = compute_cost(usage, model, at)
    found = cost.total_usd if cost else None
    assert compute_total_usd(usage, model, at) == found
    return found


@pytest.mark.parametrize("row", CLIENT_TABLE, ids=lambda row: row[0])
def test_each_bucket_of_100k_costs_what_the_client_charges(row: tuple[str, ...]) -> None:
    model, *rates = row
    assert [total(usage, model) for usage in BUCKETS] == [Decimal(rate) / 10 for rate in rates]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row[0])
def test_rates_are_those_of_the_published_list(row: tuple[str, ...]) -> None:
    model, *rates = row
    price = get_list_price(model, NOW)
    assert price is not None
    assert price.rates == Rates(*(Decimal(rate) for rate in rates))


@pytest.mark.parametrize(
    ("model", "same_as", "factor"),
    [
        ("claude-opus-5-5[1m]", "claude-opus-5-5", "1"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5", "1"),
        ("global.anthropic.claude-opus-5-5", "claude-opus-5-5", "1"),
        ("us.anthropic.claude-opus-5-5", "claude-opus-5-5", "1.1"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "1.1"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0[1m]", "claude-haiku-4-5", "1.1"),
        ("claude-opus-4-5@20251101", "claude-opus-4-5", "1"),
        ("vertex_ai/claude-sonnet-5", "claude-sonnet-5", "1"),
    ],
)
def test_other_spellings_have_the_price_of_their_platform(model: str, same_as: str, factor: str) -> None:
    price, plain = get_list_price(model, NOW), get_list_price(same_as, NOW)
    assert price is not None
    assert plain is not None
    assert price.rates == plain.rates.scale(Decimal(factor))


@pytest.mark.parametrize(
    "model",
    [
        "claude-mythos-5-2", "us.anthropic.claude-mythos-5-1", "claude-opus-4-10", "claude-opus-5-7", "claude-opus-6",
        "claude-zebra-5", "opus", "gpt-5", "glm-4.6", "<synthetic>", "",
    ],
)  # fmt: skip
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert get_list_price(model, NOW) is None
    assert compute_cost(Usage(input_tokens=1), model, NOW) is None


@given(st.text(max_size=60))
def test_no_name_ever_raises(model: str) -> None:
    get_list_price(model, NOW)


def test_a_name_longer_than_any_model_has_no_price() -> None:
    name = "claude-opus-5-5-" + "9" * 10_000
    assert get_list_price(name, NOW) is None
    assert compute_cost(Usage(input_tokens=1), name, NOW) is None


def test_the_price_package_is_loaded_only_when_a_price_is_asked_for() -> None:
    code = "import sys, compaction.context.forecast; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_table_that_said_it_is_named() -> None:
    sources = [price.source for model in ("claude-opus-5-5", "us.anthropic.claude-opus-5-5", "claude-fable-5-2")
               if (price := get_list_price(model, NOW))]  # fmt: skip
    assert sources[0].startswith("genai-prices ")
    assert sources[0].endswith("(anthropic)")
    assert sources[1].endswith("(aws)")
    assert sources[2] == "Claude Code's own table"


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [(100_000, Decimal("0.01")), (100_001, Decimal("0.0500005"))],
)
def test_haiku_5_5_costs_more_above_100k(prompt: int, expected: Decimal) -> None:
    assert total(Usage(input_tokens=prompt), "claude-haiku-5-5") == expected


def test_the_tier_is_chosen_by_the_whole_prompt_and_holds_for_every_bucket() -> None:
    usage = Usage(input_tokens=1_000, cache_read_tokens=90_000, cache_creation_tokens=10_000, output_tokens=1_000)
    cost = compute_cost(usage, "claude-haiku-5-5", NOW)
    assert cost is not None
    assert (cost.input_usd, cost.read_usd) == (Decimal("0.0005"), Decimal("0.0045"))
    assert (cost.write_5m_usd, cost.output_usd) == (Decimal("0.00625"), Decimal("0.0025"))


@pytest.mark.parametrize(
    ("model", "day", "rate"),
    [
        ("claude-opus-4-6", datetime(2026, 3, 12, tzinfo=UTC), 10),
        ("claude-opus-4-6", datetime(2026, 3, 13, tzinfo=UTC), 5),
        ("claude-sonnet-4-6[1m]", datetime(2026, 3, 12, tzinfo=UTC), 6),
        ("claude-sonnet-4-6[1m]", None, 3),
        ("claude-sonnet-4-5[1m]", datetime(2026, 1, 1, tzinfo=UTC), 6),
    ],
)
def test_long_prompts_cost_more_until_the_tier_was_dropped(model: str, day: datetime | None, rate: int) -> None:
    assert total(Usage(input_tokens=300_000), model, day) == Decimal(rate) * 3 / 10


def test_a_tier_that_costs_nothing_is_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = TieredPrices(Decimal("0.5"), [Tier(200_000, Decimal(0))])
    prices = ModelPrice(input_mtok=Decimal(5), output_mtok=Decimal(25), cache_read_mtok=reads)
    model = ModelInfo("claude-opus-4-1", match=ClauseEquals("claude-opus-4-1"), prices=prices)
    snapshot = SimpleNamespace(find_provider_model=lambda *_: (None, model))
    monkeypatch.setattr(data_snapshot, "get_snapshot", lambda: snapshot)
    _compute_price.cache_clear()
    price = get_list_price("claude-opus-4-1", NOW)
    _compute_price.cache_clear()
    assert price is not None
    assert [rates and rates.read_mtok_usd for rates in map(price.get_rates, (200_000, 200_001))] == [Decimal("0.5"), 0]
    assert price.get_rates(200_001) == replace(price.rates, read_mtok_usd=Decimal(0))


def test_sonnet_5_5_reads_cost_twice_as_much_before_october_2026() -> None:
    usage = Usage(cache_read_tokens=1_000_000)
    assert total(usage, "claude-sonnet-5-5", datetime(2026, 10, 8, 23, 59, tzinfo=UTC)) == Decimal("0.2")
    assert total(usage, "claude-sonnet-5-5", datetime(2026, 10, 9, tzinfo=UTC)) == Decimal("0.1")


def test_a_prompt_beyond_the_window_on_record_has_no_price() -> None:
    assert total(Usage(input_tokens=200_000), "claude-sonnet-4-20250514") == Decimal("0.6")
    assert total(Usage(input_tokens=200_001), "claude-sonnet-4-20250514") is None


def test_a_long_prompt_on_a_cloud_platform_has_no_price_while_its_tier_was_in_force() -> None:
    usage, model = Usage(input_tokens=300_000), "global.anthropic.claude-opus-4-6-v1:0"
    assert total(usage, model, datetime(2026, 3, 12, tzinfo=UTC)) is None
    assert total(usage, model, datetime(2026, 3, 13, tzinfo=UTC)) == Decimal("1.5")


@pytest.mark.parametrize(
    ("model", "terms", "factor"),
    [
        ("claude-opus-5-5", {"service_tier": "standard", "speed": "standard", "inference_geo": "global"}, "1"),
        ("claude-opus-5-5", {"inference_geo": "not_available"}, "1"),
        ("claude-opus-5-5", {"service_tier": "batch"}, "0.5"),
        ("claude-opus-5-5", {"speed": "fast"}, "2"),
        ("claude-opus-5", {"speed": "fast"}, "2"),
        ("claude-opus-4-8", {"speed": "fast"}, "2"),
        ("claude-opus-4-6", {"inference_geo": "us"}, "1.1"),
        ("claude-opus-4-5", {"inference_geo": "us"}, "1"),
        ("us.anthropic.claude-opus-5-5", {"inference_geo": "us"}, "1"),
        ("claude-opus-5-5", {"service_tier": "batch", "speed": "fast", "inference_geo": "us"}, "1.10"),
        ("claude-sonnet-5-5", {"speed": "fast"}, None),
        ("us.anthropic.claude-opus-5-5", {"speed": "fast"}, None),
        ("claude-opus-5-5", {"service_tier": "priority"}, None),
        ("claude-opus-5-5", {"speed": "warp"}, None),
        ("claude-opus-5-5", {"inference_geo": "mars"}, None),
    ],
)
def test_modifiers_stack_and_unknown_ones_have_no_price(model: str, terms: dict[str, str], factor: str | None) -> None:
    plain = Usage(input_tokens=10_000, output_tokens=500, cache_read_tokens=40_000, cache_creation_tokens=2_000)
    base = total(plain, model)
    assert base is not None
    modified = compute_cost(plain.changed(**terms), model, NOW)
    assert (modified.total_usd if modified else None) == (None if factor is None else base * Decimal(factor))


def test_modifiers_are_named() -> None:
    cost = compute_cost(Usage(input_tokens=1, service_tier="batch", inference_geo="us"), "claude-opus-5-5", NOW)
    assert cost is not None
    assert cost.modifiers == ("batch x0.5", "US only x1.1")


def test_creation_without_a_split_is_a_5_minute_write() -> None:
    usage = Usage(cache_creation_tokens=1_000_000, cache_creation_1h_tokens=250_000)
    cost = compute_cost(usage, "claude-opus-4-6", NOW)
    assert cost is not None
    assert (cost.write_5m_usd, cost.write_1h_usd) == (Decimal("4.6875"), Decimal("2.5"))


def test_a_bucket_without_a_price_leaves_the_call_without_one() -> None:
    model = "us.anthropic.claude-sonnet-4-20250514-v1:0"
    hour = Usage(cache_creation_tokens=1_000, cache_creation_1h_tokens=1_000)
    assert total(hour, model) is None
    assert total(Usage(cache_creation_tokens=1_000), model) == Decimal("0.00375")


def test_iterations_are_billed_by_their_sum() -> None:
    message = Iteration("message", input_tokens=1_000, output_tokens=100, cache_read_tokens=50_000)
    summary = Iteration("compaction", input_tokens=180_000, output_tokens=3_000)
    usage = Usage(input_tokens=1_000, output_tokens=100, cache_read_tokens=50_000, iterations=(summary, message))
    parts = (
        total(usage.changed(iterations=()), "claude-opus-4-6"),
        total(Usage(input_tokens=180_000, output_tokens=3_000), "claude-opus-4-6"),
    )
    assert total(usage, "claude-opus-4-6") == Decimal("0.0325") + Decimal("0.975")
    assert parts == (Decimal("0.0325"), Decimal("0.975"))


def test_each_iteration_has_its_own_tier_and_model() -> None:
    small = Iteration("message", input_tokens=60_000)
    usage = Usage(input_tokens=120_000, iterations=(small, small))
    assert total(usage, "claude-haiku-5-5") == Decimal("0.012")
    adviser = Iteration("advisor_message", model="claude-opus-5-5", input_tokens=10_000)
    mixed = Usage(input_tokens=60_000, iterations=(small, adviser))
    assert total(mixed, "claude-haiku-5-5") == Decimal("0.006") + Decimal("0.04")
    unknown = structs.replace(adviser, model="some-model")
    assert total(Usage(input_tokens=60_000, iterations=(small, unknown)), "claude-haiku-5-5") is None


def test_an_estimated_output_above_the_iterations_is_billed() -> None:
    message = Iteration("message", input_tokens=10, output_tokens=1)
    usage = Usage(input_tokens=10, output_tokens=1_001, iterations=(message,))
    cost = compute_cost(usage, "claude-opus-5-5", NOW)
    assert cost is not None
    assert cost.output_usd == Decimal("0.02002")


def test_web_searches_are_charged_apart_from_tokens() -> None:
    usage = Usage(input_tokens=1_000_000, web_search_requests=3, service_tier="batch")
    cost = compute_cost(usage, "claude-opus-5-5", NOW)
    assert cost is not None
    assert (cost.input_usd, cost.web_search_usd, cost.total_usd) == (Decimal(2), Decimal("0.03"), Decimal("2.03"))
    assert compute_cost(Usage(input_tokens=1, web_search_requests=1), "us.anthropic.claude-opus-5-5", NOW) is None


def test_a_teams_own_price_goes_before_every_table() -> None:
    own = Price("some-model", Rates(Decimal(1), Decimal(2), None, None, Decimal("0.1")), "team")
    cost = compute_cost(Usage(input_tokens=1_000_000, cache_read_tokens=1_000_000), "some-model", NOW, team_price=own)
    assert cost is not None
    assert (cost.total_usd, cost.source) == (Decimal("1.1"), "team")


@given(
    st.builds(
        Usage,
        input_tokens=st.integers(0, 10**6), output_tokens=st.integers(0, 10**6),
        cache_read_tokens=st.integers(0, 10**6), cache_creation_tokens=st.integers(0, 10**6),
    ),
    st.sampled_from([row[0] for row in CLIENT_TABLE]),
)  # fmt: skip
def test_the_buckets_add_up_and_are_never_negative(usage: Usage, model: str) -> None:
    cost = compute_cost(usage, model, NOW)
    if cost is not None:
        parts = (cost.input_usd, cost.write_5m_usd, cost.write_1h_usd, cost.read_usd, cost.output_usd)
        assert min(parts) >= 0
        assert sum(parts) == cost.total_usd
