"""Removing the demo: every session by the way sessions are deleted, then the teams and people, and nothing stays."""

from datetime import datetime

from django.db import transaction

from dashboard.jobs.control import cancel_job
from dashboard.models import AgentSession, ChangedHour, Job, JobState, Team, User
from dashboard.retention.deletion import remove_rows


def remove_demo(*, now: datetime) -> int:
    """How many sessions that were. Safe to call again where a process died meanwhile, and while a job still makes the
    demo: what it writes meanwhile goes with the teams, afterwards it finds none to write for."""
    teams = list(Team.objects.filter(is_demo=True))
    for job in Job.objects.filter(team__in=teams).exclude(state__in=JobState.finished()):
        cancel_job(job, now=now)
    pks = list(AgentSession.objects.filter(team__in=teams).values_list("pk", flat=True))
    for pk in pks:
        remove_rows(pk)
    team_pks = [team.pk for team in teams]
    with transaction.atomic():
        # Whoever is writing for them ends first, and whoever comes later fails: no row is added while these go.
        list(Team.objects.select_for_update().filter(pk__in=team_pks))
        for team in teams:
            team.delete()
        User.objects.filter(is_demo=True).delete()
        ChangedHour.objects.filter(team_id__in=team_pks).delete()
    return len(pks)
