"""Short forms: an action in one line, a command without its wrapping, a text cut with a mark."""

import re

from compaction.activity.tool_calls import ToolCall
from compaction.transcripts.client_protocol import AGENT_TOOLS, FILE_EDITORS, FILE_READERS, FILE_WRITERS
from compaction.transcripts.json_fields import get_text

_LEADING_STEPS = re.compile(r"^(?:(?:cd|pushd|export|source|set)\s[^&;\n]{0,300}(?:&&|;)\s*)+")
_TRAILING_PIPES = re.compile(r"(?<!\s)\s*+(?:2>&1|2>/dev/null|\|\s*(?:head|tail|less|cat|wc|sort)\b[^|&;\n]{0,60})\s*$")
# Programs that only show something: their output is no failure, and having run them is no work.
_SHOWS_ONLY = re.compile(
    r"^(?:sudo )?(?:grep|rg|ag|cat|less|head|tail|sed -n|awk|ls|find|tree|pwd|which|wc|file|stat|date|sleep|true"
    r"|jq|echo|git (?:status|log|diff|show|grep|blame|branch))\b"
)
_FILE_CHANGERS = FILE_EDITORS | FILE_WRITERS
_FULL_LINE = 12  # characters: a shorter first line is only the opening of a quotation
_SPACES = re.compile(r"\s+")
_SUBJECT_KEYS = (
    "pattern", "query", "url", "description", "skill", "subject", "to", "taskId", "task_id", "bash_id", "prompt",
)  # fmt: skip


def cut_text(text: str, characters: int) -> str:
    """The text, or its beginning with a mark that says how much was cut."""
    if len(text) <= characters:
        return text
    mark = f" [cut: {len(text) - characters:,} more characters]"
    return text[:characters].rstrip() + mark


def cut_lines(text: str, lines: int, characters: int) -> str:
    """The first lines within both limits, with a mark for the rest."""
    all_lines = text.split("\n")
    shown = "\n".join(all_lines[:lines])
    if len(all_lines) > lines and len(shown) <= characters:
        return f"{shown}\n[cut: {len(all_lines) - lines:,} more lines]"
    return cut_text(shown, characters)


def cut_middle(text: str, characters: int) -> str:
    """The text, or its beginning and its end with a mark between: the end of a report says what is left to do."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half].rstrip()} [cut: {len(text) - 2 * half:,} characters] {text[-half:].lstrip()}"


def take_line(text: str, characters: int = 160) -> str:
    """The first line that says something, on one line."""
    for line in text.splitlines():
        if line.strip():
            return cut_text(_SPACES.sub(" ", line.strip()), characters)
    return ""


def shorten_path(path: str, cwd: str | None) -> str:
    """The path from the working directory on, where it lies in it."""
    root = (cwd or "").rstrip("/")
    shown = path[len(root) + 1 :] if root and path.startswith(root + "/") else path
    return _SPACES.sub(" ", shown)


def trim_command(command: str) -> str:
    """The command a person would name: without leading `cd`, without trailing pipes to a pager, its first full line."""
    line = ""
    for part in command[:4_000].splitlines():
        line = f"{line} {part.strip()}".strip().removesuffix("\\")
        if len(line) >= _FULL_LINE and not part.endswith("\\"):
            break
    line = _LEADING_STEPS.sub("", line[:2_000])
    while (shorter := _TRAILING_PIPES.sub("", line)) != line:
        line = shorter
    return _SPACES.sub(" ", line).strip()


def shows_only(command: str) -> bool:
    """Whether a command looks at things and does nothing."""
    return bool(_SHOWS_ONLY.match(trim_command(command)))


def describe_action(action: ToolCall, cwd: str | None = None) -> str:
    """The action in one line, without its result."""
    if action.path:
        verb = "read" if action.name in FILE_READERS else "wrote" if action.name in FILE_WRITERS else "edited"
        return f"{verb} {shorten_path(action.path, cwd)}"
    if action.command is not None:
        return f"ran `{cut_text(trim_command(action.command), 160)}`"
    subject = next((text for key in _SUBJECT_KEYS if (text := get_text(action.use.input, key))), "")
    name = "agent" if action.name in AGENT_TOOLS else action.name
    return f"{name}: {take_line(subject, 120)}" if subject else name


def is_change(action: ToolCall) -> bool:
    """Whether the action changed a file."""
    return action.name in _FILE_CHANGERS and not action.is_refused
