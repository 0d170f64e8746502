"""Section 4: what failed, with the lines that name it, the cause the agent gave, what it did, and how it ended."""

import re
from collections.abc import Sequence

from compaction.activity.excerpts import cut_text, describe_tool_call, shorten_path, trim_command
from compaction.activity.failures import NO_MESSAGE, Failure, read_failure
from compaction.activity.statements import list_causes
from compaction.activity.tool_calls import ToolCall
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.sections import CutRank, SummaryItem, quote, quote_in_line
from compaction.compactors.summary.prompt import Section
from compaction.transcripts.json_fields import get_text

MAX_FAILURES_IN_A_ROW = 14
_LINES_OPEN, _LINES_RESOLVED = 6, 3
_LINE_CHARACTERS = 200
_CAUSE_CHARACTERS = 360
_MOST_REPAIRS = 3
_ADDED_CHARACTERS = 150
_FOLLOWING = 8  # requests after a failure in which its repair is looked for
_EXIT_CODE = re.compile(r"^(?:Error: )?Exit code (\d+)$")
_NAMES_FAILURE = re.compile(
    r"FAIL|Error\b|error:|_test\.\w+:\d+|^\d+\) |^E   |fatal:|panic:|cannot|not found|undefined|→|↗|↘|:\d+:\d*:?\w"
)
_ADVICE = re.compile(
    r"^(?:--- PASS|=== |✓ |Please report incorrect results|hint: |Use `mix credo explain`)|^[=═─-]{3,}$"
)


def list_error_items(material: Material) -> list[SummaryItem]:
    """Return the failures in the order of their last occurrence; the oldest are counted."""
    failures = material.list_reported_failures()
    shown = failures[-MAX_FAILURES_IN_A_ROW:]
    items = [_describe_failure(failure, len(shown) - number, material) for number, failure in enumerate(shown, start=1)]
    if len(failures) > len(shown):
        items.insert(0, SummaryItem(Section.ERRORS, f"[cut: {len(failures) - len(shown)} older errors]"))
    return items


def _describe_failure(failure: Failure, age: int, material: Material) -> SummaryItem:
    request = describe_tool_call(failure.tool_call, material.cwd)
    times = f", {failure.times} times" if failure.times > 1 else ""
    at = failure.tool_call.entry.at
    time = f" (at {at:%H:%M})" if at else ""
    if _is_refusal(failure.tool_call):
        text = f"- The user refused this request{time}: {request}."
        return SummaryItem(Section.ERRORS, text, CutRank.ERROR, age, text)
    lines = list_error_lines(failure)
    limit = _LINES_RESOLVED if failure.is_resolved else _LINES_OPEN
    head = f"- {request} failed{_describe_exit(failure)}{times}{time}:"
    if failure.lines == (NO_MESSAGE,):
        parts = [f"{head.removesuffix(':')} without a message."]
    else:
        parts = [head, quote("\n".join(cut_text(line, _LINE_CHARACTERS) for line in lines[:limit]))]
    if sentences := list_sentences_after(failure, material):
        parts.append(f"  The agent said: {quote_in_line(cut_text(' '.join(sentences), _CAUSE_CHARACTERS))}.")
    if repairs := _list_repairs(failure, material):
        parts.append(f"  Done next: {'; '.join(repairs)}.")
    outcome = "The same kind of request went through later." if failure.is_resolved else "Not seen to go through since."
    parts.append(f"  {outcome}")
    short = f"{head} {describe_error(lines, 120)}"
    is_named = material.priorities.matches(" ".join(lines))
    return SummaryItem(Section.ERRORS, "\n".join(parts), CutRank.ERROR, age, short, is_named=is_named)


def list_error_lines(failure: Failure) -> list[str]:
    """Return the lines that name what failed; an exit code only where nothing else was printed."""
    return choose_error_lines(failure.lines, failure.tool_call.output)


def choose_error_lines(failing: Sequence[str], output: str) -> list[str]:
    """Return failing lines of an output, those that name the failure first, without exit codes and advice."""
    lines = [line for line in failing if not _ADVICE.match(line)]
    lines.sort(key=lambda line: not _NAMES_FAILURE.search(line))
    named = [line for line in lines if not _EXIT_CODE.match(line)]
    if not named:
        printed = [line.strip() for line in output.splitlines() if line.strip()]
        named = [line for line in printed if not _EXIT_CODE.match(line)][-3:]
    return named or lines or list(failing)


def describe_error(lines: Sequence[str], characters: int) -> str:
    """Return the first line that names what failed, quoted."""
    return "no message" if lines[0] == NO_MESSAGE else quote_in_line(cut_text(lines[0], characters))


def _describe_exit(failure: Failure) -> str:
    """Return the exit code where the output has no line that names the failure."""
    code = next((match[1] for line in failure.lines if (match := _EXIT_CODE.match(line))), None)
    is_alone = all(_EXIT_CODE.match(line) for line in failure.lines)
    return f" with exit code {code}" if code and is_alone else ""


def _is_refusal(tool_call: ToolCall) -> bool:
    return tool_call.is_error and tool_call.output.startswith("The user doesn't want to")


def list_sentences_after(failure: Failure, material: Material) -> list[str]:
    """Return what the agent wrote about the failure; its last text is quoted under current work."""
    text = failure.next_text
    if text is None or text is material.activity.assistant_texts[-1]:
        return []
    return list_causes(material.list_prose(text))


def _list_repairs(failure: Failure, material: Material) -> list[str]:
    """Return the changes after a failure with the lines they added, or the next request where nothing was changed."""
    following = material.list_next_tool_calls(failure.tool_call, _FOLLOWING)
    added_lines: dict[str, str] = {}
    for tool_call in following:
        # The next failing command, or the same one again, ends the repair of this failure.
        if tool_call.command is not None and (
            read_failure(tool_call) or _is_same_program(tool_call, failure.tool_call)
        ):
            break
        if tool_call.is_file_change and tool_call.path:
            path = shorten_path(tool_call.path, material.cwd)
            added_lines[path] = added_lines.get(path) or _quote_added_lines(tool_call)
    repairs = [
        f"edited {path}{f' (added {lines})' if lines else ''}"
        for path, lines in list(added_lines.items())[:_MOST_REPAIRS]
    ]
    return repairs or [describe_tool_call(tool_call, material.cwd) for tool_call in following[:1]]


def _is_same_program(tool_call: ToolCall, failed: ToolCall) -> bool:
    command, other = trim_command(tool_call.command or ""), trim_command(failed.command or "")
    return command.split()[:2] == other.split()[:2]


def _quote_added_lines(tool_call: ToolCall) -> str:
    """Return the first lines that a change added, on one line; nothing of a whole new file."""
    old = get_text(tool_call.use.input, "old_string")
    new = get_text(tool_call.use.input, "new_string")
    if not old or not new:
        return ""
    before = {line.strip() for line in old.splitlines()}
    added = [line.strip() for line in new.splitlines() if line.strip() and line.strip() not in before]
    code = [
        line for line in added if not line.startswith(("#", "//", "--", "/*", "*", "@doc", '"""')) and len(line) > 3
    ]
    return f"`{cut_text(' / '.join(code[:2]), _ADDED_CHARACTERS)}`" if code else ""
