"""Titles: whole where they fit, else up to the end of a word with an ellipsis."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.transcripts.titles import LONGEST_TITLE, cut_title


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("Mend the crane", "Mend the crane"),
        ("Mend the crane of pier 4", "Mend the crane of…"),
        ("Mend the cranes, everywhere now", "Mend the cranes…"),
        ("x" * 30, "x" * 20 + "…"),
        ("", ""),
    ],
)
def test_title_ends_with_a_word(words: str, title: str) -> None:
    assert cut_title(words, 21) == title


@given(st.text())
def test_title_is_never_longer_than_it_may_be(words: str) -> None:
    title = cut_title(words * 3)
    assert len(title) <= LONGEST_TITLE
    assert title == words * 3 or title.endswith("…")
