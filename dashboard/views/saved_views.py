"""Saving a list as it stands under a name, and removing such a view; and which columns the sessions list has."""

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from dashboard import access
from dashboard.access import Act
from dashboard.accounts import saved_views
from dashboard.accounts.refusals import Refused
from dashboard.models import ListName, Team
from dashboard.page_context import current_team
from dashboard.page_request import PageRequest
from dashboard.pages.compaction_filters import CompactionFilters
from dashboard.pages.ledger_filters import LedgerFilters
from dashboard.pages.session_columns import DEFAULT_COLUMNS, pick_columns
from dashboard.pages.session_filters import SessionFilters
from dashboard.views.team_page import signed_in

_PAGES = {ListName.SESSIONS: "sessions", ListName.BREAKS: "ledger", ListName.COMPACTIONS: "compactions"}


@require_POST
def save_view(request: PageRequest, list_name: str) -> HttpResponse:
    """The query is read as its page reads it: nothing is kept that the page would not understand."""
    if list_name not in ListName.values:
        raise Http404("List not found.")
    chosen = ListName(list_name)
    query = _read_query(request, chosen, QueryDict(request.POST.get("query", "")[:4000]).dict())
    slug = request.POST.get("share", "")
    team = access.require_team(request.actor, slug, Act.SEE) if slug else None
    try:
        view = saved_views.save_view(signed_in(request), chosen, request.POST.get("name", ""), query, team=team)
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        shared = f" and shared with {team.name}" if team else ""
        messages.success(request, f"View {view.name} saved{shared}.")
    return redirect(_address(chosen, query))


@require_POST
def remove_view(request: PageRequest, view_id: int) -> HttpResponse:
    view = get_object_or_404(access.saved_views(request.actor), pk=view_id)
    access.require_remove_view(request.actor, view)
    view.delete()
    messages.success(request, f"View {view.name} removed. The sessions or cache breaks it listed are unchanged.")
    return redirect(_address(ListName(view.list_name), view.query))


@require_POST
def session_columns(request: PageRequest) -> HttpResponse:
    """The default is kept as none chosen, so that it may change. The list goes on at the page it shows."""
    user = signed_in(request)
    picked = pick_columns(request.POST.getlist("column")) if "reset" not in request.POST else DEFAULT_COLUMNS
    user.session_columns = [] if picked == DEFAULT_COLUMNS else list(picked)
    user.save(update_fields=["session_columns"])
    given = QueryDict(request.POST.get("query", "")[:8000]).dict()
    place = {name: given[name] for name in ("after", "before") if given.get(name)}
    query = urlencode(SessionFilters.read(given).fields | place)
    return redirect(_address(ListName.SESSIONS, query))


def _read_query(request: PageRequest, chosen: ListName, given: dict[str, str]) -> str:
    if chosen is ListName.SESSIONS:
        return SessionFilters.read(given).query
    team = _find_team(request, given)
    zone = timezone.get_current_timezone()
    named, now = {**given, "team": team.slug}, timezone.now()
    if chosen is ListName.COMPACTIONS:
        return CompactionFilters.parse(named, team, zone=zone, now=now).query
    return LedgerFilters.read(named, team, zone=zone, now=now).query


def _find_team(request: PageRequest, given: dict[str, str]) -> Team:
    if given.get("team"):
        return access.require_team(request.actor, given["team"], Act.SEE)
    team = current_team(request, request.actor)
    if team is None:
        raise Http404("Team not found.")
    return team


def _address(chosen: ListName, query: str) -> str:
    page = reverse(_PAGES[chosen])
    return f"{page}?{query}" if query else page
