"""Sections 8 and 9: the state at the end (commits, checks, last steps, last text), and the next step.

A turn may hold hundreds of tool calls, so only the last ones of the last three turns count as recent.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from compaction.activity.commits_and_checks import CheckKind, CheckRun, is_commit_attempt
from compaction.activity.excerpts import (
    cut_line,
    cut_middle,
    cut_text,
    describe_tool_call,
    is_read_only,
    shorten_path,
    trim_command,
)
from compaction.activity.failures import Failure, read_failure
from compaction.activity.sentences import drop_code_blocks, drop_openings, split_sentences
from compaction.activity.tickets import Ticket, TicketState
from compaction.activity.tool_calls import Activity, ToolCall, list_definitions
from compaction.compactors.extractive.errors import choose_error_lines, describe_error, list_error_lines
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.pending import (
    find_remaining_work,
    has_turn_ended,
    is_last_message_begun,
    list_background_lines,
    list_turn_lines,
)
from compaction.compactors.extractive.sections import SummaryItem, describe_time, quote, quote_in_line
from compaction.compactors.summary.prompt import Section
from compaction.transcripts.client_protocol import AGENT_TOOLS, ToolName

LAST_TURNS = 3
LAST_TOOL_CALLS = 25  # the product's: what a person would call "just now" in a turn of hundreds of calls
LAST_STEPS = 10
MOST_SYMBOLS = 20
MOST_COMMANDS = 12
# Tools that only change lists: the lists themselves are under pending tasks.
_LIST_TOOLS = frozenset(
    {
        ToolName.TODO_WRITE, ToolName.TASK_CREATE, ToolName.TASK_UPDATE, ToolName.TASK_LIST, ToolName.TASK_GET,
        ToolName.TOOL_SEARCH,
    }
)  # fmt: skip
_OUTPUT_LINES = 10
_LAST_TEXT_CHARACTERS = 2_400
_MOST_CHECKS = 4
_COMMANDS_SHOWN = 8
_TREE = re.compile(r"\bgit status\b")
_PUSH = re.compile(r"\bgit push\b")


@dataclass(frozen=True, slots=True)
class CitedText:
    """One command or symbol and the entry that last held it."""

    text: str
    entry_uuid: str | None


def list_current_items(material: Material) -> list[SummaryItem]:
    """Return the state of commits and checks, the last steps with their results, and the agent's last text."""
    activity = material.activity
    lines = [*_describe_commits(material), *_describe_checks(material), *list_background_lines(material)]
    tool_calls = list_recent_tool_calls(activity)
    steps = [tool_call for tool_call in tool_calls if tool_call.name not in _LIST_TOOLS][-LAST_STEPS:]
    if steps:
        lines.append("- The last steps, oldest first:")
        lines += [
            f"  - {describe_tool_call(tool_call, material.cwd)}{_describe_result(tool_call)}" for tool_call in steps
        ]
    shown = {tool_call.entry.uuid for tool_call in steps}
    commands = [
        f"`{cut_text(command.text, 90)}`" for command in list_commands(tool_calls) if command.entry_uuid not in shown
    ]
    symbols = [f"`{symbol.text}`" for symbol in list_symbols(tool_calls)]
    if commands:
        lines.append(f"- Commands run shortly before, newest first: {', '.join(commands[:_COMMANDS_SHOWN])}")
    if symbols:
        lines.append(f"- Names written lately: {', '.join(symbols)}")
    lines += _show_last_output(material)
    lines += list_turn_lines(material)
    if activity.assistant_texts:
        lines.append("- The agent's last words:")
        lines.append(quote(cut_middle(_trim_last_text(material), _LAST_TEXT_CHARACTERS)))
    return [SummaryItem(Section.CURRENT_WORK, "\n".join(lines))] if lines else []


def list_next_items(material: Material) -> list[SummaryItem]:
    """Return the step that follows from the state, always with the quotation it follows from."""
    text = _describe_next_step(material)
    return [SummaryItem(Section.NEXT_STEP, f"- {text}")] if text else []


def list_recent_tool_calls(activity: Activity, count: int = LAST_TOOL_CALLS) -> tuple[ToolCall, ...]:
    """Return the last tool calls of the last three turns, oldest first."""
    recent = [tool_call for tool_call in activity.tool_calls if tool_call.turn > activity.last_turn - LAST_TURNS]
    return tuple(recent[-count:])


def list_commands(tool_calls: Sequence[ToolCall], most: int = MOST_COMMANDS) -> tuple[CitedText, ...]:
    """Return commands that did something, without their wrapping, newest first, each once."""
    commands: dict[str, CitedText] = {}
    for tool_call in reversed(tool_calls):
        command = trim_command(tool_call.command) if tool_call.command else ""
        if len(command) > 1 and not is_read_only(command):
            commands.setdefault(command, CitedText(command, tool_call.entry.uuid))
    return tuple(commands.values())[:most]


