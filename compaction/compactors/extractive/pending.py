"""Section 7: what is open (background jobs, todos, tickets, what the last words leave), and what is done."""

import re

from compaction.activity.background_tasks import BackgroundTask
from compaction.activity.excerpts import cut_text, take_line
from compaction.activity.sentences import is_announcement
from compaction.activity.tool_calls import Activity
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.sections import Section, SummaryItem, quote, quote_in_line

RUNNING = frozenset({"running", "async_launched", "pending", "in_progress"})
_MOST_TODOS = 40
_MOST_TICKETS = 20
_MOST_DONE = 16
_REST_CHARACTERS = 1_000
# How agents begin the part of a report that says what is left.
_NAME = re.compile(r"[\w.-]+")
_REST = re.compile(
    r"^[ \t#*>-]*(?:next steps?|remaining(?: tasks| work| items| steps)?|what(?:'s| is) (?:left|next)"
    r"|still (?:to do|open|pending)|to ?do|outstanding|not (?:yet )?done|open (?:points|questions|items)|follow[- ]ups?"
    r"|nächste schritte|noch offen|prochaines étapes|próximos pasos"
    r"|下一步|接下来|待办|剩余|残り|次のステップ)(?:\b|(?<=[^\x00-\x7f]))",
    re.IGNORECASE | re.MULTILINE,
)


def list_pending_items(material: Material) -> list[SummaryItem]:
    """Return background jobs, open todos and tickets, the rest that the last words name, and what is done."""
    work = material.work
    lines = [*list_background_lines(material), *_list_todo_lines(material), *_list_ticket_lines(material)]
    if left := find_announced_rest(material):
        lines += ["- Left to do in the agent's last words:", quote(cut_text(left, _REST_CHARACTERS))]
    if work.said and not has_ended(work):
        number = len(work.said)
        begun = "is still being worked on" if is_begun(work) else "is not begun"
        lines.append(f"- Message {number} {begun}: {quote_in_line(cut_text(work.said[-1].text, 200))}")
    if done := _list_done(material):
        lines.append(f"- Done: {'; '.join(done)}")
    return [SummaryItem(Section.PENDING, "\n".join(lines))] if lines else []


def list_background_lines(material: Material) -> list[str]:
    """Return a line for each job that runs or whose result was not read, with what to do about it."""
    lines = []
    for task in material.background_tasks:
        if task.state not in RUNNING and task.is_read:
            continue
        what = f'- Background job {take_line(task.task_id, 80)} ("{take_line(task.about, 120)}"): {task.state}.'
        if task.state in RUNNING:
            what += " Do not start it again; read its output when it ends."
        else:
            what += " Its result was not read: read it next."
        lines.append(what + _quote_intent(task, material))
    return lines


def has_ended(work: Activity) -> bool:
    """Return whether the last turn ended: the agent spoke after its last action, and nobody has spoken since."""
    if not work.remarks:
        return False
    last = work.remarks[-1].place
    is_last_action = bool(work.actions) and work.actions[-1].place >= last
    is_last_said = bool(work.said) and work.said[-1].place > last
    # "Let me look at ..." is no end of a turn, wherever the transcript stops.
    sentence = work.remarks[-1].text.rstrip().splitlines()[-1]
    return not is_last_action and not is_last_said and not is_announcement(sentence)


def is_begun(work: Activity) -> bool:
    """Return whether the agent said or did something after the last message."""
    last = max([*(remark.place for remark in work.remarks[-1:]), *(act.place for act in work.actions[-1:]), -1])
    return not work.said or work.said[-1].place <= last


def find_announced_rest(material: Material) -> str:
    """Return the part of the agent's last words that says what is left; lines about closed tickets are left out."""
    text = material.work.remarks[-1].text if material.work.remarks else ""
    starts = list(_REST.finditer(text))
    if not starts:
        return ""
    closed = {ticket.id for ticket in material.closed_tickets}
    lines = text[starts[-1].start() :].strip().splitlines()
    return "\n".join(line for line in lines if closed.isdisjoint(_list_names(line)))


def _list_names(line: str) -> set[str]:
    return {name.rstrip(".") for name in _NAME.findall(line)}


def _quote_intent(task: BackgroundTask, material: Material) -> str:
    """Return what the agent said when it started the job."""
    started = next((act for act in material.work.actions if act.place == task.place), None)
    remark = material.find_remark_before(started) if started is not None else None
    return f" Said when it was started: {quote_in_line(take_line(remark.text, 200))}." if remark is not None else ""


def _list_todo_lines(material: Material) -> list[str]:
    open_todos = [todo for todo in material.todos if todo.is_open]
    open_todos.sort(key=lambda todo: todo.state != "in_progress")
    lines = [f"- [{todo.state}] {quote_in_line(todo.text)}" for todo in open_todos[:_MOST_TODOS]]
    if len(open_todos) > _MOST_TODOS:
        lines.append(f"[cut: {len(open_todos) - _MOST_TODOS} more open todos]")
    return lines


def _list_ticket_lines(material: Material) -> list[str]:
    tickets = material.open_tickets
    lines = [
        f"- Ticket [{ticket.state}] {ticket.id} {quote_in_line(ticket.title)}" for ticket in tickets[:_MOST_TICKETS]
    ]
    if len(tickets) > _MOST_TICKETS:
        lines.append(f"[cut: {len(tickets) - _MOST_TICKETS} more open tickets]")
    return lines


def _list_done(material: Material) -> list[str]:
    closed = [
        f"{ticket.id} closed{f' ({quote_in_line(cut_text(ticket.title, 80))})' if ticket.title else ''}"
        for ticket in material.closed_tickets
    ]
    todos = [quote_in_line(cut_text(todo.text, 80)) for todo in material.todos if not todo.is_open]
    return [*closed[-_MOST_DONE:], *todos[-_MOST_DONE:]]
