"""Failures: requests answered with an error, commands whose output names one, what came next, and how it ended.

Output of commands that only show text (grep, cat, git log) is never a failure.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.activity.excerpts import is_read_only, trim_command
from compaction.activity.tool_calls import Activity, AssistantText, ToolCall
from compaction.activity.user_messages import read_reply
from compaction.transcripts.client_protocol import TOOL_ERROR

# Words by which tools of the common languages name what failed, and by which they only count how often.
_STARTS_FAILURE = re.compile(
    r"^\s*(?:Traceback \(most recent call last\)|\*\* \([\w.]{1,80}Error\)|error(?:\[\w{1,12}\])?: |E   \S|npm ERR!"
    r"|fatal: "
    r"|(?:Uncaught )?[\w.]{0,80}(?:Error|Exception): |panic: |FAILED\b|--- FAIL|not ok \d|[✕✗✘] |\d{1,4}\) test "
    r"|\[[A-Z]{4,20}\]|[\w./-]{1,200}:\d{1,6}:(?:\d{1,5}:)? ?(?:error|no_return|call|pattern_match))"
)
_NAMES_FAILURE = re.compile(
    r"command not found|No such file or directory|[Pp]ermission denied|\bBUILD FAILED\b|error TS\d{3,5}"
    r"|Compilation error|undefined (?:function|variable|reference)|is undefined\b|is not defined\b"
    r"|String to replace not found|(?:[Ff]ile|[Pp]ath|[Dd]irectory)[^.\n]{0,120} does not exist|\[[A-Z]\] [→↗↘⬈] ",
)
# Without one of these in an output no line of it can match the pattern above: looking for them is far cheaper.
_FAILURE_WORDS = (
    "command not found", "No such file or directory", "ermission denied", "BUILD FAILED", "error TS",
    "Compilation error", "undefined", "is not defined", "String to replace not found", "does not exist",
    "] →", "] ↗", "] ↘", "] ⬈",
)  # fmt: skip
_COUNTING = re.compile(r"^\s*Exit code [1-9]\d{0,3}\b|\b[1-9]\d{0,5} (?:failed|failures?|errors?)\b", re.IGNORECASE)
_COUNTED = ("exit code", "fail", "error")  # without one of these no line counts failures
_HEADING = re.compile(r"\[[A-Z]{4,20}\]")
_TAGS = re.compile(r"</?tool_use_error>")
_NUMBERS = re.compile(r"\d+")
NO_MESSAGE = "failed without a message"  # not in the transcript: never quoted
_SHORT_LINE = 90  # a heading: the lines below it name what failed
_MOST_NAMED = 5
_MOST_LINES = 4_000  # of one output: enough for any log a person would read


@dataclass(frozen=True, slots=True)
class Failure:
    """One kind of failure: the last time it happened, how often, and what came of it."""

    tool_call: ToolCall
    lines: tuple[str, ...]
    times: int
    next_text: AssistantText | None
    next_tool_calls: tuple[ToolCall, ...]
    is_resolved: bool

    @property
    def is_corrected_request(self) -> bool:
        """Return whether the request itself was malformed and a later one went through: no reader needs to know."""
        return self.is_resolved and self.tool_call.is_error and self.tool_call.output.startswith(f"<{TOOL_ERROR}>")

    @property
    def entry_uuid(self) -> str | None:
        """The entry that holds the failing result."""
        return (self.tool_call.result_entry or self.tool_call.entry).uuid


def read_failures(activity: Activity) -> tuple[Failure, ...]:
    """Return every distinct failure in the order of its last occurrence."""
    tool_calls = activity.tool_calls
    failing = {number: lines for number, tool_call in enumerate(tool_calls) if (lines := read_failure(tool_call))}
    groups: dict[str, list[int]] = {}
    for number, lines in failing.items():
        groups.setdefault(_sign_failure(tool_calls[number], lines), []).append(number)
    successes = {
        _sign_request(tool_call): number
        for number, tool_call in enumerate(tool_calls)
        if number not in failing and tool_call.result is not None
    }
    failures = [
        _build_failure(activity, numbers, failing[numbers[-1]], successes=successes) for numbers in groups.values()
    ]
    return tuple(sorted(failures, key=lambda failure: failure.tool_call.entry_index))


def read_failure(tool_call: ToolCall) -> tuple[str, ...]:
    """Return the lines that name what failed; none for a success and for a person's refusal."""
    if tool_call.result is None or read_reply(tool_call.name, tool_call.result):
        return ()
    is_run = tool_call.command is not None and not is_read_only(tool_call.command)
    if not tool_call.is_error and not is_run:
        return ()
    lines = [_TAGS.sub("", line).strip() for line in _split_output(tool_call.output)]
    failing = _choose_failing_lines(lines)
    if failing or not tool_call.is_error:
        return failing
    return tuple([line for line in lines if line][:4]) or (NO_MESSAGE,)


def _choose_failing_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines that name what failed, short ones with the lines below; else those that count failures."""
    text = "\n".join(lines)
    may_name = any(words in text for words in _FAILURE_WORDS)
    named = [
        index
        for index, line in enumerate(lines)
        if _STARTS_FAILURE.match(line) or (may_name and _NAMES_FAILURE.search(line))
    ]
    # A bare heading says little where other lines say more.
    named = [index for index in named if not _HEADING.fullmatch(lines[index])] or named
    chosen: dict[str, None] = {}
    for index in named:
        chosen[lines[index]] = None
        if len(lines[index]) < _SHORT_LINE:
            chosen.update(dict.fromkeys([below for below in lines[index + 1 : index + 5] if len(below) > 1][:2]))
        if len(chosen) >= _MOST_NAMED:
            break
    may_count = any(words in text.lower() for words in _COUNTED)
    counting = [
        line for line in lines if may_count and _COUNTING.search(line) and not (chosen and line.startswith("Exit code"))
    ]
    if not chosen:
        return tuple(counting[:2])
    return tuple(dict.fromkeys((*chosen, *counting[-1:])))


def _split_output(output: str) -> Sequence[str]:
    # Some hooks write their line breaks as two characters.
    lines = output.replace("\\n", "\n").splitlines()
    return lines if len(lines) <= _MOST_LINES else lines[: _MOST_LINES // 2] + lines[-_MOST_LINES // 2 :]


def _build_failure(
    activity: Activity, numbers: Sequence[int], lines: tuple[str, ...], *, successes: Mapping[str, int]
) -> Failure:
    last = numbers[-1]
    tool_call = activity.tool_calls[last]
    texts = activity.assistant_texts
    after = bisect_right(texts, tool_call.entry_index, key=lambda text: text.entry_index)
    return Failure(
        tool_call=tool_call,
        lines=lines,
        times=len(numbers),
        next_text=texts[after] if after < len(texts) else None,
        next_tool_calls=activity.tool_calls[last + 1 : last + 3],
        is_resolved=successes.get(_sign_request(tool_call), -1) > last,
    )


def _sign_failure(tool_call: ToolCall, lines: Sequence[str]) -> str:
    """Return the same text for failures of one kind: the tool and its first lines, numbers aside."""
    return tool_call.name + _NUMBERS.sub("#", " ".join(lines[:2]))[:300]


def _sign_request(tool_call: ToolCall) -> str:
    """Return the same text for similar requests: the file, or program and first argument (`git commit`)."""
    if tool_call.command is not None:
        return f"{tool_call.name} {' '.join(trim_command(tool_call.command).split()[:2])}"
    return f"{tool_call.name} {tool_call.path}" if tool_call.path else f"{tool_call.name} {tool_call.use.id}"
