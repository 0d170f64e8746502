"""Where it stands, in a summary made without a model: what is pending, the last work, the next step with a quote."""

import re
from collections.abc import Sequence

from compaction.compactors.digest import (
    cut_lines,
    cut_middle,
    cut_text,
    describe_action,
    shows_only,
    take_line,
    trim_command,
)
from compaction.compactors.extract_pieces import Piece, quote, quote_in_line
from compaction.compactors.failures import Failure, read_failure
from compaction.compactors.last_work import list_commands, list_symbols, take_last_actions
from compaction.compactors.matching import split_sentences
from compaction.compactors.todos import Todo
from compaction.compactors.work import Action, Work
from compaction.transcripts.client_protocol import AGENT_TOOLS, ToolName

LAST_STEPS = 14
# Tools that only keep lists: the lists themselves stand in section 7.
_HOUSEKEEPING = frozenset(
    {
        ToolName.TODO_WRITE, ToolName.TASK_CREATE, ToolName.TASK_UPDATE, ToolName.TASK_LIST, ToolName.TASK_GET,
        ToolName.TOOL_SEARCH,
    }
)  # fmt: skip
_MOST_TODOS = 60
_OUTPUT_LINES = 16
_REMARK_CHARACTERS = 3_000
# Trackers whose lists say what is left to do.
_TRACKER = re.compile(
    r"^(?:bd (?:ready|list|show|blocked)|gh (?:issue|pr) (?:list|view|status)|issues (?:list|show)"
    r"|glab issue (?:list|view))\b"
)
_TRACKER_LIST = re.compile(r"\b(?:ready|list|blocked|status)\b")
# How agents begin the part of a report that says what is left.
_REST = re.compile(
    r"^[ \t#*>-]*(?:next steps?|remaining(?: tasks| work| items| steps)?|what(?:'s| is) (?:left|next)"
    r"|still (?:to do|open|pending)"
    r"|to ?do|outstanding|not (?:yet )?done|open (?:points|questions|items)|follow[- ]ups?)\b",
    re.IGNORECASE | re.MULTILINE,
)
_TREE = re.compile(r"^git status\b")
_TRACKER_LINES = 16
_TRACKER_VIEWS = 3


def list_pending_pieces(todos: Sequence[Todo], work: Work) -> list[Piece]:
    """Open todos, what a tracker last said, and the last request when its turn has not ended."""
    open_todos = [todo for todo in todos if todo.is_open]
    lines = [f"- [{todo.state}] {quote_in_line(todo.text)}" for todo in open_todos[:_MOST_TODOS]]
    if len(open_todos) > _MOST_TODOS:
        lines.append(f"[cut: {len(open_todos) - _MOST_TODOS} more open todos]")
    closed = [todo for todo in todos if not todo.is_open]
    if closed:
        done = "; ".join(quote_in_line(cut_text(todo.text, 90)) for todo in closed[-12:])
        lines.append(f"- Already done ({len(closed)}): {done}")
    for told in _list_tracker_views(work):
        lines.append(f"- What `{take_line(told.command or '', 80)}` last showed{_tell_time(told)}:")
        lines.append(quote(cut_lines(told.output.strip(), _TRACKER_LINES, 1_400)))
    if left := find_announced_rest(work):
        lines += ["- Left to do in the agent's last words:", quote(cut_text(left, 1_200))]
    if work.said and not has_ended(work):
        lines.append(
            f"- The last request was still being worked on: {quote_in_line(cut_text(work.said[-1].text, 400))}"
        )
    return [Piece(7, "\n".join(lines))] if lines else []


def list_current_pieces(work: Work, *, cwd: str | None) -> list[Piece]:
    """The last request, the last steps with their results, and the agent's last words."""
    lines = []
    if work.said:
        lines.append(f"- The last request: {quote_in_line(cut_text(work.said[-1].text, 600))}")
    actions = take_last_actions(work)
    if actions:
        lines.append("- The last steps, oldest first:")
        steps = [action for action in actions if action.name not in _HOUSEKEEPING][-LAST_STEPS:]
        lines += [f"  - {describe_action(action, cwd)}{_tell_result(action)}" for action in steps]
    commands = [f"`{cut_text(trace.text, 100)}`" for trace in list_commands(actions)]
    symbols = [f"`{trace.text}`" for trace in list_symbols(actions)]
    if commands:
        lines.append(f"- Commands run lately, newest first: {', '.join(commands)}")
    if symbols:
        lines.append(f"- Names written lately: {', '.join(symbols)}")
    lines += _show_last_output(work)
    if work.remarks:
        lines.append("- The agent's last words:")
        lines.append(quote(cut_middle(work.remarks[-1].text, _REMARK_CHARACTERS)))
    return [Piece(8, "\n".join(lines))] if lines else []


def list_next_pieces(work: Work, todos: Sequence[Todo], failures: Sequence[Failure]) -> list[Piece]:
    """The step that follows from the last words and the state of things, always with the words it rests on."""
    text = _find_next_step(work, todos, failures)
    return [Piece(9, f"- {text}")] if text else []


