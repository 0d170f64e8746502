"""Short forms of texts, commands and paths."""

import pytest

from compaction.activity.excerpts import cut_middle, cut_text, is_read_only, join_with_gaps, shorten_path, trim_command
from tests.compaction.compactors.sessions import ROOT


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cd /src && make test 2>&1 | tail -20", "make test"),
        ("cd a; cd b && npm run build", "npm run build"),
        ("bash -c '\nset -e\nmake'", "bash -c ' set -e"),
        ("git commit -m 'one\n\ntwo'", "git commit -m 'one"),
        ("", ""),
    ],
)
def test_commands_are_named_as_a_person_would_name_them(command: str, name: str) -> None:
    assert trim_command(command) == name


def test_short_forms_say_how_much_they_leave_out() -> None:
    assert cut_text("abcdef", 4) == "abcd [cut: 2 more characters]"
    assert cut_middle("a" * 10 + "b" * 10, 8) == "aaaa [cut: 12 characters] bbbb"
    assert shorten_path(f"{ROOT}/src/a.py", ROOT) == "src/a.py"
    assert shorten_path("/home/dev/shopping/a.py", ROOT) == "/home/dev/shopping/a.py"
    assert is_read_only("cd x && git status")
    assert not is_read_only("git commit -m x")


def test_a_cut_by_lines_counts_lines_and_a_long_line_characters() -> None:
    assert cut_text("a\nb\nc", 10, lines=2) == "a\nb\n[cut: 1 more lines]"
    assert cut_text("a\nb", 10, lines=2) == "a\nb"
    assert cut_text("abcdef\nb", 4, lines=1) == "abcd [cut: 2 more characters]"


def test_gaps_between_chosen_lines_have_one_mark() -> None:
    assert join_with_gaps(["a", "b", "c", "d", "e", "f"], {1, 4}) == "b\n[...]\ne\n[...]"
    assert join_with_gaps(["a"], set()) == ""
