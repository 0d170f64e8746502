"""What people demanded and decided: prompts, constraints of tickets and plans, answers, refusals, confirmations."""

import re
from collections.abc import Iterator, Sequence

from compaction.activity.tool_calls import Activity, AssistantText, ToolCall
from compaction.activity.user_messages import UserMessage, UserMessageKind
from compaction.audit.statements import (
    LEAST_BINDING_SUBSTANCE,
    AuditStatement,
    Part,
    make_statement,
    split_statements,
)
from compaction.transcripts.client_protocol import AGENT_TOOLS, FILE_READERS, ToolName
from compaction.transcripts.json_fields import get_text

# Words by which people bind an agent, in the languages of the prompts that were seen most.
BINDING = re.compile(
    r"\b(?:must(?:n't)?|never|always|do not|don['\u2019]?t|should(?:n't| not)|make sure|ensure|avoid|at (?:most|least)"
    r"|no more than|not allowed|forbidden|required?|requires|without|instead of|rather than|only (?:if|when|on|in|use)"
    r"|important|prefer|muss|müssen|nicht|kein\w*|niemals|immer|doit|jamais|toujours|debe|nunca|siempre)\b"
    r"|必须|不要|不能|不得|禁止|务必|请勿|しないで|必ず|べき",
    re.IGNORECASE,
)
# Commands that print a ticket or a change request.
_TICKET = re.compile(r"\b(?:bd|gh|glab|jira|linear|acli)\s+(?:\w+\s+)?(?:show|view|get)\b|\bgh api\b")
_TICKET_TOOL = re.compile(r"^mcp__.*(?:issue|ticket|jira|linear|story|task)", re.IGNORECASE)
# Files in which a person or an agent lays down what is to be done. CLAUDE.md and its kin are in every prompt anyway.
_PLAN_NAME = re.compile(r"plan|spec|requirement|ticket|task|todo|review|design", re.IGNORECASE)
_PLAN_ENDINGS = (".md", ".txt", ".rst")
_DECIDED = re.compile(
    r"\b(?:decided|decision|(?:i'll|i will|we'll) go with|chose|chosen|opted|agreed|settled on|because|since it"
    r"|root cause|the (?:issue|problem|bug|cause) (?:is|was)|so that|trade-?off|rather than|instead of|intentional\w*"
    r"|deliberate\w*|simplif\w+|this means)\b",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\"((?:[^\"\\]|\\.)+)\"=\"((?:[^\"\\]|\\.)*)\"")
_LINE_NUMBER = re.compile(r"^ {0,8}\d{1,7}(?:\u2192|\t)", re.MULTILINE)
_SHORT_REPLY = 60  # characters: what such a reply agrees to is in the question before it
_OPTION = re.compile(r"\b(?:option\s*)?([1-9A-Ea-e])\b[.)]?", re.IGNORECASE)
_OFFER = re.compile(r"\?\s*$")
_MOST_FROM_TICKETS = 25
_MOST_REASONS = 20
_PROMPT_SUBSTANCE, _SOURCE_SUBSTANCE = 2.0, 2.0
_USUAL_STATEMENTS = 4  # of one message: longer ones weigh more, but not in proportion


def select_requirements(activity: Activity) -> Iterator[AuditStatement]:
    """Yield what people asked for, then what tickets, plans and instructions to agents bind."""
    for message in activity.user_messages:
        if message.kind is not UserMessageKind.ANSWER:
            yield from _read_message(message, activity.last_turn)
    found = [statement for tool_call in activity.tool_calls for statement in _read_source(tool_call)]
    yield from found[-_MOST_FROM_TICKETS:]


def select_decisions(activity: Activity) -> Iterator[AuditStatement]:
    """Yield answers to questions, what short replies agreed to, and reasons the agent gave for its choices."""
    for message in activity.user_messages:
        if message.kind is UserMessageKind.ANSWER:
            yield from _read_answer(message)
        elif len(message.text) <= _SHORT_REPLY and (offer := _find_offer(message, activity.assistant_texts)):
            yield offer
    reasons = [
        statement
        for assistant_text in activity.assistant_texts
        for text in split_statements(assistant_text.text)
        if _DECIDED.search(text) and (statement := make_statement(Part.DECISIONS, text, assistant_text.entry_uuid, 1.0))
    ]
    yield from reasons[-_MOST_REASONS:]


