"""Work is read once and in order: who said what, what was done, and what came back."""

import pytest

from compaction.activity.commits_and_checks import list_commits
from compaction.activity.constraints import list_constraints
from compaction.activity.excerpts import (
    cut_middle,
    cut_text,
    describe_tool_call,
    is_read_only,
    shorten_path,
    trim_command,
)
from compaction.activity.failures import read_failure, read_failures
from compaction.activity.tool_calls import read_activity
from compaction.compactors.extractive.current_state import list_commands, list_recent_tool_calls, list_symbols
from tests.compaction.compactors.sessions import ROOT, Session, make_session
from tests.compaction.making import request, result


def test_actions_carry_their_results_also_when_these_come_interleaved_or_late() -> None:
    session = Session()
    session.say("go")
    session.answer("m1", request("a", "Bash", command="one"))
    session.answer("m1", request("b", "Bash", command="two"))
    session.say([result("b", "second")])
    session.remark("meanwhile")
    session.say([result("a", "first")])
    activity = read_activity(session.entries)
    assert [(action.command, action.output, action.turn) for action in activity.tool_calls] == [
        ("one", "first", 1),
        ("two", "second", 1),
    ]


def test_a_request_without_result_and_a_cleared_result_have_no_output() -> None:
    session = Session()
    session.run("make", "[Old tool result content cleared]")
    session.answer("m", request("open", "Bash", command="make"))
    assert [action.output for action in read_activity(session.entries).tool_calls] == ["", ""]


def test_turns_are_counted_by_prompts_and_not_by_words_typed_meanwhile() -> None:
    session = make_session()
    session.attach_fields("queued_command", prompt="hurry")
    activity = read_activity(session.entries)
    assert activity.last_turn == 2
    assert [said.turn for said in activity.user_messages] == [1, 2, 2]


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


def test_failures_are_told_with_what_followed_and_whether_it_went_through() -> None:
    activity = read_activity(make_session().entries)
    (failure,) = read_failures(activity)
    assert failure.lines == ("E   AttributeError: 'NoneType' object has no attribute 'user'", "1 failed")
    assert failure.next_text is not None
    assert failure.next_text.text.startswith("The guard is in the wrong place")
    assert [describe_tool_call(action, ROOT) for action in failure.next_tool_calls] == [
        "edited login.py",
        "ran `make test`",
    ]
    assert failure.is_resolved
    assert failure.entry_uuid in {entry.uuid for entry in make_session().entries}


@pytest.mark.parametrize(
    ("command", "output", "is_error", "fails"),
    [
        ("make test", "12 passed, 0 failed", False, False),
        ("make test", "3 failed", False, True),
        ("grep -r error .", "error: in a text", False, False),
        ("cargo build", "error[E0502]: cannot borrow", False, True),
        ("true", "Exit code 1", True, True),
        ("mix test", "14 doctests, 297 tests, 0 failures", False, False),
    ],
)
def test_failure_is_what_the_output_says_of_commands_that_do_something(
    command: str, output: str, *, is_error: bool, fails: bool
) -> None:
    session = Session()
    session.run(command, output, is_error=is_error)
    assert bool(read_failure(read_activity(session.entries).tool_calls[0])) is fails


def test_a_persons_refusal_is_no_failure_and_a_slip_put_right_is_marked() -> None:
    session = Session()
    session.do("Edit", "rejected; the user said:\nno", file_path="/a", is_error=True)
    session.do("Edit", "<tool_use_error>String to replace not found</tool_use_error>", file_path="/b", is_error=True)
    session.edit("/b", "x", "y")
    (failure,) = read_failures(read_activity(session.entries))
    assert failure.is_corrected_request


def test_the_same_failure_again_is_counted_and_cited_where_it_was_last() -> None:
    session = Session()
    for number in range(3):
        last = session.run("make", f"error: line {number} is bad")
    (failure,) = read_failures(read_activity(session.entries))
    assert (failure.times, failure.entry_uuid, failure.is_resolved) == (3, last.uuid, False)


def test_last_work_names_commands_and_symbols_of_the_last_turns_newest_first() -> None:
    actions = list_recent_tool_calls(read_activity(make_session().entries))
    assert [trace.text for trace in list_commands(actions)] == [
        "git add -A && git commit -m 'Guard the token'",
        "make test",
    ]
    assert [trace.text for trace in list_symbols(actions)] == ["test_empty_token"]


def test_work_of_more_than_three_turns_ago_is_not_last_work() -> None:
    session = make_session()
    for _ in range(3):
        session.say("and now something else")
    assert list_recent_tool_calls(read_activity(session.entries)) == ()


def test_commits_are_those_git_confirmed() -> None:
    session = make_session()
    session.run("git commit -m 'blocked'", "Pre-commit failed: error: lint", is_error=True)
    assert [(commit.revision, commit.subject) for commit in list_commits(read_activity(session.entries))] == [
        ("1a2b3c4", "Guard the token")
    ]


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
