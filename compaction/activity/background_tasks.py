"""Background agents and commands of a stretch of transcript: their state, and whether the agent saw the result."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.activity.tool_calls import Activity, ToolCall
from compaction.transcripts.client_protocol import AGENT_TOOLS, TASK_ID, TASK_STATUS, AttachmentKind, ToolName
from compaction.transcripts.entries import Entry, TextBlock
from compaction.transcripts.json_fields import get_fields, get_text
from compaction.transcripts.payloads import Attachment

_AGENT_ID = re.compile(r"\bagentId: ?([\w-]{1,64})")
_NOTICE = re.compile(
    rf"<{TASK_ID}>([^<\n]{{1,64}})</{TASK_ID}>.{{0,2000}}?<{TASK_STATUS}>(\w{{1,20}})</{TASK_STATUS}>", re.DOTALL
)
_READERS = frozenset({ToolName.TASK_OUTPUT, ToolName.AGENT_OUTPUT, ToolName.BASH_OUTPUT, ToolName.TASK_GET})
_STOPPERS = frozenset({ToolName.KILL_SHELL, ToolName.KILL_BASH, ToolName.TASK_STOP})
RUNNING_STATES = frozenset({"running", "async_launched", "pending", "in_progress"})


@dataclass(frozen=True, slots=True)
class BackgroundTask:
    """One task: its id, what it is about, its last known state, and whether its result was looked at since."""

    task_id: str
    about: str
    state: str
    is_read: bool
    place: int

    @property
    def is_over(self) -> bool:
        """Return whether it ended and its result was read."""
        return self.state not in RUNNING_STATES and self.is_read

    @property
    def is_running(self) -> bool:
        """Return whether it had not ended."""
        return self.state in RUNNING_STATES


def list_background_tasks(entries: Sequence[Entry], work: Activity) -> tuple[BackgroundTask, ...]:
    """Every task that was sent to the background, in order of its start."""
    tasks: dict[str, BackgroundTask] = {}
    steps: list[tuple[int, ToolCall | Entry]] = [(action.place, action) for action in work.actions]
    steps += list(enumerate(entries))
    for place, step in sorted(steps, key=lambda item: item[0]):
        if isinstance(step, ToolCall):
            _follow_action(tasks, step)
        else:
            _follow_line(tasks, step)
            if step.type == "assistant":
                _mark_read(tasks, place)
    return tuple(tasks.values())


def _follow_action(tasks: dict[str, BackgroundTask], action: ToolCall) -> None:
    arguments = action.use.input
    named = next(
        (text for key in ("task_id", "agentId", "bash_id", "shell_id") if (text := get_text(arguments, key))), None
    )
    if named in tasks and named is not None:
        if action.name in _STOPPERS and not action.is_refused:
            tasks[named] = replace(tasks[named], state="stopped", is_read=True, place=action.place)
        elif action.name in _READERS:
            state = get_text(action.details, "status") or get_text(get_fields(action.details, "task"), "status")
            tasks[named] = replace(tasks[named], state=state or tasks[named].state, is_read=True, place=action.place)
        return
    task_id = _find_task_id(action)
    if task_id is not None:
        about = get_text(arguments, "description") or get_text(arguments, "command") or action.name
        tasks[task_id] = BackgroundTask(task_id, about, "running", is_read=False, place=action.place)


def _find_task_id(action: ToolCall) -> str | None:
    """The id under which a request went to the background; None where it was waited for."""
    details = action.details
    if background := get_text(details, "backgroundTaskId"):
        return background
    is_background = action.use.input.get("run_in_background") is True or details.get("isAsync") is True
    if action.name not in AGENT_TOOLS or not is_background or action.is_refused:
        return None
    found = _AGENT_ID.search(action.output)
    return get_text(details, "agentId") or (found[1] if found else None)


def _follow_line(tasks: dict[str, BackgroundTask], entry: Entry) -> None:
    """Notices of the client that a task changed its state."""
    if isinstance(entry.payload, Attachment):
        attachment = get_fields(entry.fields, "attachment")
        if entry.payload.kind == AttachmentKind.TASK_STATUS:
            task_id, state = get_text(attachment, "taskId"), get_text(attachment, "status") or "running"
            if task_id is not None:
                about = get_text(attachment, "description") or task_id
                tasks[task_id] = BackgroundTask(task_id, about, state, is_read=False, place=-1)
        elif entry.payload.kind == AttachmentKind.QUEUED_COMMAND:
            _take_notice(tasks, get_text(attachment, "prompt") or "")
    elif entry.type == "user" and entry.message is not None:
        for block in entry.message.content:
            if isinstance(block, TextBlock) and f"<{TASK_ID}>" in block.text:
                _take_notice(tasks, block.text)


def _take_notice(tasks: dict[str, BackgroundTask], text: str) -> None:
    for task_id, state in _NOTICE.findall(text):
        if task_id in tasks:
            tasks[task_id] = replace(tasks[task_id], state=state, is_read=False)


def _mark_read(tasks: dict[str, BackgroundTask], place: int) -> None:
    """The agent spoke after the notice, so it has seen it."""
    for task_id, task in tasks.items():
        if task.state not in RUNNING_STATES and not task.is_read:
            tasks[task_id] = replace(task, is_read=True, place=place)
