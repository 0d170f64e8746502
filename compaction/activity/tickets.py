"""Tickets as a transcript shows them: what they ask for, and whether they are open, taken or closed at the end.

Read from trackers' commands (bd, gh, glab, jira, linear) and from tools of MCP servers that return issues.
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
    """Where a ticket is in its life."""

    OPEN = "open"
    IN_PROGRESS = "in progress"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket; `body` is what its view showed, empty where it was only listed."""

    id: str
    title: str
    state: TicketState
    body: str = ""
    source: str = ""
    place: int = -1
    is_touched: bool = False  # viewed, taken or closed here, not only listed

    @property
    def root(self) -> str:
        """The id of the epic that the ticket's id names, or its own."""
        return self.id.partition(".")[0]


def read_tickets(work: Activity) -> tuple[Ticket, ...]:
    """Return every ticket seen, those that the conversation was about, in the order of their first mention.

    A tracker lists much that nobody asked for: only tickets that were touched, their relatives, and those that a
    message names are returned.
    """
    tickets: dict[str, Ticket] = {}
    for action in work.actions:
        if action.command is not None:
            _follow_command(tickets, action)
        elif _ISSUE_TOOL.search(action.name):
            _follow_tool(tickets, action)
    roots = {ticket.root for ticket in tickets.values() if ticket.is_touched and "." in ticket.id}
    roots |= {ticket.id for ticket in tickets.values() if ticket.is_touched}
    said = " ".join(message.text for message in work.said)
    return tuple(
        ticket for ticket in tickets.values() if ticket.is_touched or ticket.root in roots or _is_named(ticket, said)
    )


def _is_named(ticket: Ticket, said: str) -> bool:
    return not ticket.id.isdigit() and ticket.id in said


def _follow_command(tickets: dict[str, Ticket], action: ToolCall) -> None:
    command = _REDIRECTION.sub(" ", action.command or "")
    if action.is_refused and not action.output:
        return
    if _LIST.search(command):
        _read_rows(tickets, action)
    views = _VIEW.findall(command)
    if views:
        _read_views(tickets, action, [ticket_id for view in views for ticket_id in _list_ids(view)])
    if action.is_refused:
        return
    _follow_state_changes(tickets, command, action)


def _follow_state_changes(tickets: dict[str, Ticket], command: str, action: ToolCall) -> None:
    for pattern, state in ((_CLOSE, TicketState.CLOSED), (_REOPEN, TicketState.OPEN)):
        for arguments in pattern.findall(command):
            if pattern is _CLOSE and "jira issue move" in command and not _MOVED_TO_END.search(arguments):
                continue
            for ticket_id in _list_ids(arguments):
                _set_state(tickets, ticket_id, state, action)
    for arguments in _UPDATE.findall(command):
        status = _STATUS.search(arguments)
        state_word = _STATE_WORDS.get(status[1].lower()) if status else None
        for ticket_id in _list_ids(arguments) if state_word else ():
            _set_state(tickets, ticket_id, TicketState(state_word or "open"), action)


def _list_ids(arguments: str) -> list[str]:
    """Return the ids among a command's arguments, options and their values left out."""
    plain = _OPTION.sub(" ", f" {arguments} ")
    return [ticket_id.rstrip(".") for ticket_id in _ID.findall(plain)]


def _set_state(tickets: dict[str, Ticket], ticket_id: str, state: TicketState, action: ToolCall) -> None:
    known = tickets.get(ticket_id) or Ticket(ticket_id, "", state)
    tickets[ticket_id] = replace(known, state=state, place=action.place, is_touched=True)


def _read_rows(tickets: dict[str, Ticket], action: ToolCall) -> None:
    for number, symbol, ticket_id, title in _ROW.findall(action.output):
        state = {"✓": TicketState.CLOSED, "✔": TicketState.CLOSED, "◐": TicketState.IN_PROGRESS}.get(
            symbol, TicketState.OPEN
        )
        _add_row(tickets, ticket_id, _ROW_END.sub("", title), state, is_sure=bool(symbol) or bool(number))
    for ticket_id, word, title in _GITHUB_ROW.findall(action.output):
        _add_row(tickets, ticket_id, title, TicketState(_STATE_WORDS[word.lower()]), is_sure=True)


def _add_row(tickets: dict[str, Ticket], ticket_id: str, title: str, state: TicketState, *, is_sure: bool) -> None:
    known = tickets.get(ticket_id)
    if known is None:
        tickets[ticket_id] = Ticket(ticket_id, title, state)
    elif is_sure and known.state is not TicketState.CLOSED:
        tickets[ticket_id] = replace(known, title=known.title or title, state=max(known.state, state, key=_RANK.index))
    elif not known.title:
        tickets[ticket_id] = replace(known, title=title)


_RANK = [TicketState.OPEN, TicketState.IN_PROGRESS, TicketState.CLOSED]


def _read_views(tickets: dict[str, Ticket], action: ToolCall, ids: list[str]) -> None:
    heads = list(_HEAD.finditer(action.output))
    if heads:
        ends = [head.start() for head in heads[1:]] + [len(action.output)]
        for head, end in zip(heads, ends, strict=True):
            word = _STATE_WORDS.get((head[3] or "open").lower(), "open")
            body = action.output[head.end() : end].strip().removesuffix("===").strip()
            _show(tickets, Ticket(head[1], head[2].strip(), TicketState(word), body), action)
    elif len(ids) == 1 and action.output.strip() and not action.is_refused:
        _show(tickets, _read_document(ids[0], action.output), action)


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


def _show(tickets: dict[str, Ticket], ticket: Ticket, action: ToolCall) -> None:
    known = tickets.get(ticket.id)
    state = ticket.state
    if known is not None and known.is_touched and _RANK.index(known.state) > _RANK.index(state):
        state = known.state
    # Requirements stand in the order in which they were last looked at.
    tickets[ticket.id] = replace(
        ticket,
        title=ticket.title or (known.title if known else ""),
        state=state,
        body=ticket.body[:_MOST_BODY],
        source=_name_source(action, ticket),
        place=action.place,
        is_touched=True,
    )


def _name_source(action: ToolCall, ticket: Ticket) -> str:
    match = _VIEW.search(action.command or "")
    return f"{match[0].split()[0]} {match[0].split()[1]} {ticket.id}" if match else action.name


def _follow_tool(tickets: dict[str, Ticket], action: ToolCall) -> None:
    if action.is_refused or not action.output.strip():
        return
    arguments = action.use.input
    ticket_id = next((str(arguments[key]) for key in _ID_KEYS if isinstance(arguments.get(key), str | int)), "")
    if not ticket_id:
        return
    if _WRITE_TOOL.search(action.name.rpartition("__")[2]) and not _READ_TOOL.match(action.name.rpartition("__")[2]):
        word = (get_text(arguments, "state") or get_text(arguments, "status") or "").lower()
        if word in _STATE_WORDS:
            _set_state(tickets, ticket_id, TicketState(_STATE_WORDS[word]), action)
    elif _READ_TOOL.search(action.name):
        _show(tickets, _read_document(ticket_id, action.output), action)
