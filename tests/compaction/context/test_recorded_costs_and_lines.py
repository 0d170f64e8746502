"""Prices and lines against what recorded clients charged and where they compacted."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from compaction.context.call_costs import compute_cost
from compaction.context.policy import Policy
from compaction.context.thresholds import DriftKind, compute_drift, compute_thresholds
from compaction.context.windows import ModelInUse
from compaction.transcripts.chain import is_boundary
from compaction.transcripts.entries import Entry, Usage
from compaction.transcripts.payloads import Boundary
from tests.compaction.making import list_calls
from tests.compaction.recorded import list_recorded, read_recorded

pytestmark = [
    pytest.mark.recorded_data,
    pytest.mark.skipif(not list_recorded(), reason="the recorded sessions are not beside this checkout"),
]

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def read_model_usage(totals: Mapping[str, int]) -> Usage:
    return Usage(
        input_tokens=totals["inputTokens"],
        output_tokens=totals["outputTokens"],
        cache_read_tokens=totals["cacheReadInputTokens"],
        cache_creation_tokens=totals["cacheCreationInputTokens"],
        cache_creation_5m_tokens=totals["cacheCreationEphemeral5mInputTokens"],
        cache_creation_1h_tokens=totals["cacheCreationEphemeral1hInputTokens"],
    )


def list_entries(line_type: str) -> list[Entry]:
    return [entry for path in list_recorded() for entry in read_recorded(path).entries if entry.type == line_type]


def test_the_clients_own_totals_are_met_to_the_last_cent() -> None:
    states = list_entries("cost-state")
    assert states
    for state in states:
        models = state.fields["modelUsage"]
        assert isinstance(models, Mapping)
        for model, totals in models.items():
            cost = compute_cost(read_model_usage(totals), model, NOW)
            assert cost is not None
            assert abs(cost.total_usd - Decimal(str(totals["costUSD"]))) < Decimal("0.0000001")


def test_every_recorded_call_has_a_price() -> None:
    for path in list_recorded():
        for call in list_calls(read_recorded(path).entries):
            assert compute_cost(call.usage, call.model or "", call.ended_at) is not None


def test_recorded_automatic_compactions_agree_with_the_line_of_their_window() -> None:
    # Compared with the line of a 200,000 window; 22,547 is below every line and can only be reactive.
    policy = Policy.from_environment({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"})
    lines = compute_thresholds(policy, ModelInUse("claude-opus-5-5", client_version="2.1.325"))
    assert lines is not None
    found = {}
    for entry in list_entries("system"):
        payload = entry.payload
        if is_boundary(entry) and isinstance(payload, Boundary) and payload.pre_tokens and payload.trigger:
            drift = compute_drift(lines, payload.pre_tokens, trigger=payload.trigger)
            found[payload.pre_tokens] = drift.kind if drift else None
    known = {
        16_129: None, 22_547: DriftKind.EARLY, 142_431: None, 190_531: None, 190_614: None, 195_664: None,
    }  # fmt: skip
    assert {tokens: found[tokens] for tokens in known} == known  # more transcripts may be recorded since
