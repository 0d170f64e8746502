"""What the proxy adds to a team's requests: off by default, changed by admins, with history and undo."""

from dataclasses import replace
from http import HTTPStatus

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.models import Team
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.proxy_form import ProxyDraft
from dashboard.policies.changes import change_policy
from dashboard.policies.differences import Area
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.policies.proxy_additions import ProxyAdditions
from dashboard.views.team_page import signed_in, team_rights
from dashboard.views.thresholds import page_of_history


@require_http_methods(["GET", "HEAD", "POST"])
def proxy_settings(request: PageRequest, slug: str) -> HttpResponse:
    team = access.require_team(request.actor, slug, Act.MANAGE)
    remember_team(request, team)
    settings = find_policy(team)
    draft = ProxyDraft(request.POST if request.method == "POST" else None, settings)
    status = HTTPStatus.OK
    if draft.additions is not None:
        if _save(request, team, settings, draft, draft.additions):
            return redirect("proxy_settings", slug)
        settings, status = find_policy(team), HTTPStatus.CONFLICT
        draft.look_at(settings)
    elif request.method == "POST":
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    context: dict[str, object] = {
        "team": team,
        "additions": settings.proxy_additions,
        "form": draft.form,
        **team_rights(request, team),
        **page_of_history(request, team, Area.PROXY),
    }
    return render(request, "proxy_settings/page.html", context, status=status)


def _save(
    request: PageRequest, team: Team, settings: TeamSettings, draft: ProxyDraft, additions: ProxyAdditions
) -> bool:
    wanted = replace(settings, proxy_additions=additions)
    try:
        saved = change_policy(team, wanted, by=signed_in(request), base_version=draft.base_version, note=draft.note)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return False
    is_news = saved.version != settings.version
    messages.success(request, "Proxy settings saved. They apply to new calls." if is_news else "No changes to save.")
    return True
