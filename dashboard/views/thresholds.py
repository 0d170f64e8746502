"""A team's thresholds: the form with the lines it would draw beside it, and the history with undo."""

from dataclasses import replace
from http import HTTPStatus

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from compaction.context.policy import Policy
from compaction.context.thresholds import classify_usage
from compaction.errors import BadPolicy
from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.models import Team
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.gauge_bar import draw_gauge
from dashboard.pages.policy_forms import ThresholdsDraft
from dashboard.pages.tick_sliders import TickSlider, list_sliders
from dashboard.policies.changes import change_policy, undo_change
from dashboard.policies.client_thresholds import compute_client_thresholds
from dashboard.policies.differences import Area
from dashboard.policies.drawn_lines import DrawnWindow, draw_windows
from dashboard.policies.effects import count_effect
from dashboard.policies.history import find_change, list_changes
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.views.team_page import read_before, signed_in, team_rights

HISTORY_SIZE = 20
PERCENT_FIELDS = (("warning", "Warning"), ("error", "Error"), ("auto", "Auto-compact"), ("blocking", "Blocking"))


@require_http_methods(["GET", "HEAD", "POST"])
def thresholds(request: PageRequest, slug: str) -> HttpResponse:
    """Everybody in the team sees the lines. A draft is only drawn until `act` says save."""
    team = access.require_team(request.actor, slug, Act.TUNE if request.method == "POST" else Act.SEE)
    remember_team(request, team)
    settings = find_policy(team)
    draft = ThresholdsDraft(request.POST if request.method == "POST" else None, settings)
    status = HTTPStatus.OK
    if request.method == "POST" and draft.policy is None:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    elif request.POST.get("act") == "save":
        if _save(request, team, settings, draft):
            return redirect("thresholds", slug)
        settings, status = find_policy(team), HTTPStatus.CONFLICT
        draft.look_at(settings)
    context: dict[str, object] = {
        "team": team,
        "settings": settings,
        "draft": draft,
        "percent_fields": PERCENT_FIELDS,
        **_preview(team, settings.lines_policy, draft.policy),
        **team_rights(request, team),
    }
    if request.htmx:
        # A draft with faults is no failure of the request: the answer holds the sentences, and htmx must show it.
        return render(request, "thresholds/_preview.html", {**context, "is_fragment": True})
    context |= page_of_history(request, team, Area.LINES)
    return render(request, "thresholds/page.html", context, status=status)


@require_POST
def undo_policy_change(request: PageRequest, slug: str, version: int) -> HttpResponse:
    team = access.require_team(request.actor, slug, Act.TUNE)
    change = find_change(team, version)
    if change is None:
        raise Http404("Change not found.")
    access.require_team(request.actor, slug, change.undoing_act)
    try:
        undo_change(team, version, by=signed_in(request))
        messages.success(request, f"Version {version} undone.")
    except (Refused, BadPolicy) as refusal:
        messages.error(request, str(refusal))
    return redirect(change.areas.pop() if len(change.areas) == 1 else Area.LINES, slug)


def page_of_history(request: PageRequest, team: Team, area: Area) -> dict[str, object]:
    """A page of changes to one area."""
    before = read_before(request)
    rows = access.policies(request.actor, team.slug)
    history, older_than = list_changes(team, rows, area, before=before, size=HISTORY_SIZE)
    return {"history": history, "area": area, "older_than": older_than, "is_first_page": before is None}


def _save(request: PageRequest, team: Team, settings: TeamSettings, draft: ThresholdsDraft) -> bool:
    wanted = replace(settings, thresholds=draft.thresholds)
    try:
        saved = change_policy(team, wanted, by=signed_in(request), base_version=draft.base_version, note=draft.note)
    except Refused as refusal:
        messages.error(request, str(refusal))
        return False
    if saved.version == settings.version:
        messages.info(request, "No changes to save.")
    else:
        messages.success(request, "Thresholds saved. Recalculating existing sessions…")
    return True


def _preview(team: Team, current: Policy, draft: Policy | None) -> dict[str, object]:
    """The lines of the draft, or of the policy in force while there is none that could be drawn."""
    shown = draft or current
    return {
        "windows": [
            {"drawn": each, "bar": _draw_bar(each), "sliders": _list_sliders(shown, each)}
            for each in draw_windows(current, shown)
        ],
        "client": compute_client_thresholds(shown),
        "effect": count_effect(team, current, shown, now=timezone.now()),
        "is_other": shown != current,
    }


def _draw_bar(window: DrawnWindow) -> object:
    return draw_gauge(window.lines, classify_usage(window.lines, 0))


def _list_sliders(policy: Policy, window: DrawnWindow) -> list[TickSlider]:
    """A model's own values have no sliders: they are fields of that model."""
    return [] if window.model or window.lines is None else list(list_sliders(policy, window.lines))
