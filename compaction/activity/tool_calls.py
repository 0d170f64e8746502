"""The activity in a stretch of transcript, in order: messages of people, texts of the agent, tool calls with results.

Read once and shared by the extractive summary, the restoring of files and the audit, which takes no more than this
parsing from the package: what the summary selects must not decide what the audit looks for.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from compaction.activity.user_messages import UserMessage, UserMessageKind, read_prompt, read_reply
from compaction.transcripts.client_protocol import CLEARED_RESULT, FILE_EDITORS, FILE_TOOLS, FILE_WRITERS, SHELL_TOOLS
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.flatten import is_synthetic_error
from compaction.transcripts.json_fields import get_fields, get_items, get_text

_OPENS_TURN = frozenset({UserMessageKind.PROMPT, UserMessageKind.COMMAND})
_FILE_CHANGERS = FILE_EDITORS | FILE_WRITERS
_DEFINITION = re.compile(
    r"^[ \t]*(?:@\w+[ \t]+)?(?:(?:export|public|private|static|async|pub(?:\(\w+\))?|default|abstract)[ \t]+){0,4}"
    r"(?:def|defp|defmacro|defmodule|function|class|interface|type|struct|enum|trait|fn|func|const|let|impl|module)"
    r"(?:[ \t]+\([^()\n]{1,80}\))?[ \t]+([A-Za-z_][\w.]{2,60}[?!]?)",
    re.MULTILINE,
)
_SHELL_FUNCTION = re.compile(r"^([a-z_][a-z0-9_]{3,60})\(\)\s*\{", re.MULTILINE)
_LARGEST_TEXT = 40_000  # of one change
_NEAR = 4_000  # characters: what is defined further above does not hold this position


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool request with its result. `turn` counts from 0 before the first prompt, `entry_index` names the entry."""

    use: ToolUseBlock
    entry: Entry
    turn: int
    entry_index: int
    result: ToolResultBlock | None = None
    result_entry: Entry | None = None

    @property
    def name(self) -> str:
        """The tool."""
        return self.use.name

    @property
    def path(self) -> str | None:
        """The file that a file tool was asked for."""
        if self.name not in FILE_TOOLS:
            return None
        return get_text(self.use.input, "file_path") or get_text(self.use.input, "notebook_path")

    @property
    def command(self) -> str | None:
        """The command line of a shell request."""
        return get_text(self.use.input, "command") if self.name in SHELL_TOOLS else None

    @property
    def output(self) -> str:
        """The text of the result; "" once it was cleared."""
        text = self.result.text if self.result else ""
        return "" if text == CLEARED_RESULT else text

    @property
    def details(self) -> dict[str, object]:
        """The client's own structured result, where the line carries one."""
        return dict(get_fields(self.result_entry.fields, "toolUseResult")) if self.result_entry else {}

    @property
    def is_error(self) -> bool:
        """Return whether the result is an error, such as a person's refusal."""
        return self.result is not None and self.result.is_error

    @property
    def is_file_change(self) -> bool:
        """Return whether the request changed a file."""
        return self.name in _FILE_CHANGERS and not self.is_error

    def list_new_texts(self) -> Iterator[str]:
        """Yield what a change put into its file, in order."""
        changes = [item for item in get_items(self.use.input, "edits") if isinstance(item, Mapping)]
        for item in (*changes, self.use.input):
            for key in ("new_string", "content", "new_source"):
                if text := get_text(item, key):
                    yield text


@dataclass(frozen=True, slots=True)
class AssistantText:
    """A text that the agent wrote between its tool calls."""

    text: str
    entry_uuid: str | None
    at: datetime | None
    turn: int
    entry_index: int


@dataclass(frozen=True, slots=True)
class Activity:
    """All messages, texts and tool calls, each list in order."""

    user_messages: tuple[UserMessage, ...]
    assistant_texts: tuple[AssistantText, ...]
    tool_calls: tuple[ToolCall, ...]
    previous_summary: Entry | None
    last_turn: int

    @property
    def messages(self) -> tuple[UserMessage | AssistantText, ...]:
        """The messages of people, then the texts of the agent."""
        return (*self.user_messages, *self.assistant_texts)


class _Reader:
    def __init__(self) -> None:
        self.user_messages: list[UserMessage] = []
        self.assistant_texts: list[AssistantText] = []
        self.tool_calls: list[ToolCall] = []
        self.call_numbers: dict[str, int] = {}
        self.previous_summary: Entry | None = None
        self.turn = 0

    def add_message(self, message: tuple[str, UserMessageKind] | None, entry: Entry, index: int) -> None:
        if message is None:
            return
        text, kind = message
        if kind in _OPENS_TURN:
            self.turn += 1
        self.user_messages.append(UserMessage(text, kind, entry.uuid, entry.at, self.turn, index))

    def add_blocks(self, entry: Entry, index: int) -> None:
        """Add the requests, results and texts of one line."""
        for block in entry.message.content if entry.message else ():
            if isinstance(block, ToolUseBlock) and block.id not in self.call_numbers:
                self.call_numbers[block.id] = len(self.tool_calls)
                self.tool_calls.append(ToolCall(block, entry, self.turn, index))
            elif isinstance(block, ToolResultBlock):
                self.add_result(block, entry, index)
            elif isinstance(block, TextBlock) and entry.type == "assistant" and block.text.strip():
                self.assistant_texts.append(AssistantText(block.text.strip(), entry.uuid, entry.at, self.turn, index))

    def add_result(self, result: ToolResultBlock, entry: Entry, index: int) -> None:
        number = self.call_numbers.get(result.tool_use_id)
        if number is None or self.tool_calls[number].result is not None:
            return
        self.tool_calls[number] = replace(self.tool_calls[number], result=result, result_entry=entry)
        self.add_message(read_reply(self.tool_calls[number].name, result), entry, index)


def read_activity(entries: Sequence[Entry]) -> Activity:
    """Return the activity of these entries of one thread."""
    reader = _Reader()
    for index, entry in enumerate(entries):
        if entry.is_compact_summary:
            reader.previous_summary = entry
        elif not is_synthetic_error(entry):
            reader.add_message(read_prompt(entry), entry, index)
            reader.add_blocks(entry, index)
    return Activity(
        tuple(reader.user_messages),
        tuple(reader.assistant_texts),
        tuple(reader.tool_calls),
        reader.previous_summary,
        reader.turn,
    )


def replay(entries: Sequence[Entry], activity: Activity) -> Iterator[tuple[int, Entry | ToolCall]]:
    """Yield every entry with its index, each after the tool calls it requests."""
    tool_calls = iter(activity.tool_calls)
    tool_call = next(tool_calls, None)
    for index, entry in enumerate(entries):
        while tool_call is not None and tool_call.entry_index == index:
            yield index, tool_call
            tool_call = next(tool_calls, None)
        yield index, entry


def list_definitions(code: str) -> list[str]:
    """Return the names that this code defines, in order, in the languages agents write most."""
    code = code[:_LARGEST_TEXT]
    return list(dict.fromkeys(_DEFINITION.findall(code) + _SHELL_FUNCTION.findall(code)))


def find_definition_before(code: str, position: int) -> str | None:
    """Return the name that this code defines last before a position, as far as it is near."""
    names = _DEFINITION.findall(code[max(0, position - _NEAR) : position])
    return names[-1] if names else None
