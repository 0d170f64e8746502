"""The recurring job that applies every team's retention, in short transactions; it may run twice without harm."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from dashboard.jobs.run import JobRun
from dashboard.models import AgentSession, Team, TeamPolicy
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.retention.deletion import delete_expired, finish_begun
from dashboard.retention.forgetting import find_wordy_sessions, forget_runs, forget_session, forget_shapes

# So long a decision can be taken back before anything is lost by it.
GRACE = timedelta(hours=1)
_PAGE = 200


def apply_retention(run: JobRun) -> None:
    now, done = timezone.now(), Counter[str]()
    if begun_count := finish_begun(run):
        done["sessions deleted"] += begun_count
    deciding = TeamPolicy.objects.exclude(content_days=None, metrics_days=None)
    for team in Team.objects.filter(pk__in=deciding.values("team")).order_by("pk"):
        policy = find_policy(team)
        if is_in_grace(policy, now):
            continue
        _apply(run, team, policy, done, now=now)
    with run.finishing() as result:
        result.update(done)


def is_in_grace(policy: TeamSettings, now: datetime) -> bool:
    return policy.changed_at is not None and now - policy.changed_at < GRACE


def find_expired_sessions(team: Team, since: datetime) -> QuerySet[AgentSession]:
    return AgentSession.objects.filter(team=team, last_at__lt=since)


def _apply(run: JobRun, team: Team, policy: TeamSettings, done: "Counter[str]", *, now: datetime) -> None:
    def step(name: str, count: int) -> None:
        done[name] += count
        run.report(done=done.total(), note=team.name)
        run.check()

    if since := policy.metrics_since(now):
        for session in _walk(find_expired_sessions(team, since)):
            step("sessions deleted", delete_expired(session, since, now=now))
    if since := policy.content_since(now):
        for session in _walk(find_wordy_sessions(team, since)):
            step("sessions forgotten", forget_session(session, since, now=now))
        while count := forget_runs(team, since, now=now):
            step("runs forgotten", count)
        while count := forget_shapes(team, since):
            step("prompts forgotten", count)


def _walk(sessions: QuerySet[AgentSession]) -> Iterator[AgentSession]:
    """Page by page, by key: what could not be changed is not met again in this round."""
    last_pk = 0
    while page := list(sessions.filter(pk__gt=last_pk).select_related("team").order_by("pk")[:_PAGE]):
        yield from page
        last_pk = page[-1].pk
