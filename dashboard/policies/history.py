"""The history of a policy: who changed what, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from dashboard.access import Act
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

    @property
    def undoing_act(self) -> Act:
        """What undoing it needs: lines are tuned, everything else is managed."""
        return Act.TUNE if self.areas == {Area.LINES} else Act.MANAGE


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


def list_changes(
    team: Team, rows: QuerySet[TeamPolicy], area: Area, *, before: int | None, size: int
) -> tuple[list[PolicyChange], int | None]:
    """Changes to one area, newest first, and the version to go on below; None at the end. Read by version: a new one
    shifts nothing. Versions of other areas are passed over, so that a page is full while there is more."""
    found: list[PolicyChange] = []
    while len(found) <= size:
        # One more than wanted, and the one before it to hold that against.
        page = list((rows if before is None else rows.filter(version__lt=before))[: size + 2])
        told = tell_history(team, page)[: size + 1]
        found += [change for change in told if area in change.areas]
        if len(page) < size + 2:
            break
        before = told[-1].version
    return found[:size], found[size - 1].version if len(found) > size else None


def find_change(team: Team, version: int) -> PolicyChange | None:
    rows = TeamPolicy.objects.filter(team=team, version__lte=version).order_by("-version")
    told = tell_history(team, list(rows[:2]))
    return next((change for change in told if change.version == version), None)
