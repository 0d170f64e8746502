"""The difference of two requests as a page shows it: which block is named first, where tools stood, two columns."""

from typing import Any

from compaction.prompt.fingerprint import fingerprint_request
from compaction.prompt.request import read_request
from dashboard.pages.prefix_view import Change, PrefixView, view_difference
from dashboard.pages.recorded_requests import RequestPair
from tests.compaction.cache.builders import body, digest, text, tool

READ, EDIT, BASH, GREP = tool("Read"), tool("Edit"), tool("Bash"), tool("Grep")


def view(before: dict[str, Any], after: dict[str, Any]) -> PrefixView:
    old, new = read_request(before), read_request(after)
    pair = RequestPair(fingerprint_request(old, digest), fingerprint_request(new, digest), old, new)
    return view_difference(pair, cached_tokens=None)


def view_tools(before: list[Any], after: list[Any]) -> PrefixView:
    return view(body(tools=before), body(tools=after))


def list_first(found: PrefixView) -> list[str]:
    blocks = [block for level in found.levels for block in level.blocks]
    return [block.words for block in blocks if isinstance(block, Change) and block.is_first]


def test_reordered_tools_have_their_old_and_new_places() -> None:
    found = view_tools([READ, EDIT, BASH, GREP], [GREP, EDIT, BASH, READ])
    assert [(each.name, each.how, each.place_words) for each in found.tools] == [
        ("Grep", "reordered", "[3] → [0]"),
        ("Read", "reordered", "[0] → [3]"),
    ]
    assert [(each.before_place, each.after_place) for each in found.tools] == [(3, 0), (0, 3)]


def test_sentence_and_mark_name_the_same_tool() -> None:
    found = view_tools([READ, EDIT, BASH, GREP], [GREP, BASH, EDIT, READ])
    assert found.sentence.startswith("First divergence: tools[0] (Grep replaces Read)")
    assert list_first(found) == ["Grep"]


def test_tool_put_before_others_is_named_with_the_one_that_stood_there() -> None:
    found = view_tools([READ, EDIT], [READ, BASH, EDIT])
    assert found.sentence.startswith("First divergence: tools[1] (Bash replaces Edit)")
    assert list_first(found) == ["Bash"]
    assert [each.place_words for each in found.tools] == ["→ [1]"]


def test_one_change_alone_is_marked_where_two_meet() -> None:
    found = view_tools([READ, EDIT], [READ, BASH])
    assert found.sentence.startswith("First divergence: tools[1] (Edit)")
    assert list_first(found) == ["Edit"]
    assert [each.place_words for each in found.tools] == ["[1] →", "→ [1]"]


def test_changed_block_has_both_sides_and_an_added_one_has_one() -> None:
    found = view(body(system=[text("one\nold\nthree")]), body(system=[text("one\nnew\nthree"), text("more")]))
    changed, added = [block for level in found.levels for block in level.blocks if isinstance(block, Change)]
    assert [row.is_same for row in changed.rows] == [True, False, True]
    assert not changed.is_one_sided
    assert added.is_one_sided
