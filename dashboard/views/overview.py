"""The first page: is anything wrong now, what does it cost, where to click; and what a new installation still lacks."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.automation.crossings import list_suggestions
from dashboard.charts.money import chart_spend_per_day
from dashboard.live.page_state import note_page_state
from dashboard.models import Team
from dashboard.page_context import current_team
from dashboard.page_request import PageRequest
from dashboard.pages.fleet import look_at_fleet, risk_filters
from dashboard.pages.live_gauges import list_live_gauges
from dashboard.pages.session_filters import SessionFilters
from dashboard.pages.tiles import list_tiles, list_url
from dashboard.views.connect import describe_ways
from dashboard.words import name_prices


@dataclass(frozen=True)
class Step:
    title: str
    why: str
    url: str
    is_done: bool


@require_safe
def overview(request: PageRequest) -> HttpResponse:
    team = current_team(request, request.actor)
    if team is None:
        return render(request, "overview/page.html", {"team": None})
    live = note_page_state([team])
    fleet = look_at_fleet(request.actor, team, now=timezone.now())
    steps = first_steps(request.actor, team)
    context = {
        "team": team,
        "role": request.actor.standings[team.slug].role,
        "steps": steps,
        "done": sum(step.is_done for step in steps),
        "fleet": fleet,
        **({} if fleet else describe_ways(request, team)),
        "live": live,
        "is_live": True,
    }
    if fleet:
        context |= {
            "suggestions": list_suggestions(request.actor, team, now=timezone.now()),
            "tiles": list_tiles(team, fleet),
            "live_gauges": list_live_gauges(
                request.actor, team, live_count=fleet.numbers.live_count, now=timezone.now()
            ),
            "chart": chart_spend_per_day(
                "spend-per-day", fleet.numbers.days, basis=name_prices(has_own=team.has_own_prices)
            ),
            "risk_url": list_url(risk_filters(team) if fleet.is_recent else SessionFilters(team=team.slug)),
            "zone": timezone.get_current_timezone_name(),
        }
    return render(request, "overview/page.html", context)


def first_steps(actor: Actor, team: Team) -> list[Step]:
    """Only what this person may do, each with a link to the place."""
    user = actor.user
    steps = [
        Step(
            "Set a password",
            "Needed to sign in from another browser or to share Plimsoll on your network.",
            reverse("password"),
            is_done=user is not None and user.has_usable_password(),
        )
    ]
    if actor.may(Act.KEEP_KEYS, team) and not team.is_demo:
        keys = access.keys(actor, team.slug).filter(revoked_at=None)
        why = "Lets programs send data. You can revoke it at any time."
        steps.append(Step("Create an API key", why, reverse("keys", args=[team.slug]), is_done=keys.exists()))
    if actor.may(Act.MANAGE, team):
        why = "Teammates see metrics. Access to session content is granted separately."
        others = access.members(actor, team.slug).exclude(user=user)
        steps.append(Step("Invite a teammate", why, reverse("invitations", args=[team.slug]), is_done=others.exists()))
    return steps
