"""The todo list is what the last change left of it."""

from compaction.activity.todos import read_todos
from compaction.activity.tool_calls import read_activity
from tests.compaction.compactors.sessions import Session


def list_todos(session: Session) -> list[tuple[str, str]]:
    return [(todo.text, todo.state) for todo in read_todos(session.entries, read_activity(session.entries))]


def test_a_later_whole_list_replaces_an_earlier_one() -> None:
    session = Session()
    session.do("TodoWrite", todos=[{"content": "a", "status": "pending"}, {"content": "b", "status": "pending"}])
    session.do("TodoWrite", todos=[{"content": "b", "status": "completed"}])
    assert list_todos(session) == [("b", "completed")]


def test_an_emptied_list_is_empty_and_a_refused_change_changes_nothing() -> None:
    session = Session()
    session.do("TodoWrite", todos=[{"content": "a", "status": "pending"}])
    session.do("TodoWrite", "no", todos=[], is_error=True)
    assert list_todos(session) == [("a", "pending")]
    session.do("TodoWrite", todos=[])
    assert list_todos(session) == []


def test_single_tasks_are_created_changed_listed_and_deleted() -> None:
    session = Session()
    session.do("TaskCreate", "Task #1 created successfully: one", subject="one")
    session.do("TaskCreate", "ok", details={"task": {"id": "7", "subject": "seven"}}, subject="seven")
    session.do("TaskUpdate", taskId="1", status="in_progress")
    assert list_todos(session) == [("one", "in_progress"), ("seven", "pending")]
    session.do("TaskUpdate", taskId="7", status="deleted")
    session.do("TaskUpdate", taskId="99", status="completed")
    assert list_todos(session) == [("one", "in_progress")]
    session.do("TaskList", "#1 [completed] one\n#2 [pending] two")
    assert list_todos(session) == [("one", "completed"), ("two", "pending")]


def test_reminders_and_user_lines_that_carry_the_list_count() -> None:
    session = Session()
    session.attach_fields("todo_reminder", content=[{"content": "a", "status": "pending"}, "noise", {"status": "x"}])
    assert list_todos(session) == [("a", "pending")]
    session.say("hi", todos=[{"content": "b", "status": "in_progress"}])
    assert list_todos(session) == [("b", "in_progress")]
    session.attach_fields("task_reminder", content=[{"id": "3", "subject": "c", "status": "completed"}])
    assert list_todos(session) == [("c", "completed")]


def test_an_unchanged_item_cites_the_entry_that_first_said_so() -> None:
    session = Session()
    session.do("TodoWrite", todos=[{"content": "a", "status": "pending"}])
    first = session.entries[0].uuid
    session.do("TodoWrite", todos=[{"content": "a", "status": "pending"}])
    (todo,) = read_todos(session.entries, read_activity(session.entries))
    assert todo.entry_uuid == first
