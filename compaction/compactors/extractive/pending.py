"""What is open: section 7, and for section 8 the plan, findings and steps of a turn that has not ended."""

import re
from collections.abc import Sequence

from compaction.activity.background_tasks import BackgroundTask
from compaction.activity.excerpts import cut_line, cut_middle, cut_text
from compaction.activity.sentences import drop_code_blocks, drop_openings, is_announcement
from compaction.activity.tool_calls import Activity, AssistantText
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.sections import SummaryItem, quote, quote_in_line
from compaction.compactors.summary.prompt import Section

_MOST_TODOS = 40
_MOST_TICKETS = 20
_MOST_DONE = 16
_REMAINING_CHARACTERS = 1_000
_PLAN_CHARACTERS = 900
_SHORTEST_FINDINGS, _FINDINGS_CHARACTERS = 300, 1_600
_LEAST_ITEMS = 3
_MOST_STEPS = 12
_STEP_CHARACTERS = 110
_NAME = re.compile(r"[\w.-]+")
# How agents begin the part of a report that lists what is left.
_REMAINING = re.compile(
    r"^[ \t#*>-]*(?:next steps?|remaining(?: tasks| work| items| steps)?|what(?:'s| is) (?:left|next)"
    r"|still (?:to do|open|pending)|to ?do|outstanding|not (?:yet )?done|open (?:points|questions|items)|follow[- ]ups?"
    r"|nächste schritte|noch offen|prochaines étapes|próximos pasos"
    r"|下一步|接下来|待办|剩余|残り|次のステップ)(?:\b|(?<=[^\x00-\x7f]))",
    re.IGNORECASE | re.MULTILINE,
)
# A sentence about what is to be done, and the first item of the list below it.
_PLANNED_LIST = re.compile(
    r"(?:need to|have to|plan|will|going to|steps?|to ?do|muss|werde|计划|步骤|手順)[^\n]{0,80}[:\uff1a]\s*\n+"
    r"\s*(?:[-*]|\d{1,2}[.)]) \S",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"^ {0,6}(?:[-*]|\d{1,2}[.)]) \S", re.MULTILINE)
_MARKED_NAME = re.compile(r"`[^`\n]{3,80}`|\*\*[^*\n]{3,120}\*\*")


def list_pending_items(material: Material) -> list[SummaryItem]:
    """Return background tasks, open todos and tickets, the rest that the agent's last text names, and what is done."""
    activity = material.activity
    lines = [*list_background_lines(material), *_list_todo_lines(material), *_list_ticket_lines(material)]
    if remaining := find_remaining_work(material):
        lines += ["- Left to do in the agent's last words:", quote(cut_text(remaining, _REMAINING_CHARACTERS))]
    if activity.user_messages and not has_turn_ended(activity):
        number = len(activity.user_messages)
        state = "is still being worked on" if is_last_message_begun(activity) else "is not begun"
        lines.append(f"- Message {number} {state}: {quote_in_line(cut_text(activity.user_messages[-1].text, 200))}")
    if done := _list_done(material):
        lines.append(f"- Done: {'; '.join(done)}")
    return [SummaryItem(Section.PENDING, "\n".join(lines))] if lines else []


def list_background_lines(material: Material) -> list[str]:
    """Return a line for each task that runs or whose result was not read, with what to do about it."""
    lines = []
    for task in material.background_tasks:
        if task.is_over:
            continue
        line = f'- Background job {cut_line(task.task_id, 80)} ("{cut_line(task.about, 120)}"): {task.state}.'
        if task.is_running:
            line += " Do not start it again; read its output when it ends."
        else:
            line += " Its result was not read: read it next."
        lines.append(line + _quote_intent(task, material))
    return lines


def has_turn_ended(activity: Activity) -> bool:
    """Return whether the last turn ended: the agent wrote after its last tool call, and no message followed."""
    if not activity.assistant_texts:
        return False
    last = activity.assistant_texts[-1].entry_index
    is_tool_call_last = bool(activity.tool_calls) and activity.tool_calls[-1].entry_index >= last
    is_message_last = bool(activity.user_messages) and activity.user_messages[-1].entry_index > last
    # "Let me look at ..." is no end of a turn, wherever the transcript stops.
    last_line = activity.assistant_texts[-1].text.rstrip().splitlines()[-1]
    return not is_tool_call_last and not is_message_last and not is_announcement(last_line)


