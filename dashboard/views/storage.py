"""What a team stores and how long: content or numbers only, and days."""

from dataclasses import replace
from http import HTTPStatus

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from compaction.errors import BadPolicy
from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.ingest.redaction import find_unusable
from dashboard.models import Team
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.policy_forms import StorageDraft
from dashboard.policies.changes import change_policy
from dashboard.policies.differences import Area
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.retention.deletion import allow_again
from dashboard.retention.outlook import look_ahead
from dashboard.views.team_page import signed_in, team_rights
from dashboard.views.thresholds import page_of_history

DELETED_SHOWN = 50


@require_http_methods(["GET", "HEAD", "POST"])
def storage(request: PageRequest, slug: str) -> HttpResponse:
    team = access.require_team(request.actor, slug, Act.MANAGE)
    remember_team(request, team)
    settings = find_policy(team)
    draft = StorageDraft(request.POST if request.method == "POST" else None, settings)
    status = HTTPStatus.OK
    if request.method == "POST" and not draft.is_valid:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    elif request.method == "POST":
        if _save(request, team, settings, draft):
            return redirect("storage", slug)
        settings, status = find_policy(team), HTTPStatus.CONFLICT
        draft.look_at(settings)
    context: dict[str, object] = {
        "team": team,
        "settings": settings,
        "draft": draft,
        "unusable_patterns": find_unusable(settings.own_patterns),
        "outlook": look_ahead(team, settings, now=timezone.now()),
        "deleted": access.deleted_sessions(request.actor, slug)[:DELETED_SHOWN],
        **team_rights(request, team),
        **page_of_history(request, team, Area.STORAGE),
    }
    return render(request, "storage/page.html", context, status=status)


@require_POST
def allow_session(request: PageRequest, slug: str) -> HttpResponse:
    """A deleted session may be taken in again."""
    team = access.require_team(request.actor, slug, Act.MANAGE)
    name = request.POST.get("session", "").replace("\x00", "")
    try:
        allow_again(team, name, by=signed_in(request))
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(
            request, f"{name} allowed. It reappears when it is imported or uploaded, or when its client continues it."
        )
    return redirect("storage", slug)


def _save(request: PageRequest, team: Team, settings: TeamSettings, draft: StorageDraft) -> bool:
    wanted = replace(
        settings,
        stores_content=draft.stores_content,
        content_days=draft.content_days,
        metrics_days=draft.metrics_days,
    )
    try:
        saved = change_policy(team, wanted, by=signed_in(request), base_version=draft.base_version, note=draft.note)
    except (Refused, BadPolicy) as refusal:
        messages.error(request, str(refusal))
        return False
    is_news = saved.version != settings.version
    messages.success(request, "Storage settings saved. They apply to new data." if is_news else "No changes to save.")
    return True
