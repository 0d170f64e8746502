"""Section 5: commits, what the agent stated and reported, and reports of other agents, newest first.

A later statement replaces an earlier one about the same thing, so the newest come first.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.activity.commits import Commit
from compaction.activity.excerpts import cut_middle, cut_text
from compaction.activity.sentences import list_prose
from compaction.activity.statements import KeyStatement, list_statements, weigh_sentence
from compaction.activity.tool_calls import Activity, AssistantText
from compaction.compactors.extractive.errors import list_words_after
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.sections import CutRank, Section, SummaryItem, quote_in_line
from compaction.compactors.extractive.turn import find_findings
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
_AGENT_ID = "\nagentId:"  # below the report the client says how to resume the agent
_BODY_CHARACTERS = 420
_COMMITS_WITH_BODY = 5
_HEREDOC = re.compile(r"<<-?[ \t]*+['\"]?(\w+)['\"]?\n")
_MESSAGE = re.compile(r"\s-\w*m\s+(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')", re.DOTALL)
_TRAILER = re.compile(r"^(?:[A-Z][\w-]+-by:|🤖|Generated with|Co-Authored)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Event:
    place: int
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
    reports = find_reports(material.work)
    quoted = [findings] if (findings := find_findings(material)) else []  # in section 8
    events = [
        *_list_reports(reports, material),
        *_list_chosen_statements(material, frozenset({*reports, *(one.place for one in quoted)})),
        *_list_agent_reports(material),
    ]
    for age, event in enumerate(sorted(events, key=lambda event: -event.place)):
        items.append(SummaryItem(Section.PROBLEM_SOLVING, event.text, CutRank.STATEMENT, age, is_named=event.is_named))
    return items


def find_reports(work: Activity) -> dict[int, AssistantText]:
    """Return by place what the agent said at the end of each turn, with nothing done after it."""
    last_action = {action.turn: action.place for action in work.actions}
    last_remark = {remark.turn: remark for remark in work.remarks}
    return {remark.place: remark for turn, remark in last_remark.items() if remark.place > last_action.get(turn, -1)}


def _list_reports(reports: dict[int, AssistantText], material: Material) -> list[_Event]:
    """Return the reports at the end of turns, the newest fuller; the last words are in section 8."""
    events = []
    last = material.work.remarks[-1].place if material.work.remarks else -1
    earlier = [remark for place, remark in sorted(reports.items()) if place != last]
    share = max(_SHORTEST_REPORT, min(_LONGEST_REPORT, _REPORTS_CHARACTERS // max(1, len(earlier))))
    for age, remark in enumerate(reversed(earlier[-_MOST_REPORTS:])):
        is_named = material.priorities.matches(remark.text)
        limit = min(_LONGEST_REPORT, share * 3 // 2) if age < _NEW_REPORTS or is_named else share
        text = shorten_report(material.list_prose(remark), remark.text, limit, material)
        if text:
            events.append(_Event(remark.place, f"-{_say_time(remark.at)} report: {quote_in_line(text)}", is_named))
    return events


def shorten_report(sentences: Sequence[str], source: str, characters: int, material: Material) -> str:
    """Return the sentences of a report within the limit, the weightiest kept, with a mark between those apart.

    A question at the end is kept: the next message answers it.
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


def _list_chosen_statements(material: Material, reports: frozenset[int]) -> list[_Event]:
    """Return the weightiest statements within the cap; what was said after a failure is in section 4."""
    last = material.work.remarks[-1].place if material.work.remarks else -1
    left_out = frozenset({last, *reports})
    shown = [said for failure in material.list_reported_failures() for said in list_words_after(failure, material)]
    statements = list_statements(
        material.work, read_prose=material.list_prose, priorities=material.priorities, left_out=left_out, shown=shown
    )
    sources = {remark.place: remark.text for remark in material.work.remarks}
    room = _STATEMENTS_CHARACTERS
    room_named = _NAMED_CHARACTERS
    events = []
    for statement in sorted(statements, key=lambda statement: (-statement.weight, -statement.place)):
        if statement.is_named and len(statement.text) <= room_named:
            room_named -= len(statement.text)
        elif len(statement.text) <= room:
            room -= len(statement.text) + 12
        else:
            continue
        events.append(
            _Event(statement.place, _write_statement(statement, sources[statement.place]), statement.is_named)
        )
    return events


def _write_statement(statement: KeyStatement, source: str) -> str:
    joined = join_sentences(list(statement.sentences), source, 1_000)
    return f"-{_say_time(statement.at)} {quote_in_line(joined)}"


def _describe_commit(commit: Commit, age: int) -> str:
    when = f" at {commit.at:%H:%M}" if commit.at else ""
    text = f"- committed {commit.revision}{when}: {quote_in_line(commit.subject)}"
    body = _read_body(commit) if age < _COMMITS_WITH_BODY else ""
    return f"{text}, {quote_in_line(cut_text(body, _BODY_CHARACTERS))}" if body else text


def _read_body(commit: Commit) -> str:
    """Return what the commit message says below its subject."""
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


def _list_agent_reports(material: Material) -> list[_Event]:
    """Return what other agents reported, shortened."""
    events = []
    for action in material.work.actions:
        if action.name not in AGENT_TOOLS or action.is_refused or len(action.output) < _SHORTEST_AGENT_REPORT:
            continue
        about = get_text(action.use.input, "description") or "agent"
        report = action.output.partition(_AGENT_ID)[0]
        is_named = material.priorities.matches(action.output)
        limit = _AGENT_REPORT_CHARACTERS * 2 if is_named else _AGENT_REPORT_CHARACTERS
        text = shorten_report(list_prose(report), report, limit, material)
        if text:
            events.append(
                _Event(action.place, f"- agent {quote_in_line(about)} reported: {quote_in_line(text)}", is_named)
            )
    return events


def _say_time(at: datetime | None) -> str:
    return f" {at:%H:%M}" if at else ""
