"""Cuts: where a conversation may be divided."""

from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.compactors.cuts import find_cut, find_cuts
from compaction.transcripts.entries import Entry, ToolResultBlock, ToolUseBlock
from tests.compaction.compactors.talks import Talk, talks
from tests.compaction.making import request, result, text


def test_neither_pairs_nor_responses_are_divided() -> None:
    talk = Talk()
    talk.say("both")
    talk.answer("m1", request("a"))
    talk.say([result("a")])
    talk.answer("m1", request("b"))
    talk.say([result("b")])
    talk.answer("m2", text("done"))
    assert find_cuts(talk.entries) == (True, True, False, False, False, True, True)
    assert [find_cut(talk.entries, index) for index in range(8)] == [0, 1, 1, 1, 1, 5, 6, 6]


@settings(max_examples=100, deadline=None)
@given(talks(), st.data())
def test_a_cut_never_has_a_tie_on_both_sides(entries: list[Entry], data: st.DataObject) -> None:
    cut = find_cut(entries, data.draw(st.integers(0, len(entries))))
    before, after = ({tie for entry in side for tie in list_ties(entry)} for side in (entries[:cut], entries[cut:]))
    assert not before & after


def list_ties(entry: Entry) -> set[str]:
    blocks = entry.message.content if entry.message else ()
    ties = {block.id for block in blocks if isinstance(block, ToolUseBlock)}
    ties |= {block.tool_use_id for block in blocks if isinstance(block, ToolResultBlock)}
    return ties | ({entry.message.id} if entry.message and entry.message.id else set())
