"""Reading answers: tags, untagged text, headings in many dresses, sections put back in place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.compactors.summary.answer import (
    add_sections,
    collapse_blank_lines,
    list_missing_sections,
    parse_answer,
    split_sections,
)
from compaction.compactors.summary.prompt import SECTIONS, list_sections
from compaction.errors import BadSummary, EmptySummary, SummaryWithoutSections
from compaction.ports import Variant
from tests.compaction.compactors.summarizers import say, write_sections

WHOLE = write_sections(Variant.FULL)


@pytest.mark.parametrize(
    ("text", "analysis"),
    [
        (f"<analysis>why</analysis>\n<summary>\n{WHOLE}\n</summary>", "why"),
        (f"<analysis>the <summary> tag</analysis><summary>{WHOLE}</summary> bye", "the <summary> tag"),
        (f"<analysis>\nwhy\n<summary>{WHOLE}", "why"),
        (f"<summary>{WHOLE}</summary>", None),
        (f"<SUMMARY>{WHOLE}</SUMMARY>", None),
        (WHOLE, None),
        (f"<analysis>why</analysis>\n{WHOLE}", "why"),
        (f"<analysis> </analysis>{WHOLE}", None),
    ],
)
def test_analysis_and_summary_come_apart(text: str, analysis: str | None) -> None:
    parsed = parse_answer(say(text), Variant.FULL)
    assert parsed.text == WHOLE
    assert parsed.analysis == analysis
    assert parsed.missing_sections == ()


@pytest.mark.parametrize(
    "heading",
    [
        "4. Errors and Fixes:",
        "## 4. Errors and fixes",
        "**4. Errors and Fixes**",
        "4) **ERRORS & FIXES:**",
        "### Errors and Fixes",
    ],
)
def test_headings_are_known_in_any_dress(heading: str) -> None:
    assert "Errors and Fixes" not in list_missing_sections(f"intro\n{heading}\n- none", Variant.FULL)


@pytest.mark.parametrize("text", ["we saw Errors and Fixes there", "4. Errors", "Errors\nand Fixes are"])
def test_a_mention_is_no_heading(text: str) -> None:
    found = "Errors and Fixes" not in list_missing_sections(text, Variant.FULL)
    assert found == text.startswith("Errors")


def test_text_without_tags_and_sections_is_no_summary_but_tagged_text_is() -> None:
    with pytest.raises(SummaryWithoutSections):
        parse_answer(say("Done."), Variant.FULL)
    assert parse_answer(say("<summary>Done.</summary>"), Variant.FULL).missing_sections == SECTIONS
    with pytest.raises(EmptySummary):
        parse_answer(say("<analysis>only this</analysis>"), Variant.FULL)


def test_a_summary_may_quote_the_tags() -> None:
    words = f"{WHOLE}\n- he said: use </summary> and </analysis>"
    parsed = parse_answer(say(f"<analysis>why</analysis><summary>{words}</summary>"), Variant.FULL)
    assert parsed.text == words


@pytest.mark.parametrize("variant", list(Variant))
def test_text_without_headings_has_no_sections(variant: Variant) -> None:
    assert split_sections("Done.", variant) == {}
    assert add_sections("Done.", write_sections(variant), variant).startswith("Done.")


def test_blank_lines_collapse() -> None:
    assert collapse_blank_lines("\n\na\n \n\n\nb\nc\n") == "a\n\nb\nc"


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(list(Variant)), st.data())
def test_sections_left_out_and_given_later_make_the_whole(variant: Variant, data: st.DataObject) -> None:
    names = list_sections(variant)
    missing = data.draw(st.sets(st.sampled_from(names), min_size=1, max_size=8))
    first = "Here it is.\n" + write_sections(variant, without=sorted(missing))
    second = write_sections(variant, without=[name for name in names if name not in missing])
    whole = add_sections(first, second, variant)
    assert list_missing_sections(whole, variant) == ()
    assert list(split_sections(whole, variant)) == list(names)
    assert whole.startswith("Here it is.")


PIECES = st.sampled_from(["<analysis>", "</analysis>", "<summary>", "</summary>", "\n", "a", "1. Problem Solving\n"])


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_whatever_comes_is_a_summary_or_a_named_error(text: str) -> None:
    try:
        parsed = parse_answer(say(text), Variant.FULL)
    except BadSummary:
        return
    assert parsed.text == collapse_blank_lines(parsed.text) != ""
