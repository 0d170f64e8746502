"""The last work: commands run and symbols written in the last three turns, newest first.

A turn may hold hundreds of calls, so that only the last ones of these turns count as last work.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.activity.definitions import find_definitions, list_new_texts
from compaction.activity.excerpts import is_change, shows_only, trim_command
from compaction.activity.tool_calls import Activity, ToolCall

LAST_TURNS = 3
LAST_ACTIONS = 25  # ours: what a person would call "just now" in a turn of hundreds of calls
MOST_SYMBOLS = 20
MOST_COMMANDS = 12


@dataclass(frozen=True, slots=True)
class CitedText:
    """One command or symbol and the entry that last held it."""

    text: str
    entry_uuid: str | None


def list_recent_tool_calls(work: Activity, count: int = LAST_ACTIONS) -> tuple[ToolCall, ...]:
    """The last actions of the last three turns, oldest first."""
    recent = [action for action in work.actions if action.turn > work.last_turn - LAST_TURNS]
    return tuple(recent[-count:])


def list_commands(actions: Sequence[ToolCall], most: int = MOST_COMMANDS) -> tuple[CitedText, ...]:
    """Commands that did something, without their wrapping, newest first, each once."""
    found: dict[str, CitedText] = {}
    for action in reversed(actions):
        command = trim_command(action.command) if action.command else ""
        if len(command) > 1 and not shows_only(command):
            found.setdefault(command, CitedText(command, action.entry.uuid))
    return tuple(found.values())[:most]


def list_symbols(actions: Sequence[ToolCall], most: int = MOST_SYMBOLS) -> tuple[CitedText, ...]:
    """Names defined in changed code, newest first, each once."""
    found: dict[str, CitedText] = {}
    for action in reversed(actions):
        if is_change(action):
            for text in list_new_texts(action):
                for name in find_definitions(text):
                    found.setdefault(name, CitedText(name, action.entry.uuid))
    return tuple(found.values())[:most]
