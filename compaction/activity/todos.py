"""The todo list as it stands at the end of a stretch of transcript, from whole lists and from single task changes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compaction.activity.tool_calls import Activity, ToolCall
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
        """Still to be done."""
        return self.state not in CLOSED_STATES


def read_todos(entries: Sequence[Entry], work: Activity) -> tuple[Todo, ...]:
    """The list after the last change, in its own order. Later whole lists replace earlier ones."""
    changes: list[tuple[int, Entry | ToolCall]] = [(action.place, action) for action in work.actions]
    changes += [(place, entry) for place, entry in enumerate(entries) if _carries_list(entry)]
    todos: dict[str, Todo] = {}
    for _, change in sorted(changes, key=lambda item: item[0]):
        todos = _apply_action(todos, change) if isinstance(change, ToolCall) else _read_line(todos, change)
    return tuple(todo for todo in todos.values() if todo.state != "deleted")


def _carries_list(entry: Entry) -> bool:
    if entry.type == "attachment":
        return isinstance(entry.payload, Attachment) and entry.payload.kind in TODO_ATTACHMENTS
    return entry.type == "user" and bool(get_items(entry.fields, "todos"))


def _read_line(todos: dict[str, Todo], entry: Entry) -> dict[str, Todo]:
    """The whole list that a reminder or a user line carries."""
    items = get_items(entry.fields, "todos") or get_items(get_fields(entry.fields, "attachment"), "content")
    return _read_list(todos, items, entry.uuid)


def _apply_action(todos: dict[str, Todo], action: ToolCall) -> dict[str, Todo]:
    if action.is_refused:
        return todos
    uuid = action.entry.uuid
    match action.name:
        case ToolName.TODO_WRITE:
            return _read_list(todos, get_items(action.use.input, "todos"), uuid, is_whole=True)
        case ToolName.TASK_CREATE:
            return _create_task(todos, action)
        case ToolName.TASK_UPDATE:
            return _update_task(todos, action.use.input, uuid)
        case ToolName.TASK_LIST:
            listed = [Todo(text, state, uuid, number) for number, state, text in _LISTED.findall(action.output)]
            return {f"#{todo.number}": _keep_origin(todos, todo) for todo in listed} or todos
        case _:
            return todos


def _read_list(
    todos: dict[str, Todo], items: Sequence[object], uuid: str | None, *, is_whole: bool = False
) -> dict[str, Todo]:
    read: dict[str, Todo] = {}
    for item in items:
        if not isinstance(item, Mapping):
            continue
        text = get_text(item, "content") or get_text(item, "subject")
        if text:
            number = get_text(item, "id") if "subject" in item else None
            todo = Todo(text, get_text(item, "status") or "pending", uuid, number)
            read[f"#{number}" if number else text] = _keep_origin(todos, todo)
    return read if read or is_whole else todos


def _keep_origin(todos: dict[str, Todo], todo: Todo) -> Todo:
    """The item as known before when nothing about it changed, so that the entry cited is the one that said so."""
    known = todos.get(f"#{todo.number}" if todo.number else todo.text)
    same = known is not None and (known.text, known.state) == (todo.text, todo.state)
    return known if known is not None and same else todo


def _create_task(todos: dict[str, Todo], action: ToolCall) -> dict[str, Todo]:
    text = get_text(action.use.input, "subject") or get_text(action.use.input, "description")
    if not text:
        return todos
    created = _CREATED.search(action.output)
    number = created[1] if created else get_text(get_fields(action.details, "task"), "id") or str(len(todos) + 1)
    return {**todos, f"#{number}": Todo(text, "pending", action.entry.uuid, number)}


def _update_task(todos: dict[str, Todo], change: Mapping[str, object], uuid: str | None) -> dict[str, Todo]:
    known = todos.get(f"#{get_text(change, 'taskId')}")
    if known is None:
        return todos
    changed = replace(
        known,
        text=get_text(change, "subject") or known.text,
        state=get_text(change, "status") or known.state,
        entry_uuid=uuid,
    )
    return {**todos, f"#{known.number}": changed}
