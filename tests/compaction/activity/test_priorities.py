"""Words that instructions name: which ones count, and what mentions them."""

import pytest

from compaction.activity.priorities import NO_PRIORITIES, read_priorities


@pytest.mark.parametrize(
    ("instructions", "terms"),
    [
        ("Focus on the database schema and `auth.py`", ("auth.py", "database", "schema")),
        ("Keep the API decisions, ignore CSS", ("API", "decisions")),
        ("Don't mention the tests; remember migrations", ("migrations",)),
        ("请重点保留数据库迁移的内容", ("数据库迁移",)),
        ("Bitte achte auf die Migration", ("Migration",)),
        ('Remember "the login form"', ("the login form",)),
        ("please keep everything", ()),
        ("tests/run.py and user_id", ("tests/run.py", "user_id")),
    ],
)
def test_terms_of_instructions_are_names_and_content_words(instructions: str, terms: tuple[str, ...]) -> None:
    assert read_priorities(instructions).terms == terms


@pytest.mark.parametrize("instructions", [None, "", "  \n"])
def test_no_instructions_name_nothing(instructions: str | None) -> None:
    assert read_priorities(instructions) is NO_PRIORITIES
    assert not NO_PRIORITIES.matches("anything")


def test_terms_match_at_the_start_of_words_in_any_case_and_number() -> None:
    priorities = read_priorities("keep migrations and the Token")
    assert priorities.matches("One migration failed")
    assert priorities.matches("the tokens")
    assert not priorities.matches("immigration")
    assert priorities.list_matching_terms(["a migration", "nothing"]) == ["migrations"]


def test_instructions_that_name_nothing_are_still_instructions() -> None:
    priorities = read_priorities("please keep everything")
    assert priorities.has_instructions
    assert not priorities.matches("everything")
