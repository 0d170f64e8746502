"""Rounds and split points: nothing is lost or moved, and no tool pair is separated."""

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.transcripts.entries import Entry, ToolResultBlock, ToolUseBlock
from compaction.transcripts.rounds import compute_split_points, find_split_point, group_rounds
from tests.compaction.compactors.talks import Talk, talks
from tests.compaction.making import answer, make_entry, request, result, say, text
from tests.compaction.transcripts.test_flatten import entries


def shapes(*found: Entry) -> list[tuple[str | None, int]]:
    return [(one.message_id, len(one.entries)) for one in group_rounds(found)]


def test_a_round_is_a_response_with_what_follows_it() -> None:
    found = (
        say("go"), answer("m1", text("a")), answer("m1", request("t1")), say([result("t1")]), make_entry("progress"),
        answer("m2", text("b")), say("next"), answer("m3", text("c")),
    )  # fmt: skip
    assert shapes(*found) == [(None, 1), ("m1", 4), ("m2", 2), ("m3", 1)]
    assert group_rounds([]) == ()


def test_parallel_requests_of_one_response_are_one_round() -> None:
    found = (answer("m1", request("t1")), say([result("t1")]), answer("m1", request("t2")), say([result("t2")]))
    assert shapes(*found) == [("m1", 4)]


def test_a_late_result_joins_the_rounds_between() -> None:
    found = (
        say("go"),
        answer("m1", request("t1")),
        answer("m2", text("b")),
        say([result("t1")]),
        answer("m3", text("c")),
    )
    assert shapes(*found) == [(None, 1), ("m2", 3), ("m3", 1)]


def test_results_that_come_late_twice_over_still_find_their_request() -> None:
    found = (
        answer("m1", request("t1")), answer("m2", request("t2")), say([result("t1")]), answer("m3", text("c")),
        answer("m4", text("d")), say([result("t2")]),
    )  # fmt: skip
    assert shapes(*found) == [("m4", 6)]


@settings(max_examples=300, deadline=None)
@given(st.lists(entries, max_size=14))
def test_rounds_keep_order_and_pairs(found: list[Entry]) -> None:
    rounds = group_rounds(found)
    assert [entry for one in rounds for entry in one.entries] == found
    home: dict[str, int] = {}
    for index, one in enumerate(rounds):
        for entry in one.entries:
            for block in entry.message.content if entry.message else ():
                if isinstance(block, ToolUseBlock):
                    home.setdefault(block.id, index)
                elif isinstance(block, ToolResultBlock) and block.tool_use_id in home:
                    assert home[block.tool_use_id] == index


def test_neither_pairs_nor_responses_are_divided() -> None:
    talk = Talk()
    talk.say("both")
    talk.answer("m1", request("a"))
    talk.say([result("a")])
    talk.answer("m1", request("b"))
    talk.say([result("b")])
    talk.answer("m2", text("done"))
    assert compute_split_points(talk.entries) == (True, True, False, False, False, True, True)
    assert [find_split_point(talk.entries, index) for index in range(8)] == [0, 1, 1, 1, 1, 5, 6, 6]


@settings(max_examples=100, deadline=None)
@given(talks(), st.data())
def test_a_cut_never_has_a_tie_on_both_sides(entries: list[Entry], data: st.DataObject) -> None:
    cut = find_split_point(entries, data.draw(st.integers(0, len(entries))))
    before, after = ({tie for entry in side for tie in list_ties(entry)} for side in (entries[:cut], entries[cut:]))
    assert not before & after


def list_ties(entry: Entry) -> set[str]:
    blocks = entry.message.content if entry.message else ()
    ties = {block.id for block in blocks if isinstance(block, ToolUseBlock)}
    ties |= {block.tool_use_id for block in blocks if isinstance(block, ToolResultBlock)}
    return ties | ({entry.message.id} if entry.message and entry.message.id else set())
