"""The list of sessions: filters and place in the URL; the page, or for htmx the part of it that changes."""

from urllib.parse import urlencode

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from dashboard import access
from dashboard.exports.sessions import export_sessions
from dashboard.live.page_state import note_page_state
from dashboard.models import ListName
from dashboard.page_request import PageRequest
from dashboard.pages import gauges
from dashboard.pages.saved_views import list_views
from dashboard.pages.session_choices import list_choices
from dashboard.pages.session_columns import offer_columns, pick_columns
from dashboard.pages.session_filters import ACTIVE_WORDS, LEVEL_CHOICES, LEVEL_WORDS, SORT_WORDS, SessionFilters
from dashboard.pages.session_paging import BadPlace, Cursor
from dashboard.views.exports import read_format, send_export

COLUMNS_ID = "session-columns"
LIST_ID, LIST_TEMPLATE = "session-list", "sessions/_list.html"


@require_safe
def sessions(request: PageRequest) -> HttpResponseBase:
    filters = SessionFilters.read(request.GET.dict())
    if wanted := read_format(request):
        return send_export(request, export_sessions(request.actor, filters, now=timezone.now()), wanted)
    cursor = _read_cursor(request, filters)
    filters = filters.name_team(access.teams(request.actor))
    live = note_page_state(access.teams(request.actor))
    found = gauges.list_sessions(request.actor, filters, now=timezone.now(), cursor=cursor)
    columns = pick_columns(request.actor.user.session_columns if request.actor.user else ())
    place = {name: request.GET[name] for name in ("after", "before") if cursor and request.GET.get(name)}
    context: dict[str, object] = {
        "found": found,
        "columns": columns,
        "share_teams": access.teams(request.actor),
        "offered_columns": offer_columns(columns),
        "live": live,
        "filters": filters,
        "is_first": cursor is None,
        "place": place,
        "page_query": urlencode(filters.fields | place),
        "is_choosing_columns": bool(request.htmx) and request.htmx.trigger == COLUMNS_ID,
        "has_demo": any(row.team.is_demo for row in found.rows),
        "may_upload": request.actor.may_anywhere(access.Act.INGEST),
        "sorts": SORT_WORDS.items(),
    }
    template = _choose_template(request)
    if template != LIST_TEMPLATE:
        context |= _offer_choices(request)
        context["views"] = list_views(request.actor, ListName.SESSIONS, query=filters.query)
    response = render(request, template, context)
    if request.htmx:
        push_url(response, _address(filters, place))
    return response


def _choose_template(request: PageRequest) -> str:
    if not request.htmx or request.htmx.history_restore_request:
        return "sessions/page.html"
    return LIST_TEMPLATE if request.htmx.target == LIST_ID else "sessions/_content.html"


def _offer_choices(request: PageRequest) -> dict[str, object]:
    teams = access.teams(request.actor)
    return {
        "choices": list_choices(teams),
        "teams": teams if len(teams) > 1 else [],
        "levels": [(value, LEVEL_WORDS[value]) for value in LEVEL_CHOICES],
        "actives": ACTIVE_WORDS.items(),
    }


def _read_cursor(request: PageRequest, filters: SessionFilters) -> Cursor | None:
    """A place that is not one, such as of another sort, is the beginning."""
    for name, forwards in (("after", True), ("before", False)):
        if text := request.GET.get(name, ""):
            try:
                return Cursor.read(text, filters.sort, forwards=forwards)
            except BadPlace:
                return None
    return None


def _address(filters: SessionFilters, place: dict[str, str]) -> str:
    query = urlencode(filters.fields | place)
    return f"{reverse('sessions')}?{query}" if query else reverse("sessions")
