"""Sections 1 and 6: the requests with their constraints and requirements, and every message of the user."""

from collections.abc import Sequence

from compaction.activity.constraints import is_binding, list_constraints
from compaction.activity.excerpts import cut_line, cut_text, join_with_gaps, shorten_path
from compaction.activity.files import TouchedFile
from compaction.activity.sentences import cut_pasted_logs, drop_code_blocks, split_sentences
from compaction.activity.tickets import Ticket, TicketState
from compaction.activity.user_messages import UserMessage, UserMessageKind
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.sections import CutRank, SummaryItem, describe_time, quote, quote_in_line
from compaction.compactors.summary.prompt import Section

_FIRST_REQUEST_CHARACTERS = 500
_SHORT_MESSAGE_CHARACTERS = 160
_MOST_CONSTRAINTS = 24
_CURRENT_TICKET_CHARACTERS = 1_800
_OPEN_TICKET_CHARACTERS = 900
_PARENT_TICKET_CHARACTERS = 900
_ALL_TICKETS_CHARACTERS = 5_000
_PLAN_CHARACTERS = 1_500
_DOCUMENT_CONSTRAINTS = 10
_DOCUMENT_SUFFIXES = (".md", ".txt", ".rst", ".adoc")
_REFERENCE_HEADINGS = (
    "source ref",
    "references",
    "children",
    "parent",
    "depends on",
    "blocks",
    "labels",
    "target area",
)


def list_request_items(material: Material, label: str) -> list[SummaryItem]:
    """Return section 1: the request, constraints from messages, requirements from tickets, plans and documents."""
    messages = material.activity.user_messages
    requests = material.requests
    lines = [f"[This summary was {label}.]", *_describe_priorities(material)]
    if requests:
        title = (
            "The first request since the last compaction" if material.activity.previous_summary else "The first request"
        )
        lines += _quote_request(title, requests[0])
    if len(requests) > 1:
        lines += _quote_request(
            f"The newest of {len(requests)} requests (all are in section {Section.MESSAGES})", requests[-1]
        )
    constraints = list_constraints(messages)[-_MOST_CONSTRAINTS:]
    if constraints:
        lines.append("- Constraints in the user's words:")
        lines += [f"  - {quote_in_line(constraint.text)}" for constraint in constraints]
    items = [SummaryItem(Section.REQUEST, "\n".join(lines))]
    items += _list_ticket_items(material)
    items += _list_plan_items(material)
    items += _list_document_items(material)
    return items


def list_message_items(messages: Sequence[UserMessage]) -> list[SummaryItem]:
    """Return every message whole, in order, with its time; pasted output is cut in the middle, repeats are named."""
    items = []
    seen: dict[str, int] = {}
    for number, message in enumerate(messages, start=1):
        kind = "" if message.kind is UserMessageKind.PROMPT else f" ({message.kind})"
        head = f"- Message {number}{describe_time(message.at)}{kind}:"
        age = len(messages) - number
        first = seen.setdefault(message.text, number)
        if first != number and len(message.text) > _SHORT_MESSAGE_CHARACTERS:
            text = f"{head} the same as message {first}"
            items.append(SummaryItem(Section.MESSAGES, text, CutRank.USER_MESSAGE, age))
            continue
        text = f"{head}\n{quote(cut_pasted_logs(message.text))}"
        short = f"{head} {quote_in_line(cut_text(message.text, _SHORT_MESSAGE_CHARACTERS))}"
        short = short if len(short) < len(text) else ""
        items.append(SummaryItem(Section.MESSAGES, text, CutRank.USER_MESSAGE, age, short))
    return items


def _describe_priorities(material: Material) -> list[str]:
    priorities = material.priorities
    if not priorities.has_instructions:
        return []
    terms = priorities.list_matching_terms(material.list_searched_texts())
    if not terms:
        return ["[No word of the instructions occurs in this conversation, so they changed nothing here.]"]
    names = ", ".join(quote_in_line(term) for term in terms)
    return [f"[Words of the instructions that were given priority: {names}. Other wishes need a model.]"]


def _quote_request(title: str, message: UserMessage) -> list[str]:
    """Return a short quotation; the section of messages has it whole."""
    if "\n" not in message.text and len(message.text) <= _FIRST_REQUEST_CHARACTERS:
        return [f"- {title}: {quote_in_line(message.text)}"]
    return [f"- {title}:", quote(cut_text(message.text, _FIRST_REQUEST_CHARACTERS))]


