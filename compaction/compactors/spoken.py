"""The words of people in user lines: prompts, commands, answers to questions, reasons for refusals.

What the client writes into the same lines for the model (reminders, command output, notifications) is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock
from compaction.transcripts.payloads import Attachment
from compaction.transcripts.values import get_fields, get_items, get_text

# What the client wraps around text that no person typed.
_MACHINE_TAGS = (
    "system-reminder", "local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-stdout",
    "bash-stderr", "task-notification", "teammate-message", "user-prompt-submit-hook", "new-diagnostics",
    "ide_opened_file", "command-message",
)  # fmt: skip
_INTERRUPTION = "[Request interrupted by user"  # the client's note, not the person's words
_REASON_OPENING = "the user said:\n"  # what the client puts before the reason for a refused tool request
_ANSWER_TOOL = "AskUserQuestion"
# Commands that steer the client itself; without arguments they say nothing about the work.
_CLIENT_COMMANDS = frozenset(
    {
        "/compact", "/clear", "/model", "/context", "/cost", "/status", "/exit", "/resume", "/help", "/config",
        "/login", "/effort", "/usage", "/rewind", "/memory", "/mcp", "/hooks", "/permissions", "/fast",
    }
)  # fmt: skip


class SaidKind(StrEnum):
    """How the words came in."""

    PROMPT = "prompt"
    COMMAND = "command"
    QUEUED = "typed while the agent worked"
    ANSWER = "answer to a question"
    REASON = "reason for a refusal"


@dataclass(frozen=True, slots=True)
class Said:
    """What a person said, whole, and where it stands."""

    text: str
    kind: SaidKind
    entry_uuid: str | None
    at: datetime | None
    turn: int
    place: int


def read_prompt(entry: Entry) -> tuple[str, SaidKind] | None:
    """The words of a user line or of a queued prompt; None where no person speaks."""
    if entry.type == "attachment":
        return _read_queued(entry)
    if entry.type != "user" or entry.message is None or entry.is_meta or entry.is_compact_summary:
        return None
    texts = [block.text for block in entry.message.content if isinstance(block, TextBlock)]
    words = _read_words("\n".join(texts)) if texts else None
    if words is None or get_text(get_fields(entry.fields, "origin"), "kind") not in (None, "human"):
        return None
    return words, SaidKind.COMMAND if words.startswith("/") and "<command-name>" in "".join(texts) else SaidKind.PROMPT


def read_reply(tool_name: str, result: ToolResultBlock) -> tuple[str, SaidKind] | None:
    """What a person told the agent through a tool result: a choice made, or why a request was refused."""
    text = result.text
    if tool_name == _ANSWER_TOOL and text.strip():
        return text.strip(), SaidKind.ANSWER
    if result.is_error and _REASON_OPENING in text:
        reason = strip_machine_text(text.partition(_REASON_OPENING)[2])
        return (reason, SaidKind.REASON) if reason else None
    return None


def strip_machine_text(text: str) -> str:
    """The text without what the client wrapped in its own tags; an unclosed tag takes nothing with it."""
    for tag in _MACHINE_TAGS:
        text = _strip_tag(text, tag)
    return text.strip()


def _read_words(text: str) -> str | None:
    name = _read_tag(text, "command-name")
    if name is not None:
        arguments = (_read_tag(text, "command-args") or "").strip()
        if name.strip() in _CLIENT_COMMANDS and not arguments:
            return None
        return f"{name.strip()} {arguments}".strip()
    typed = _read_tag(text, "bash-input")
    if typed is not None:
        return f"! {typed.strip()}"
    words = strip_machine_text(text)
    return None if not words or words.startswith(_INTERRUPTION) else words


def _read_queued(entry: Entry) -> tuple[str, SaidKind] | None:
    if not isinstance(entry.payload, Attachment) or entry.payload.kind != "queued_command":
        return None
    attachment = get_fields(entry.fields, "attachment")
    if get_text(attachment, "commandMode") == "task-notification":
        return None
    prompt = attachment.get("prompt")
    if isinstance(prompt, list):
        parts = (get_text(item, "text") for item in get_items(attachment, "prompt") if isinstance(item, Mapping))
        prompt = "\n".join(part for part in parts if part)
    words = strip_machine_text(prompt) if isinstance(prompt, str) else ""
    return (words, SaidKind.QUEUED) if words else None


def _read_tag(text: str, tag: str) -> str | None:
    """What stands in the first pair of this tag."""
    _, opened, rest = text.partition(f"<{tag}>")
    body, closed, _ = rest.partition(f"</{tag}>")
    return body if opened and closed else None


def _strip_tag(text: str, tag: str) -> str:
    """The text without all pairs of this tag, in one pass."""
    kept: list[str] = []
    here = 0
    while (start := _find_opening(text, tag, here)) >= 0:
        end = text.find(f"</{tag}>", start)
        if end < 0:
            break
        kept.append(text[here:start])
        here = end + len(tag) + 3
    return "".join(kept) + text[here:] if kept or here else text


def _find_opening(text: str, tag: str, here: int) -> int:
    """Where the tag opens, bare or with attributes."""
    start = text.find(f"<{tag}", here)
    while start >= 0 and text[start + len(tag) + 1 : start + len(tag) + 2] not in (">", " ", "\n"):
        start = text.find(f"<{tag}", start + 1)
    return start
