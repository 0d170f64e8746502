"""Tickets in a transcript: what they ask for, and whether they are open, in progress or closed at the end.

Read from trackers' commands (bd, gh, glab, jira, linear) and from tools of MCP servers that return issues. Every
ticket follows from tool calls alone, so entries are not replayed.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from compaction.activity.tool_calls import Activity, ToolCall
from compaction.transcripts.json_fields import get_text

_VIEW = re.compile(
    r"\b(?:bd show|gh (?:issue|pr) view|glab (?:issue|mr) view|jira issue view|linear issue(?: view)?|tk show)\s+"
    r"([^|;&\n>]{1,200})"
)
_LIST = re.compile(
    r"\b(?:bd (?:ready|list|blocked|show|sync)|gh issue (?:list|status)|glab issue list|jira issue list)\b"
)
_CLOSE = re.compile(
    r"\b(?:bd close|gh issue close|glab issue close|jira issue (?:close|move)|tk close)\s+([^|;&\n>]{1,400})"
)
_UPDATE = re.compile(r"\b(?:bd update|tk (?:start|reopen))\s+([^|;&\n>]{1,300})")
_REOPEN = re.compile(r"\b(?:bd reopen|gh issue reopen|glab issue reopen)\s+([^|;&\n>]{1,300})")
_REDIRECTION = re.compile(r"\s\d?>{1,2}\s?&?\S+")
_STATUS = re.compile(r"--status[= ]\"?([\w-]{1,20})")
_ID = re.compile(r"(?:^|[\s#/])([A-Za-z][\w]{0,40}-[\w.]{1,40}|\d{1,7})(?=\s|$|[:,)\"'])")
# An id such as shop-12 holds a dash itself: only what begins with one is an option.
_OPTION = re.compile(r"(?<=\s)--?[\w-]+(?:[= ](?:\"[^\"]*\"?|'[^']*'?|\S+))?")
# `○ shop-12.3 [EPIC] · Title   [● P2 · OPEN]`: how bd opens the view of one ticket.
_HEAD = re.compile(
    r"^(?:[^\w\s] ){0,2}([A-Za-z]\w{0,40}-[\w.]{1,40})(?: \[\w{1,12}\])? · (.{1,300}?)\s*"
    r"(?:\[[^\]\n]*?\b(OPEN|IN_PROGRESS|CLOSED|BLOCKED|DEFERRED)\])?$",
    re.MULTILINE,
)
_ROW = re.compile(
    r"^\s*(?:↳ ?)?(?:(\d{1,3}\.)|([○◐●✓✔]))\s+(?:\[[^\]\n]{1,20}\] ){0,3}([A-Za-z]\w{0,40}-[\w.]{1,40})"
    r"(?: \[[^\]\n]{1,20}\]){0,3}(?::| -) (.{1,200})$",
    re.MULTILINE,
)
_GITHUB_ROW = re.compile(r"^#?(\d{1,7})\t(OPEN|CLOSED)\t([^\t\n]{1,200})", re.MULTILINE)
_ROW_END = re.compile(r"(?<!\s)\s*+(?:\((?:blocked by|blocks)[^()]*+\)|● P\d)\s*+$")
_TITLE_LINE = re.compile(r"^(?:title|summary):[ \t]*(.{1,300})$", re.MULTILINE | re.IGNORECASE)
_STATE_LINE = re.compile(r"^(?:state|status):[ \t]*([\w -]{1,20})$", re.MULTILINE | re.IGNORECASE)
_MOVED_TO_END = re.compile(r"\b(?:Done|Closed)\b")
_ISSUE_TOOL = re.compile(r"^mcp__.*(?:issue|ticket|task|story|card|work_?item)", re.IGNORECASE)
_READ_TOOL = re.compile(r"(?:get|read|view|show|fetch)", re.IGNORECASE)
_WRITE_TOOL = re.compile(r"(?:update|edit|close|transition|move|write|save)", re.IGNORECASE)
_ID_KEYS = ("issueIdOrKey", "issue_key", "issueKey", "key", "identifier", "issue_number", "issueNumber", "number", "id")
_STATE_WORDS = {
    "open": "open", "reopened": "open", "todo": "open", "pending": "open", "blocked": "open", "deferred": "open",
    "in_progress": "in progress", "in-progress": "in progress", "in progress": "in progress", "doing": "in progress",
    "started": "in progress",
    "closed": "closed", "done": "closed", "completed": "closed", "complete": "closed", "resolved": "closed",
    "merged": "closed",
}  # fmt: skip
_MOST_BODY = 20_000


class TicketState(StrEnum):
    """The state of a ticket."""

    OPEN = "open"
    IN_PROGRESS = "in progress"
    CLOSED = "closed"


_RANK = [TicketState.OPEN, TicketState.IN_PROGRESS, TicketState.CLOSED]


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket; `body` is what its view showed, empty where it was only listed."""

    id: str
    title: str
    state: TicketState
    body: str = ""
    source: str = ""
    is_touched: bool = False  # viewed, started or closed here, not only listed

    @property
    def root(self) -> str:
        """The id of the epic that the ticket's id names, or its own."""
        return self.id.partition(".")[0]


