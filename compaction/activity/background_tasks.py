"""Background agents and commands of a stretch of transcript: their state, and whether the agent read the result."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.activity.tool_calls import Activity, ToolCall, replay
from compaction.transcripts.client_protocol import AGENT_TOOLS, TASK_ID, TASK_STATUS, AttachmentKind, ToolName
from compaction.transcripts.entries import Entry, TextBlock
from compaction.transcripts.json_fields import get_fields, get_text
from compaction.transcripts.payloads import Attachment

_AGENT_ID = re.compile(r"\bagentId: ?([\w-]{1,64})")
_NOTIFICATION = re.compile(
    rf"<{TASK_ID}>([^<\n]{{1,64}})</{TASK_ID}>.{{0,2000}}?<{TASK_STATUS}>(\w{{1,20}})</{TASK_STATUS}>", re.DOTALL
)
_READERS = frozenset({ToolName.TASK_OUTPUT, ToolName.AGENT_OUTPUT, ToolName.BASH_OUTPUT, ToolName.TASK_GET})
_STOPPERS = frozenset({ToolName.KILL_SHELL, ToolName.KILL_BASH, ToolName.TASK_STOP})
_ID_KEYS = ("task_id", "agentId", "bash_id", "shell_id")
_RUNNING_STATES = frozenset({"running", "async_launched", "pending", "in_progress"})


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """One task: its id, its description, its last state, and whether the agent read its result since."""

    task_id: str
    about: str
    state: str
    is_read: bool
    entry_index: int  # of the last change; -1 where only a notification of the client names it

    @property
    def is_over(self) -> bool:
        """Return whether the task ended and its result was read."""
        return not self.is_running and self.is_read

    @property
    def is_running(self) -> bool:
        """Return whether the task had not ended."""
        return self.state in _RUNNING_STATES


def list_background_tasks(entries: Sequence[Entry], activity: Activity) -> tuple[BackgroundTask, ...]:
    """Return every task that was sent to the background, in order of its start."""
    tasks: dict[str, BackgroundTask] = {}
    for index, step in replay(entries, activity):
        if isinstance(step, ToolCall):
            _apply_tool_call(tasks, step)
        else:
            _apply_entry(tasks, step)
            if step.type == "assistant":
                _mark_read(tasks, index)
    return tuple(tasks.values())


def _apply_tool_call(tasks: dict[str, BackgroundTask], tool_call: ToolCall) -> None:
    arguments, index = tool_call.use.input, tool_call.entry_index
    named = next((text for key in _ID_KEYS if (text := get_text(arguments, key))), None)
    if named in tasks and named is not None:
        if tool_call.name in _STOPPERS and not tool_call.is_error:
            tasks[named] = replace(tasks[named], state="stopped", is_read=True, entry_index=index)
        elif tool_call.name in _READERS:
            details = tool_call.details
            state = get_text(details, "status") or get_text(get_fields(details, "task"), "status")
            tasks[named] = replace(tasks[named], state=state or tasks[named].state, is_read=True, entry_index=index)
        return
    task_id = _find_task_id(tool_call)
    if task_id is not None:
        about = get_text(arguments, "description") or get_text(arguments, "command") or tool_call.name
        tasks[task_id] = BackgroundTask(task_id, about, "running", is_read=False, entry_index=index)


def _find_task_id(tool_call: ToolCall) -> str | None:
    """Return the id under which a request went to the background; None where the agent waited for its result."""
    details = tool_call.details
    if background := get_text(details, "backgroundTaskId"):
        return background
    is_background = tool_call.use.input.get("run_in_background") is True or details.get("isAsync") is True
    if tool_call.name not in AGENT_TOOLS or not is_background or tool_call.is_error:
        return None
    printed = _AGENT_ID.search(tool_call.output)
    return get_text(details, "agentId") or (printed[1] if printed else None)


def _apply_entry(tasks: dict[str, BackgroundTask], entry: Entry) -> None:
    """Read the client's notifications that a task changed its state."""
    if isinstance(entry.payload, Attachment):
        if entry.payload.kind == AttachmentKind.TASK_STATUS:
            attachment = get_fields(entry.fields, "attachment")
            task_id, state = get_text(attachment, "taskId"), get_text(attachment, "status") or "running"
            if task_id is not None:
                about = get_text(attachment, "description") or task_id
                tasks[task_id] = BackgroundTask(task_id, about, state, is_read=False, entry_index=-1)
        elif entry.payload.kind == AttachmentKind.QUEUED_COMMAND:
            _apply_notification(tasks, get_text(get_fields(entry.fields, "attachment"), "prompt") or "")
    elif entry.type == "user" and entry.message is not None:
        for block in entry.message.content:
            if isinstance(block, TextBlock) and f"<{TASK_ID}>" in block.text:
                _apply_notification(tasks, block.text)


def _apply_notification(tasks: dict[str, BackgroundTask], text: str) -> None:
    for task_id, state in _NOTIFICATION.findall(text):
        if task_id in tasks:
            tasks[task_id] = replace(tasks[task_id], state=state, is_read=False)


def _mark_read(tasks: dict[str, BackgroundTask], index: int) -> None:
    """Mark results as read: the agent wrote something after the notification."""
    for task_id, task in tasks.items():
        if not task.is_running and not task.is_read:
            tasks[task_id] = replace(task, is_read=True, entry_index=index)
