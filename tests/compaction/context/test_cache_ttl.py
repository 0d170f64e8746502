"""The lifetime of a cache write: who gets which, one rule for a mixed write, and when an entry expires."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.cache.baseline import build_baseline
from compaction.context.cache_ttl import (
    CacheAccount,
    CacheTtl,
    Provider,
    choose_ttl,
    compute_expiry,
    get_expired_ttl,
    get_shortest_ttl,
    get_written_ttl,
    latch_ttl,
)
from compaction.context.forecast import compute_next_call_cost
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


FIVE, HOUR, OFF = CacheTtl.FIVE_MINUTES, CacheTtl.ONE_HOUR, CacheTtl.OFF

ELIGIBLE = [
    (CacheAccount(is_staff=True), HOUR),
    (CacheAccount(is_subscriber=True), HOUR),
    (CacheAccount(is_subscriber=True, is_in_overage=True), FIVE),
    (CacheAccount(), FIVE),
    (CacheAccount(has_opted_in=True), HOUR),
    (CacheAccount(Provider.BEDROCK), FIVE),
    (CacheAccount(Provider.BEDROCK, has_opted_in=True), HOUR),
    (CacheAccount(Provider.VERTEX, is_subscriber=True), FIVE),
    (CacheAccount(Provider.FOUNDRY), FIVE),
]


@pytest.mark.parametrize(("account", "ttl"), ELIGIBLE)
def test_who_gets_the_hour(account: CacheAccount, ttl: CacheTtl) -> None:
    choice = choose_ttl(latch_ttl(None, account), "repl_main_thread")
    assert choice.ttl is ttl
    assert choice.reason.endswith(".")


SOURCES = [
    ("repl_main_thread", None, HOUR), ("repl_main_thread:outputStyle", None, HOUR), ("sdk", None, HOUR),
    ("agent:builtin:general-purpose", None, HOUR), ("session_memory", None, FIVE), ("speculation", None, FIVE),
    ("prompt_suggestion", None, FIVE), ("hook", None, FIVE), ("sdk2", None, FIVE),
    ("compact", "repl_main_thread", HOUR), ("compact", "session_memory", FIVE), ("compact", None, FIVE),
]  # fmt: skip


@pytest.mark.parametrize(("source", "parent", "ttl"), SOURCES)
def test_which_calls_get_the_hour(source: str, parent: str | None, ttl: CacheTtl) -> None:
    latch = latch_ttl(None, CacheAccount(is_subscriber=True))
    assert choose_ttl(latch, source, parent_source=parent).ttl is ttl


SWITCHES = [
    (CacheAccount(is_staff=True), "sdk", OFF, OFF), (CacheAccount(is_staff=True), "sdk", FIVE, FIVE),
    (CacheAccount(), "sdk", HOUR, HOUR), (CacheAccount(), "session_memory", HOUR, FIVE),
    (CacheAccount(), "sdk", None, FIVE),
]  # fmt: skip


@pytest.mark.parametrize(("account", "source", "switch", "ttl"), SWITCHES)
def test_switches_of_the_client_go_first(
    account: CacheAccount, source: str, switch: CacheTtl | None, ttl: CacheTtl
) -> None:
    assert choose_ttl(latch_ttl(None, account), source, switch=switch).ttl is ttl


def test_first_answer_is_held_for_the_session() -> None:
    latch = latch_ttl(None, CacheAccount(is_subscriber=True))
    later = latch_ttl(latch, CacheAccount(is_subscriber=True, is_in_overage=True), allowed_sources=())
    assert later is latch
    assert choose_ttl(later, "sdk").ttl is HOUR
