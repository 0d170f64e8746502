"""The todo list at the end of a stretch of transcript, from whole lists and from changes of single tasks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compaction.activity.tool_calls import Activity, ToolCall, replay
from compaction.transcripts.client_protocol import TODO_ATTACHMENTS, ToolName
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_fields, get_items, get_text
from compaction.transcripts.payloads import Attachment

CLOSED_STATES = frozenset({"completed", "done", "cancelled", "deleted"})
_CREATED = re.compile(r"Task #([^\s:]{1,40}) created")
_LISTED = re.compile(r"^#([^\s\[]{1,40}) \[(\w{1,20})\] (.{1,500})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Todo:
    """One item, with the entry that last changed it."""

    text: str
    state: str
    entry_uuid: str | None
    number: str | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the item is still to be done."""
        return self.state not in CLOSED_STATES

    @property
    def key(self) -> str:
        """The number of a task, else the text."""
        return f"#{self.number}" if self.number else self.text


def read_todos(entries: Sequence[Entry], activity: Activity) -> tuple[Todo, ...]:
    """Return the list after its last change, in its own order. Later whole lists replace earlier ones."""
    todos: dict[str, Todo] = {}
    for _, step in replay(entries, activity):
        todos = _apply_tool_call(todos, step) if isinstance(step, ToolCall) else _apply_entry(todos, step)
    return tuple(todo for todo in todos.values() if todo.state != "deleted")


def _apply_entry(todos: dict[str, Todo], entry: Entry) -> dict[str, Todo]:
    """Return the whole list that a reminder or a user line carries, else the list before it."""
    if entry.type == "attachment":
        if not isinstance(entry.payload, Attachment) or entry.payload.kind not in TODO_ATTACHMENTS:
            return todos
    elif entry.type != "user" or not get_items(entry.fields, "todos"):
        return todos
    items = get_items(entry.fields, "todos") or get_items(get_fields(entry.fields, "attachment"), "content")
    return _read_list(todos, items, entry.uuid)


def _apply_tool_call(todos: dict[str, Todo], tool_call: ToolCall) -> dict[str, Todo]:
    if tool_call.is_error:
        return todos
    uuid = tool_call.entry.uuid
    match tool_call.name:
        case ToolName.TODO_WRITE:
            return _read_list(todos, get_items(tool_call.use.input, "todos"), uuid, is_whole=True)
        case ToolName.TASK_CREATE:
            return _create_task(todos, tool_call)
        case ToolName.TASK_UPDATE:
            return _update_task(todos, tool_call.use.input, uuid)
        case ToolName.TASK_LIST:
            listed = [Todo(text, state, uuid, number) for number, state, text in _LISTED.findall(tool_call.output)]
            return {todo.key: _choose_cited(todos, todo) for todo in listed} or todos
        case _:
            return todos


def _read_list(
    todos: dict[str, Todo], items: Sequence[object], uuid: str | None, *, is_whole: bool = False
) -> dict[str, Todo]:
    listed: dict[str, Todo] = {}
    for item in items:
        if not isinstance(item, Mapping):
            continue
        text = get_text(item, "content") or get_text(item, "subject")
        if text:
            number = get_text(item, "id") if "subject" in item else None
            todo = Todo(text, get_text(item, "status") or "pending", uuid, number)
            listed[todo.key] = _choose_cited(todos, todo)
    return listed if listed or is_whole else todos


def _choose_cited(todos: dict[str, Todo], todo: Todo) -> Todo:
    """Return the previous item where nothing changed, so that it cites the entry of its last change."""
    previous = todos.get(todo.key)
    is_same = previous is not None and (previous.text, previous.state) == (todo.text, todo.state)
    return previous if previous is not None and is_same else todo


def _create_task(todos: dict[str, Todo], tool_call: ToolCall) -> dict[str, Todo]:
    text = get_text(tool_call.use.input, "subject") or get_text(tool_call.use.input, "description")
    if not text:
        return todos
    created = _CREATED.search(tool_call.output)
    number = created[1] if created else get_text(get_fields(tool_call.details, "task"), "id") or str(len(todos) + 1)
    return {**todos, f"#{number}": Todo(text, "pending", tool_call.entry.uuid, number)}


def _update_task(todos: dict[str, Todo], change: Mapping[str, object], uuid: str | None) -> dict[str, Todo]:
    previous = todos.get(f"#{get_text(change, 'taskId')}")
    if previous is None:
        return todos
    todo = replace(
        previous,
        text=get_text(change, "subject") or previous.text,
        state=get_text(change, "status") or previous.state,
        entry_uuid=uuid,
    )
    return {**todos, f"#{todo.number}": todo}
