"""The report of one audit: what was searched for, how it was found, and the share that was retained."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType

from compaction.audit.passage_search import PassageMatch
from compaction.audit.statements import AuditPart

# How much each part counts. A part with fewer than FULL_COUNT statements counts for less: one lost error is not a tenth
# of everything.
FULL_COUNT = 5
WEIGHTS: Mapping[AuditPart, int] = MappingProxyType(
    {
        AuditPart.REQUIREMENTS: 20,
        AuditPart.DECISIONS: 15,
        AuditPart.PROGRESS: 40,
        AuditPart.BACKGROUND: 5,
        AuditPart.ERRORS: 5,
        AuditPart.REFERENCES: 15,
    }
)
_TENTH = Decimal("0.1")


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One statement, the entry it is from, and how it was found afterwards."""

    part: AuditPart
    text: str
    entry_uuid: str | None
    weight: float
    match: PassageMatch


@dataclass(frozen=True, slots=True)
class PartResult:
    """One part: statements found and present, and the share retained by weight, in percent."""

    part: AuditPart
    weight: int
    found: int
    present: int
    retained: Decimal


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The audit of one compaction."""

    findings: tuple[AuditFinding, ...]

    @property
    def parts(self) -> tuple[PartResult, ...]:
        """Return the parts with at least one statement."""
        results = []
        for part, weight in WEIGHTS.items():
            findings = [finding for finding in self.findings if finding.part is part]
            if findings:
                found = sum(finding.match.is_found for finding in findings)
                share = _round(100 * _retained_share(findings))
                counts = weight * min(len(findings), FULL_COUNT) // FULL_COUNT
                results.append(PartResult(part, counts, found, len(findings), share))
        return tuple(results)

    @property
    def retained(self) -> Decimal | None:
        """Return the percentage retained, parts by their weights; None where no statement was searched for."""
        parts = self.parts
        weights = sum(part.weight for part in parts)
        if not weights:
            return None
        total = sum(float(part.retained) * part.weight for part in parts)
        return _round(total / weights)

    @property
    def lost(self) -> tuple[AuditFinding, ...]:
        """Return what was not found, the most important first."""
        lost = [finding for finding in self.findings if not finding.match.is_found]
        return tuple(sorted(lost, key=lambda finding: -finding.weight * WEIGHTS[finding.part]))


def _retained_share(findings: list[AuditFinding]) -> float:
    total = sum(finding.weight for finding in findings)
    return sum(finding.weight * finding.match.credit for finding in findings) / total if total else 1.0


def _round(percent: float) -> Decimal:
    return Decimal(percent).quantize(_TENTH, ROUND_HALF_UP)
