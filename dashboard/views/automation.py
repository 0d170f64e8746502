"""A team's automatic mode, and the suggestions it makes: changed by admins, dismissed by whoever could act on them."""

from http import HTTPStatus

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from compaction.compactors.notes.template import DEFAULT_TEMPLATE
from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.automation.crossings import dismiss
from dashboard.automation.wishes import change_wish, find_wish
from dashboard.models import Team
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.automation_form import AutomationDraft
from dashboard.policies.in_force import find_policy
from dashboard.policies.unusable_patterns import keeps_content
from dashboard.runs.team_settings import find_settings
from dashboard.views.team_page import signed_in, team_rights


@require_http_methods(["GET", "HEAD", "POST"])
def automation(request: PageRequest, slug: str) -> HttpResponse:
    team = access.require_team(request.actor, slug, Act.TUNE)
    remember_team(request, team)
    draft = AutomationDraft(request.POST if request.method == "POST" else None, find_wish(team))
    status = HTTPStatus.OK
    if request.method == "POST":
        status = _save(request, team, draft)
        if status is HTTPStatus.OK:
            return redirect("automation", slug)
    context = {
        "team": team,
        "wish": find_wish(team),
        "draft": draft,
        "stores_content": keeps_content(find_policy(team)),
        "standard_template": DEFAULT_TEMPLATE,
        "has_key": find_settings(team).has_key,
        **team_rights(request, team),
    }
    return render(request, "automation/page.html", context, status=status)


@require_POST
def dismiss_crossing(request: PageRequest, crossing_id: int) -> HttpResponse:
    crossing = get_object_or_404(access.crossings(request.actor).select_related("session__team"), pk=crossing_id)
    if dismiss(request.actor, crossing, now=timezone.now()):
        messages.success(request, "Dismissed. You'll be notified the next time this threshold is crossed.")
    else:
        messages.info(request, "This suggestion was already dismissed.")
    return redirect("session", crossing.session_id)


def _save(request: PageRequest, team: Team, draft: AutomationDraft) -> HTTPStatus:
    if draft.change is None:
        return HTTPStatus.UNPROCESSABLE_ENTITY
    try:
        change_wish(team, draft.change, by=signed_in(request), stamp=draft.stamp)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return HTTPStatus.CONFLICT
    messages.success(request, "Saved. Applies the next time a threshold is crossed.")
    return HTTPStatus.OK
