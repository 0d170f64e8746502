"""Audits of compactions as rows store them: one form for the client's compactions and our own.

The only module of the dashboard that knows which audit the engine offers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from compaction.audit.audit import audit_compaction
from compaction.audit.score import AuditReport
from compaction.audit.statements import AuditPart

__all__ = ["AUDIT_VERSION", "AuditReport", "StoredAudit", "audit_compaction", "parse_audit", "serialize_report"]

# The rules of the audit. Stored audits of an earlier version are done again while their conversation is stored.
AUDIT_VERSION = 3
MOST_LOST = 200  # stored findings of one compaction; the percentage counts all
_TENTH = Decimal("0.1")


@dataclass(frozen=True)
class StoredPart:
    """One part of an audit. `retained_percent` counts found findings by their weight."""

    part: str
    label: str
    weight: int
    found: int
    present: int
    retained_percent: Decimal


@dataclass(frozen=True)
class StoredLoss:
    """One thing that was there before and cannot be found afterwards. `weight` is None in audits of version 1."""

    part: str
    label: str
    text: str
    entry: str
    weight: float | None


@dataclass(frozen=True)
class StoredAudit:
    version: int
    parts: tuple[StoredPart, ...]
    lost_count: int
    lost: tuple[StoredLoss, ...]


def serialize_report(report: AuditReport) -> dict[str, object]:
    return {
        "version": AUDIT_VERSION,
        "parts": [
            {
                "part": each.part.value,
                "weight": each.weight,
                "found": each.found,
                "present": each.present,
                "retained": float(each.retained),
            }
            for each in report.parts
        ],
        "lost_count": len(report.lost),
        "lost": [
            {
                "part": each.part.value,
                "text": each.text.replace("\x00", ""),  # PostgreSQL takes no NUL, not in JSON either.
                "entry": each.entry_uuid,
                "weight": round(each.weight, 3),
            }
            for each in report.lost[:MOST_LOST]
        ],
    }


def parse_audit(stored: Mapping[str, Any] | None) -> StoredAudit | None:
    """Return a stored audit, also one of version 1, whose parts were lists; None where nothing was compared."""
    if stored is None:
        return None
    parts = _parse_first_parts if "version" not in stored else _parse_parts
    return StoredAudit(
        version=stored.get("version", 1),
        parts=tuple(parts(stored["parts"])),
        lost_count=stored["lost_count"],
        lost=tuple(_parse_loss(item) for item in stored["lost"]),
    )


def _parse_parts(parts: Sequence[Mapping[str, Any]]) -> Iterator[StoredPart]:
    for each in parts:
        retained = Decimal(str(each["retained"])).quantize(_TENTH)
        yield StoredPart(
            each["part"], label_part(each["part"]), each["weight"], each["found"], each["present"], retained
        )


def _parse_first_parts(parts: Sequence[tuple[str, int, int, int]]) -> Iterator[StoredPart]:
    for name, weight, found, present in parts:
        retained = (Decimal(100) * found / present).quantize(_TENTH)
        yield StoredPart(_make_code(name), label_part(name), weight, found, present, retained)


def _parse_loss(item: Mapping[str, Any]) -> StoredLoss:
    text = item["text"] if "text" in item else item["quote"]
    return StoredLoss(_make_code(item["part"]), label_part(item["part"]), text, item["entry"] or "", item.get("weight"))


def label_part(name: str) -> str:
    """Return the name of a part for people; parts of version 1 were stored by such names."""
    return AuditPart(name).label if name in {part.value for part in AuditPart} else name.replace("_", " ").capitalize()


def _make_code(name: str) -> str:
    return name.replace(" ", "_")
