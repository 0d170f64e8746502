from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.cache.text_diff import (
    LONGEST_LINE_SHOWN,
    MOST_LINES_SHOWN,
    DiffLine,
    DiffMark,
    diff_text,
    find_first_difference,
)


@settings(max_examples=100, deadline=None)
@given(st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_first_difference_is_the_first(before: str, after: str) -> None:
    found = find_first_difference(before, after)
    assert (found is None) == (before == after)
    if found is not None:
        assert before[:found] == after[:found]
        assert before[found : found + 1] != after[found : found + 1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=10), st.lists(st.sampled_from("abc"), max_size=10))
def test_removed_and_added_lines_balance(before: list[str], after: list[str]) -> None:
    found = diff_text("\n".join(before), "\n".join(after))
    removed = sum(line.mark is DiffMark.REMOVED for line in found.lines)
    added = sum(line.mark is DiffMark.ADDED for line in found.lines)
    assert added - removed == len("\n".join(after).splitlines()) - len("\n".join(before).splitlines())
    for line in found.lines:
        if line.parts:
            assert "".join(word for _, word in line.parts) == line.text


def test_huge_difference_is_cut_and_says_so() -> None:
    found = diff_text("\n".join(map(str, range(9_000))), "\n".join(map(str, range(9_000, 0, -1))))
    assert found.is_cut
    assert len(found.lines) == MOST_LINES_SHOWN


def test_distance_between_two_changes_is_not_shown() -> None:
    middle = [f"line {number}" for number in range(20)]
    found = diff_text("\n".join(["a", *middle, "z"]), "\n".join(["b", *middle, "y"]))
    assert [line.mark.value for line in found.lines] == ["-", "+", " ", " ", " ", " ", "-", "+"]


def test_words_are_marked_whole_and_only_where_lines_were_replaced_one_for_one() -> None:
    found = diff_text("the quick_brown fox runs, and so on", "the quick_red fox walks, and so on")
    assert [line.parts for line in found.lines] == [
        ((DiffMark.SAME, "the "), (DiffMark.REMOVED, "quick_brown"), (DiffMark.SAME, " fox "),
         (DiffMark.REMOVED, "runs"), (DiffMark.SAME, ", and so on")),
        ((DiffMark.SAME, "the "), (DiffMark.ADDED, "quick_red"), (DiffMark.SAME, " fox "), (DiffMark.ADDED, "walks"),
         (DiffMark.SAME, ", and so on")),
    ]  # fmt: skip
    assert all(not line.parts for line in diff_text("a b", "c d\ne f").lines)


def test_long_lines_are_cut() -> None:
    (removed, added) = diff_text("x" * 9_000, "y" * 9_000).lines
    assert len(removed.text) == len(added.text) == LONGEST_LINE_SHOWN + 1


def test_difference_far_inside_a_long_line_is_in_sight() -> None:
    (removed, added) = diff_text("x " * 4_000 + "old end", "x " * 4_000 + "new end").lines
    assert removed.text.endswith("x old end")
    assert added.text.startswith("…")
    assert [word for mark, word in added.parts if mark is DiffMark.ADDED] == ["new"]


def pick(line: DiffLine, mark: DiffMark) -> list[str]:
    return [word for own, word in line.parts if own is mark]


def test_few_characters_put_into_a_long_line_are_all_that_is_marked() -> None:
    before = " ".join(f"word{number}" for number in range(900))
    place = before.index("word500")
    after = f"{before[:place]}eighteen letters, {before[place:]}"
    (removed, added) = diff_text(before, after).lines
    assert pick(removed, DiffMark.REMOVED) == []
    assert pick(added, DiffMark.ADDED) == ["eighteen letters, "]
    assert added.text.startswith("…")
    assert added.text.endswith("…")
    assert len(added.text) < LONGEST_LINE_SHOWN


def test_change_inside_text_without_spaces_is_marked_where_it_is() -> None:
    (removed, added) = diff_text("x" * 5_000 + "old" + "y" * 5_000, "x" * 5_000 + "new" + "y" * 5_000).lines
    assert pick(removed, DiffMark.REMOVED) == ["old"]
    assert pick(added, DiffMark.ADDED) == ["new"]


def test_two_changes_of_a_long_line_are_both_in_sight() -> None:
    words = [f"word{number}" for number in range(900)]
    changed = [*words[:400], "first", *words[401:440], "second", *words[441:]]
    (removed, added) = diff_text(" ".join(words), " ".join(changed)).lines
    assert pick(removed, DiffMark.REMOVED) == ["word400", "word440"]
    assert pick(added, DiffMark.ADDED) == ["first", "second"]


def test_change_beyond_what_is_matched_is_said_to_be_there() -> None:
    words = [f"word{number}" for number in range(900)]
    found = diff_text(" ".join(words), " ".join(["first", *words[1:899], "last"]))
    assert found.is_cut
    assert all(len(line.text) < 2 * LONGEST_LINE_SHOWN for line in found.lines)
    assert pick(found.lines[0], DiffMark.REMOVED) == ["word0"]


def test_lines_stand_beside_the_lines_they_became() -> None:
    found = diff_text("a\nb\nold one\nold two\nz", "a\nb\nnew one\nz")
    rows = [(row.before and row.before.text, row.after and row.after.text, row.is_same) for row in found.rows]
    assert rows == [
        ("a", "a", True),
        ("b", "b", True),
        ("old one", "new one", False),
        ("old two", None, False),
        ("z", "z", True),
    ]
    last = found.lines[-1]
    assert (last.old_number, last.number) == (5, 4)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=10), st.lists(st.sampled_from("abc"), max_size=10))
def test_rows_hold_every_line_once(before: list[str], after: list[str]) -> None:
    found = diff_text("\n".join(before), "\n".join(after))
    old = before and [line.text for row in found.rows if (line := row.before)]
    new = after and [line.text for row in found.rows if (line := row.after)]
    assert all(text in before for text in old)
    assert all(text in after for text in new)
    sides = [side for row in found.rows for side in ([row.before] if row.is_same else [row.before, row.after]) if side]
    assert len(sides) == len(found.lines)
    for line in found.lines:
        if line.mark is DiffMark.SAME and line.old_number is not None:
            assert before[line.old_number - 1] == after[line.number - 1] == line.text
