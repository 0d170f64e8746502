"""The plan of a session and whether plan mode is on, from approvals, plan files and the client's attachments."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.activity.tool_calls import Activity, ToolCall, replay
from compaction.transcripts.client_protocol import FILE_EDITORS, FILE_WRITERS, AttachmentKind, ToolName
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_fields, get_text
from compaction.transcripts.payloads import Attachment

PLAN_FOLDER = "/.claude/plans/"  # where the client keeps plan files
_MODE_ON = frozenset({AttachmentKind.PLAN_MODE, AttachmentKind.PLAN_MODE_REENTRY})
_MODE_OFF = frozenset({AttachmentKind.PLAN_MODE_EXIT})


@dataclass(frozen=True, slots=True)
class PlanState:
    """The newest plan, its file where one is named, and the mode."""

    text: str = ""
    path: str | None = None
    is_mode_on: bool = False


def read_plan(entries: Sequence[Entry], activity: Activity) -> PlanState:
    """Return the state after the last of these entries."""
    state = PlanState()
    for _, step in replay(entries, activity):
        state = _apply_tool_call(state, step) if isinstance(step, ToolCall) else _apply_entry(state, step)
    return state


def _apply_tool_call(state: PlanState, tool_call: ToolCall) -> PlanState:
    arguments = tool_call.use.input
    if tool_call.name == ToolName.ENTER_PLAN_MODE and not tool_call.is_error:
        return replace(state, is_mode_on=True)
    if tool_call.name == ToolName.EXIT_PLAN_MODE:
        plan = get_text(arguments, "plan") or get_text(tool_call.details, "plan") or state.text
        path = get_text(arguments, "planFilePath") or get_text(tool_call.details, "filePath") or state.path
        # A refused exit leaves the mode on, but the plan was written all the same.
        return PlanState(plan, path, is_mode_on=state.is_mode_on and tool_call.is_error)
    if tool_call.path and PLAN_FOLDER in tool_call.path and not tool_call.is_error:
        if tool_call.name in FILE_WRITERS:
            return replace(state, text=get_text(arguments, "content") or state.text, path=tool_call.path)
        if tool_call.name in FILE_EDITORS:
            old, new = get_text(arguments, "old_string") or "", get_text(arguments, "new_string") or ""
            return replace(state, text=state.text.replace(old, new, 1) if old else state.text, path=tool_call.path)
    return state


def _apply_entry(state: PlanState, entry: Entry) -> PlanState:
    if isinstance(entry.payload, Attachment):
        attachment = get_fields(entry.fields, "attachment")
        if entry.payload.kind == AttachmentKind.PLAN_FILE:
            text = get_text(attachment, "planContent") or state.text
            return replace(state, text=text, path=get_text(attachment, "planFilePath") or state.path)
        if entry.payload.kind in _MODE_ON | _MODE_OFF:
            return replace(state, is_mode_on=entry.payload.kind in _MODE_ON)
        return state
    if entry.type not in ("user", "permission-mode"):
        return state
    if content := get_text(entry.fields, "planContent"):
        state = replace(state, text=content)
    mode = get_text(entry.fields, "permissionMode")
    return state if mode is None else replace(state, is_mode_on=mode == "plan")
