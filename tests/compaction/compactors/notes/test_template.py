"""Session notes: the template, its limits, when they are taken, and what is asked for."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.compactors.notes.schedule import (
    DEFAULT_EXTRACTION_SETTINGS,
    ExtractionMark,
    compute_extraction_need,
    compute_wait_seconds,
)
from compaction.compactors.notes.template import (
    ALL_NOTES_TOKENS,
    CUT_MARK,
    CUT_SECTION_CHARACTERS,
    DEFAULT_TEMPLATE,
    SECTION_TOKENS,
    SessionNotes,
    build_extraction_prompt,
    cut_notes,
    is_template_only,
    list_long_sections,
    parse_notes,
    require_valid_template,
)
from compaction.errors import BadNotesTemplate
from tests.compaction.compactors.sessions import Session
from tests.compaction.compactors.talks import NOW

NAMES = [
    "Session Title", "Current State", "Task Specification", "Files and Functions", "Workflow", "Errors & Corrections",
    "Codebase and System Documentation", "Learnings", "Key Results", "Worklog",
]  # fmt: skip


def fill(name: str, body: str) -> str:
    return "\n\n".join(
        section.format(body if section.name == name else "") for section in parse_notes(DEFAULT_TEMPLATE)
    )


def test_the_template_has_the_ten_sections_with_a_description_each() -> None:
    sections = parse_notes(DEFAULT_TEMPLATE)
    assert [section.name for section in sections] == NAMES
    assert all(section.description and not section.body for section in sections)
    require_valid_template(DEFAULT_TEMPLATE)


def test_the_limits_are_the_clients() -> None:
    assert (SECTION_TOKENS, ALL_NOTES_TOKENS, CUT_SECTION_CHARACTERS) == (2_000, 12_000, 8_000)
    settings = DEFAULT_EXTRACTION_SETTINGS
    assert (settings.first_tokens, settings.growth_tokens, settings.tool_calls) == (10_000, 5_000, 3)


@pytest.mark.parametrize(
    ("template", "why"),
    [("no heading", "no line"), ("# A\n\n# a", "more than once"), ("# A\n" + "x" * 60_000, "longer than")],
)
def test_a_template_that_cannot_be_filled_is_refused_with_a_sentence(template: str, why: str) -> None:
    with pytest.raises(BadNotesTemplate, match=why):
        require_valid_template(template)


def test_notes_without_content_are_the_template() -> None:
    assert is_template_only("")
    assert is_template_only(DEFAULT_TEMPLATE)
    assert is_template_only("# Worklog\n_described otherwise_\n")
    assert not is_template_only(fill("Worklog", "- looked around"))
    assert is_template_only("# Mine\nfixed text", template="# Mine\nfixed text")


def test_a_hash_in_a_code_block_is_no_heading() -> None:
    (section,) = parse_notes("# Workflow\n```sh\n# a comment\nmake\n```\n")
    assert "# a comment" in section.body


def test_long_sections_are_named_the_longest_first() -> None:
    notes = "# A\n" + "a" * 8_100 + "\n# B\n" + "b" * 9_000 + "\n# C\nshort"
    assert [section.name for section in list_long_sections(notes)] == ["B", "A"]


def test_cutting_keeps_headings_and_descriptions_and_marks_the_cut() -> None:
    text = cut_notes(fill("Worklog", "\n".join(f"- step {number}" for number in range(2_000))))
    sections = {section.name: section for section in parse_notes(text)}
    assert list(sections) == NAMES
    assert all(section.description for section in sections.values())
    assert sections["Worklog"].body.endswith(CUT_MARK)
    assert len(sections["Worklog"].body) <= CUT_SECTION_CHARACTERS
    assert cut_notes("no headings " * 2_000).endswith(CUT_MARK)


@given(st.text(alphabet="#_ ab\n`", max_size=400))
def test_cutting_leaves_short_notes_as_they_are_but_for_empty_lines(text: str) -> None:
    assert "".join(cut_notes(text).split()) == "".join(text.split())


def talk_of(tokens: int, calls: int = 0) -> Session:
    session = Session()
    session.say("go")
    for number in range(calls):
        session.run(f"step {number}")
    session.answer("last", {"type": "text", "text": "ok"}, tokens=tokens - 5)
    return session


@pytest.mark.parametrize(("tokens", "is_due"), [(9_999, False), (10_000, True)])
def test_the_first_notes_are_taken_at_ten_thousand_tokens(tokens: int, *, is_due: bool) -> None:
    need = compute_extraction_need(talk_of(tokens).entries)
    assert (need.is_due, need.context_tokens) == (is_due, tokens)


@pytest.mark.parametrize(
    ("growth", "calls", "is_new_turn", "is_due"),
    [
        (5_000, 3, False, True),
        (4_999, 3, False, False),
        (5_000, 2, False, False),
        (5_000, 2, True, True),
        (5_000, 0, False, True),
    ],
)
def test_later_notes_need_growth_and_either_tool_calls_or_a_turn_without_any(
    growth: int, calls: int, *, is_new_turn: bool, is_due: bool
) -> None:
    session = talk_of(12_000)
    mark = ExtractionMark(session.entries[-1].uuid or "", 12_000)
    for number in range(calls):
        session.run(f"more {number}")
    if is_new_turn:
        session.say("thanks")
    session.answer("newest", {"type": "text", "text": "ok"}, tokens=12_000 + growth - 5)
    need = compute_extraction_need(session.entries, mark)
    assert (need.growth_tokens, need.tool_calls_since, need.is_due) == (growth, calls, is_due)


def test_after_a_compaction_all_of_the_new_context_is_growth() -> None:
    session = talk_of(6_000, calls=3)
    need = compute_extraction_need(session.entries, ExtractionMark("gone", 150_000))
    assert (need.growth_tokens, need.tool_calls_since, need.is_due) == (6_000, 3, True)


@pytest.mark.parametrize(
    ("running", "waited", "wait"),
    [(None, 0, 0), (5, 0, 15), (5, 10, 5), (50, 0, 10), (60, 0, 0), (5, 15, 0), (-3, 0, 0)],
)
def test_an_extraction_under_way_is_waited_for_but_not_for_long(running: int | None, waited: int, wait: int) -> None:
    started = None if running is None else NOW - timedelta(seconds=running)
    notes = SessionNotes("x", "u", extraction_started_at=started)
    assert compute_wait_seconds(notes, NOW, waited_seconds=waited) == wait


def test_the_prompt_names_what_has_to_be_condensed() -> None:
    plain = build_extraction_prompt("")
    assert DEFAULT_TEMPLATE.strip() in plain
    assert "must be condensed" not in plain
    long = fill("Worklog", "w" * 9_000)
    assert '- "Worklog": 2,250 tokens' in build_extraction_prompt(long)
    huge = "\n".join(f"# S{number}\n" + "x" * 8_000 for number in range(7))
    asked = build_extraction_prompt(huge, instructions="Write in Polish.")
    assert "Shorten them hard" in asked
    assert asked.endswith("Additional instructions:\nWrite in Polish.")
