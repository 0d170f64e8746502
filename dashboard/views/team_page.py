"""What all pages of a team share: the person acting, and which of its tabs they may open."""

from django.http import Http404

from dashboard.access import Act
from dashboard.models import Team, User
from dashboard.page_request import PageRequest


def signed_in(request: PageRequest) -> User:
    """The person behind a page; the middleware lets nobody else through."""
    if request.actor.user is None:
        raise Http404
    return request.actor.user


def team_rights(request: PageRequest, team: Team) -> dict[str, bool]:
    return {
        "may_keep_keys": request.actor.may(Act.KEEP_KEYS, team),
        "may_manage": request.actor.may(Act.MANAGE, team),
        "may_govern": request.actor.may(Act.GOVERN, team),
    }
