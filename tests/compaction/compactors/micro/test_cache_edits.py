"""Cache edits: the state machine, references before the last marker, pinned deletions, and when they are dropped."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.compactors.micro.cache_edits import (
    CacheEditState,
    EditSettings,
    PinnedEdit,
    add_edits,
    add_references,
    plan_deletions,
    record_response,
    register_results,
)
from compaction.transcripts.entries import Entry
from compaction.transcripts.flatten import flatten
from tests.compaction.compactors.talks import make_talk

MARKER = {"type": "ephemeral"}


def make_messages(entries: Sequence[Entry]) -> list[Mapping[str, object]]:
    messages: list[Mapping[str, object]] = [message.to_api() for message in flatten(entries)]
    last = messages[-1]["content"]
    assert isinstance(last, list)
    last[-1]["cache_control"] = MARKER
    return messages


def list_references(messages: Sequence[Mapping[str, object]]) -> list[object]:
    return [block["cache_reference"] for block in list_kind(messages, "tool_result") if "cache_reference" in block]


def list_kind(messages: Sequence[Mapping[str, object]], kind: str) -> list[Mapping[str, object]]:
    blocks = []
    for message in messages:
        content = message["content"]
        if isinstance(content, list):
            blocks += [block for block in content if block["type"] == kind]
    return blocks


def list_deletions(messages: Sequence[Mapping[str, object]]) -> list[object]:
    edits: list[object] = []
    for block in list_kind(messages, "cache_edits"):
        assert isinstance(block["edits"], list)
        edits += [edit["cache_reference"] for edit in block["edits"]]
    return edits


@pytest.mark.parametrize(("results", "deleted"), [(11, 0), (12, 9), (13, 10), (40, 37)])
def test_from_twelve_active_results_on_all_but_three_are_deleted(results: int, deleted: int) -> None:
    state = register_results(CacheEditState(), make_talk(results))
    planned = plan_deletions(state)
    assert planned.pending == state.order[:deleted]
    assert planned.active == state.order[deleted:]
    assert planned.is_drop_expected == bool(deleted)
    assert plan_deletions(planned) == planned


def test_results_are_registered_once_and_in_order() -> None:
    entries = make_talk(5)
    state = register_results(CacheEditState(), entries)
    assert state.order == tuple(f"tool{number}" for number in range(5))
    assert register_results(state, entries) is state
    assert register_results(state, make_talk(6)).order == tuple(f"tool{number}" for number in range(6))


def test_references_stand_on_results_before_the_last_marker_only() -> None:
    messages = make_messages(make_talk(3)[:-2])
    assert list_references(add_references(messages)) == ["tool0", "tool1"]
    unmarked = [message.to_api() for message in flatten(make_talk(3))]
    assert list_references(add_references(unmarked)) == []


def test_deletions_are_sent_once_then_pinned_and_sent_again_at_the_same_place() -> None:
    entries = make_talk(14)
    state = plan_deletions(register_results(CacheEditState(), entries))
    messages = make_messages(entries)
    state, sent = add_edits(state, messages)
    chosen = [f"tool{number}" for number in range(11)]
    assert list_deletions(sent) == chosen
    assert state.pinned == (PinnedEdit(len(messages) - 1, tuple(chosen)),)
    assert not state.pending
    longer = [*messages, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}]
    again, resent = add_edits(state, longer)
    assert again == state
    assert list_deletions(resent) == chosen
    assert resent[len(messages) - 1]["content"] == sent[-1]["content"]
    assert resent[-1] == longer[-1]


def test_edits_stand_behind_the_tool_results_of_their_message() -> None:
    entries = make_talk(14)[:-2]
    state = plan_deletions(register_results(CacheEditState(), entries))
    _, sent = add_edits(state, make_messages(entries))
    content = sent[-1]["content"]
    assert isinstance(content, list)
    assert [block["type"] for block in content] == ["tool_result", "cache_edits"]


@pytest.mark.parametrize(
    ("previous", "read", "deleted", "holds"),
    [
        (100_000, 100_000, 0, True),
        (100_000, 95_001, 0, True),
        (100_000, 94_000, 0, False),
        (20_000, 18_001, 0, True),
        (100_000, 60_000, 40_000, True),
        (100_000, 10_000, 40_000, False),
        (100_000, 0, 0, False),
    ],
)
def test_a_collapsed_read_drops_the_deletions_and_an_announced_one_does_not(
    previous: int, read: int, deleted: int, *, holds: bool
) -> None:
    state = plan_deletions(register_results(CacheEditState(), make_talk(14)))
    state, _ = add_edits(state, make_messages(make_talk(14)))
    state = record_response(state, cache_read_tokens=previous)
    after = record_response(state, cache_read_tokens=read, cache_deleted_tokens=deleted)
    assert after.cache_read_tokens == read
    assert bool(after.pinned) == bool(after.deleted) == holds
    assert after.deleted_tokens == (deleted if holds else 0)
    assert after.order == state.order


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(2, 12), st.integers(0, 4))
def test_nothing_is_deleted_twice_and_the_newest_always_stay(steps: list[int], trigger: int, kept: int) -> None:
    chosen, state, total = EditSettings(trigger, kept), CacheEditState(), 0
    sent: list[str] = []
    for step in steps:
        total += step
        state = plan_deletions(register_results(state, make_talk(total), chosen), chosen)
        sent += state.pending
        state, _ = add_edits(state, make_messages(make_talk(total)))
        assert len(state.active) < max(trigger, kept + 1)
    assert len(sent) == len(set(sent))
    assert set(sent) == set(state.deleted)
    assert list(state.order[-kept:] if kept else ()) == list(state.active[-kept:] if kept and state.active else ())
