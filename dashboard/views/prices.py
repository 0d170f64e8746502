"""A team's own prices: everybody in it reads them, admins change them; stored calls follow in the background."""

from dataclasses import replace
from http import HTTPStatus

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from compaction.errors import BadPolicy
from compaction.llm.lookup import list_offered_models
from compaction.llm.prices import get_list_price
from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.models import AgentSession, Team
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.prices_form import PricesDraft, list_shown_prices
from dashboard.pages.summarizer_form import OFFERED_LIST_ID
from dashboard.policies.changes import change_policy
from dashboard.policies.differences import Area
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.policies.own_prices import TypedPrices
from dashboard.views.team_page import signed_in, team_rights
from dashboard.views.thresholds import page_of_history


@require_http_methods(["GET", "HEAD", "POST"])
def prices(request: PageRequest, slug: str) -> HttpResponse:
    team = access.require_team(request.actor, slug, Act.MANAGE if request.method == "POST" else Act.SEE)
    remember_team(request, team)
    settings = find_policy(team)
    draft = PricesDraft(request.POST if request.method == "POST" else None, settings)
    status = HTTPStatus.OK
    if draft.own_prices is not None:
        if _save(request, team, settings, draft, draft.own_prices):
            return redirect("prices", slug)
        settings, status = find_policy(team), HTTPStatus.CONFLICT
        draft.look_at(settings)
    elif request.method == "POST":
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    now = timezone.now()
    context: dict[str, object] = {
        "team": team,
        "form": draft.form,
        "rows": draft.rows,
        "shown": list_shown_prices(settings),
        "offered_list_id": OFFERED_LIST_ID,
        "offered": [(model, get_list_price(model, now)) for model in list_offered_models()],
        "behind_count": AgentSession.objects.filter(team=team).exclude(price_version=settings.price_version).count(),
        **team_rights(request, team),
        **page_of_history(request, team, Area.PRICES),
    }
    return render(request, "prices/page.html", context, status=status)


def _save(request: PageRequest, team: Team, settings: TeamSettings, draft: PricesDraft, typed: TypedPrices) -> bool:
    wanted = replace(settings, own_prices=typed)
    try:
        saved = change_policy(team, wanted, by=signed_in(request), base_version=draft.base_version, note=draft.note)
    except (Refused, BadPolicy) as refusal:
        messages.error(request, str(refusal))
        return False
    if saved.version == settings.version:
        messages.success(request, "No changes to save.")
    else:
        messages.success(request, "Prices saved. Recalculating stored calls and cache breaks…")
    return True
