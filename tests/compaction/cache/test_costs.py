from datetime import UTC, datetime
from decimal import Decimal

import pytest

from compaction.cache.costs import compute_cost_usd, compute_excess_usd
from compaction.llm.prices import Price, Rates
from compaction.transcripts.entries import Iteration, Usage
from tests.compaction.cache.builders import use

AT = datetime(2026, 11, 1, tzinfo=UTC)
MILLION = Decimal(1_000_000)

# model, usage, re-created tokens, dollars per million over a read
EXCESSES = [
    ("claude-opus-5-5", use(0, 40_000), 40_000, "4.80"),
    ("claude-opus-5-5", use(0, 40_000, hour=40_000), 40_000, "7.80"),
    ("claude-opus-5-5", use(0, 40_000, hour=20_000), 40_000, "6.30"),
    ("claude-opus-4-5", use(0, 40_000), 30_000, "5.75"),
    ("claude-sonnet-5-5", use(0, 40_000), 40_000, "2.40"),
    ("claude-fable-5-1", use(0, 40_000), 40_000, "12.25"),
    ("claude-opus-5-5", use(0, 40_000, speed="fast"), 40_000, "9.60"),
    ("claude-opus-5-5", use(0, 40_000, inference_geo="us"), 40_000, "5.28"),
    ("claude-haiku-5-5", use(0, 40_000), 40_000, "0.115"),
    ("claude-haiku-5-5", use(0, 140_000), 140_000, "0.575"),
]


@pytest.mark.parametrize(("model", "usage", "tokens", "rate"), EXCESSES)
def test_loss_costs_the_write_price_paid_less_the_read_price(model: str, usage: Usage, tokens: int, rate: str) -> None:
    assert compute_excess_usd(usage, model, AT, recreated_tokens=tokens) == tokens * Decimal(rate) / MILLION


def test_nothing_recreated_costs_nothing_even_without_a_price() -> None:
    assert compute_excess_usd(use(0, 10), "glm-4", AT, recreated_tokens=0) == 0
    assert compute_excess_usd(use(0, 10), "glm-4", AT, recreated_tokens=10) is None
    assert compute_excess_usd(use(0, 10), None, AT, recreated_tokens=10) is None


def test_team_price_goes_before_every_table() -> None:
    price = Price("glm-4", Rates(*(Decimal(rate) for rate in ("1", "2", "3", "4", "0.5"))), "the team")
    assert compute_excess_usd(use(0, 10), "glm-4", AT, recreated_tokens=10, team_price=price) == Decimal("0.000025")


def test_creation_without_a_split_counts_as_5_minutes() -> None:
    usage = Usage(cache_creation_tokens=40_000)
    assert compute_excess_usd(usage, "claude-opus-5-5", AT, recreated_tokens=40_000) == Decimal("0.192")


def test_iterations_do_not_count_twice() -> None:
    usage = use(0, 40_000, iterations=(Iteration("message", cache_creation_tokens=40_000),))
    assert compute_excess_usd(usage, "claude-opus-5-5", AT, recreated_tokens=40_000) == Decimal("0.192")


def test_whole_call_is_priced() -> None:
    usage = use(1_000_000, 0, plain=0, output=0)
    assert compute_cost_usd(usage, "claude-opus-5-5", AT) == Decimal("0.20")
