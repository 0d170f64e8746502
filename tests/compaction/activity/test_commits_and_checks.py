"""Runs of tests, linters and builds, their verdicts, and what was changed since."""

import pytest

from compaction.activity.commits_and_checks import CheckKind, classify_command, read_checks
from compaction.activity.tool_calls import read_activity
from compaction.compactors.extractive.summarizer import build_extractive_summary
from compaction.compactors.summary.answer import split_sections
from compaction.ports import Variant
from tests.compaction.compactors.sessions import ROOT, Session, make_session


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("cd app && pytest -q tests/unit", [CheckKind.TESTS]),
        (".venv/bin/python -m pytest", [CheckKind.TESTS]),
        ("MIX_ENV=test mix test --seed 0 | tail -5", [CheckKind.TESTS]),
        ("npm run test:unit", [CheckKind.TESTS]),
        ("mise run fmt && mise run lint", [CheckKind.LINT]),
        ("go build ./... && go test ./...", [CheckKind.TESTS, CheckKind.BUILD]),
        ("cargo clippy", [CheckKind.LINT]),
        ("make", [CheckKind.BUILD]),
        ("cat pytest.ini", []),
        ("grep -rn 'go test' docs", []),
        ("git commit -m 'run go test in CI'", []),
        ("ls", []),
    ],
)
def test_checks_are_told_by_their_commands(command: str, kinds: list[CheckKind]) -> None:
    assert list(classify_command(command)) == kinds


@pytest.mark.parametrize(
    ("output", "verdict", "is_failed"),
    [
        ("....\n65 passed in 2.1s", ("65 passed in 2.1s",), False),
        ("14 doctests, 73 tests, 0 failures", ("14 doctests, 73 tests, 0 failures",), False),
        ("ok  \tshop/cart\t0.4s\nok  \tshop/pay\t0.1s", ("ok shop/cart 0.4s", "ok shop/pay 0.1s"), False),
        ("--- FAIL: TestCart (0.0s)\nFAIL\nFAIL\tshop/cart\t0.4s", ("FAIL", "FAIL shop/cart 0.4s"), True),
        ("5 tests, 2 failures\nFinished in 3s", ("5 tests, 2 failures",), True),
        ("[lint] 0 issues.\nFinished in 5s", ("[lint] 0 issues.",), False),
        ("", (), False),
    ],
)
def test_the_verdict_is_what_the_output_says(output: str, verdict: tuple[str, ...], *, is_failed: bool) -> None:
    session = Session()
    session.run("go test ./...", output)
    (check,) = read_checks(read_activity(session.entries))
    assert (check.verdict, check.is_failed) == (verdict, is_failed)


def test_changes_after_the_last_run_are_counted() -> None:
    session = Session()
    session.run("pytest", "1 passed")
    session.write(f"{ROOT}/a.py", "x = 1")
    session.run("pytest", "2 passed")
    session.edit(f"{ROOT}/a.py", "1", "2")
    (check,) = read_checks(read_activity(session.entries))
    assert (check.verdict, check.changes_after) == (("2 passed",), 1)


def test_a_run_in_the_background_has_no_verdict_yet() -> None:
    session = Session()
    session.run("pytest", "Command running in background with ID: b1. Output is being written to: /tmp/b1")
    assert read_checks(read_activity(session.entries)) == ()


def test_the_summary_says_what_is_not_tested_and_not_committed() -> None:
    session = make_session()
    current = split_sections(build_extractive_summary(session.entries), Variant.FULL)["Current Work"]
    assert "- The last commit: 1a2b3c4 at 11:30." in current
    assert "- NOT committed yet, changed since: auth.py." in current
    assert "- NOT tested yet: after the last change (auth.py at 11:30) no tests, lint or build were run." in current
    assert '`make test` at 11:30: no failure reported: "2 passed"; 1 changes to files since' in current
    session.run("make test", "3 passed")
    session.run("git commit -am 'Log'", "[main 2b3c4d5] Log")
    session.run("git push", "main -> main")
    current = split_sections(build_extractive_summary(session.entries), Variant.FULL)["Current Work"]
    assert "NOT" not in current
    assert "- The last commit: 2b3c4d5 at 11:30, pushed." in current
    assert "- Nothing was changed since that commit." in current


def test_a_commit_that_failed_is_the_next_thing_to_put_right() -> None:
    session = make_session()
    session.run("git commit -am 'Log'", "Exit code 1\ncredo: error: function too complex", is_error=True)
    sections = split_sections(build_extractive_summary(session.entries), Variant.FULL)
    assert '- The last attempt to commit failed: "credo: error: function too complex".' in sections["Current Work"]
    assert "function too complex" in sections["Optional Next Step"]