def list_symbols(tool_calls: Sequence[ToolCall], most: int = MOST_SYMBOLS) -> tuple[CitedText, ...]:
    """Return names defined in changed code, newest first, each once."""
    symbols: dict[str, CitedText] = {}
    for tool_call in reversed(tool_calls):
        if tool_call.is_file_change:
            for text in tool_call.list_new_texts():
                for name in list_definitions(text):
                    symbols.setdefault(name, CitedText(name, tool_call.entry.uuid))
    return tuple(symbols.values())[:most]


def _trim_last_text(material: Material) -> str:
    """Return the last text without code and the part that is quoted under pending tasks."""
    text = material.activity.assistant_texts[-1].text
    if (remaining := find_remaining_work(material)) and remaining in text:
        text = text.replace(remaining, f"[what is left: section {Section.PENDING}]")
    return drop_openings(drop_code_blocks(text))


def _describe_commits(material: Material) -> list[str]:
    """Return what was committed last and which changes came after it; one line where nothing was committed."""
    after = [tool_call for tool_call in material.changes if tool_call.entry_index > material.last_commit_index]
    if not material.changes and not material.commits:
        return []
    files = Counter(shorten_path(tool_call.path or "", material.cwd) for tool_call in after)
    paths = ", ".join(f"{path} ({times} changes)" if times > 1 else path for path, times in files.items())
    lines = []
    if material.commits:
        last = material.commits[-1]
        lines.append(f"- The last commit: {last.revision}{describe_time(last.at)}{_describe_push(material)}.")
        if after:
            lines.append(f"- NOT committed yet, changed since: {paths}.")
        elif not _is_changing(material):
            lines.append("- Nothing was changed since that commit.")
    else:
        lines.append(f"- No commit was seen; changed files are NOT committed: {paths}.")
    if failure := _find_failed_commit(material):
        error = describe_error(list_error_lines(failure), 200)
        lines.append(f"- The last attempt to commit failed: {error}.")
    return lines


def _is_changing(material: Material) -> bool:
    """Return whether the last request changes a file and has no result yet."""
    return any(last.result is None and last.is_file_change for last in material.activity.tool_calls[-1:])


def _describe_push(material: Material) -> str:
    for tool_call in reversed(material.activity.tool_calls):
        if tool_call.command and _PUSH.search(tool_call.command) and tool_call.result is not None:
            is_after = tool_call.entry_index >= material.last_commit_index
            return (
                ", pushed"
                if is_after and not tool_call.is_error and not read_failure(tool_call)
                else ", not seen to be pushed"
            )
    return ""


def _find_failed_commit(material: Material) -> Failure | None:
    for failure in reversed(material.failures):
        if failure.tool_call.entry_index <= material.last_commit_index:
            return None
        if failure.tool_call.command and is_commit_attempt(failure.tool_call.command):
            return failure
    return None


def _describe_checks(material: Material) -> list[str]:
    """Return the newest runs of tests, linters and builds with their verdict, and what was not checked since."""
    lines = []
    if material.changes:
        last = material.changes[-1]
        kinds_since = {kind for check in material.checks if check.changes_after == 0 for kind in check.kinds}
        path = shorten_path(last.path or "", material.cwd)
        change = f"{path}{describe_time(last.entry.at)}"
        if not kinds_since:
            lines.append(f"- NOT tested yet: after the last change ({change}) no tests, lint or build were run.")
        elif CheckKind.TESTS not in kinds_since:
            lines.append(f"- After the last change ({change}) no tests were run.")
    if material.checks:
        lines.append("- The last checks, newest first:")
        lines += [f"  - {_describe_check(check)}" for check in material.checks[:_MOST_CHECKS]]
    return lines


def _describe_check(check: CheckRun) -> str:
    command = describe_tool_call(check.tool_call).removeprefix("ran ")
    state = "FAILED" if check.is_failed else "no failure reported"
    verdict = "; ".join(quote_in_line(line) for line in check.verdict) or "no output"
    since = f"; {check.changes_after} changes to files since" if check.changes_after else ""
    return f"{cut_text(command, 110)}{describe_time(check.tool_call.entry.at)}: {state}: {verdict}{since}"


def _describe_result(tool_call: ToolCall) -> str:
    if tool_call.result is None:
        return " (no result yet)"
    lines = choose_error_lines(failing, tool_call.output) if (failing := read_failure(tool_call)) else []
    if lines:
        return f" -> failed: {describe_error(lines, 140)}"
    if tool_call.path:
        return ""
    # A command prints its outcome last, an agent writes it first.
    printed = [line.strip() for line in tool_call.output.splitlines() if line.strip()]
    shown = printed[0 if tool_call.name in AGENT_TOOLS else -1] if printed else ""
    return f" -> {quote_in_line(cut_text(shown, 100))}" if shown else ""


