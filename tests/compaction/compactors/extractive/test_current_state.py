"""The last commands and names are those of the last turns, newest first."""

from compaction.activity.tool_calls import read_activity
from compaction.compactors.extractive.current_state import list_commands, list_recent_tool_calls, list_symbols
from tests.compaction.compactors.sessions import make_session


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
