"""Failures with their lines, what came next, and whether they were resolved."""

import pytest

from compaction.activity.excerpts import describe_tool_call
from compaction.activity.failures import read_failure, read_failures
from compaction.activity.tool_calls import read_activity
from tests.compaction.compactors.sessions import ROOT, Session, make_session


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
