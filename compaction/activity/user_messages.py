"""Messages of people: prompts, commands, answers to questions, reasons for refusals.

What the client writes into the same lines for the model (reminders, command output, notifications) is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compaction.transcripts.client_protocol import TASK_NOTIFICATION, AttachmentKind, ToolName
from compaction.transcripts.entries import Entry, ToolResultBlock
from compaction.transcripts.json_fields import get_fields, get_items, get_text
from compaction.transcripts.payloads import Attachment
from compaction.transcripts.user_lines import UserLineKind, classify_entry, strip_machine_text

_REASON_OPENING = "the user said:\n"  # what the client writes before the reason for a refused tool request


class UserMessageKind(StrEnum):
    """How a message was given."""

    PROMPT = "prompt"
    COMMAND = "command"
    QUEUED = "typed while the agent worked"
    ANSWER = "answer to a question"
    REASON = "reason for a refusal"


@dataclass(frozen=True, slots=True)
class UserMessage:
    """One message, whole, with its turn and the index of its entry."""

    text: str
    kind: UserMessageKind
    entry_uuid: str | None
    at: datetime | None
    turn: int
    entry_index: int


def read_prompt(entry: Entry) -> tuple[str, UserMessageKind] | None:
    """Return the message in a user line or a queued prompt; None where a person wrote nothing."""
    if entry.type == "attachment":
        return _read_queued(entry)
    line = classify_entry(entry)
    if line is None or not line.text or line.is_bare_client_command:
        return None
    is_command = line.kind is UserLineKind.COMMAND and line.text.startswith("/")
    return line.text, UserMessageKind.COMMAND if is_command else UserMessageKind.PROMPT


def read_reply(tool_name: str, result: ToolResultBlock) -> tuple[str, UserMessageKind] | None:
    """Return the message in a tool result: an answer to a question, or the reason for a refusal."""
    text = result.text
    if tool_name == ToolName.ASK_USER_QUESTION and text.strip():
        return text.strip(), UserMessageKind.ANSWER
    if result.is_error and _REASON_OPENING in text:
        reason = strip_machine_text(text.partition(_REASON_OPENING)[2])
        return (reason, UserMessageKind.REASON) if reason else None
    return None


def _read_queued(entry: Entry) -> tuple[str, UserMessageKind] | None:
    if not isinstance(entry.payload, Attachment) or entry.payload.kind != AttachmentKind.QUEUED_COMMAND:
        return None
    attachment = get_fields(entry.fields, "attachment")
    if get_text(attachment, "commandMode") == TASK_NOTIFICATION:
        return None
    prompt = attachment.get("prompt")
    if isinstance(prompt, list):
        parts = (get_text(item, "text") for item in get_items(attachment, "prompt") if isinstance(item, Mapping))
        prompt = "\n".join(part for part in parts if part)
    text = strip_machine_text(prompt) if isinstance(prompt, str) else ""
    return (text, UserMessageKind.QUEUED) if text else None
