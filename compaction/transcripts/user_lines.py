"""Classifies user lines: a person's prompt or command, a command's output, tool results, or text of the client.

Decides which lines start a turn, for lines of a transcript and for user messages of an API request.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compaction.transcripts.client_protocol import (
    CAVEAT,
    CLIENT_COMMANDS,
    COMMAND_ARGUMENTS,
    COMMAND_MESSAGE,
    COMMAND_NAME,
    INTERRUPTION,
    MACHINE_TAGS,
    OUTPUT_TAGS,
    SHELL_INPUT,
    read_tag,
    starts_with_tag,
    strip_interruptions,
    strip_notification,
    strip_tag,
)
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock
from compaction.transcripts.json_fields import get_fields, get_text


class UserLineKind(StrEnum):
    """Ordered: where a line holds several texts, the first kind wins."""

    PROMPT = "prompt"
    COMMAND = "command"  # a slash command, or a line for the shell
    COMMAND_OUTPUT = "command output"
    TOOL_RESULT = "tool result"
    MACHINE_TEXT = "machine text"  # reminders, notifications, interruptions, caveats, summaries


@dataclass(frozen=True, slots=True)
class UserLine:
    """The kind of a line and the person's text in it without the client's additions; a command as it was typed."""

    kind: UserLineKind
    text: str = ""
    starts_turn: bool = False  # the model is called because of it
    is_interruption: bool = False  # a person stopped the model

    @property
    def is_bare_client_command(self) -> bool:
        """Return whether it only controls the client, such as /exit, and is not about the work."""
        return self.kind is UserLineKind.COMMAND and self.text in CLIENT_COMMANDS


_OUTPUT = UserLine(UserLineKind.COMMAND_OUTPUT)
_MACHINE = UserLine(UserLineKind.MACHINE_TEXT)
_INTERRUPTION = UserLine(UserLineKind.MACHINE_TEXT, is_interruption=True)


def classify_entry(entry: Entry) -> UserLine | None:
    """Return what a user line of a transcript is; None for every other line."""
    if entry.type != "user" or entry.message is None:
        return None
    if entry.is_meta or entry.is_compact_summary:
        return _MACHINE
    content = entry.message.content
    others = [block for block in content if not isinstance(block, ToolResultBlock)]
    line = _classify(
        (block.text if isinstance(block, TextBlock) else None for block in others),
        has_results=len(others) < len(content),
    )
    # Last, because it decodes the whole line: tool results, which are long, have no such text.
    if (line.text or line.starts_turn) and _read_origin(entry) not in (None, "human"):
        return _MACHINE
    return line


def classify_blocks(blocks: Sequence[Mapping[str, object]]) -> UserLine:
    """Return what a user message of a request is, from its content blocks."""
    others = [block for block in blocks if block.get("type") != "tool_result"]
    return _classify(
        (get_text(block, "text") if block.get("type") == "text" else None for block in others),
        has_results=len(others) < len(blocks),
    )


def classify_text(text: str) -> UserLine:
    """Return what one text of a user line is."""
    text = text.strip()
    if starts_with_tag(text, COMMAND_NAME) or starts_with_tag(text, COMMAND_MESSAGE):
        return _classify_command(text)
    if starts_with_tag(text, SHELL_INPUT):
        return UserLine(UserLineKind.COMMAND, f"! {(read_tag(text, SHELL_INPUT) or '').strip()}")
    if any(starts_with_tag(text, tag) for tag in OUTPUT_TAGS):
        return _OUTPUT
    typed = strip_machine_text(text)
    if typed:
        return UserLine(UserLineKind.PROMPT, typed, starts_turn=True)
    return _INTERRUPTION if text.startswith(INTERRUPTION) else _MACHINE


def extract_prompt_text(text: str) -> str:
    """Return what a person typed as a prompt, "" for commands, their output and text of the client."""
    line = classify_text(text)
    return line.text if line.kind is UserLineKind.PROMPT else ""


def strip_machine_text(text: str) -> str:
    """Return the text without what the client added; an unclosed tag takes nothing with it."""
    if text.startswith(CAVEAT):
        return ""
    text = strip_notification(text)
    for tag in (*MACHINE_TAGS, *OUTPUT_TAGS, COMMAND_MESSAGE):
        text = strip_tag(text, tag)
    return strip_interruptions(text).strip()


def _read_origin(entry: Entry) -> str | None:
    return get_text(get_fields(entry.fields, "origin"), "kind")


def _classify(texts: Iterable[str | None], *, has_results: bool) -> UserLine:
    """Return the first kind in the order of UserLineKind that any text has. None is an image or a document.

    Text beside tool results does not start a turn."""
    parts = [UserLine(UserLineKind.PROMPT, starts_turn=True) if text is None else classify_text(text) for text in texts]
    for kind in UserLineKind:
        chosen = [part for part in parts if part.kind is kind]
        if chosen:
            typed = "\n".join(part.text for part in chosen if part.text)
            if has_results:
                return UserLine(UserLineKind.TOOL_RESULT, typed)
            return UserLine(
                kind,
                typed,
                starts_turn=any(part.starts_turn for part in chosen),
                is_interruption=any(part.is_interruption for part in chosen),
            )
    return UserLine(UserLineKind.TOOL_RESULT) if has_results else _MACHINE


def _classify_command(text: str) -> UserLine:
    """Return a command: one that the client performs itself begins with its name, one for the model with a message."""
    name = (read_tag(text, COMMAND_NAME) or "").strip()
    arguments = (read_tag(text, COMMAND_ARGUMENTS) or "").strip()
    return UserLine(
        UserLineKind.COMMAND, f"{name} {arguments}".strip(), starts_turn=starts_with_tag(text, COMMAND_MESSAGE)
    )
