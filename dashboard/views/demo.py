"""The demo: made by one button, removed by another."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from dashboard import access
from dashboard.access import Act
from dashboard.demo.notice import describe_demo
from dashboard.demo.ordering import order_demo
from dashboard.demo.removal import remove_demo as remove
from dashboard.page_context import current_team, remember_team
from dashboard.page_request import PageRequest
from dashboard.views.team_page import signed_in


@require_POST
def make_demo(request: PageRequest) -> HttpResponse:
    access.require_anywhere(request.actor, Act.MANAGE)
    job = order_demo(signed_in(request), now=timezone.now())
    if job.team is not None:
        remember_team(request, job.team)
    return redirect("overview")


@require_POST
def remove_demo(request: PageRequest) -> HttpResponse:
    """Of a demo that is not theirs nobody is told."""
    access.require_anywhere(request.actor, Act.MANAGE)
    if any(team.is_demo for team in access.teams(request.actor, Act.MANAGE)):
        count = remove(now=timezone.now())
        messages.success(request, f"Demo data removed: {count} sessions, its teams and its people.")
    else:
        messages.info(request, "There is no demo.")
    return redirect("overview")


@require_safe
def demo_progress(request: PageRequest) -> HttpResponse:
    """How far it has come, for the notice. An overview that waits for the first session is loaded again with it."""
    notice = describe_demo(request.actor, current_team(request, request.actor))
    is_waiting = "waiting" in request.GET
    response = render(request, "demo/_progress.html", {"demo": notice, "is_waiting": is_waiting})
    if is_waiting and (notice is None or notice.made_count):
        response["HX-Refresh"] = "true"
    return response
