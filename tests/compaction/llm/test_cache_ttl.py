"""The lifetime of a cache write: one rule for a mixed one, and when an entry expires."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.cache.baseline import build_baseline
from compaction.context.forecast import compute_next_call_cost
from compaction.llm.cache_ttl import CacheTtl, compute_expiry, get_expired_ttl, get_shortest_ttl, get_written_ttl
from compaction.timeline.calls import Call
from compaction.transcripts.entries import Usage

NOW = datetime(2026, 11, 16, tzinfo=UTC)
counts = st.integers(0, 200_000)


@pytest.mark.parametrize(
    ("written", "written_1h", "ttl"),
    [(0, 0, None), (100, 0, "5m"), (100, 100, "1h"), (100, 99, "5m"), (100, 1, "5m"), (100, 120, "1h")],
)
def test_a_mixed_write_counts_as_the_shorter_one(written: int, written_1h: int, ttl: str | None) -> None:
    assert get_written_ttl(written, written_1h) == ttl


@given(counts, counts, counts)
def test_break_detection_and_forecast_agree_on_every_write(short: int, long: int, read: int) -> None:
    usage = Usage(
        input_tokens=5,
        cache_creation_tokens=short + long,
        cache_creation_5m_tokens=short,
        cache_creation_1h_tokens=long,
        cache_read_tokens=read,
    )
    call = Call(call_id="a", at=NOW, model="claude-opus-5-5", usage=usage)
    cost = compute_next_call_cost(usage, "claude-opus-5-5", NOW)
    assert cost is not None
    if call.written_ttl is not None:
        assert cost.ttl is call.written_ttl
        assert build_baseline(None, call).ttl == cost.ttl
    else:
        assert cost.ttl is (CacheTtl.FIVE_MINUTES if read else CacheTtl.OFF)


@pytest.mark.parametrize(
    ("ttls", "shortest"), [((), None), (("1h", "1h"), "1h"), (("1h", "5m"), "5m"), (("5m",), "5m"), (("2h",), "2h")]
)
def test_the_shortest_lifetime_of_the_markers_counts(ttls: tuple[str, ...], shortest: str | None) -> None:
    assert get_shortest_ttl(ttls) == shortest


@pytest.mark.parametrize(("ttl", "seconds"), [("5m", 300), ("1h", 3_600), ("off", None), ("2h", None), ("", None)])
def test_an_entry_expires_a_lifetime_after_its_last_use(ttl: str, seconds: int | None) -> None:
    assert compute_expiry(NOW, ttl) == (None if seconds is None else NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("ttl", "gap", "expired"),
    [
        ("5m", 300, None), ("5m", 301, "5m"), ("5m", 4_000, "5m"), ("1h", 3_600, None), ("1h", 3_601, "1h"),
        (None, 3_600, None), (None, 3_601, "1h"), ("off", 3_601, "1h"),
    ],
)  # fmt: skip
def test_a_lifetime_runs_out_after_it_and_an_unknown_one_after_the_longest(
    ttl: str | None, gap: int, expired: str | None
) -> None:
    assert get_expired_ttl(ttl, gap) == expired
