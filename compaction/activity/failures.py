"""What went wrong: refused requests, commands whose output says so, what was done next, and how it ended.

Output of commands that only show text (grep, cat, git log) is never taken for a failure.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from compaction.activity.excerpts import shows_only, trim_command
from compaction.activity.tool_calls import Activity, AssistantText, ToolCall
from compaction.activity.user_messages import read_reply
from compaction.transcripts.client_protocol import TOOL_ERROR

# Words by which tools of the common languages say what failed, and by which they only count how often.
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
NO_MESSAGE = "failed without a message"  # our words: never quoted
_SHORT_LINE = 90  # a heading: what failed stands below it
_MOST_TELLING = 5
_MOST_LINES = 4_000  # of one output: enough for any log a person would read


@dataclass(frozen=True, slots=True)
class Failure:
    """One kind of failure: the last time it happened, how often, and what came of it."""

    action: ToolCall
    lines: tuple[str, ...]
    times: int
    remark: AssistantText | None
    next_actions: tuple[ToolCall, ...]
    is_resolved: bool

    @property
    def is_slip(self) -> bool:
        """A wrongly made request that was put right: nothing a successor has to know."""
        return self.is_resolved and self.action.is_refused and self.action.output.startswith(f"<{TOOL_ERROR}>")

    @property
    def entry_uuid(self) -> str | None:
        """The entry that holds the failing result."""
        return (self.action.result_entry or self.action.entry).uuid


def find_failures(work: Activity) -> tuple[Failure, ...]:
    """Every distinct failure in the order it was last seen."""
    failing = {index: lines for index, action in enumerate(work.actions) if (lines := read_failure(action))}
    groups: dict[str, list[int]] = {}
    for index, lines in failing.items():
        groups.setdefault(_sign(work.actions[index], lines), []).append(index)
    went_through = {
        _name_request(action): index
        for index, action in enumerate(work.actions)
        if index not in failing and action.result is not None
    }
    found = [_tell(work, indexes, failing, went_through) for indexes in groups.values()]
    return tuple(sorted(found, key=lambda failure: failure.action.place))


def read_failure(action: ToolCall) -> tuple[str, ...]:
    """The lines that say what failed; none for an action that went well. A person's refusal is not a failure."""
    if action.result is None or read_reply(action.name, action.result):
        return ()
    is_run = action.command is not None and not shows_only(action.command)
    if not action.is_refused and not is_run:
        return ()
    lines = [_TAGS.sub("", line).strip() for line in _split_output(action.output)]
    picked = _pick_lines(lines)
    if picked or not action.is_refused:
        return picked
    return tuple([line for line in lines if line][:4]) or (NO_MESSAGE,)


def _pick_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines that tell what failed, short ones with what stands under them; else those that count failures."""
    text = "\n".join(lines)
    may_name = any(words in text for words in _FAILURE_WORDS)
    telling = [
        index
        for index, line in enumerate(lines)
        if _STARTS_FAILURE.match(line) or (may_name and _NAMES_FAILURE.search(line))
    ]
    # A bare heading says little where other lines say more.
    proper = [index for index in telling if not _HEADING.fullmatch(lines[index])] or telling
    picked: dict[str, None] = {}
    for index in proper:
        picked[lines[index]] = None
        if len(lines[index]) < _SHORT_LINE:
            picked.update(dict.fromkeys([below for below in lines[index + 1 : index + 5] if len(below) > 1][:2]))
        if len(picked) >= _MOST_TELLING:
            break
    may_count = any(words in text.lower() for words in _COUNTED)
    counting = [
        line for line in lines if may_count and _COUNTING.search(line) and not (picked and line.startswith("Exit code"))
    ]
    if not picked:
        return tuple(counting[:2])
    return tuple(dict.fromkeys((*picked, *counting[-1:])))


def _split_output(output: str) -> Sequence[str]:
    # Some hooks write their line breaks as two characters.
    lines = output.replace("\\n", "\n").splitlines()
    return lines if len(lines) <= _MOST_LINES else lines[: _MOST_LINES // 2] + lines[-_MOST_LINES // 2 :]


def _sign(action: ToolCall, lines: Sequence[str]) -> str:
    """What makes two failures one: the same tool saying the same first lines, numbers aside."""
    return action.name + _NUMBERS.sub("#", " ".join(lines[:2]))[:300]


def _tell(
    work: Activity, indexes: Sequence[int], failing: dict[int, tuple[str, ...]], went_through: dict[str, int]
) -> Failure:
    last = indexes[-1]
    action = work.actions[last]
    after = bisect_right(work.remarks, action.place, key=lambda remark: remark.place)
    return Failure(
        action=action,
        lines=failing[last],
        times=len(indexes),
        remark=work.remarks[after] if after < len(work.remarks) else None,
        next_actions=work.actions[last + 1 : last + 3],
        is_resolved=went_through.get(_name_request(action), -1) > last,
    )


def _name_request(action: ToolCall) -> str:
    """What makes two requests alike: the file, or program and first argument (`git commit -m ...` is `git commit`)."""
    if action.command is not None:
        return f"{action.name} {' '.join(trim_command(action.command).split()[:2])}"
    return f"{action.name} {action.path}" if action.path else f"{action.name} {action.use.id}"
