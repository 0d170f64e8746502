"""What a team's own compactions may use and spend: key, models, cap, prices, and what today took."""

from http import HTTPStatus

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from compaction.llm.lookup import list_offered_models
from compaction.llm.prices import get_list_price
from dashboard import access
from dashboard.access import Act
from dashboard.accounts.refusals import Refused
from dashboard.models import Team
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.summarizer_form import OFFERED_LIST_ID, SummarizerDraft, TeamKeyForm
from dashboard.runs.settings_changes import BadChoice, change_settings, forget_key, set_key
from dashboard.runs.spend import read_spend
from dashboard.runs.team_settings import find_settings
from dashboard.views.team_page import signed_in, team_rights


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def summarizer(request: PageRequest, slug: str) -> HttpResponse:
    """`act` says which of the forms was sent: key, forget or save."""
    team = access.require_team(request.actor, slug, Act.MANAGE)
    remember_team(request, team)
    act = request.POST.get("act", "") if request.method == "POST" else ""
    key_form = TeamKeyForm(request.POST if act == "key" else None)
    draft = SummarizerDraft(request.POST if act == "save" else None, find_settings(team))
    status = HTTPStatus.OK
    if request.method == "POST":
        if act == "forget":
            _forget(request, team)
            return redirect("summarizer", slug)
        status = _keep_key(request, team, key_form) if act == "key" else _save(request, team, draft)
        if status is HTTPStatus.OK:
            return redirect("summarizer", slug)
    choice, now = find_settings(team), timezone.now()
    spend = read_spend(team, now)
    context = {
        "team": team,
        "choice": choice,
        "key_form": key_form,
        "draft": draft,
        "offered_list_id": OFFERED_LIST_ID,
        "offered": [(model, get_list_price(model, now)) for model in list_offered_models()],
        "spend": spend,
        "left_usd": max(choice.daily_cap_usd - spend.taken_usd, 0),
        **team_rights(request, team),
    }
    return render(request, "summarizer/page.html", context, status=status)


def _keep_key(request: PageRequest, team: Team, form: TeamKeyForm) -> HTTPStatus:
    if not form.is_valid():
        return HTTPStatus.UNPROCESSABLE_ENTITY
    try:
        set_key(team, form.cleaned_data["key"], by=signed_in(request))
    except BadChoice as refusal:
        form.add_error("key", str(refusal))
        return HTTPStatus.UNPROCESSABLE_ENTITY
    messages.success(request, "API key saved. It is used from the next summary on.")
    return HTTPStatus.OK


def _forget(request: PageRequest, team: Team) -> None:
    if forget_key(team, by=signed_in(request)):
        messages.success(request, "Team API key removed.")
    else:
        messages.info(request, "This team has no API key of its own.")


def _save(request: PageRequest, team: Team, draft: SummarizerDraft) -> HTTPStatus:
    if draft.change is None:
        return HTTPStatus.UNPROCESSABLE_ENTITY
    try:
        change_settings(team, draft.change, by=signed_in(request), stamp=draft.stamp)
    except Refused as refusal:
        messages.error(request, str(refusal))
        draft.look_at(find_settings(team))
        return HTTPStatus.CONFLICT
    messages.success(request, "Summariser settings saved. They apply to new compactions.")
    return HTTPStatus.OK
