"""Sentences in several languages, filler, pasted logs, and constraints in people's words."""

import pytest

from compaction.activity.constraints import is_binding, list_constraints
from compaction.activity.sentences import (
    cut_pasted_logs,
    is_announcement,
    is_log_line,
    list_prose,
    split_sentences,
    strip_filler,
)
from compaction.activity.tool_calls import read_activity
from compaction.activity.user_messages import UserMessage, UserMessageKind
from tests.compaction.compactors.sessions import Session


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Use e.g. a file. Then stop", ["Use e.g. a file.", "Then stop"]),
        ("It has `a ... b` in it. Yes", ["It has `a ... b` in it.", "Yes"]),
        ("先读文件。然后运行测试！好吗？", ["先读文件。", "然后运行测试！", "好吗？"]),  # noqa: RUF001
        ("彼は「はい。」と言った。次へ。", ["彼は「はい。」", "と言った。", "次へ。"]),
        ("line one\nline two\n\nline three", ["line one", "line two", "line three"]),
        ("", []),
    ],
)
def test_sentences_end_at_full_stops_of_any_script_and_at_line_ends(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("Good question!", ""),
        ("Perfect!", ""),
        ("Great, all done!", "all done!"),
        ("You're absolutely right.", ""),
        ("Good catch. The comment is wrong.", "The comment is wrong."),
        ("Let me look at the tests.", ""),
        ("Now I'll update the router:", ""),
        ("Now let me run the tests", ""),
        ("Let me drop the tag because the linter rejects it.", "drop the tag because the linter rejects it."),
        ("Let's use a map instead of a list.", "use a map instead of a list."),
        ("The cache is stale.", "The cache is stale."),
        ("Alles klar.", ""),
        ("Bonne question !", ""),
        ("好的。", ""),
        ("让我看看测试。", ""),
        ("なるほど", ""),
        ("...", ""),
    ],
)
def test_filler_is_dropped_and_what_has_content_stays(sentence: str, left: str) -> None:
    assert strip_filler(sentence) == left


def test_announcements_with_a_reason_are_no_filler() -> None:
    assert is_announcement("I'll check the config.")
    assert not is_announcement("I'll check the config since the port differs.")


def test_prose_has_no_code_no_tables_and_no_markup() -> None:
    text = "## Result\n\n- **Removed** `isTrivial`.\n| a | b |\n|---|---|\n```py\nx = 1. Never.\n```\n1. Kept `trim`."
    assert list_prose(text) == ["Result", "Removed `isTrivial`.", "Kept `trim`."]


def test_an_unclosed_block_of_code_ends_the_prose() -> None:
    assert list_prose("Before.\n```\ncode. more code.") == ["Before."]


@pytest.mark.parametrize(
    "line",
    ["main_test.go:12: bad", "2026-01-01 10:00:00 start", "--- FAIL: TestX", "[ERROR] no", "    at run (a.js:1:2)"],
)
def test_output_of_programs_is_told_from_words(line: str) -> None:
    assert is_log_line(line)


def test_pasted_output_is_cut_in_the_middle_and_words_stay_whole() -> None:
    log = [f"main_test.go:{number}: value" for number in range(60)]
    shown = cut_pasted_logs("\n".join(["Look at this:", *log, "Fix it, please."]))
    assert shown.startswith("Look at this:\nmain_test.go:0: value")
    assert "[cut: 36 lines of output]" in shown
    assert shown.endswith("main_test.go:59: value\nFix it, please.")
    words = "\n".join(f"Case {number} must hold." for number in range(60))
    assert cut_pasted_logs(words) == words


@pytest.mark.parametrize(
    "sentence",
    [
        "不要修改数据库。",
        "提交前必须运行测试",
        "只能使用标准库。",
        "請勿刪除檔案",
        "必ずテストを実行してください。",
        "コメントは書かないでください",
        "반드시 테스트를 실행하세요",
        "Bitte ändere die Datenbank nicht.",
        "Du darfst nur diese Datei anfassen, ohne Ausnahme.",
        "Das Modul muss ohne Abhängigkeiten auskommen.",
        "Ne modifie jamais le schéma.",
        "Il faut garder les tests.",
        "Nunca cambies el esquema.",
        "Asegúrate de que pasen las pruebas.",
        "Never touch the schema.",
    ],
)
def test_constraints_in_other_languages_are_found(sentence: str) -> None:
    assert is_binding(sentence)


@pytest.mark.parametrize(
    "sentence", ["请看一下这个文件。", "Schau dir die Datei an.", "Regarde ce fichier.", "必须吗\uff1f"]
)
def test_requests_that_bind_nothing_are_no_constraints(sentence: str) -> None:
    assert not is_binding(sentence)


def test_constraints_are_not_taken_from_code_tables_and_logs() -> None:
    text = (
        "Never do X.\n```\n// must not\n```\n| must | always |\nmain_test.go:8: must not fail\n请务必运行测试。谢谢！"  # noqa: RUF001
    )
    said = [UserMessage(text, UserMessageKind.PROMPT, None, None, 1, 0)]
    assert [constraint.text for constraint in list_constraints(said)] == ["Never do X.", "请务必运行测试。"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Never touch the schema.", ["Never touch the schema."]),
        ("Do it. Only use bun! What must I do?", ["Only use bun!"]),
        ("please have a look", []),
        ("x" * 500 + " must", []),
    ],
)
def test_constraints_are_binding_sentences(words: str, found: list[str]) -> None:
    session = Session()
    session.say(words)
    assert [constraint.text for constraint in list_constraints(read_activity(session.entries).user_messages)] == found