def read_tickets(activity: Activity) -> tuple[Ticket, ...]:
    """Return the tickets that the conversation was about, in the order of their first mention.

    A tracker lists much that nobody asked for, so only tickets that were touched, their relatives, and those that a
    message names are returned.
    """
    tickets: dict[str, Ticket] = {}
    for tool_call in activity.tool_calls:
        if tool_call.command is not None:
            _apply_command(tickets, tool_call)
        elif _ISSUE_TOOL.search(tool_call.name):
            _apply_tool(tickets, tool_call)
    roots = {ticket.root for ticket in tickets.values() if ticket.is_touched and "." in ticket.id}
    roots |= {ticket.id for ticket in tickets.values() if ticket.is_touched}
    user_text = " ".join(message.text for message in activity.user_messages)
    return tuple(
        ticket
        for ticket in tickets.values()
        if ticket.is_touched or ticket.root in roots or _is_mentioned(ticket, user_text)
    )


def _is_mentioned(ticket: Ticket, user_text: str) -> bool:
    return not ticket.id.isdigit() and ticket.id in user_text


def _apply_command(tickets: dict[str, Ticket], tool_call: ToolCall) -> None:
    command = _REDIRECTION.sub(" ", tool_call.command or "")
    if tool_call.is_error and not tool_call.output:
        return
    if _LIST.search(command):
        _apply_rows(tickets, tool_call)
    views = _VIEW.findall(command)
    if views:
        _apply_views(tickets, tool_call, [ticket_id for view in views for ticket_id in _list_ids(view)])
    if tool_call.is_error:
        return
    _apply_state_changes(tickets, command)


def _apply_state_changes(tickets: dict[str, Ticket], command: str) -> None:
    for pattern, state in ((_CLOSE, TicketState.CLOSED), (_REOPEN, TicketState.OPEN)):
        for arguments in pattern.findall(command):
            if pattern is _CLOSE and "jira issue move" in command and not _MOVED_TO_END.search(arguments):
                continue
            for ticket_id in _list_ids(arguments):
                _set_state(tickets, ticket_id, state)
    for arguments in _UPDATE.findall(command):
        status = _STATUS.search(arguments)
        state_word = _STATE_WORDS.get(status[1].lower()) if status else None
        for ticket_id in _list_ids(arguments) if state_word else ():
            _set_state(tickets, ticket_id, TicketState(state_word or "open"))


def _list_ids(arguments: str) -> list[str]:
    """Return the ids among a command's arguments, options and their values left out."""
    plain = _OPTION.sub(" ", f" {arguments} ")
    return [ticket_id.rstrip(".") for ticket_id in _ID.findall(plain)]


def _set_state(tickets: dict[str, Ticket], ticket_id: str, state: TicketState) -> None:
    previous = tickets.get(ticket_id) or Ticket(ticket_id, "", state)
    tickets[ticket_id] = replace(previous, state=state, is_touched=True)


def _apply_rows(tickets: dict[str, Ticket], tool_call: ToolCall) -> None:
    for number, symbol, ticket_id, title in _ROW.findall(tool_call.output):
        state = {"✓": TicketState.CLOSED, "✔": TicketState.CLOSED, "◐": TicketState.IN_PROGRESS}.get(
            symbol, TicketState.OPEN
        )
        _add_row(tickets, ticket_id, _ROW_END.sub("", title), state, is_sure=bool(symbol) or bool(number))
    for ticket_id, word, title in _GITHUB_ROW.findall(tool_call.output):
        _add_row(tickets, ticket_id, title, TicketState(_STATE_WORDS[word.lower()]), is_sure=True)