def _show_last_output(material: Material) -> list[str]:
    """Return the end of the last output, and the working tree where it was shown after the last change and commit."""
    lines = []
    tool_calls = material.activity.tool_calls
    last = tool_calls[-1] if tool_calls else None
    if last is not None and last.output.strip() and last.path is None and last.name not in _LIST_TOOLS:
        # A command prints its outcome last, a search lists its best matches first.
        is_command = last.command is not None
        printed = last.output.replace(f"{material.cwd}/", "").strip().splitlines()
        part = printed[-_OUTPUT_LINES:] if is_command else printed[:_OUTPUT_LINES]
        title = "The end of the last output" if is_command else "The beginning of the last output"
        lines += [f"- {title}:", quote("\n".join(cut_text(line, 200) for line in part))]
    since = max([material.last_commit_index, *(change.entry_index for change in material.changes[-1:])])
    tree = next(
        (call for call in reversed(tool_calls) if call.command and _TREE.search(call.command) and call.output.strip()),
        None,
    )
    if tree is not None and tree is not last and tree.entry_index > since and not tree.is_error:
        lines += ["- The working tree when last shown:", quote(cut_text(tree.output.strip(), 900, lines=14))]
    return lines


def _describe_next_step(material: Material) -> str:
    activity = material.activity
    if activity.user_messages and not is_last_message_begun(activity):
        return (
            f"Do what was asked last and is not begun: {quote_in_line(cut_text(activity.user_messages[-1].text, 600))}"
        )
    remaining = find_remaining_work(material)
    parts = [_describe_open_failure(material), _describe_open_task(material)]
    if remaining:
        parts.append(f"The agent's last words name what is left: {quote_in_line(cut_text(remaining, 300))}.")
    elif activity.assistant_texts and not has_turn_ended(activity):
        parts.append(f"The agent had just said {_quote_last_sentence(material)}.")
    if not has_turn_ended(activity):
        if activity.tool_calls:
            parts.append(f"The last thing done: {describe_tool_call(activity.tool_calls[-1], material.cwd)}.")
        if activity.user_messages:
            number, message = len(activity.user_messages), activity.user_messages[-1]
            parts.append(f"This serves message {number}: {quote_in_line(cut_text(message.text, 240))}.")
    elif not any(parts):
        parts.append("The last turn had ended: wait for the next message.")
    return " ".join(part for part in parts if part)


def _describe_open_failure(material: Material) -> str:
    activity = material.activity
    if not has_turn_ended(activity) and activity.tool_calls and (failing := read_failure(activity.tool_calls[-1])):
        lines = choose_error_lines(failing, activity.tool_calls[-1].output)
        return f"The last step failed ({describe_error(lines, 200)}): put that right first."
    if failure := _find_failed_commit(material):
        return f"The commit was not seen to go through: {describe_error(list_error_lines(failure), 200)}."
    failures = [failure for failure in material.list_reported_failures() if _is_unresolved_command(failure)]
    return f"Not seen to go through yet: {describe_error(list_error_lines(failures[-1]), 200)}." if failures else ""


def _is_unresolved_command(failure: Failure) -> bool:
    """Return whether a command that did something never went through; one that prints its status was only a probe."""
    command = failure.tool_call.command
    return not failure.is_resolved and command is not None and not is_read_only(command) and "$?" not in command


def _describe_open_task(material: Material) -> str:
    todo = next((todo for todo in material.todos if todo.state == "in_progress"), None)
    if todo is not None:
        return f"Go on with the todo in progress: {quote_in_line(todo.text)}."
    ticket = next((leaf for leaf in _list_leaves(material) if leaf.state is TicketState.IN_PROGRESS), None)
    if ticket is not None:
        return f"Go on with ticket {ticket.id}, which is in progress: {quote_in_line(ticket.title)}."
    todo = next((todo for todo in material.todos if todo.is_open), None)
    if todo is not None:
        return f"The first open todo is {quote_in_line(todo.text)}."
    ticket = next(iter(_list_leaves(material)), None)
    return f"The first open ticket is {ticket.id}: {quote_in_line(ticket.title)}." if ticket is not None else ""


def _list_leaves(material: Material) -> Sequence[Ticket]:
    """Return open tickets that have no others under them."""
    parents = material.parent_ids
    return [ticket for ticket in material.open_tickets if ticket.id not in parents]


def _quote_last_sentence(material: Material) -> str:
    sentences = split_sentences(material.activity.assistant_texts[-1].text)
    return quote_in_line(cut_text(cut_line(sentences[-1]), 300) if sentences else "")
