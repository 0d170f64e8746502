"""Sentences in which an agent states causes, decisions and findings."""

import pytest

from compaction.activity.priorities import read_priorities
from compaction.activity.statements import LEAST_WEIGHT, list_statements, weigh_sentence
from compaction.activity.tool_calls import read_activity
from compaction.compactors.extractive.summarizer import build_extractive_summary
from compaction.compactors.summary.answer import split_sections
from compaction.ports import Variant
from tests.compaction.compactors.sessions import ROOT, Session


@pytest.mark.parametrize(
    "sentence",
    [
        "The test fails because `Agent` is empty.",
        "Root cause: the cache is never cleared.",
        "I decided to use a map instead of a list.",
        "It turns out that SQLite cannot alter columns.",
        "The `live/2` helper needs `get/2` imported.",
        "The annotation didn't help.",
        "Der Test scheitert, weil `Agent` leer ist.",
        "测试失败是因为 `Agent` 为空。",
        "原因はキャッシュです。失敗します。",
    ],
)
def test_sentences_with_a_cause_or_a_decision_weigh_enough(sentence: str) -> None:
    assert weigh_sentence(sentence) >= LEAST_WEIGHT


@pytest.mark.parametrize(
    "sentence",
    ["All tests pass.", "All 5 tests pass!", "Tests fail as expected.", "`sort` is still used.", "Here it is.", "Done"],
)
def test_bare_results_and_passing_notes_weigh_nothing(sentence: str) -> None:
    assert weigh_sentence(sentence) < LEAST_WEIGHT


def test_each_statement_is_listed_once_where_it_was_last_made() -> None:
    session = Session()
    session.say("go")
    session.remark("The build fails because `zlib` is missing.")
    session.run("ls", "x")
    session.remark("Good catch. The build fails because `zlib` is missing. Let me look.")
    session.run("ls", "y")
    activity = read_activity(session.entries)
    (statement,) = list_statements(activity)
    assert (statement.text, statement.entry_index) == (
        "The build fails because `zlib` is missing.",
        activity.assistant_texts[1].entry_index,
    )


def test_named_sentences_come_although_they_tell_little() -> None:
    session = Session()
    session.say("go")
    session.remark("The walrus sleeps here.")
    activity = read_activity(session.entries)
    assert list_statements(activity) == []
    (statement,) = list_statements(activity, priorities=read_priorities("the walrus"))
    assert statement.is_named


def test_the_newest_statement_comes_first_so_that_corrections_win() -> None:
    session = Session()
    session.say("go")
    session.remark("We decided to keep `guard` because the test needs it.")
    session.run("ls", "x")
    session.remark("We decided to remove `guard` again, since it hides the newer log.")
    session.run("ls", "y")
    session.remark("Now the changelog:")
    solving = split_sections(build_extractive_summary(session.entries), Variant.FULL)["Problem Solving"]
    assert solving.index("remove `guard`") < solving.index("keep `guard`")


def test_words_are_quoted_with_a_file_only_where_they_name_it() -> None:
    session = Session()
    session.say("go")
    session.remark("The issue is that the port is wrong, because nobody sets it.")
    session.write(f"{ROOT}/cart.py", "def total():\n    return 1\n")
    session.remark("`total` must not round, because prices have three digits.")
    session.edit(f"{ROOT}/cart.py", "return 1", "return 1.0")
    session.write(f"{ROOT}/other.py", "x = 1")
    files = split_sections(build_extractive_summary(session.entries), Variant.FULL)["Files and Code Sections"]
    cart = next(line for line in files.splitlines() if "**cart.py**" in line)
    other = next(line for line in files.splitlines() if "**other.py**" in line)
    assert 'Said with a change: "`total` must not round, because prices have three digits."' in cart
    assert "Said with" not in other


def test_files_say_which_names_are_new_and_which_are_gone() -> None:
    session = Session()
    session.say("go")
    session.read(f"{ROOT}/cart.py", "def old_total():\n    return 1\n\n\ndef keep():\n    return 2\n")
    session.edit(f"{ROOT}/cart.py", "def old_total():\n    return 1", "def new_total():\n    return 1")
    files = split_sections(build_extractive_summary(session.entries), Variant.FULL)["Files and Code Sections"]
    assert "New names: `new_total`. Names gone: `old_total`." in files
