"""Threads, rewinds, boundaries with preserved segments, and what the model still sees."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.transcripts.chain import find_compactions, find_leaf, follow_chain, slice_context, split_threads
from compaction.transcripts.entries import Entry
from tests.compaction.making import answer, make_entry, request, result, say, text, use
from tests.compaction.recorded import each_recorded, read_recorded


def uuids(entries: tuple[Entry, ...]) -> list[str | None]:
    return [entry.uuid for entry in entries]


def mark_boundary(uuid: str, after: str, **segment: str) -> Entry:
    metadata = {"trigger": "auto", "preTokens": 9, **({"preservedSegment": segment} if segment else {})}
    return make_entry(
        "system",
        subtype="compact_boundary",
        uuid=uuid,
        parentUuid=None,
        logicalParentUuid=after,
        compactMetadata=metadata,
    )


def test_a_rewound_branch_is_left_out() -> None:
    entries = [
        say("one", uuid="1"),
        answer("m1", text("a"), uuid="2", parentUuid="1"),
        say("wrong way", uuid="3", parentUuid="2"),
        answer("m2", text("b"), uuid="4", parentUuid="3"),
        say("right way", uuid="5", parentUuid="2"),
    ]
    assert uuids(follow_chain(entries)) == ["1", "2", "5"]
    assert uuids(follow_chain(entries, entries[3])) == ["1", "2", "3", "4"]


def test_results_of_parallel_requests_come_along() -> None:
    entries = [
        say("go", uuid="1"),
        answer("m1", request("t1"), uuid="2", parentUuid="1", usage=use()),
        answer("m1", request("t2"), uuid="3", parentUuid="2", usage=use()),
        say([result("t1")], uuid="4", parentUuid="2"),
        say([result("t2")], uuid="5", parentUuid="3"),
        answer("m2", text("done"), uuid="6", parentUuid="5", usage=use()),
    ]
    assert uuids(follow_chain(entries)) == ["1", "2", "3", "4", "5", "6"]


def test_a_branch_beside_the_chain_that_answers_nothing_open_stays_out() -> None:
    entries = [
        say("go", uuid="1"),
        answer("m1", request("t1"), uuid="2", parentUuid="1", usage=use()),
        say([result("t1", "first try")], uuid="3", parentUuid="2"),
        say([result("t1", "second try")], uuid="4", parentUuid="2"),
        answer("m2", text("done"), uuid="5", parentUuid="4", usage=use()),
    ]
    assert uuids(follow_chain(entries)) == ["1", "2", "4", "5"]


def test_progress_and_system_lines_carry_the_chain() -> None:
    entries = [
        say("go", uuid="1"),
        make_entry("progress", uuid="2", parentUuid="1", data={"type": "hook_progress"}),
        make_entry("system", subtype="turn_duration", uuid="3", parentUuid="2"),
        answer("m1", text("a"), uuid="4", parentUuid="3"),
        make_entry("progress", uuid="5", parentUuid="1", data={"type": "bash_progress"}),
    ]
    assert uuids(follow_chain(entries)) == ["1", "2", "3", "4"]


def test_an_attachment_beside_the_branch_is_no_leaf_and_a_pending_one_comes_along() -> None:
    entries = [
        say("go", uuid="1"),
        answer("m1", text("a"), uuid="2", parentUuid="1"),
        make_entry("attachment", uuid="3", parentUuid="1", attachment={"type": "hook_success"}),
        make_entry("attachment", uuid="4", parentUuid="2", attachment={"type": "queued_command", "prompt": "more"}),
        make_entry("attachment", uuid="5", parentUuid="gone", attachment={"type": "date"}),
    ]
    assert find_leaf(entries) is entries[1]
    assert uuids(follow_chain(entries)) == ["1", "2", "3", "4"]
    assert uuids(follow_chain(entries, entries[1])) == ["1", "2"]
    assert find_leaf(entries[2:]) is entries[4]


def test_the_chain_crosses_boundaries_and_the_slice_begins_at_the_last() -> None:
    entries = [
        say("old", uuid="1"),
        mark_boundary("b1", "1"),
        say("summary one", uuid="s1", parentUuid="b1", isCompactSummary=True),
        mark_boundary("b2", "s1"),
        say("summary two", uuid="s2", parentUuid="b2", isCompactSummary=True),
        say("new", uuid="2", parentUuid="s2"),
    ]
    chain = follow_chain(entries)
    assert uuids(chain) == ["1", "b1", "s1", "b2", "s2", "2"]
    context = slice_context(chain)
    assert uuids(context.entries) == ["b2", "s2", "2"]
    assert context.boundary is entries[3]
    assert uuids(find_compactions(entries)) == ["b1", "b2"]


def test_preserved_entries_stand_behind_their_anchor() -> None:
    entries = [
        say("old", uuid="1"),
        answer("m1", text("kept"), uuid="2", parentUuid="1", usage=use()),
        say("kept too", uuid="3", parentUuid="2"),
        mark_boundary("b", "3", headUuid="2", anchorUuid="s", tailUuid="3"),
        say("summary", uuid="s", parentUuid="b", isCompactSummary=True),
        say("new", uuid="4", parentUuid="s"),
    ]
    context = slice_context(follow_chain(entries))
    assert uuids(context.entries) == ["b", "s", "2", "3", "4"]
    assert context.kept_uuids == {"2", "3"}


def test_preserved_entries_behind_the_boundary_already_are_known_as_kept() -> None:
    entries = [
        mark_boundary("b", "0", headUuid="2", anchorUuid="s", tailUuid="3"),
        say("summary", uuid="s", parentUuid="b", isCompactSummary=True),
        answer("m1", text("kept"), uuid="2", parentUuid="s", usage=use()),
        say("kept too", uuid="3", parentUuid="2"),
        say("new", uuid="4", parentUuid="3"),
    ]
    context = slice_context(follow_chain(entries))
    assert uuids(context.entries) == ["b", "s", "2", "3", "4"]
    assert context.kept_uuids == {"2", "3"}


@pytest.mark.parametrize("segment", [{"headUuid": "gone", "anchorUuid": "s", "tailUuid": "1"}, {"headUuid": "1"}, {}])
def test_a_segment_that_cannot_be_found_preserves_nothing(segment: dict[str, str]) -> None:
    entries = [say("old", uuid="1"), mark_boundary("b", "1", **segment), say("summary", uuid="s", parentUuid="b")]
    assert uuids(slice_context(follow_chain(entries)).entries) == ["b", "s"]


def test_threads_are_told_apart_by_agent_and_old_sidechains_by_their_root() -> None:
    entries = [
        say("main", uuid="1"),
        say("agent", uuid="a1", isSidechain=True, agentId="x"),
        say("old one", uuid="o1", isSidechain=True),
        say("old two", uuid="p1", isSidechain=True),
        answer("m", text("a"), uuid="o2", parentUuid="o1", isSidechain=True),
        answer("m", text("b"), uuid="2", parentUuid="1"),
    ]
    found = {thread.agent_id: uuids(thread.entries) for thread in split_threads(entries)}
    assert found == {None: ["1", "2"], "x": ["a1"], "o1": ["o1", "o2"], "p1": ["p1"]}
    assert find_leaf(entries) is entries[5]
    assert find_leaf(entries[1:5]) is entries[4]
    assert find_leaf([]) is None
    assert follow_chain([]) == ()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), max_size=8))
def test_no_tangle_of_parents_loops_or_repeats(links: list[tuple[int, int]]) -> None:
    entries = [say("x", uuid=f"{own}", parentUuid=f"{parent}") for own, parent in links]
    chain = uuids(follow_chain(entries))
    assert len(chain) == len(set(chain))
    assert bool(chain) == bool(entries)


@each_recorded()
@pytest.mark.recorded_data
def test_the_recorded_main_conversation_is_one_chain(path: Path) -> None:
    """No recorded session was rewound, so every message of the thread its leaf stands on is active."""
    entries = read_recorded(path).entries
    leaf = find_leaf(entries)
    assert leaf is not None
    messages = [
        e.uuid for e in entries if e.message and e.is_sidechain == leaf.is_sidechain and e.agent_id == leaf.agent_id
    ]
    assert [entry.uuid for entry in follow_chain(entries) if entry.message] == messages
