"""The redaction rules of a team with their counts, for page and API: built-in ones, the team's own patterns, and
patterns that were removed and whose marks are still in stored text."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from django.db.models import Count, Max, Q, QuerySet, Sum
from django.utils import timezone

from dashboard.ingest.redaction import ALWAYS_ON, find_unusable, list_rules
from dashboard.models import RedactionCount, RedactionReport, Team, TeamPolicy
from dashboard.policies.in_force import TeamSettings

RECENT_DAYS = 30


class RuleKind(StrEnum):
    BUILT_IN = "built_in"
    OWN = "own_pattern"
    REMOVED = "removed_pattern"


@dataclass(frozen=True, kw_only=True)
class TeamRule:
    """A rule as the team has it. `mark_count`: marks in text that is stored now."""

    name: str
    what: str
    kind: RuleKind
    is_on: bool
    is_always_on: bool = False
    problem: str = ""  # why a stored pattern cannot be used
    mark_count: int = 0
    recent_mark_count: int = 0
    last_day: date | None = None
    report_count: int = 0

    @property
    def can_be_switched(self) -> bool:
        return self.kind is not RuleKind.REMOVED and not self.is_always_on and not self.problem


@dataclass(frozen=True)
class _Counted:
    mark_count: int = 0
    recent_mark_count: int = 0
    last_day: date | None = None


@dataclass(frozen=True)
class _RuleMaker:
    settings: TeamSettings
    counted: dict[str, _Counted]
    reported: dict[str, int]

    def make(self, name: str, what: str, kind: RuleKind, *, problem: str = "") -> TeamRule:
        return TeamRule(
            name=name,
            what=what,
            kind=kind,
            is_on=kind is not RuleKind.REMOVED and not problem and name not in self.settings.disabled_rules,
            is_always_on=kind is RuleKind.BUILT_IN and name in ALWAYS_ON,
            problem=problem,
            report_count=self.reported.get(name, 0),
            **vars(self.counted.get(name, _Counted())),
        )


def list_team_rules(
    team: Team,
    settings: TeamSettings,
    counts: QuerySet[RedactionCount],
    reports: QuerySet[RedactionReport],
    *,
    now: datetime | None = None,
) -> list[TeamRule]:
    """Most frequent first. Two queries, three where a mark names no rule in force."""
    counted = _count_marks(counts, now or timezone.now())
    maker = _RuleMaker(settings, counted, dict(reports.order_by().values_list("rule").annotate(Count("pk"))))
    unusable = find_unusable(settings.own_patterns)
    rules = [maker.make(rule.name, rule.what, RuleKind.BUILT_IN) for rule in list_rules()]
    rules += [
        maker.make(name, "own pattern", RuleKind.OWN, problem=unusable.get(name, "")) for name in settings.own_patterns
    ]
    others = counted.keys() - {rule.name for rule in rules}
    removed = _find_removed(team) & others if others else set()
    rules += [maker.make(name, "removed pattern", RuleKind.REMOVED) for name in removed]
    return sorted(rules, key=lambda rule: (-rule.mark_count, rule.name, rule.kind))


def _count_marks(counts: QuerySet[RedactionCount], now: datetime) -> dict[str, _Counted]:
    recent = Q(day__gt=(now - timedelta(days=RECENT_DAYS)).date())
    rows = counts.values("rule").annotate(all=Sum("count"), recent=Sum("count", filter=recent), last=Max("day"))
    return {row["rule"]: _Counted(row["all"], row["recent"] or 0, row["last"]) for row in rows.order_by()}


def _find_removed(team: Team) -> set[str]:
    """Names of all patterns the team ever had: anything else in a mark was made up by whoever wrote the text."""
    rows = TeamPolicy.objects.filter(team=team).exclude(own_patterns={}).values_list("own_patterns", flat=True)
    return {name for patterns in rows for name in patterns}
