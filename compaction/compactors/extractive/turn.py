"""The turn that has not ended, for section 8: the agent's plan, what it found, and the steps that it named."""

import re
from collections.abc import Sequence

from compaction.activity.excerpts import cut_middle, cut_text
from compaction.activity.sentences import drop_code_blocks, drop_openings
from compaction.activity.tool_calls import AssistantText
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.pending import has_ended
from compaction.compactors.extractive.sections import quote, quote_in_line

_PLAN_CHARACTERS = 900
_SHORTEST_FINDINGS, _FINDINGS_CHARACTERS = 300, 1_600
_LEAST_ITEMS = 3
_MOST_STEPS = 12
_STEP_CHARACTERS = 110
# A sentence about what is to be done, and the first item of the list below it.
_PLANNED_LIST = re.compile(
    r"(?:need to|have to|plan|will|going to|steps?|to ?do|muss|werde|计划|步骤|手順)[^\n]{0,80}[:\uff1a]\s*\n+"
    r"\s*(?:[-*]|\d{1,2}[.)]) \S",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"^ {0,6}(?:[-*]|\d{1,2}[.)]) \S", re.MULTILINE)
_NAMED = re.compile(r"`[^`\n]{3,80}`|\*\*[^*\n]{3,120}\*\*")


def list_turn_lines(material: Material) -> list[str]:
    """Return the plan and the findings of a turn that has not ended, and the steps that the agent named since."""
    since = _list_remarks(material)
    number = len(material.work.said)
    plan, findings = _find_plan(since), find_findings(material)
    lines: list[str] = []
    if plan is not None:
        lines += [f"- The agent's plan for message {number}:", _quote(plan, _PLAN_CHARACTERS)]
    if findings is not None:
        when = f" at {findings.at:%H:%M}" if findings.at else ""
        lines += [f"- What the agent found for message {number}{when}:", _quote(findings, _FINDINGS_CHARACTERS)]
    lists = [remark.place for remark in (plan, findings) if remark is not None]
    steps = [step for remark in since if lists and remark.place > max(lists) and (step := _name_step(remark))]
    if steps:
        lines.append(f"- Steps that the agent named since, oldest first: {'; '.join(steps[-_MOST_STEPS:])}")
    return lines


def find_findings(material: Material) -> AssistantText | None:
    """Return the longest list that the agent made for a message that it still works on: its next steps rest on it.

    The plan and the last words are quoted by themselves.
    """
    since = _list_remarks(material)
    plan = _find_plan(since)
    lists = [
        remark
        for remark in since
        if remark is not plan
        and len(remark.text) >= _SHORTEST_FINDINGS
        and len(_LIST_ITEM.findall(remark.text)) >= _LEAST_ITEMS
    ]
    return max(lists, key=lambda remark: len(remark.text), default=None)


def _list_remarks(material: Material) -> Sequence[AssistantText]:
    """Return what the agent said since the last message, but its last words; nothing where the turn ended."""
    work = material.work
    if not work.said or has_ended(work):
        return ()
    return [remark for remark in work.remarks[:-1] if remark.place > work.said[-1].place]


def _find_plan(remarks: Sequence[AssistantText]) -> AssistantText | None:
    """Return the first text with a list of what is to be done."""
    return next((remark for remark in remarks if _PLANNED_LIST.search(remark.text)), None)


def _name_step(remark: AssistantText) -> str:
    """Return the last line of a text that names something; "" where none does."""
    lines = [line for line in drop_code_blocks(remark.text).splitlines() if _NAMED.search(line)]
    return quote_in_line(cut_text(lines[-1].strip().rstrip(":"), _STEP_CHARACTERS)) if lines else ""


def _quote(remark: AssistantText, characters: int) -> str:
    return quote(cut_middle(drop_openings(drop_code_blocks(remark.text)), characters))
