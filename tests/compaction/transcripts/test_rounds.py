"""Rounds: nothing is lost, nothing moves, no tool pair stands in two of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.transcripts.entries import Entry, ToolResultBlock, ToolUseBlock
from compaction.transcripts.rounds import group_rounds
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
