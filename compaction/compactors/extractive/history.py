"""Section 5: commits, statements and reports of the agent, and reports of other agents.

A later statement replaces an earlier one about the same subject, so the newest come first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compaction.activity.commits_and_checks import Commit
from compaction.activity.excerpts import cut_middle, cut_text
from compaction.activity.sentences import list_prose
from compaction.activity.statements import KeyStatement, list_statements, weigh_sentence
from compaction.activity.tool_calls import Activity, AssistantText
from compaction.compactors.extractive.errors import list_sentences_after
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.pending import find_findings
from compaction.compactors.extractive.sections import CutRank, SummaryItem, describe_time, quote_in_line
from compaction.compactors.summary.prompt import Section
from compaction.transcripts.client_protocol import AGENT_TOOLS
from compaction.transcripts.json_fields import get_text

_STATEMENTS_CHARACTERS = 5_500
_NAMED_CHARACTERS = 3_000  # more for what the instructions name
_MOST_REPORTS = 24
_REPORTS_CHARACTERS = 6_500  # of all reports together, the newest ones half as much again
_SHORTEST_REPORT, _LONGEST_REPORT = 240, 900
_NEW_REPORTS = 6
_AGENT_REPORT_CHARACTERS = 700
_SHORTEST_AGENT_REPORT = 80
_AGENT_ID = "\nagentId:"  # below the report the client writes how to resume the agent
_BODY_CHARACTERS = 420
_COMMITS_WITH_BODY = 5
_HEREDOC = re.compile(r"<<-?[ \t]*+['\"]?(\w+)['\"]?\n")
_MESSAGE = re.compile(r"\s-\w*m\s+(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')", re.DOTALL)
_TRAILER = re.compile(r"^(?:[A-Z][\w-]+-by:|🤖|Generated with|Co-Authored)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _HistoryItem:
    entry_index: int
    text: str
    is_named: bool = False


def list_history_items(material: Material, *, has_commits: bool = True) -> list[SummaryItem]:
    """Return commits, then statements and reports, each newest first."""
    items = []
    if has_commits:
        items += [
            SummaryItem(Section.PROBLEM_SOLVING, _describe_commit(commit, age), CutRank.ALWAYS, age)
            for age, commit in enumerate(reversed(material.commits))
        ]
    reports = list_turn_reports(material.activity)
    quoted = {*reports, *(text.entry_index for text in (find_findings(material),) if text is not None)}
    texts = [
        *_list_reports(reports, material),
        *_list_chosen_statements(material, quoted),
        *_list_agent_reports(material),
    ]
    for age, text in enumerate(sorted(texts, key=lambda text: -text.entry_index)):
        items.append(SummaryItem(Section.PROBLEM_SOLVING, text.text, CutRank.STATEMENT, age, is_named=text.is_named))
    return items


def list_turn_reports(activity: Activity) -> dict[int, AssistantText]:
    """Return what the agent wrote at the end of each turn, after its last tool call, by index of the entry."""
    last_calls = {tool_call.turn: tool_call.entry_index for tool_call in activity.tool_calls}
    last_texts = {text.turn: text for text in activity.assistant_texts}
    return {text.entry_index: text for turn, text in last_texts.items() if text.entry_index > last_calls.get(turn, -1)}


def _list_reports(reports: dict[int, AssistantText], material: Material) -> list[_HistoryItem]:
    """Return the reports at the end of turns, the newest longer; the last one is quoted under current work."""
    items = []
    last = material.last_text_index
    earlier = [text for index, text in sorted(reports.items()) if index != last]
    share = max(_SHORTEST_REPORT, min(_LONGEST_REPORT, _REPORTS_CHARACTERS // max(1, len(earlier))))
    for age, report in enumerate(reversed(earlier[-_MOST_REPORTS:])):
        is_named = material.priorities.matches(report.text)
        limit = min(_LONGEST_REPORT, share * 3 // 2) if age < _NEW_REPORTS or is_named else share
        text = shorten_report(material.list_prose(report), report.text, limit, material)
        if text:
            line = f"-{describe_time(report.at, ' ')} report: {quote_in_line(text)}"
            items.append(_HistoryItem(report.entry_index, line, is_named))
    return items


def shorten_report(sentences: Sequence[str], source: str, characters: int, material: Material) -> str:
    """Return the sentences of a report within the limit, the weightiest first, with a mark for each gap.

    A question at the end always stays: the next message answers it.
    """
    # Lines that only introduce a list say nothing without it, except for figures.
    sentences = [
        sentence
        for sentence in sentences
        if not sentence.endswith((":", "\uff1a")) or any(character.isdigit() for character in sentence)
    ]
    if not sentences or (len(sentences) == 1 and weigh_sentence(sentences[0]) < 1):
        return ""
    named = [material.priorities.matches(sentence) for sentence in sentences]
    weights = [weigh_sentence(sentence) for sentence in sentences]
    asks = sentences[-1].endswith(("?", "\uff1f"))
    chosen: set[int] = {len(sentences) - 1} if asks else set()
    room = characters - sum(len(sentences[index]) for index in chosen)
    for index in sorted(range(len(sentences)), key=lambda index: (-named[index], -weights[index], index)):
        is_worth_it = named[index] or weights[index] > 0 or not chosen
        if index not in chosen and is_worth_it and (not chosen or len(sentences[index]) <= room):
            chosen.add(index)
            room -= len(sentences[index]) + 1
    return join_sentences([sentences[index] for index in sorted(chosen)], source, characters)


def join_sentences(sentences: list[str], source: str, characters: int) -> str:
    """Return the sentences on one line, with a mark between those that do not follow each other in the source."""
    flat = " ".join(source.split())
    joined = sentences[0]
    for sentence in sentences[1:]:
        joined += f" {sentence}" if f"{joined.rpartition(' […] ')[2]} {sentence}" in flat else f" […] {sentence}"
    return cut_middle(joined, characters + 200)


def _list_chosen_statements(material: Material, quoted: set[int]) -> list[_HistoryItem]:
    """Return the weightiest statements within the cap; sentences after a failure are quoted with the error."""
    failures = material.list_reported_failures()
    statements = list_statements(
        material.activity,
        read_prose=material.list_prose,
        priorities=material.priorities,
        left_out=frozenset({material.last_text_index, *quoted}),
        shown=[sentence for failure in failures for sentence in list_sentences_after(failure, material)],
    )
    sources = {text.entry_index: text.text for text in material.activity.assistant_texts}
    room = _STATEMENTS_CHARACTERS
    room_named = _NAMED_CHARACTERS
    items = []
    for statement in sorted(statements, key=lambda statement: (-statement.weight, -statement.entry_index)):
        if statement.is_named and len(statement.text) <= room_named:
            room_named -= len(statement.text)
        elif len(statement.text) <= room:
            room -= len(statement.text) + 12
        else:
            continue
        line = _describe_statement(statement, sources[statement.entry_index])
        items.append(_HistoryItem(statement.entry_index, line, statement.is_named))
    return items


def _describe_statement(statement: KeyStatement, source: str) -> str:
    joined = join_sentences(list(statement.sentences), source, 1_000)
    return f"-{describe_time(statement.at, ' ')} {quote_in_line(joined)}"


def _describe_commit(commit: Commit, age: int) -> str:
    text = f"- committed {commit.revision}{describe_time(commit.at)}: {quote_in_line(commit.subject)}"
    body = _read_body(commit) if age < _COMMITS_WITH_BODY else ""
    return f"{text}, {quote_in_line(cut_text(body, _BODY_CHARACTERS))}" if body else text


def _read_body(commit: Commit) -> str:
    """Return the commit message below its subject."""
    message = _read_heredoc(commit.command)
    if message is None:
        message = "\n\n".join(first or second for first, second in _MESSAGE.findall(commit.command))
    lines = [line for line in message.splitlines()[1:] if line.strip() and not _TRAILER.match(line.strip())]
    return "\n".join(lines)


def _read_heredoc(command: str) -> str | None:
    """Return the text of the first here-document of a command."""
    opening = _HEREDOC.search(command)
    if opening is None:
        return None
    lines = command[opening.end() :].split("\n")
    end = next((index for index, line in enumerate(lines) if line.strip(" \t)\"'") == opening[1]), None)
    return None if end is None else "\n".join(lines[:end])


def _list_agent_reports(material: Material) -> list[_HistoryItem]:
    """Return the reports of other agents, shortened."""
    items = []
    for tool_call in material.activity.tool_calls:
        if tool_call.name not in AGENT_TOOLS or tool_call.is_error or len(tool_call.output) < _SHORTEST_AGENT_REPORT:
            continue
        about = get_text(tool_call.use.input, "description") or "agent"
        report = tool_call.output.partition(_AGENT_ID)[0]
        is_named = material.priorities.matches(tool_call.output)
        limit = _AGENT_REPORT_CHARACTERS * 2 if is_named else _AGENT_REPORT_CHARACTERS
        text = shorten_report(list_prose(report), report, limit, material)
        if text:
            line = f"- agent {quote_in_line(about)} reported: {quote_in_line(text)}"
            items.append(_HistoryItem(tool_call.entry_index, line, is_named))
    return items
