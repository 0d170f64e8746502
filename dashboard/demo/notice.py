"""What pages say about the demo: that it is one, and how far it has come while it is made."""

from dataclasses import dataclass

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.demo.fleet import FLEET
from dashboard.models import AgentSession, Job, JobState, Team

KIND = "make_demo"
GO_ON = "go_on_with_demo"  # the kind of the job behind it


@dataclass(frozen=True)
class DemoNotice:
    """`failure`: why no more sessions come."""

    made_count: int
    total_count: int
    is_making: bool
    failure: str
    may_remove: bool


def describe_demo(actor: Actor, team: Team | None) -> DemoNotice | None:
    """None where the team is a real one: no query then."""
    if team is None or not team.is_demo:
        return None
    teams = [each for each in access.teams(actor) if each.is_demo]
    job = Job.objects.filter(kind=KIND, team__in=teams).order_by("-id").first()
    is_making = job is not None and job.state not in JobState.finished()
    has_failed = job is not None and job.state in (JobState.FAILED, JobState.DEAD, JobState.CANCELLED)
    return DemoNotice(
        made_count=AgentSession.objects.filter(team__in=teams).count() if is_making else len(FLEET),
        total_count=len(FLEET),
        is_making=is_making,
        failure="Some demo sessions could not be loaded. See Jobs for details." if has_failed else "",
        may_remove=actor.may(Act.MANAGE, team),
    )


def may_make_demo(actor: Actor) -> bool:
    """Owners and admins who do not have one."""
    return actor.may_anywhere(Act.MANAGE) and not any(team.is_demo for team in access.teams(actor))
