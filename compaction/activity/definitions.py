"""Names that changed code defines, in the languages agents write most."""

import re
from collections.abc import Iterator, Mapping

from compaction.activity.tool_calls import ToolCall
from compaction.transcripts.json_fields import get_items, get_text

_DEFINITION = re.compile(
    r"^[ \t]*(?:@\w+[ \t]+)?(?:(?:export|public|private|static|async|pub(?:\(\w+\))?|default|abstract)[ \t]+){0,4}"
    r"(?:def|defp|defmacro|defmodule|function|class|interface|type|struct|enum|trait|fn|func|const|let|impl|module)"
    r"(?:[ \t]+\([^()\n]{1,80}\))?[ \t]+([A-Za-z_][\w.]{2,60}[?!]?)",
    re.MULTILINE,
)
_SHELL_FUNCTION = re.compile(r"^([a-z_][a-z0-9_]{3,60})\(\)\s*\{", re.MULTILINE)
_LARGEST_TEXT = 40_000  # of one change
_NEAR = 4_000  # characters: what is defined further above does not hold this place


def find_definitions(text: str) -> list[str]:
    """Names that this code defines, in order."""
    text = text[:_LARGEST_TEXT]
    return list(dict.fromkeys(_DEFINITION.findall(text) + _SHELL_FUNCTION.findall(text)))


def find_definition_before(text: str, place: int) -> str | None:
    """Return the name that this code defines last before a place, as far as it is near."""
    names = _DEFINITION.findall(text[max(0, place - _NEAR) : place])
    return names[-1] if names else None


def list_new_texts(action: ToolCall) -> Iterator[str]:
    """What a change put into its file, in order."""
    changes = [item for item in get_items(action.use.input, "edits") if isinstance(item, Mapping)]
    for item in (*changes, action.use.input):
        for key in ("new_string", "content", "new_source"):
            if text := get_text(item, key):
                yield text
