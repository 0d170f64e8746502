"""Section 2: where the work happens, with which programs, and which names recur."""

from collections import Counter

from compaction.activity.excerpts import shows_only, take_line, trim_command
from compaction.activity.sentences import TERM
from compaction.compactors.extractive.material import Material
from compaction.compactors.extractive.sections import Section, SummaryItem

_MOST_PROGRAMS = 10
_MOST_TERMS = 14
_LONGEST_TERM = 60


def list_concept_items(material: Material) -> list[SummaryItem]:
    """Return the working directory, the commands and the recurring terms, most used first."""
    lines = []
    if material.cwd:
        branch = f", branch {take_line(material.branch)}" if material.branch else ""
        lines.append(f"- Working directory: {take_line(material.cwd)}{branch}")
    programs = Counter(
        " ".join(trim_command(action.command).split()[:2])
        for action in material.work.actions
        if action.command and not shows_only(action.command)
    )
    lines.append(_list_most("Commands in use", programs, _MOST_PROGRAMS))
    terms = Counter(
        term for remark in material.work.remarks for term in TERM.findall(remark.text) if len(term) <= _LONGEST_TERM
    )
    recurring = Counter({term: count for term, count in terms.items() if count > 1})
    lines.append(_list_most("Recurring terms", recurring, _MOST_TERMS))
    return [SummaryItem(Section.CONCEPTS, line) for line in lines if line]


def _list_most(title: str, counts: Counter[str], most: int) -> str:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    return f"- {title}: {', '.join(f'{name} ({times})' for name, times in ranked)}" if ranked else ""
