"""The audit of a compaction as the dashboard calls it: the findings of the engine, in parts that are weighed.

Stands in for compaction.audit.report and has its names.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum

from compaction.compactors.losses import LossReport, find_losses
from compaction.compactors.losses import Part as EnginePart
from compaction.transcripts.entries import Entry

_TENTH = Decimal("0.1")


class Part(StrEnum):
    """What a continuing agent needs."""

    REQUIREMENTS = "requirements"
    DECISIONS = "decisions"
    PROGRESS = "progress"
    BACKGROUND = "background"
    ERRORS = "errors"
    REFERENCES = "references"

    @property
    def label(self) -> str:
        return self.value.capitalize()


_PARTS = {
    EnginePart.USER_MESSAGES: Part.REQUIREMENTS,
    EnginePart.CONSTRAINTS: Part.REQUIREMENTS,
    EnginePart.OPEN_TODOS: Part.PROGRESS,
    EnginePart.LAST_WORK: Part.PROGRESS,
    EnginePart.FILES: Part.REFERENCES,
    EnginePart.ERRORS: Part.ERRORS,
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was there before. `credit` is how much of it can still be found, from 0 to 1."""

    part: Part
    text: str
    entry_uuid: str | None
    weight: float
    credit: float

    @property
    def is_found(self) -> bool:
        return self.credit > 0


@dataclass(frozen=True, slots=True)
class PartResult:
    """One part: how many of its findings can still be found, and the share of their weight."""

    part: Part
    weight: int
    found: int
    present: int
    retained: Decimal


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The audit of one compaction. `retained` is a percentage, None where there was nothing to judge."""

    parts: tuple[PartResult, ...]
    retained: Decimal | None
    lost: tuple[Finding, ...]  # the heaviest first


def audit_compaction(before: Sequence[Entry], after: Iterable[Entry]) -> AuditReport:
    """Compare what the model saw before a compaction with all that it sees after it."""
    report = find_losses(before, after)
    by_part = defaultdict(list)
    for finding in _weigh_findings(report):
        by_part[finding.part].append(finding)
    weights: dict[Part, int] = defaultdict(int)
    for scored in report.parts:
        weights[_PARTS[scored.part]] += scored.weight
    parts = tuple(_compute_part(part, weights[part], by_part[part]) for part in Part if by_part[part])
    findings = [finding for part in Part for finding in by_part[part]]
    lost = sorted((finding for finding in findings if not finding.is_found), key=lambda each: -each.weight)
    return AuditReport(parts, report.score, tuple(lost))


def _weigh_findings(report: LossReport) -> Iterable[Finding]:
    weights = {scored.part: scored.weight / scored.present for scored in report.parts}
    for each in report.findings:
        credit = 1.0 if each.match.is_found else 0.0
        yield Finding(_PARTS[each.part], each.quote, each.entry_uuid, weights[each.part], credit)


def _compute_part(part: Part, weight: int, findings: Sequence[Finding]) -> PartResult:
    found = sum(finding.weight * finding.credit for finding in findings)
    share = Decimal(found / sum(finding.weight for finding in findings) * 100).quantize(_TENTH, ROUND_HALF_UP)
    return PartResult(part, weight, sum(finding.is_found for finding in findings), len(findings), share)
