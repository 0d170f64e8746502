"""Notes without a model: the template's sections, a person's words kept, within the limits, the same every time."""

from pathlib import Path as FilePath

import pytest
from hypothesis import given

from bench.threads import split_threads
from compaction.compactors.notes.extractive import build_extractive_notes, find_edited_sections
from compaction.compactors.notes.template import (
    ALL_NOTES_TOKENS,
    DEFAULT_TEMPLATE,
    SECTION_TOKENS,
    is_template_only,
    list_long_sections,
    parse_notes,
)
from compaction.context.tokens import count_text_tokens
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from tests.compaction.compactors.sessions import make_session
from tests.compaction.compactors.talks import talks
from tests.compaction.recorded import each_recorded, read_recorded


def check_notes_text(text: str) -> None:
    names = [(section.name, section.description) for section in parse_notes(DEFAULT_TEMPLATE)]
    assert [(section.name, section.description) for section in parse_notes(text)] == names
    assert not list_long_sections(text)
    assert count_text_tokens(text) <= ALL_NOTES_TOKENS


def bodies_of(text: str) -> dict[str, str]:
    return {section.name: section.body for section in parse_notes(text)}


def test_a_working_session_fills_the_sections() -> None:
    bodies = bodies_of(build_extractive_notes(make_session().entries))
    assert bodies["Session Title"].startswith('"')
    assert '[in_progress] "Guard against an empty token"' in bodies["Current State"]
    assert '"Never touch the schema, and always run `make test` before you commit."' in bodies["Task Specification"]
    assert "**auth.py**: edited 2 times, read" in bodies["Files and Functions"]
    assert "`make test`" in bodies["Workflow"]
    assert "> E   AttributeError: 'NoneType' object has no attribute 'user'" in bodies["Errors & Corrections"]
    assert "branch main" in bodies["Codebase and System Documentation"]
    assert 'committed 1a2b3c4: "Guard the token"' in bodies["Worklog"]
    assert bodies["Key Results"] == ""


def test_a_template_of_ones_own_is_filled_by_the_names_of_its_sections() -> None:
    entries = make_session().entries
    assert list(bodies_of(build_extractive_notes(entries, template="# Status\n\n# Moods"))) == ["Status", "Moods"]
    odd = bodies_of(build_extractive_notes(entries, template="# Moods\n_How it feels._\n\n# Weather"))
    assert "The last steps" in odd["Moods"]
    assert odd["Weather"] == ""


def test_what_a_person_wrote_stays_but_for_the_current_state() -> None:
    entries = make_session().entries
    first = build_extractive_notes(entries)
    edited = first.replace("# Key Results\n", "# Key Results\nThe answer is 42.\n", 1)
    assert edited != first
    history = [(False, first), (True, edited)]
    own = find_edited_sections(history)
    assert list(own) == ["Key Results"]
    again = build_extractive_notes(entries, edited_sections=own | {"Current State": "All is done."})
    assert bodies_of(again)["Key Results"] == own["Key Results"]
    assert "All is done." not in again
    assert find_edited_sections([*history, (False, again)]) == own
    assert find_edited_sections([*history, (True, first)]) == {}


def test_long_sections_are_cut_with_a_mark_and_keep_the_newest() -> None:
    session = make_session()
    for number in range(400):
        session.say(f"Request {number}: " + "draw the basin " * 12)
    text = build_extractive_notes(session.entries)
    check_notes_text(text)
    log = bodies_of(text)["Worklog"]
    assert log.startswith("[older lines were left out")
    assert "Request 399" in log
    assert count_text_tokens(log) > SECTION_TOKENS - 100


@given(talks())
def test_any_conversation_stays_within_the_limits(entries: list[Entry]) -> None:
    text = build_extractive_notes(entries)
    check_notes_text(text)
    assert text == build_extractive_notes(entries)


@pytest.mark.recorded_data
@each_recorded()
def test_recorded_threads_are_noted_within_the_limits(path: FilePath) -> None:
    for thread in split_threads(read_recorded(path).entries):
        context = slice_context(follow_chain(thread.entries))
        text = build_extractive_notes(context.entries)
        check_notes_text(text)
        has_words = any(entry.message is not None for entry in context.entries)
        assert is_template_only(text) is not has_words