def has_ended(work: Work) -> bool:
    """Whether the last turn came to its end: the agent spoke after its last action, and nobody has spoken since."""
    if not work.remarks:
        return False
    last = work.remarks[-1].place
    is_last_action = bool(work.actions) and work.actions[-1].place >= last
    is_last_said = bool(work.said) and work.said[-1].place > last
    return not is_last_action and not is_last_said


def _find_next_step(work: Work, todos: Sequence[Todo], failures: Sequence[Failure]) -> str:
    last_place = max((*(remark.place for remark in work.remarks[-1:]), *(act.place for act in work.actions[-1:]), -1))
    if work.said and work.said[-1].place > last_place:
        return f"Do what was asked last and is not begun: {quote_in_line(cut_text(work.said[-1].text, 600))}"
    left = find_announced_rest(work)
    waiting = next((todo for todo in todos if todo.is_open), None)
    parts = [_tell_open_failure(work, failures), _tell_open_todo(todos)]
    if left:
        parts.append(f"The agent's last words name what is left: {quote_in_line(cut_text(left, 900))}.")
    elif work.remarks:
        parts.append(f"The agent had just said {quote_in_line(_take_last_sentence(work))}.")
    if not has_ended(work) and work.actions:
        parts.append(f"The last thing done: {describe_action(work.actions[-1])}.")
    elif waiting is None and not left and work.remarks:
        parts.append("The last turn had ended: wait for the next message.")
    if work.said:
        parts.append(f"All this serves the request {quote_in_line(cut_text(work.said[-1].text, 400))}.")
    return " ".join(part for part in parts if part)


def _tell_open_failure(work: Work, failures: Sequence[Failure]) -> str:
    if not has_ended(work) and work.actions and (lines := read_failure(work.actions[-1])):
        return f"The last step failed ({quote_in_line(cut_text(lines[0], 200))}): put that right first."
    open_ends = [failure for failure in failures if _is_open_end(failure)]
    return f"Not seen to go through yet: {quote_in_line(cut_text(open_ends[-1].lines[0], 200))}." if open_ends else ""


def _tell_open_todo(todos: Sequence[Todo]) -> str:
    under_way = next((todo for todo in todos if todo.state == "in_progress"), None)
    if under_way is not None:
        return f"Go on with the todo in progress: {quote_in_line(under_way.text)}."
    waiting = next((todo for todo in todos if todo.is_open), None)
    return f"The first open todo is {quote_in_line(waiting.text)}." if waiting is not None else ""


def find_announced_rest(work: Work) -> str:
    """The part of the agent's last words that says what is left to do; "" where it says nothing of the kind."""
    text = work.remarks[-1].text if work.remarks else ""
    found = list(_REST.finditer(text))
    return text[found[-1].start() :].strip() if found else ""


def _is_open_end(failure: Failure) -> bool:
    """A command that did something and was not seen to go through."""
    command = failure.action.command
    return not failure.is_resolved and not failure.is_slip and command is not None and not shows_only(command)


def _tell_time(action: Action) -> str:
    return f" (at {action.entry.at:%H:%M})" if action.entry.at else ""


def _take_last_sentence(work: Work) -> str:
    sentences = split_sentences(work.remarks[-1].text)
    return cut_text(sentences[-1], 400) if sentences else ""


def _tell_result(action: Action) -> str:
    if action.result is None:
        return " (no result yet)"
    lines = read_failure(action)
    if lines:
        return f" -> failed: {quote_in_line(cut_text(lines[0], 140))}"
    if action.path:
        return ""
    # A command says last how it ended, an agent says so first.
    lines_told = [line.strip() for line in action.output.splitlines() if line.strip()]
    told = lines_told[0 if action.name in AGENT_TOOLS else -1] if lines_told else ""
    return f" -> {quote_in_line(cut_text(told, 120))}" if told else ""


def _show_last_output(work: Work) -> list[str]:
    """The end of the last output, and the working tree as it was last shown."""
    lines = []
    if work.actions and work.actions[-1].command and (output := work.actions[-1].output.strip()):
        tail = "\n".join(cut_text(line, 240) for line in output.splitlines()[-_OUTPUT_LINES:])
        lines += ["- The end of the last output:", quote(tail)]
    tree = _find_last(work, _TREE)
    if tree is not None and tree is not work.actions[-1]:
        lines += ["- The working tree when last shown:", quote(cut_lines(tree.output.strip(), _OUTPUT_LINES, 1_200))]
    return lines


def _list_tracker_views(work: Work) -> list[Action]:
    """The last view of each list and issue, lists first, the newest issues after them."""
    views: dict[str, Action] = {}
    for action in work.actions:
        if (
            action.command
            and _TRACKER.match(action.command.strip())
            and action.output.strip()
            and not action.is_refused
        ):
            views.pop(trim_command(action.command), None)
            views[trim_command(action.command)] = action
    newest = list(reversed(views.values()))
    return sorted(newest, key=lambda action: not _TRACKER_LIST.search(action.command or ""))[:_TRACKER_VIEWS]


def _find_last(work: Work, pattern: re.Pattern[str]) -> Action | None:
    """The last command of a kind that showed something."""
    for action in reversed(work.actions):
        if action.command and pattern.match(action.command.strip()) and action.output.strip() and not action.is_refused:
            return action
    return None
