import pytest

from compaction.llm.cache_ttl import CacheTtl
from compaction.prompt.lifetimes import Account, Provider, choose_ttl, latch_ttl

FIVE, HOUR, OFF = CacheTtl.FIVE_MINUTES, CacheTtl.ONE_HOUR, CacheTtl.OFF

ELIGIBLE = [
    (Account(is_staff=True), HOUR),
    (Account(is_subscriber=True), HOUR),
    (Account(is_subscriber=True, is_in_overage=True), FIVE),
    (Account(), FIVE),
    (Account(has_opted_in=True), HOUR),
    (Account(Provider.BEDROCK), FIVE),
    (Account(Provider.BEDROCK, has_opted_in=True), HOUR),
    (Account(Provider.VERTEX, is_subscriber=True), FIVE),
    (Account(Provider.FOUNDRY), FIVE),
]


@pytest.mark.parametrize(("account", "ttl"), ELIGIBLE)
def test_who_gets_the_hour(account: Account, ttl: CacheTtl) -> None:
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
    latch = latch_ttl(None, Account(is_subscriber=True))
    assert choose_ttl(latch, source, parent_source=parent).ttl is ttl


SWITCHES = [
    (Account(is_staff=True), "sdk", OFF, OFF), (Account(is_staff=True), "sdk", FIVE, FIVE),
    (Account(), "sdk", HOUR, HOUR), (Account(), "session_memory", HOUR, FIVE), (Account(), "sdk", None, FIVE),
]  # fmt: skip


@pytest.mark.parametrize(("account", "source", "switch", "ttl"), SWITCHES)
def test_switches_of_the_client_go_first(account: Account, source: str, switch: CacheTtl | None, ttl: CacheTtl) -> None:
    assert choose_ttl(latch_ttl(None, account), source, switch=switch).ttl is ttl


def test_first_answer_is_held_for_the_session() -> None:
    latch = latch_ttl(None, Account(is_subscriber=True))
    later = latch_ttl(latch, Account(is_subscriber=True, is_in_overage=True), allowed_sources=())
    assert later is latch
    assert choose_ttl(later, "sdk").ttl is HOUR
