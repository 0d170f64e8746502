"""Sums of a team's hours: triggers note which hours changed, a job adds them up, and whoever reads adds up the rest.

Right at any moment, however late a line arrives or a session is judged again, and whether or not the job runs.
"""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet, Sum

from dashboard.models import ChangedHour, SessionHour, Team, TeamHour

SUMS = ("hour_at", "spent_usd", "lost_usd", "input_tokens", "read_tokens")


def add_up_changes(limit: int) -> int:
    """How many were noted. Inside a transaction."""
    changes = list(ChangedHour.objects.order_by("id").values_list("id", "team_id", "hour_at")[:limit])
    team_ids = {team_id for _, team_id, _ in changes}
    # Two at once would overwrite the newer sums with the older ones. Writers of sessions do not wait for it.
    teams = Team.objects.select_for_update(no_key=True).filter(pk__in=team_ids).order_by("pk")
    for team_id in teams.values_list("pk", flat=True):
        hours = {hour_at for _, owner, hour_at in changes if owner == team_id}
        sums = add_sessions(SessionHour.objects.filter(team_id=team_id, hour_at__in=hours))
        TeamHour.objects.filter(team_id=team_id, hour_at__in=hours).delete()
        TeamHour.objects.bulk_create(TeamHour(team_id=team_id, **dict(zip(SUMS, row, strict=True))) for row in sums)
    # Only those that were seen: what is written meanwhile has notes of its own.
    ChangedHour.objects.filter(pk__in=[pk for pk, _, _ in changes]).delete()
    return len(changes)


def add_sessions(hours: QuerySet[SessionHour]) -> QuerySet[SessionHour, tuple[Any, ...]]:
    """Rows of SUMS, one for each hour."""
    by_hour = hours.order_by().values("hour_at")
    added = {f"total_{name}": Sum(name) for name in SUMS[1:]}
    return by_hour.annotate(**added).values_list("hour_at", *added)


def read_sums(teams: QuerySet[TeamHour], sessions: QuerySet[SessionHour], wanted: Q) -> list[tuple[Any, ...]]:
    """Rows of SUMS for the hours of one team that are wanted: as they were added up, or where something changed since,
    added up now. One query, so that nothing is added up in between."""
    changed = ChangedHour.objects.filter(wanted).order_by().values("hour_at")
    kept = teams.filter(wanted).exclude(hour_at__in=changed).order_by().values_list(*SUMS)
    fresh = add_sessions(sessions.filter(wanted, hour_at__in=changed))
    return list(kept.union(fresh, all=True))


def list_newest_hours(teams: QuerySet[TeamHour], team: Team, *, limit: int) -> list[datetime]:
    """Return the newest hours with calls, newest first, each once: added up or not yet."""
    kept = teams.filter(team=team).order_by("-hour_at").values_list("hour_at", flat=True)[:limit]
    changed = ChangedHour.objects.filter(team_id=team.pk).order_by("-hour_at").values_list("hour_at", flat=True)
    return sorted({*kept, *changed.distinct()[:limit]}, reverse=True)[:limit]
