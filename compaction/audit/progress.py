"""What is done, what is open and what still runs: reports, task lists, commits, background work."""

import re
from collections.abc import Iterator, Sequence

from compaction.activity.background_tasks import list_background_tasks
from compaction.activity.todos import read_todos
from compaction.activity.tool_calls import Activity, AssistantText
from compaction.audit.statements import (
    AuditStatement,
    Part,
    count_identifiers,
    is_announced_step,
    make_statement,
    split_statements,
)
from compaction.audit.terms import list_terms
from compaction.transcripts.entries import Entry

_COMMITTED = re.compile(
    r"^\[(?P<branch>[\w./ ()-]{1,100}) (?P<hash>[0-9a-f]{7,40})\] (?P<subject>.{3,200})$", re.MULTILINE
)
_LAST_REMARKS = 4  # the state at the end is in these
_MOST_REPORTED = 40
_REPORT_CHARACTERS = 160  # shorter remarks announce a step, they do not report one
_MOST_COMMITS = 12


def select_progress(entries: Sequence[Entry], activity: Activity) -> Iterator[AuditStatement]:
    """Yield open and finished tasks, commits, and what the agent reported."""
    for todo in read_todos(entries, activity):
        statement = make_statement(Part.PROGRESS, todo.text, todo.entry_uuid, 1.5 if todo.is_open else 0.7)
        if statement:
            yield statement
    yield from _select_commits(activity)
    yield from _select_reports(activity)


def select_background(entries: Sequence[Entry], activity: Activity) -> Iterator[AuditStatement]:
    """Yield the background work that had not ended or whose result nobody had read."""
    for task in list_background_tasks(entries, activity):
        if not task.is_over:
            terms = list_terms(f"{task.about}")
            yield AuditStatement(
                Part.BACKGROUND, f"{task.task_id}: {task.about}", None, 1.0, terms, (task.task_id.casefold(),)
            )


def _select_commits(activity: Activity) -> Iterator[AuditStatement]:
    commits = [
        AuditStatement(
            Part.PROGRESS,
            f"{match['hash']} {match['subject']}",
            (tool_call.result_entry or tool_call.entry).uuid,
            1.0,
            list_terms(match["subject"]),
            (match["hash"].casefold(),),
        )
        for tool_call in activity.tool_calls
        if tool_call.command is not None and "git" in tool_call.command
        for match in _COMMITTED.finditer(tool_call.output)
    ]
    yield from commits[-_MOST_COMMITS:]


def _select_reports(activity: Activity) -> Iterator[AuditStatement]:
    """Yield sentences of reports: the newest remarks whole, of older ones what names something."""
    last = set(activity.assistant_texts[-_LAST_REMARKS:])
    closing = {assistant_text.turn: assistant_text for assistant_text in activity.assistant_texts}
    found: list[AuditStatement] = []
    for assistant_text in activity.assistant_texts:
        is_report = closing[assistant_text.turn] is assistant_text or len(assistant_text.text) >= _REPORT_CHARACTERS
        if assistant_text not in last and not is_report:
            continue
        found += _read_report(assistant_text, is_last=assistant_text in last)
    yield from found[-_MOST_REPORTED:]


def _read_report(assistant_text: AssistantText, *, is_last: bool) -> Iterator[AuditStatement]:
    for text in split_statements(assistant_text.text):
        if is_announced_step(text) or (" | " in text and not is_last):  # rows of a table hold data
            continue
        named = count_identifiers(list_terms(text))
        if not named and not is_last:
            continue
        weight = (1.5 if is_last else 1.0) * min(2.0, 0.7 + 0.3 * named)
        statement = make_statement(Part.PROGRESS, text, assistant_text.entry_uuid, weight)
        if statement:
            yield statement
