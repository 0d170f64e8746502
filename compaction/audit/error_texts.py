"""Errors that a continuing agent should know: their texts, never exit codes nor requests that the client refused."""

import re
from collections.abc import Iterator

from compaction.activity.tool_calls import Activity, ToolCall
from compaction.activity.user_messages import read_reply
from compaction.audit.passage_search import RetainedText
from compaction.audit.statements import AuditStatement, Part, measure_substance
from compaction.audit.terms import list_terms
from compaction.transcripts.client_protocol import TOOL_ERROR

# A line that names a failure. A stack frame or a count of failures does not.
_ERROR_LINE = re.compile(
    r"^(?:E {3}|[\w./:-]{1,200}: ?)?(?:[A-Z][\w.]{2,60}(?:Error|Exception)\b|\*\* \([\w.]{1,80}Error\)"
    r"|(?:fatal )?error(?:\[\w{1,12}\])?:"
    r"|fatal:|panic:|FAIL(?:ED)?\b|--- FAIL|npm ERR!|[✕✗✘] |not ok \d)"
    r"|error (?:TS|E)\d{3,5}|command not found|No such file or directory|[Pp]ermission denied|CONFLICT \("
    r"|[Uu]ndefined (?:function|variable|reference|name|symbol)|is not defined\b|\bundefined: \w|does not exist"
)
_NO_ERROR = re.compile(r"\b0 (?:errors?|failures?|failed)\b|^(?:at |File \"|#|//|\*)|^FAIL(?:ED)?$|^warning:")
_SHOWS_TEXT = re.compile(
    r"^\s*(?:cd [^&;|]{1,200}&&\s*)?(?:cat|head|tail|less|sed|grep|rg|ag|ls|find|echo|git (?:log|diff|show|blame))\b"
)
_CUT = re.compile(r"\.\.\. \[\d{1,12} characters truncated\] \.\.\.")
_NUMBERS = re.compile(r"\d+")
_TAGS = re.compile(rf"</?{TOOL_ERROR}>")
_MOST_LINES = 3  # of one result
_MOST_ERRORS = 15
_LONGEST_LINE = 250  # characters: longer lines are data
_LEAST_SUBSTANCE = 2.5
_LAST_STEPS = 5  # an error in these may not be solved yet
_OPEN_WEIGHT, _SOLVED_WEIGHT = 2.0, 1.0


def select_errors(activity: Activity) -> Iterator[AuditStatement]:
    """Yield distinct error texts that a message mentions, and those of the last steps, the newest first."""
    messages = RetainedText("\n".join(message.text for message in activity.messages))
    errors: dict[str, AuditStatement] = {}
    for steps_after, tool_call in enumerate(reversed(activity.tool_calls)):
        is_last = steps_after < _LAST_STEPS
        for line in read_error_lines(tool_call):
            terms = list_terms(line)
            if measure_substance(terms) < _LEAST_SUBSTANCE:
                continue
            if not is_last and not messages.find_statement(line, terms).is_found:
                continue  # never mentioned: nothing is lost without it
            uuid = (tool_call.result_entry or tool_call.entry).uuid
            weight = _OPEN_WEIGHT if is_last else _SOLVED_WEIGHT
            errors.setdefault(_NUMBERS.sub("#", line)[:120], AuditStatement(Part.ERRORS, line, uuid, weight, terms))
        if len(errors) >= _MOST_ERRORS:
            break
    yield from errors.values()


def read_error_lines(tool_call: ToolCall) -> list[str]:
    """Return the lines of a result that name what failed; none for a person's refusal or a malformed tool request."""
    if tool_call.result is None or read_reply(tool_call.name, tool_call.result):
        return []
    output = tool_call.output
    if tool_call.is_error and f"<{TOOL_ERROR}>" in output:
        return []  # the client refused the request itself: the agent corrects it in the next call
    is_command = tool_call.command is not None and not _SHOWS_TEXT.match(tool_call.command)
    if not is_command and not tool_call.is_error:
        return []
    lines = _list_whole_lines(output)
    named = [
        line for line in lines if len(line) <= _LONGEST_LINE and _ERROR_LINE.search(line) and not _NO_ERROR.search(line)
    ]
    return list(dict.fromkeys(named))[:_MOST_LINES]


def _list_whole_lines(output: str) -> list[str]:
    """Return the lines with text; those that end or begin where the client cut the output are no whole ones."""
    lines = [line for line in (_TAGS.sub("", line).strip() for line in output.splitlines()) if line]
    marks = [index for index, line in enumerate(lines) if _CUT.match(line)]
    halves = {index + step for index in marks for step in (-1, 0, 1)}
    return [line for index, line in enumerate(lines) if index not in halves]
