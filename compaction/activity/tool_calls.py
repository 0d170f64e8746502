"""The work in a stretch of transcript, in order: what people said, what the agent said, what it did and what came back.

Read once and shared by the summary without a model, the audit of losses and the restoring of files.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from compaction.activity.user_messages import UserMessage, UserMessageKind, read_prompt, read_reply
from compaction.transcripts.client_protocol import CLEARED_RESULT, FILE_TOOLS, SHELL_TOOLS
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.flatten import is_synthetic_error
from compaction.transcripts.json_fields import get_fields, get_text

_OPENS_TURN = frozenset({UserMessageKind.PROMPT, UserMessageKind.COMMAND})


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool request with what it was answered; `turn` counts from 0 before the first prompt."""

    use: ToolUseBlock
    entry: Entry
    turn: int
    place: int
    result: ToolResultBlock | None = None
    result_entry: Entry | None = None

    @property
    def name(self) -> str:
        """The tool."""
        return self.use.name

    @property
    def path(self) -> str | None:
        """The file a file tool was asked for."""
        if self.name not in FILE_TOOLS:
            return None
        return get_text(self.use.input, "file_path") or get_text(self.use.input, "notebook_path")

    @property
    def command(self) -> str | None:
        """The command line of a shell request."""
        return get_text(self.use.input, "command") if self.name in SHELL_TOOLS else None

    @property
    def output(self) -> str:
        """What came back as text; nothing once it was cleared."""
        text = self.result.text if self.result else ""
        return "" if text == CLEARED_RESULT else text

    @property
    def details(self) -> dict[str, object]:
        """The client's own structured result, where the line carries one."""
        return dict(get_fields(self.result_entry.fields, "toolUseResult")) if self.result_entry else {}

    @property
    def is_refused(self) -> bool:
        """Answered with an error."""
        return self.result is not None and self.result.is_error


@dataclass(frozen=True, slots=True)
class AssistantText:
    """What the agent said between its actions."""

    text: str
    entry_uuid: str | None
    at: datetime | None
    turn: int
    place: int


@dataclass(frozen=True, slots=True)
class Activity:
    """Everything said and done, each list in order; `places` are indexes into the entries it was read from."""

    said: tuple[UserMessage, ...]
    remarks: tuple[AssistantText, ...]
    actions: tuple[ToolCall, ...]
    earlier_summary: Entry | None
    last_turn: int


class _Reader:
    def __init__(self) -> None:
        self.said: list[UserMessage] = []
        self.remarks: list[AssistantText] = []
        self.actions: list[ToolCall] = []
        self.open: dict[str, int] = {}
        self.earlier_summary: Entry | None = None
        self.turn = 0

    def hear(self, words: tuple[str, UserMessageKind] | None, entry: Entry, place: int) -> None:
        if words is None:
            return
        text, kind = words
        if kind in _OPENS_TURN:
            self.turn += 1
        self.said.append(UserMessage(text, kind, entry.uuid, entry.at, self.turn, place))

    def watch(self, entry: Entry, place: int) -> None:
        """The requests, results and remarks of one line."""
        for block in entry.message.content if entry.message else ():
            if isinstance(block, ToolUseBlock) and block.id not in self.open:
                self.open[block.id] = len(self.actions)
                self.actions.append(ToolCall(block, entry, self.turn, place))
            elif isinstance(block, ToolResultBlock):
                self.answer(block, entry, place)
            elif isinstance(block, TextBlock) and entry.type == "assistant" and block.text.strip():
                self.remarks.append(AssistantText(block.text.strip(), entry.uuid, entry.at, self.turn, place))

    def answer(self, result: ToolResultBlock, entry: Entry, place: int) -> None:
        index = self.open.get(result.tool_use_id)
        if index is None or self.actions[index].result is not None:
            return
        self.actions[index] = replace(self.actions[index], result=result, result_entry=entry)
        self.hear(read_reply(self.actions[index].name, result), entry, place)


def read_activity(entries: Sequence[Entry]) -> Activity:
    """What was said and done in these entries of one thread, in their order."""
    reader = _Reader()
    for place, entry in enumerate(entries):
        if entry.is_compact_summary:
            reader.earlier_summary = entry
        elif not is_synthetic_error(entry):
            reader.hear(read_prompt(entry), entry, place)
            reader.watch(entry, place)
    return Activity(
        tuple(reader.said), tuple(reader.remarks), tuple(reader.actions), reader.earlier_summary, reader.turn
    )
