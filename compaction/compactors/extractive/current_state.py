"""Sections 8 and 9: how things are at the very end (commits, checks, last steps, last words), and the next step."""

import re
from collections import Counter
from collections.abc import Sequence

from compaction.activity.checks import Check, CheckKind
from compaction.activity.commits import is_commit_attempt
from compaction.activity.excerpts import (
    cut_lines,
    cut_middle,
    cut_text,
    describe_action,
    is_change,
    shorten_path,
    shows_only,
    take_line,
)
from compaction.activity.failures import Failure, read_failure
from compaction.activity.recent import list_commands, list_recent_tool_calls, list_symbols
from compaction.activity.sentences import drop_code_blocks, drop_openings, split_sentences
from compaction.activity.tickets import Ticket, TicketState
from compaction.activity.tool_calls import ToolCall
from compaction.compactors.extractive.errors import describe_error, list_error_lines, pick_error_lines
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.pending import find_announced_rest, has_ended, is_begun, list_background_lines
from compaction.compactors.extractive.sections import Section, SummaryItem, quote, quote_in_line
from compaction.compactors.extractive.turn import list_turn_lines
from compaction.transcripts.client_protocol import AGENT_TOOLS, ToolName

LAST_STEPS = 10
# Tools that only keep lists: the lists themselves are in section 7.
_LIST_TOOLS = frozenset(
    {
        ToolName.TODO_WRITE, ToolName.TASK_CREATE, ToolName.TASK_UPDATE, ToolName.TASK_LIST, ToolName.TASK_GET,
        ToolName.TOOL_SEARCH,
    }
)  # fmt: skip
_OUTPUT_LINES = 10
_LAST_WORDS_CHARACTERS = 2_400
_MOST_CHECKS = 4
_MOST_COMMANDS = 8
_TREE = re.compile(r"\bgit status\b")
_PUSH = re.compile(r"\bgit push\b")


def list_current_items(material: Material) -> list[SummaryItem]:
    """Return the state of commits and checks, the last steps with their results, and the agent's last words."""
    work = material.work
    lines = [*_describe_commits(material), *_describe_checks(material), *list_background_lines(material)]
    actions = list_recent_tool_calls(work)
    steps = [action for action in actions if action.name not in _LIST_TOOLS][-LAST_STEPS:]
    if steps:
        lines.append("- The last steps, oldest first:")
        lines += [f"  - {describe_action(action, material.cwd)}{_describe_result(action)}" for action in steps]
    shown = {action.entry.uuid for action in steps}
    commands = [f"`{cut_text(trace.text, 90)}`" for trace in list_commands(actions) if trace.entry_uuid not in shown]
    symbols = [f"`{trace.text}`" for trace in list_symbols(actions)]
    if commands:
        lines.append(f"- Commands run shortly before, newest first: {', '.join(commands[:_MOST_COMMANDS])}")
    if symbols:
        lines.append(f"- Names written lately: {', '.join(symbols)}")
    lines += _show_last_output(material)
    lines += list_turn_lines(material)
    if work.remarks:
        lines.append("- The agent's last words:")
        lines.append(quote(cut_middle(_take_last_words(material), _LAST_WORDS_CHARACTERS)))
    return [SummaryItem(Section.CURRENT_WORK, "\n".join(lines))] if lines else []


def list_next_items(material: Material) -> list[SummaryItem]:
    """Return the step that follows from the state of things, always with the words it rests on."""
    text = _find_next_step(material)
    return [SummaryItem(Section.NEXT_STEP, f"- {text}")] if text else []


def _take_last_words(material: Material) -> str:
    """Return the last words without code and the part that section 7 quotes."""
    text = material.work.remarks[-1].text
    if (left := find_announced_rest(material)) and left in text:
        text = text.replace(left, "[what is left: section 7]")
    return drop_openings(drop_code_blocks(text))


def _describe_commits(material: Material) -> list[str]:
    """Return what was committed last and which changes came after it; one line where nothing was committed."""
    after = [action for action in material.changes if action.place > material.last_commit_place]
    if not material.changes and not material.commits:
        return []
    files = Counter(shorten_path(action.path or "", material.cwd) for action in after)
    named = ", ".join(f"{path} ({times} changes)" if times > 1 else path for path, times in files.items())
    lines = []
    if material.commits:
        last = material.commits[-1]
        when = f" at {last.at:%H:%M}" if last.at else ""
        lines.append(f"- The last commit: {last.revision}{when}{_describe_push(material)}.")
        if after:
            lines.append(f"- NOT committed yet, changed since: {named}.")
        elif not _is_changing(material):
            lines.append("- Nothing was changed since that commit.")
    else:
        lines.append(f"- No commit was seen; changed files are NOT committed: {named}.")
    if failure := _find_failed_commit(material):
        said = describe_error(list_error_lines(failure), 200)
        lines.append(f"- The last attempt to commit failed: {said}.")
    return lines


def _is_changing(material: Material) -> bool:
    """Return whether the last request changes a file and its result is not known yet."""
    last = material.work.actions[-1] if material.work.actions else None
    return last is not None and last.result is None and is_change(last)


def _describe_push(material: Material) -> str:
    for action in reversed(material.work.actions):
        if action.command and _PUSH.search(action.command) and action.result is not None:
            is_after = action.place >= material.last_commit_place
            return (
                ", pushed"
                if is_after and not action.is_refused and not read_failure(action)
                else ", not seen to be pushed"
            )
    return ""


def _find_failed_commit(material: Material) -> Failure | None:
    for failure in reversed(material.failures):
        if failure.action.place <= material.last_commit_place:
            return None
        if failure.action.command and is_commit_attempt(failure.action.command):
            return failure
    return None


