"""Short forms of texts: cut with a mark, a command without its wrapping, a path or a tool call in one line."""

import re
from collections.abc import Collection, Sequence

from compaction.activity.tool_calls import ToolCall
from compaction.transcripts.client_protocol import AGENT_TOOLS, FILE_READERS, FILE_WRITERS
from compaction.transcripts.json_fields import get_text

_LEADING_STEPS = re.compile(r"^(?:(?:cd|pushd|export|source|set)\s[^&;\n]{0,300}(?:&&|;)\s*)+")
_TRAILING_PIPES = re.compile(r"(?<!\s)\s*+(?:2>&1|2>/dev/null|\|\s*(?:head|tail|less|cat|wc|sort)\b[^|&;\n]{0,60})\s*$")
# Programs that only show something: their output is no failure, and having run them is no work.
_READ_ONLY = re.compile(
    r"^(?:sudo )?(?:grep|rg|ag|cat|less|head|tail|sed -n|awk|ls|find|tree|pwd|which|wc|file|stat|date|sleep|true"
    r"|jq|echo|git (?:status|log|diff|show|grep|blame|branch))\b"
)
_FULL_LINE = 12  # characters: a shorter first line is only the opening of a quotation
_SPACES = re.compile(r"\s+")
_GAP = "[...]"
_SUBJECT_KEYS = (
    "pattern", "query", "url", "description", "skill", "subject", "to", "taskId", "task_id", "bash_id", "prompt",
)  # fmt: skip


def cut_text(text: str, characters: int, *, lines: int | None = None) -> str:
    """Return the text, or its beginning within the limits with a mark that says how much was cut."""
    if lines is not None:
        all_lines = text.split("\n")
        text = "\n".join(all_lines[:lines])
        if len(all_lines) > lines and len(text) <= characters:
            return f"{text}\n[cut: {len(all_lines) - lines:,} more lines]"
    if len(text) <= characters:
        return text
    return f"{text[:characters].rstrip()} [cut: {len(text) - characters:,} more characters]"


def cut_middle(text: str, characters: int) -> str:
    """Return the text, or its beginning and end with a mark between: the end of a report says what is left to do."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half].rstrip()} [cut: {len(text) - 2 * half:,} characters] {text[-half:].lstrip()}"


def cut_line(text: str, characters: int = 160) -> str:
    """Return the first line that is not blank, with single spaces, within the limit."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return cut_text(_SPACES.sub(" ", line.strip()), characters)


def join_with_gaps(lines: Sequence[str], chosen: Collection[int]) -> str:
    """Return the lines at the chosen indexes, with one mark for each gap but the first lines."""
    shown: list[str] = []
    for index, line in enumerate(lines):
        if index in chosen:
            shown.append(line)
        elif shown and shown[-1] != _GAP:
            shown.append(_GAP)
    return "\n".join(shown)


def shorten_path(path: str, cwd: str | None) -> str:
    """Return the path from the working directory on, where it lies in it."""
    root = (cwd or "").rstrip("/")
    shown = path[len(root) + 1 :] if root and path.startswith(root + "/") else path
    return _SPACES.sub(" ", shown)


def trim_command(command: str) -> str:
    """Return the first full line of a command, without leading `cd` and trailing pipes to a pager."""
    line = ""
    for part in command[:4_000].splitlines():
        line = f"{line} {part.strip()}".strip().removesuffix("\\")
        if len(line) >= _FULL_LINE and not part.endswith("\\"):
            break
    line = _LEADING_STEPS.sub("", line[:2_000])
    while (shorter := _TRAILING_PIPES.sub("", line)) != line:
        line = shorter
    return _SPACES.sub(" ", line).strip()


def is_read_only(command: str) -> bool:
    """Return whether a command only shows something."""
    return bool(_READ_ONLY.match(trim_command(command)))


def describe_tool_call(tool_call: ToolCall, cwd: str | None = None) -> str:
    """Return the request in one line, without its result."""
    if tool_call.path:
        verb = "read" if tool_call.name in FILE_READERS else "wrote" if tool_call.name in FILE_WRITERS else "edited"
        return f"{verb} {shorten_path(tool_call.path, cwd)}"
    if tool_call.command is not None:
        return f"ran `{cut_text(trim_command(tool_call.command), 160)}`"
    subject = next((text for key in _SUBJECT_KEYS if (text := get_text(tool_call.use.input, key))), "")
    name = "agent" if tool_call.name in AGENT_TOOLS else tool_call.name
    return f"{name}: {cut_line(subject, 120)}" if subject else name
