"""The last work: commands run and symbols written in the last three turns, newest first.

A turn may hold hundreds of calls, so that only the last ones of these turns count as last work.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compaction.compactors.digest import is_change, shows_only, trim_command
from compaction.compactors.work import Action, Work
from compaction.transcripts.values import get_items, get_text

LAST_TURNS = 3
LAST_ACTIONS = 25  # ours: what a person would call "just now" in a turn of hundreds of calls
MOST_SYMBOLS = 20
MOST_COMMANDS = 12
# Definitions in the languages agents write most.
_DEFINITION = re.compile(
    r"^[ \t]*(?:@\w+[ \t]+)?(?:(?:export|public|private|static|async|pub(?:\(\w+\))?|default|abstract)[ \t]+){0,4}"
    r"(?:def|defp|defmacro|defmodule|function|class|interface|type|struct|enum|trait|fn|func|const|let|impl|module)"
    r"(?:[ \t]+\([^()\n]{1,80}\))?[ \t]+([A-Za-z_][\w.]{2,60}[?!]?)",
    re.MULTILINE,
)
_SHELL_FUNCTION = re.compile(r"^([a-z_][a-z0-9_]{3,60})\(\)\s*\{", re.MULTILINE)
_LARGEST_TEXT = 40_000  # of one change
_NEAR = 4_000  # characters: what is defined further above does not hold this place


@dataclass(frozen=True, slots=True)
class Trace:
    """One command or symbol and the entry that last held it."""

    text: str
    entry_uuid: str | None


def take_last_actions(work: Work, count: int = LAST_ACTIONS) -> tuple[Action, ...]:
    """The last actions of the last three turns, oldest first."""
    recent = [action for action in work.actions if action.turn > work.last_turn - LAST_TURNS]
    return tuple(recent[-count:])


def list_commands(actions: Sequence[Action], most: int = MOST_COMMANDS) -> tuple[Trace, ...]:
    """Commands that did something, without their wrapping, newest first, each once."""
    found: dict[str, Trace] = {}
    for action in reversed(actions):
        command = trim_command(action.command) if action.command else ""
        if len(command) > 1 and not shows_only(command):
            found.setdefault(command, Trace(command, action.entry.uuid))
    return tuple(found.values())[:most]


def list_symbols(actions: Sequence[Action], most: int = MOST_SYMBOLS) -> tuple[Trace, ...]:
    """Names defined in changed code, newest first, each once."""
    found: dict[str, Trace] = {}
    for action in reversed(actions):
        if is_change(action):
            for text in list_new_texts(action):
                for name in find_definitions(text):
                    found.setdefault(name, Trace(name, action.entry.uuid))
    return tuple(found.values())[:most]


def find_definitions(text: str) -> list[str]:
    """Names that this code defines, in order."""
    text = text[:_LARGEST_TEXT]
    return list(dict.fromkeys(_DEFINITION.findall(text) + _SHELL_FUNCTION.findall(text)))


def find_definition_before(text: str, place: int) -> str | None:
    """Return the name that this code defines last before a place, as far as it is near."""
    names = _DEFINITION.findall(text[max(0, place - _NEAR) : place])
    return names[-1] if names else None


def list_new_texts(action: Action) -> Iterator[str]:
    """What a change put into its file, in order."""
    changes = [item for item in get_items(action.use.input, "edits") if isinstance(item, Mapping)]
    for item in (*changes, action.use.input):
        for key in ("new_string", "content", "new_source"):
            if text := get_text(item, key):
                yield text