def _list_ticket_items(material: Material) -> list[SummaryItem]:
    """Return what open tickets ask for, the current one first and whole, then the rules of their closed parents."""
    items = []
    room = _ALL_TICKETS_CHARACTERS
    open_roots = {ticket.root for ticket in material.open_tickets}
    parent_ids = material.parent_ids
    parents = [ticket for ticket in material.closed_tickets if ticket.id in open_roots and ticket.body]
    for number, ticket in enumerate([*material.open_tickets, *parents]):
        if not ticket.body:
            continue
        is_parent = ticket.id in open_roots and ticket.id in parent_ids
        is_current = ticket.state is TicketState.IN_PROGRESS and not is_parent
        limit = _CURRENT_TICKET_CHARACTERS if is_current else _OPEN_TICKET_CHARACTERS
        text = _select_rules(ticket.body) if is_parent else ticket.body
        shown = _select_lines(text, min(room, _PARENT_TICKET_CHARACTERS if is_parent else limit), material)
        if not shown:
            continue
        room -= len(shown)
        kind = "Rules" if is_parent else "Requirements"
        state, title = _describe_state(ticket), quote_in_line(ticket.title)
        head = f"- {kind} of {ticket.id} ({state}) {title}, from `{ticket.source}`:"
        is_named = material.priorities.matches(text)
        items.append(SummaryItem(Section.REQUEST, f"{head}\n{quote(shown)}", CutRank.ALWAYS, number, is_named=is_named))
    return items


def _describe_state(ticket: Ticket) -> str:
    return "closed, but others under it are open" if ticket.state is TicketState.CLOSED else str(ticket.state)


def _select_rules(body: str) -> str:
    """Return the lines that bind, or those under a heading about constraints."""
    chosen = []
    is_under_rules = False
    for line in body.splitlines():
        if line.startswith("#") or (line.rstrip().endswith(":") and not line.startswith((" ", "-"))):
            is_under_rules = any(
                word in line.casefold() for word in ("constraint", "rule", "require", "must", "accept")
            )
        elif line.strip() and (is_under_rules or is_binding(line.strip())):
            chosen.append(line)
    return "\n".join(chosen)


def _select_lines(text: str, characters: int, material: Material) -> str:
    """Return the text, or its most binding lines in order with marks for what is left out."""
    lines = [line.rstrip() for line in _drop_reference_parts(drop_code_blocks(text)) if line.strip()]
    if sum(len(line) + 1 for line in lines) <= characters:
        return "\n".join(lines)
    weights = [_weigh_requirement(line, number, material) for number, line in enumerate(lines)]
    chosen: set[int] = set()
    room = characters
    for index in sorted(range(len(lines)), key=lambda index: (-weights[index], index)):
        if len(lines[index]) + 1 <= room:
            chosen.add(index)
            room -= len(lines[index]) + 1
    return join_with_gaps(lines, chosen)


def _drop_reference_parts(text: str) -> list[str]:
    """Return the lines without lists of references and relatives, and without the owner and dates at the top."""
    lines = []
    is_reference = False
    for line in text.splitlines():
        plain = line.strip("# :*").casefold()
        is_heading = bool(line.strip()) and not line.startswith((" ", "-", "*", "↳", "→")) and len(plain) < 40
        if is_heading:
            is_reference = plain.startswith(_REFERENCE_HEADINGS)
        if not is_reference and not plain.startswith(("owner:", "created:", "assignee:", "description", "author:")):
            lines.append(line)
    return lines


def _weigh_requirement(line: str, number: int, material: Material) -> int:
    weight = 4 if is_binding(line.strip()) else 0
    weight += 2 if line.startswith(("#", "-", "*")) or line[:1].isdigit() else 0
    weight += 2 if number < 2 else 0
    weight += 1 if "`" in line else 0
    weight -= 1 if line.startswith("    ") else 0
    return weight + (6 if material.priorities.matches(line) else 0)


def _list_plan_items(material: Material) -> list[SummaryItem]:
    """Return the plan of the plan mode, shortened; a plan that came with a message is among the messages."""
    text = material.plan_text.strip()
    if not text or any(text in message.text for message in material.activity.user_messages):
        return []
    shown = _select_lines(text, _PLAN_CHARACTERS, material)
    source = shorten_path(material.plan_path, material.cwd) if material.plan_path else "plan mode"
    return [SummaryItem(Section.REQUEST, f"- The plan ({source}):\n{quote(shown)}")] if shown else []


def _list_document_items(material: Material) -> list[SummaryItem]:
    """Return binding sentences of plans and of documents that the user named, with their source."""
    items = []
    for file in material.files:
        if file.content and _is_instruction(file, material):
            sentences = [
                sentence
                for line in drop_code_blocks(file.content).splitlines()
                for sentence in split_sentences(line.strip(" -*#>\t"))
                if is_binding(sentence)
            ]
            named = [sentence for sentence in sentences if material.priorities.matches(sentence)]
            shown = list(dict.fromkeys([*named, *sentences]))[:_DOCUMENT_CONSTRAINTS]
            if shown:
                path = cut_line(shorten_path(file.path, material.cwd))
                lines = "\n".join(f"  - {quote_in_line(sentence)}" for sentence in shown)
                items.append(SummaryItem(Section.REQUEST, f"- Constraints in {path}:\n{lines}", CutRank.FILE_NOTE))
    return items[:4]


def _is_instruction(file: TouchedFile, material: Material) -> bool:
    """Return whether a document holds instructions: a plan by its name, or a file that a message names."""
    name = file.path.rpartition("/")[2]
    if not name.casefold().endswith(_DOCUMENT_SUFFIXES) or file.content == material.plan_text:
        return False
    # Instruction files of the project come back with every request.
    if name in ("CLAUDE.md", "AGENTS.md"):
        return False
    return "plan" in name.casefold() or any(name in message.text for message in material.activity.user_messages)