def is_last_message_begun(activity: Activity) -> bool:
    """Return whether the agent wrote or did something after the last message."""
    if not activity.user_messages:
        return True
    start = activity.user_messages[-1].entry_index
    return any(text.entry_index >= start for text in activity.assistant_texts[-1:]) or any(
        tool_call.entry_index >= start for tool_call in activity.tool_calls[-1:]
    )


def find_remaining_work(material: Material) -> str:
    """Return the part of the agent's last text that lists what is left; lines about closed tickets are left out."""
    texts = material.activity.assistant_texts
    text = texts[-1].text if texts else ""
    starts = list(_REMAINING.finditer(text))
    if not starts:
        return ""
    closed = {ticket.id for ticket in material.closed_tickets}
    lines = text[starts[-1].start() :].strip().splitlines()
    return "\n".join(line for line in lines if closed.isdisjoint(name.rstrip(".") for name in _NAME.findall(line)))


def list_turn_lines(material: Material) -> list[str]:
    """Return the plan and the findings of a turn that has not ended, and the steps that the agent named since."""
    texts = _list_turn_texts(material)
    number = len(material.activity.user_messages)
    plan, findings = _find_plan(texts), find_findings(material)
    lines: list[str] = []
    if plan is not None:
        lines += [f"- The agent's plan for message {number}:", _quote(plan, _PLAN_CHARACTERS)]
    if findings is not None:
        time = f" at {findings.at:%H:%M}" if findings.at else ""
        lines += [f"- What the agent found for message {number}{time}:", _quote(findings, _FINDINGS_CHARACTERS)]
    lists = [text.entry_index for text in (plan, findings) if text is not None]
    steps = [step for text in texts if lists and text.entry_index > max(lists) and (step := _describe_step(text))]
    if steps:
        lines.append(f"- Steps that the agent named since, oldest first: {'; '.join(steps[-_MOST_STEPS:])}")
    return lines


def find_findings(material: Material) -> AssistantText | None:
    """Return the longest list that the agent made for a message it still works on: its next steps follow from it.

    The plan and the last text are quoted by themselves.
    """
    texts = _list_turn_texts(material)
    plan = _find_plan(texts)
    lists = [
        text
        for text in texts
        if text is not plan
        and len(text.text) >= _SHORTEST_FINDINGS
        and len(_LIST_ITEM.findall(text.text)) >= _LEAST_ITEMS
    ]
    return max(lists, key=lambda text: len(text.text), default=None)


def _list_turn_texts(material: Material) -> Sequence[AssistantText]:
    """Return the agent's texts since the last message without the last one; none where the turn ended."""
    activity = material.activity
    if not activity.user_messages or has_turn_ended(activity):
        return ()
    start = activity.user_messages[-1].entry_index
    return [text for text in activity.assistant_texts[:-1] if text.entry_index > start]


def _find_plan(texts: Sequence[AssistantText]) -> AssistantText | None:
    """Return the first text with a list of what is to be done."""
    return next((text for text in texts if _PLANNED_LIST.search(text.text)), None)


def _describe_step(text: AssistantText) -> str:
    """Return the last line of a text that names something; "" where none does."""
    lines = [line for line in drop_code_blocks(text.text).splitlines() if _MARKED_NAME.search(line)]
    return quote_in_line(cut_text(lines[-1].strip().rstrip(":"), _STEP_CHARACTERS)) if lines else ""


def _quote(text: AssistantText, characters: int) -> str:
    return quote(cut_middle(drop_openings(drop_code_blocks(text.text)), characters))


def _quote_intent(task: BackgroundTask, material: Material) -> str:
    """Return what the agent wrote when it started the task."""
    start = next((call for call in material.activity.tool_calls if call.entry_index == task.entry_index), None)
    text = material.find_text_before(start) if start is not None else None
    return f" Said when it was started: {quote_in_line(cut_line(text.text, 200))}." if text is not None else ""


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
    tickets = [
        f"{ticket.id} closed{f' ({quote_in_line(cut_text(ticket.title, 80))})' if ticket.title else ''}"
        for ticket in material.closed_tickets
    ]
    todos = [quote_in_line(cut_text(todo.text, 80)) for todo in material.todos if not todo.is_open]
    return [*tickets[-_MOST_DONE:], *todos[-_MOST_DONE:]]
