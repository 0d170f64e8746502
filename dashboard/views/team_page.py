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


def read_before(request: PageRequest) -> int | None:
    """Where a page of something that is read by id, newest first, goes on."""
    before = request.GET.get("before", "")
    return int(before) if before.isascii() and before.isdecimal() and len(before) < 19 else None


def team_rights(request: PageRequest, team: Team) -> dict[str, bool]:
    return {
        "may_keep_keys": request.actor.may(Act.KEEP_KEYS, team),
        "may_tune": request.actor.may(Act.TUNE, team),
        "may_manage": request.actor.may(Act.MANAGE, team),
        "may_govern": request.actor.may(Act.GOVERN, team),
    }