def _describe_checks(material: Material) -> list[str]:
    """Return the newest runs of tests, linters and builds with their verdict, and what was not checked since."""
    lines = []
    if material.changes:
        last = material.changes[-1]
        run_since = {kind for check in material.checks if check.changes_after == 0 for kind in check.kinds}
        missing = [str(kind) for kind in CheckKind if kind not in run_since]
        path = shorten_path(last.path or "", material.cwd)
        when = f" at {last.entry.at:%H:%M}" if last.entry.at else ""
        if not run_since:
            lines.append(f"- NOT tested yet: after the last change ({path}{when}) no tests, lint or build were run.")
        elif CheckKind.TESTS in missing:
            lines.append(f"- After the last change ({path}{when}) no tests were run.")
    if material.checks:
        lines.append("- The last checks, newest first:")
        lines += [f"  - {_describe_check(check)}" for check in material.checks[:_MOST_CHECKS]]
    return lines


def _describe_check(check: Check) -> str:
    when = f" at {check.action.entry.at:%H:%M}" if check.action.entry.at else ""
    command = describe_action(check.action).removeprefix("ran ")
    ended = "FAILED" if check.is_failed else "no failure reported"
    verdict = "; ".join(quote_in_line(line) for line in check.verdict) or "no output"
    since = f"; {check.changes_after} changes to files since" if check.changes_after else ""
    return f"{cut_text(command, 110)}{when}: {ended}: {verdict}{since}"


def _describe_result(action: ToolCall) -> str:
    if action.result is None:
        return " (no result yet)"
    lines = pick_error_lines(failing, action.output) if (failing := read_failure(action)) else []
    if lines:
        return f" -> failed: {describe_error(lines, 140)}"
    if action.path:
        return ""
    # A command says last how it ended, an agent says so first.
    printed = [line.strip() for line in action.output.splitlines() if line.strip()]
    shown = printed[0 if action.name in AGENT_TOOLS else -1] if printed else ""
    return f" -> {quote_in_line(cut_text(shown, 100))}" if shown else ""


def _show_last_output(material: Material) -> list[str]:
    """Return the end of the last output, and the working tree where it was shown after the last change and commit."""
    lines = []
    actions = material.work.actions
    last = actions[-1] if actions else None
    if last is not None and last.output.strip() and last.path is None and last.name not in _LIST_TOOLS:
        # A command says last how it ended, a search says first what it found.
        is_command = last.command is not None
        printed = last.output.replace(f"{material.cwd}/", "").strip().splitlines()
        part = printed[-_OUTPUT_LINES:] if is_command else printed[:_OUTPUT_LINES]
        title = "The end of the last output" if is_command else "The beginning of the last output"
        lines += [f"- {title}:", quote("\n".join(cut_text(line, 200) for line in part))]
    since = max([material.last_commit_place, *(change.place for change in material.changes[-1:])])
    tree = next(
        (act for act in reversed(actions) if act.command and _TREE.search(act.command) and act.output.strip()), None
    )
    if tree is not None and tree is not last and tree.place > since and not tree.is_refused:
        lines += ["- The working tree when last shown:", quote(cut_lines(tree.output.strip(), 14, 900))]
    return lines


def _find_next_step(material: Material) -> str:
    work = material.work
    if work.said and not is_begun(work):
        return f"Do what was asked last and is not begun: {quote_in_line(cut_text(work.said[-1].text, 600))}"
    left = find_announced_rest(material)
    parts = [_describe_open_failure(material), _describe_open_task(material)]
    if left:
        parts.append(f"The agent's last words name what is left: {quote_in_line(cut_text(left, 300))}.")
    elif work.remarks and not has_ended(work):
        parts.append(f"The agent had just said {quote_in_line(_take_last_sentence(material))}.")
    if not has_ended(work):
        if work.actions:
            parts.append(f"The last thing done: {describe_action(work.actions[-1], material.cwd)}.")
        if work.said:
            parts.append(f"This serves message {len(work.said)}: {quote_in_line(cut_text(work.said[-1].text, 240))}.")
    elif not any(parts):
        parts.append("The last turn had ended: wait for the next message.")
    return " ".join(part for part in parts if part)


def _describe_open_failure(material: Material) -> str:
    work = material.work
    if not has_ended(work) and work.actions and (failing := read_failure(work.actions[-1])):
        lines = pick_error_lines(failing, work.actions[-1].output)
        return f"The last step failed ({describe_error(lines, 200)}): put that right first."
    if failure := _find_failed_commit(material):
        return f"The commit was not seen to go through: {describe_error(list_error_lines(failure), 200)}."
    ends = [failure for failure in material.list_reported_failures() if _is_open_end(failure)]
    return f"Not seen to go through yet: {describe_error(list_error_lines(ends[-1]), 200)}." if ends else ""


def _is_open_end(failure: Failure) -> bool:
    """Return whether a command that did something was not seen to go through; one that prints its status only tried."""
    command = failure.action.command
    return not failure.is_resolved and command is not None and not shows_only(command) and "$?" not in command


def _describe_open_task(material: Material) -> str:
    todo = next((todo for todo in material.todos if todo.state == "in_progress"), None)
    if todo is not None:
        return f"Go on with the todo in progress: {quote_in_line(todo.text)}."
    ticket = next((each for each in _list_leaves(material) if each.state is TicketState.IN_PROGRESS), None)
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


def _take_last_sentence(material: Material) -> str:
    sentences = split_sentences(material.work.remarks[-1].text)
    return cut_text(take_line(sentences[-1]), 300) if sentences else ""
