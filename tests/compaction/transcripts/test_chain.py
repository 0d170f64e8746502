"""Threads, rewinds, boundaries with preserved segments, and what the model still sees."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.threads import split_threads
from compaction.transcripts.chain import (
    find_chain,
    find_leaf,
    follow_chain,
    slice_context,
)
from compaction.transcripts.entries import Entry
from compaction.transcripts.transcript import read_transcript
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


def make_thread(count: int, **common: object) -> list[Entry]:
    """Prompts and answers in turn, each under the one before: "1" to `count`."""
    entries = []
    for number in range(1, count + 1):
        named = {"uuid": f"{number}", "parentUuid": f"{number - 1}" if number > 1 else None, **common}
        entries.append(say("x", **named) if number % 2 else answer(f"m{number}", text("a"), usage=use(), **named))
    return entries


def without(entries: list[Entry], *gone: str) -> list[Entry]:
    return [entry for entry in entries if entry.uuid not in gone]


THREAD = make_thread(6)
COMPACTED = [
    *make_thread(2),
    mark_boundary("b", "2"),
    say("summary", uuid="s", parentUuid="b", isCompactSummary=True),
    say("new", uuid="3", parentUuid="s"),
    answer("m4", text("a"), uuid="4", parentUuid="3", usage=use()),
]
BESIDE = make_entry("attachment", uuid="x", parentUuid="2", attachment={"type": "date"})
ASTRAY = make_entry("progress", uuid="y", parentUuid="1", data={"type": "hook_progress"})


@pytest.mark.parametrize(
    ("entries", "chain", "gaps"),
    [
        pytest.param(THREAD, ["1", "2", "3", "4", "5", "6"], [], id="nothing missing"),
        pytest.param(without(THREAD, "4"), ["1", "2", "3", "5", "6"], ["5"], id="a line in the middle"),
        pytest.param(without(THREAD, "2", "5"), ["1", "3", "4", "6"], ["3", "6"], id="two lines"),
        pytest.param(without(THREAD, "3", "4"), ["1", "2", "5", "6"], ["5"], id="two lines together"),
        pytest.param(without(THREAD, "1"), ["2", "3", "4", "5", "6"], [], id="the file begins in the middle"),
        pytest.param([ASTRAY, *THREAD[1:]], ["2", "3", "4", "5", "6"], [], id="no message before it"),
        pytest.param(
            [*THREAD[:2], BESIDE, ASTRAY, *THREAD[3:]], ["1", "2", "x", "4", "5", "6"], ["4"], id="what followed it"
        ),
        pytest.param(
            [*THREAD[:2], say("wrong", uuid="w", parentUuid="1"), *THREAD[2:]],
            ["1", "2", "3", "4", "5", "6"],
            [],
            id="a rewind stays a branch",
        ),
        pytest.param(
            [*THREAD[:4], say("again", uuid="r", parentUuid="2")], ["1", "2", "r"], [], id="a rewind behind the branch"
        ),
        pytest.param(
            [*THREAD[:2], say("elsewhere", uuid="a", isSidechain=True, agentId="k"), *THREAD[3:]],
            ["1", "2", "4", "5", "6"],
            ["4"],
            id="another thread between",
        ),
        pytest.param(
            without(make_thread(6, isSidechain=True, agentId="k"), "4"),
            ["1", "2", "3", "5", "6"],
            ["5"],
            id="sub-agent",
        ),
        pytest.param(
            without(make_thread(6, isSidechain=True), "4"), ["5", "6"], [], id="sub-agents that cannot be told apart"
        ),
        pytest.param(without(COMPACTED, "2"), ["1", "b", "s", "3", "4"], ["b"], id="before a boundary"),
        pytest.param(without(COMPACTED, "s"), ["1", "2", "b", "3", "4"], ["3"], id="right after a boundary"),
        pytest.param(without(COMPACTED, "b"), ["s", "3", "4"], [], id="the boundary: its summary stands for all"),
        pytest.param(
            [say("x", uuid="1", parentUuid="2"), say("y", uuid="2", parentUuid="1")], ["1", "2"], [], id="a circle"
        ),
        pytest.param(
            [
                say("x", uuid="1", parentUuid="3"),
                say("y", uuid="2", parentUuid="gone"),
                say("z", uuid="3", parentUuid="2"),
            ],
            ["1", "2", "3"],
            ["2"],
            id="a gap inside a circle",
        ),
    ],
)
def test_a_missing_line_is_bridged_by_the_line_before_it(
    entries: list[Entry], chain: list[str], gaps: list[str]
) -> None:
    found = find_chain(entries)
    assert uuids(found.entries) == chain
    assert sorted(found.gaps) == gaps
    if gaps and gaps != ["2"]:
        first = max(gaps, key=chain.index)
        assert uuids(find_chain(entries, over_gaps=False).entries) == chain[chain.index(first) :]


def test_only_gaps_in_what_the_model_sees_are_counted() -> None:
    before = find_chain(without([*THREAD[:2], *COMPACTED[2:]], "2"))
    assert (len(before.gaps), before.count_gaps(slice_context(before.entries))) == (1, 0)
    behind = find_chain(without(COMPACTED, "s"))
    assert behind.count_gaps(slice_context(behind.entries)) == 1


def test_an_unreadable_line_is_a_missing_one() -> None:
    lines = [entry.raw or b"" for entry in THREAD]
    lines[2] = lines[2][:-9]
    chain = find_chain(read_transcript(b"\n".join(lines)).entries)
    assert (uuids(chain.entries), list(chain.gaps)) == (["1", "2", "4", "5", "6"], ["4"])


@settings(deadline=None)
@given(st.sets(st.integers(2, 30), max_size=12), st.integers(31, 40))
def test_a_straight_thread_is_reached_whole_whatever_is_missing(gone: set[int], count: int) -> None:
    entries = without(make_thread(count), *map(str, gone))
    chain = find_chain(entries)
    assert list(chain.entries) == entries
    assert len(chain.gaps) == sum(number not in gone and number - 1 in gone for number in range(2, count + 1))


def test_sub_agents_lines_that_name_no_parent_are_one_conversation_without_gaps() -> None:
    lines = [say(words, uuid=words, isSidechain=True, agentId="a1") for words in ("find", "found", "and now?")]
    chain = find_chain(lines)
    assert uuids(chain.entries) == ["find", "found", "and now?"]
    assert not chain.gaps
