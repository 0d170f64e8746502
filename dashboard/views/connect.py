"""Ways in: snippets for this server, with a key that is made when somebody asks for it and shown once."""

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from dashboard import access
from dashboard.access import Act
from dashboard.accounts.keys import create_key
from dashboard.demo.fleet import FLEET
from dashboard.demo.notice import may_make_demo
from dashboard.live.page_state import note_page_state
from dashboard.models import Scope, Team
from dashboard.page_context import find_real_team
from dashboard.page_request import PageRequest
from dashboard.pages.ways_in import find_arrivals, list_ways, pick_recommended
from dashboard.views.team_page import signed_in
from dashboard.words import join_words

KEY_SCOPES = (Scope.INGEST, Scope.PROXY)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: PageRequest) -> HttpResponse:
    team = find_real_team(request, request.actor)
    if team is None:
        raise Http404("You are not a member of any team.")
    live = note_page_state([team])
    key_text = _make_key(request, team) if request.method == "POST" else ""
    return render(request, "connect/page.html", {"team": team, "live": live, **describe_ways(request, team, key_text)})


def describe_ways(request: PageRequest, team: Team, key_text: str = "") -> dict[str, object]:
    """For this page, and for the overview before anything has come."""
    ways = list_ways(settings.PUBLIC_URL, key_text, is_local=settings.LOCAL_MODE)
    arrivals = {arrival.way: arrival for arrival in find_arrivals(request.actor, team, ways)}
    recommended = pick_recommended(ways, is_local=settings.LOCAL_MODE)
    return {
        "ways": [(way, arrivals[way.name]) for way in ways],
        "recommended_ways": [(way, arrivals[way.name]) for way in recommended],
        "other_ways": [(way, arrivals[way.name]) for way in ways if way not in recommended],
        "is_key_recommended": any(way.needs_key for way in recommended),
        "key_ways": join_words([way.title for way in ways if way.needs_key]),
        "has_key": bool(key_text),
        "may_make_key": _may_make_key(request, team),
        "may_send": request.actor.may(Act.INGEST, team),
        "may_make_demo": may_make_demo(request.actor),
        "demo_size": len(FLEET),
    }


def describe_proxy(request: PageRequest, team: Team) -> dict[str, object] | None:
    """Return how to send calls through the proxy, for pages that only it could answer; None for who may not send."""
    if not request.actor.may(Act.INGEST, team):
        return None
    ways = list_ways(settings.PUBLIC_URL, "", is_local=settings.LOCAL_MODE)
    way = next(way for way in ways if way.name == "proxy")
    return {"way": way, "may_make_key": way.needs_key and _may_make_key(request, team)}


def _may_make_key(request: PageRequest, team: Team) -> bool:
    return not team.is_demo and Scope.INGEST in access.scopes_to_give(request.actor, team)


def _make_key(request: PageRequest, team: Team) -> str:
    """Refused with 403 to whom may not send. Written down in the audit log like every key."""
    access.require_team(request.actor, team.slug, Act.KEEP_KEYS)
    if team.is_demo:
        raise PermissionDenied("Keys are disabled in the demo team.")
    owner = signed_in(request)
    given = [scope for scope in access.scopes_to_give(request.actor, team) if scope in KEY_SCOPES]
    _, text = create_key(team, owner, name="Connect page", scopes=given, expires_at=None, by=owner)
    return text