def _add_row(tickets: dict[str, Ticket], ticket_id: str, title: str, state: TicketState, *, is_sure: bool) -> None:
    previous = tickets.get(ticket_id)
    if previous is None:
        tickets[ticket_id] = Ticket(ticket_id, title, state)
    elif is_sure and previous.state is not TicketState.CLOSED:
        tickets[ticket_id] = replace(
            previous, title=previous.title or title, state=max(previous.state, state, key=_RANK.index)
        )
    elif not previous.title:
        tickets[ticket_id] = replace(previous, title=title)


def _apply_views(tickets: dict[str, Ticket], tool_call: ToolCall, ids: list[str]) -> None:
    heads = list(_HEAD.finditer(tool_call.output))
    if heads:
        ends = [head.start() for head in heads[1:]] + [len(tool_call.output)]
        for head, end in zip(heads, ends, strict=True):
            word = _STATE_WORDS.get((head[3] or "open").lower(), "open")
            body = tool_call.output[head.end() : end].strip().removesuffix("===").strip()
            _apply_view(tickets, Ticket(head[1], head[2].strip(), TicketState(word), body), tool_call)
    elif len(ids) == 1 and tool_call.output.strip() and not tool_call.is_error:
        _apply_view(tickets, _read_document(ids[0], tool_call.output), tool_call)


def _read_document(ticket_id: str, text: str) -> Ticket:
    """Return the ticket of one view that is plain text (`title:`, `state:`, a body) or JSON."""
    fields: Mapping[str, object] = {}
    if text.lstrip().startswith("{") and len(text) < 200_000:
        try:
            read = json.loads(text)
        except (ValueError, RecursionError):
            read = None
        fields = next(_list_issue_fields(read), {})
    if fields:
        title = get_text(fields, "title") or get_text(fields, "summary") or ""
        body = get_text(fields, "body") or get_text(fields, "description") or text
        word = (get_text(fields, "state") or get_text(fields, "status") or "open").lower()
        return Ticket(ticket_id, title, TicketState(_STATE_WORDS.get(word, "open")), body)
    title_line = _TITLE_LINE.search(text)
    state = _STATE_LINE.search(text)
    head, rule, rest = text.partition("\n--\n")
    word = state[1].strip().lower() if state else "open"
    shown = rest if rule and title_line and title_line[0] in head else text
    return Ticket(
        ticket_id,
        title_line[1].strip() if title_line else "",
        TicketState(_STATE_WORDS.get(word, "open")),
        shown.strip(),
    )


def _list_issue_fields(value: object) -> Iterator[Mapping[str, object]]:
    """Return the mappings that look like an issue: the value itself, or what it holds as `issue` or `fields`."""
    if not isinstance(value, Mapping):
        return
    if get_text(value, "title") or get_text(value, "summary"):
        yield value
    for key in ("issue", "fields", "data"):
        yield from _list_issue_fields(value.get(key))


def _apply_view(tickets: dict[str, Ticket], ticket: Ticket, tool_call: ToolCall) -> None:
    previous = tickets.get(ticket.id)
    state = ticket.state
    if previous is not None and previous.is_touched and _RANK.index(previous.state) > _RANK.index(state):
        state = previous.state
    tickets[ticket.id] = replace(
        ticket,
        title=ticket.title or (previous.title if previous else ""),
        state=state,
        body=ticket.body[:_MOST_BODY],
        source=_describe_source(tool_call, ticket),
        is_touched=True,
    )


def _describe_source(tool_call: ToolCall, ticket: Ticket) -> str:
    match = _VIEW.search(tool_call.command or "")
    return f"{match[0].split()[0]} {match[0].split()[1]} {ticket.id}" if match else tool_call.name


def _apply_tool(tickets: dict[str, Ticket], tool_call: ToolCall) -> None:
    if tool_call.is_error or not tool_call.output.strip():
        return
    arguments = tool_call.use.input
    ticket_id = next((str(arguments[key]) for key in _ID_KEYS if isinstance(arguments.get(key), str | int)), "")
    if not ticket_id:
        return
    verb = tool_call.name.rpartition("__")[2]
    if _WRITE_TOOL.search(verb) and not _READ_TOOL.match(verb):
        word = (get_text(arguments, "state") or get_text(arguments, "status") or "").lower()
        if word in _STATE_WORDS:
            _set_state(tickets, ticket_id, TicketState(_STATE_WORDS[word]))
    elif _READ_TOOL.search(tool_call.name):
        _apply_view(tickets, _read_document(ticket_id, tool_call.output), tool_call)