def _read_message(message: UserMessage, last_turn: int) -> Iterator[AuditStatement]:
    texts = list(split_statements(message.text))
    share = min(1.0, (_USUAL_STATEMENTS / len(texts)) ** 0.5) if texts else 1.0
    is_last = message.turn == last_turn
    for text in texts:
        is_answered = not is_last and text.endswith(("?", "\uff1f"))
        is_binding = BINDING.search(text) is not None
        weight = share * (2.0 if is_binding else 1.0) * (2.0 if is_last else 0.5 if is_answered else 1.0)
        least = LEAST_BINDING_SUBSTANCE if is_binding else _PROMPT_SUBSTANCE
        statement = make_statement(Part.REQUIREMENTS, text, message.entry_uuid, weight, least_substance=least)
        if statement:
            yield statement


def _read_source(tool_call: ToolCall) -> Iterator[AuditStatement]:
    for text in _list_sources(tool_call):
        for sentence in split_statements(text):
            if BINDING.search(sentence):
                statement = make_statement(
                    Part.REQUIREMENTS, sentence, _source_uuid(tool_call), 0.7, least_substance=_SOURCE_SUBSTANCE
                )
                if statement:
                    yield statement


def _list_sources(tool_call: ToolCall) -> Iterator[str]:
    """Yield texts of this action that bind the agent: tickets, plans, instructions to other agents."""
    if tool_call.is_error:
        return
    if tool_call.name == ToolName.EXIT_PLAN_MODE:
        yield get_text(tool_call.use.input, "plan") or get_text(tool_call.details, "plan") or ""
    elif tool_call.name in AGENT_TOOLS:
        yield get_text(tool_call.use.input, "prompt") or ""
    elif _shows_source(tool_call):
        yield _LINE_NUMBER.sub("", tool_call.output)


def _shows_source(tool_call: ToolCall) -> bool:
    """Return whether the result of an action is a ticket or a plan."""
    if tool_call.command is not None:
        return _TICKET.search(tool_call.command) is not None
    if tool_call.name in FILE_READERS:
        name = (tool_call.path or "").rpartition("/")[2]
        return name.lower().endswith(_PLAN_ENDINGS) and _PLAN_NAME.search(name) is not None
    return _TICKET_TOOL.search(tool_call.name) is not None


def _source_uuid(tool_call: ToolCall) -> str | None:
    """Return the entry that shows the source: the result, or the request that holds a plan or instructions."""
    return tool_call.result_entry.uuid if _shows_source(tool_call) and tool_call.result_entry else tool_call.entry.uuid


def _read_answer(message: UserMessage) -> Iterator[AuditStatement]:
    """Yield what was chosen; the question's words help to recognise an answer that says little by itself."""
    for question, answer in _PAIR.findall(message.text) or [("", message.text)]:
        for text in (answer, f"{question} {answer}"):
            statement = make_statement(Part.DECISIONS, text, message.entry_uuid, 2.0)
            if statement:
                yield statement
                break


def _find_offer(message: UserMessage, assistant_texts: Sequence[AssistantText]) -> AuditStatement | None:
    """Return what a short reply agreed to: the option it names, else the question that was asked last."""
    before = next(
        (
            assistant_text
            for assistant_text in reversed(assistant_texts)
            if assistant_text.entry_index < message.entry_index
        ),
        None,
    )
    if before is None:
        return None
    named = _OPTION.search(message.text)
    option = next((line for line in reversed(before.text.splitlines()) if named and _offers(line, named[1])), None)
    if option:
        return make_statement(Part.DECISIONS, option.strip(), before.entry_uuid, 1.5)
    offer = next((text for text in reversed(list(split_statements(before.text))) if _OFFER.search(text)), None)
    return make_statement(Part.DECISIONS, offer, before.entry_uuid, 1.5) if offer else None


def _offers(line: str, option: str) -> bool:
    """Return whether a line presents the option of this number or letter: "2. Keep it", "- Option B: move it"."""
    start = line.lstrip(" \t*-#(").casefold().removeprefix("option ").removeprefix(option.casefold())
    return start != line.casefold() and start[:1] in (".", ")", ":")
