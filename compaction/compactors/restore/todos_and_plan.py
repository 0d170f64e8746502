"""Restores the todo list, the plan and plan mode."""

from collections.abc import Sequence

from compaction.activity.plans import PlanState, read_plan
from compaction.activity.todos import Todo, read_todos
from compaction.activity.tool_calls import Activity, read_activity
from compaction.compactors.restore.items import (
    RestoredItem,
    RestoredKind,
    build_attachment_entry,
    build_restored_item,
    build_skipped_item,
)
from compaction.transcripts.client_protocol import AttachmentKind
from compaction.transcripts.entries import Entry

_TODO_HEAD = "The todo list as it stood before the conversation was compacted:"
_PLAN_HEAD = "The plan for this work, whole"
_MODE_TEXT = (
    "Plan mode is still on: look, read and think, write nothing but the plan, "
    "and ask for approval before anything is changed."
)


def restore_todos(entries: Sequence[Entry], kept: Sequence[Entry], activity: Activity) -> list[RestoredItem]:
    """Return the whole list; it is skipped if the kept messages still show it."""
    todos = read_todos(entries, activity)
    if not todos:
        return []
    name = f"{len(todos)} todos"
    if read_todos(kept, read_activity(kept)) == todos:
        reason = "The list is still visible in the messages that were kept."
        return [build_skipped_item(RestoredKind.TODOS, name, reason, code="still_visible")]
    lines = "\n".join(_format_todo(todo) for todo in todos)
    content = [{"content": todo.text, "status": todo.state} | _list_number_fields(todo) for todo in todos]
    attachment = {"content": content, "itemCount": len(todos), "context": "post-compact"}
    entry = build_attachment_entry(AttachmentKind.TODO, f"{_TODO_HEAD}\n{lines}", attachment)
    return [build_restored_item(RestoredKind.TODOS, name, entry)]


def restore_plan(entries: Sequence[Entry], kept: Sequence[Entry], activity: Activity) -> list[RestoredItem]:
    """Return the plan uncut, and plan mode while it is on."""
    state = read_plan(entries, activity)
    items = []
    if state.text:
        items.append(_restore_plan_text(state, read_plan(kept, read_activity(kept))))
    if state.is_mode_on:
        entry = build_attachment_entry(AttachmentKind.PLAN_MODE, _MODE_TEXT, {"reminderType": "full"})
        items.append(build_restored_item(RestoredKind.PLAN_MODE, "plan mode", entry))
    return items


def _restore_plan_text(state: PlanState, kept: PlanState) -> RestoredItem:
    name = state.path or "plan"
    if kept.text == state.text:
        reason = "The plan is still visible in the messages that were kept."
        return build_skipped_item(RestoredKind.PLAN, name, reason, code="still_visible")
    head = f"{_PLAN_HEAD} ({state.path}):" if state.path else f"{_PLAN_HEAD}:"
    attachment = {"planFilePath": state.path or "", "planContent": state.text}
    entry = build_attachment_entry(AttachmentKind.PLAN_FILE, f"{head}\n{state.text}", attachment)
    return build_restored_item(RestoredKind.PLAN, name, entry)


def _format_todo(todo: Todo) -> str:
    number = f"#{todo.number} " if todo.number else ""
    return f"- {number}[{todo.state}] {todo.text}"


def _list_number_fields(todo: Todo) -> dict[str, str]:
    return {"id": todo.number, "subject": todo.text} if todo.number else {}
