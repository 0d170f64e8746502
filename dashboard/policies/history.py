"""The history of a policy: who changed what, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.models import Team, TeamPolicy
from dashboard.policies.differences import Area, Difference, find_differences
from dashboard.policies.in_force import default_settings, settings_of


@dataclass(frozen=True)
class PolicyChange:
    version: int
    at: datetime
    who: str
    note: str
    differences: list[Difference]

    @property
    def areas(self) -> set[Area]:
        return {difference.area for difference in self.differences}


def tell_history(team: Team, rows: Sequence[TeamPolicy]) -> list[PolicyChange]:
    """Of rows newest first, each held against the next. The last one is told only if nothing came before it."""
    olders = [settings_of(row) for row in rows[1:]]
    if rows and rows[-1].version == 1:
        olders.append(default_settings(team))
    return [
        PolicyChange(
            version=row.version,
            at=row.created_at,
            who=row.changed_by_name,
            note=row.note,
            differences=find_differences(older, settings_of(row)),
        )
        for row, older in zip(rows, olders, strict=False)
    ]
