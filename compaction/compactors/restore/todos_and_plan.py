"""Todos, the plan and plan mode: what comes back of what was meant to be done."""

from collections.abc import Sequence

from compaction.activity.plans import PlanState, read_plan
from compaction.activity.todos import Todo, read_todos
from compaction.activity.tool_calls import Activity, read_activity
from compaction.compactors.outcome import RestoredItem, RestoredKind
from compaction.compactors.restore.budget import make_attachment_entry, restore, skip
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry

_TODO_HEAD = "The todo list as it stood before the conversation was compacted:"
_PLAN_HEAD = "The plan for this work, whole"
_MODE_TEXT = (
    "Plan mode is still on: look, read and think, write nothing but the plan, "
    "and ask for approval before anything is changed."
)


def restore_todos(entries: Sequence[Entry], kept: Sequence[Entry], work: Activity) -> list[RestoredItem]:
    """The whole list, unless it still stands in what is kept."""
    todos = read_todos(entries, work)
    if not todos:
        return []
    name = f"{len(todos)} todos"
    if read_todos(kept, read_activity(kept)) == todos:
        return [skip(RestoredKind.TODOS, name, "The list stands in the messages that were kept.", code="still_visible")]
    lines = "\n".join(_write_todo(todo) for todo in todos)
    content = [{"content": todo.text, "status": todo.state} | _number(todo) for todo in todos]
    attachment = {"content": content, "itemCount": len(todos), "context": "post-compact"}
    return [
        restore(
            RestoredKind.TODOS, name, make_attachment_entry(AttachmentKind.TODO, f"{_TODO_HEAD}\n{lines}", attachment)
        )
    ]


def restore_plan(entries: Sequence[Entry], kept: Sequence[Entry], work: Activity) -> list[RestoredItem]:
    """The plan whole, and plan mode while it is on."""
    state = read_plan(entries, work)
    items = []
    if state.text:
        items.append(_restore_text(state, read_plan(kept, read_activity(kept))))
    if state.is_mode_on:
        items.append(
            restore(
                RestoredKind.PLAN_MODE,
                "plan mode",
                make_attachment_entry(AttachmentKind.PLAN_MODE, _MODE_TEXT, {"reminderType": "full"}),
            )
        )
    return items


def _restore_text(state: PlanState, kept: PlanState) -> RestoredItem:
    name = state.path or "plan"
    if kept.text == state.text:
        return skip(RestoredKind.PLAN, name, "The plan stands in the messages that were kept.", code="still_visible")
    head = f"{_PLAN_HEAD} ({state.path}):" if state.path else f"{_PLAN_HEAD}:"
    attachment = {"planFilePath": state.path or "", "planContent": state.text}
    return restore(
        RestoredKind.PLAN, name, make_attachment_entry(AttachmentKind.PLAN_FILE, f"{head}\n{state.text}", attachment)
    )


def _write_todo(todo: Todo) -> str:
    number = f"#{todo.number} " if todo.number else ""
    return f"- {number}[{todo.state}] {todo.text}"


def _number(todo: Todo) -> dict[str, str]:
    return {"id": todo.number, "subject": todo.text} if todo.number else {}
