"""Ordering the demo: its teams and people at once, its sessions by a job. Nothing here loads the ways in."""

from datetime import datetime
from itertools import chain, count

from django.db import transaction

from dashboard.accounts.members import add_member
from dashboard.accounts.teams import create_team
from dashboard.demo.fleet import DEVELOPERS, TEAMS, THRESHOLDS
from dashboard.demo.notice import KIND
from dashboard.jobs.post import URGENT, post_job
from dashboard.models import Job, Membership, Role, Team, TeamPolicy, User


@transaction.atomic
def order_demo(owner: User, *, now: datetime) -> Job:
    """The teams at once, the sessions by a job. Where there is a demo, the person joins it."""
    teams = [_find_team(number, owner, now) for number in range(len(TEAMS))]
    for team in teams:
        Membership.objects.update_or_create(team=team, user=owner, defaults={"role": Role.OWNER, "content_grant": True})
    payload = {"at": now.isoformat()}
    return post_job(KIND, key=f"{KIND}:{teams[0].pk}", team=teams[0], payload=payload, priority=URGENT)


def _find_team(number: int, owner: User, now: datetime) -> Team:
    found = list(Team.objects.filter(is_demo=True).order_by("pk"))
    if len(found) > number:
        return found[number]
    team = create_team(TEAMS[number], owner=owner)
    team.is_demo = True
    team.save(update_fields=["is_demo"])
    TeamPolicy.objects.create(
        team=team,
        version=1,
        stores_content=True,
        thresholds=THRESHOLDS[number],
        created_at=now,
        changed_by_name=owner.username,
        note="demo settings",
    )
    for user in _find_people():
        add_member(team, user, Role.MEMBER, by=None)
    return team


def _find_people() -> list[User]:
    """Accounts without a password, under names that nobody has."""
    found = list(User.objects.filter(is_demo=True).order_by("pk"))
    if found:
        return found
    for name in DEVELOPERS:
        names = chain([name], (f"{name}{number}" for number in count(2)))
        free = next(each for each in names if User.objects.find_by_name(each) is None)
        user = User.objects.create_user(free)
        user.is_demo = True
        user.save(update_fields=["is_demo"])
        found.append(user)
    return found
