"""Statements are found word for word or in other words close together, never by words scattered over a page."""

import pytest

from compaction.audit.passage_search import MatchKind, RetainedText
from compaction.audit.terms import IDENTIFIER, is_identifier, list_terms


def search(text: str, retained: str, *, is_binding: bool = False) -> MatchKind:
    match = RetainedText(retained).find_statement(text, list_terms(text), is_binding=is_binding)
    return match.kind if match.is_found else MatchKind.MISSING


@pytest.mark.parametrize(
    ("text", "retained", "kind"),
    [
        ("Fix the login bug in auth.py", 'he said "fix the  login bug in `auth.py`"', MatchKind.VERBATIM),
        ("Fix the login bug in the auth module", "The login bug of module auth was fixed", MatchKind.REWORDED),
        ("Fix the login bug in the auth module", "The payment page was redesigned", MatchKind.MISSING),
        ("never use the production database", "The production database is used", MatchKind.MISSING),
        ("never use the production database", "The production database must not be used", MatchKind.REWORDED),
        ("Rename `parse_all` in src/reader.py", "reader.py: parse_all got a new name", MatchKind.REWORDED),
        ("Use port 8443 for the admin page", "the admin page is on port 8443", MatchKind.REWORDED),
        ("不要修改数据库结构", "数据库结构不能修改", MatchKind.REWORDED),
        ("不要修改数据库结构", "登录页面已经完成", MatchKind.MISSING),
        ("yes", "yesterday all was well\nand yes it was", MatchKind.MISSING),
    ],
)  # fmt: skip
def test_statements_are_found_in_other_words_and_not_by_chance(text: str, retained: str, kind: MatchKind) -> None:
    assert search(text, retained) is kind


def test_words_scattered_over_a_page_are_no_match() -> None:
    page = "\n".join(
        f"{word} is described here. " + "Filler. " * 80 for word in ("rename", "customer", "table", "orders")
    )
    assert search("Rename the customer table to orders", page) is MatchKind.MISSING
    assert search("Rename the customer table to orders", "customer table renamed: orders") is MatchKind.REWORDED


def test_a_long_statement_that_denies_something_beside_the_point_may_lose_its_not() -> None:
    text = (
        "The exporter keeps the session open while the worker drains its queue, since the supervisor does not restart"
        " a worker whose queue holds unsent batches"
    )
    retained = (
        "The supervisor restarts a worker only with an empty queue, so the exporter holds the session open while the"
        " worker drains the queue of unsent batches."
    )
    assert search(text, retained) is MatchKind.REWORDED
    assert search(text, retained, is_binding=True) is MatchKind.MISSING


def test_names_answer_to_the_last_part_of_their_path() -> None:
    retained = RetainedText("see src/app/index.ts and parse_all()")
    assert retained.has_name("index.ts")
    assert retained.has_name("parse_all")
    assert not retained.has_name("page.ts")


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("parse_all", True), ("parseAll", True), ("src/app.py", True), ("TS2304", True), ("gqc.4", True),
        ("#201", True), ("well-known", False), ("database", False), ("don't", False),
        ("85.7", False), ("2.1.9", False),
    ],
)  # fmt: skip
def test_identifiers_are_distinguished_from_words(token: str, *, expected: bool) -> None:
    assert is_identifier(token) is expected


def test_identifiers_weigh_more_than_words_and_common_words_nothing() -> None:
    weights = {term.key: term.weight for term in list_terms("Please make the parse_all function faster")}
    assert weights == {"parse_all": IDENTIFIER, "funct": 1.0, "faste": 1.0}
