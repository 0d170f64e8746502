"""Work is read once and in order: who said what, what was done, and what came back."""

from compaction.activity.tool_calls import ToolCall, read_activity, replay
from compaction.transcripts.entries import Entry
from tests.compaction.compactors.sessions import Session, make_session
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


def test_replay_yields_every_entry_after_the_tool_calls_it_requests() -> None:
    session = Session()
    session.say("go")
    session.answer("m1", request("a", "Bash", command="one"), request("b", "Bash", command="two"))
    session.say([result("a", "first"), result("b", "second")])
    steps = list(replay(session.entries, read_activity(session.entries)))
    assert [index for index, _ in steps] == [0, 1, 1, 1, 2]
    calls = [step for _, step in steps if isinstance(step, ToolCall)]
    assert [(call.command, call.output) for call in calls] == [("one", "first"), ("two", "second")]
    assert [step for _, step in steps if not isinstance(step, ToolCall)] == list(session.entries)
    assert isinstance(steps[3][1], Entry)
