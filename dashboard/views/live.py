"""What open pages ask for: the stream of changes, the same by asking, and the parts of a page that changed.

These views run in the server's event loop (dashboard/page_handler.py): they find out themselves who is asking, and
wait for nothing that a hundred others wait for too.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_safe

from dashboard import access
from dashboard.live.drawing import check_shown, count_new_breaks, count_offer, draw_overview, draw_ways, say_some
from dashboard.live.room import board, parts, sight, streams, viewers
from dashboard.live.viewers import Viewer
from dashboard.live.wanted import Wanted, read_ids
from dashboard.pages.session_columns import pick_columns
from dashboard.pages.session_filters import SessionFilters
from dashboard.pages.session_tabs import FIRST_TAB, TAB_NAMES
from dashboard.pages.tiles import list_url
from dashboard.person_zone import ZONE_COOKIE, find_zone

# Reading for open pages shares one thread: behind a database that does not answer, the queue has no bound of its own.
LONGEST_READ_SECONDS = 4.0

Rest = ParamSpec("Rest")
Answer = Coroutine[Any, Any, HttpResponseBase]
ViewerView = Callable[Concatenate[HttpRequest, Viewer, Rest], Answer]
View = Callable[Concatenate[HttpRequest, Rest], Answer]


def for_viewers(view: ViewerView[Rest]) -> View[Rest]:
    """Finds out who is asking. A database that cannot be read now can be asked later."""

    @wraps(view)
    async def answer(request: HttpRequest, /, *args: Rest.args, **kwargs: Rest.kwargs) -> HttpResponseBase:
        try:
            async with asyncio.timeout(LONGEST_READ_SECONDS):
                viewer = await viewers.find(read_session_key(request))
                response = await view(request, viewer, *args, **kwargs) if viewer else redirect(settings.LOGIN_URL)
        except (DatabaseError, TimeoutError):
            response = ask_later("The database is temporarily unavailable.")
        response.headers["Cache-Control"] = "no-store"
        return response

    return answer


@require_GET
@for_viewers
async def live_stream(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Server-sent events: which sessions of the page changed. Beyond the limit a page asks from time to time."""
    if streams.is_full:
        return ask_later("Too many live pages are open.")
    told = streams.tell(read_session_key(request), viewer, Wanted.read(request.GET.dict()))
    # nginx would keep back what is small.
    return StreamingHttpResponse(told, content_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@require_safe
@for_viewers
async def live_changes(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """What the stream would have told since the page last knew."""
    wanted = Wanted.read(request.GET.dict())
    await board.look([team.pk for team in viewer.teams if team.slug in wanted.since])
    news = board.find_news(wanted, wanted.since, viewer.teams)
    return JsonResponse(news.spell() if news else {"teams": dict(wanted.since), "sessions": {}, "all": False})


@require_safe
@for_viewers
async def live_rows(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """Rows of the table of sessions, of those that this person sees."""
    columns = pick_columns(request.GET.get("columns", "").split(","))
    asked = read_ids(request.GET.get("sessions", ""))
    return HttpResponse(await sight.find_rows(viewer, asked, read_zone(request), columns=columns))


@require_safe
@for_viewers
async def live_session(request: HttpRequest, viewer: Viewer, session_id: int) -> HttpResponse:
    """The header of a session, its tabs, and how much the open tab would show now."""
    tab = request.GET.get("tab", FIRST_TAB)
    if tab not in TAB_NAMES:
        raise Http404("Tab not found.")
    return HttpResponse(await sight.find_session(viewer, session_id, tab, read_zone(request)))


@require_safe
@for_viewers
async def live_overview(request: HttpRequest, viewer: Viewer, slug: str) -> HttpResponse:
    """Tiles, what happened last, and the list of sessions where the page has that of another period."""
    team = access.require_team(viewer.actor, slug, access.Act.SEE)
    zone = read_zone(request)
    # Names of sessions are titles to who may read them.
    reader_pk = None if viewer.actor.may(access.Act.READ_TEAM_CONTENT, team) else viewer.user.pk
    period = request.GET.get("period", "")[:20]
    key = ("overview", team.pk, board.find_count(team), zone, reader_pk, period)
    draw = sync_to_async(draw_overview, thread_sensitive=True)
    return HttpResponse(await parts.find(key, lambda: draw(viewer.actor, team, zone, shown_period=period)))


@require_safe
@for_viewers
async def live_ways(request: HttpRequest, viewer: Viewer, slug: str) -> HttpResponse:
    """Whether something came by each of the ways in."""
    team = access.require_team(viewer.actor, slug, access.Act.SEE)
    zone = read_zone(request)
    is_overview = request.GET.get("page") == "overview"
    may_send = viewer.actor.may(access.Act.INGEST, team)
    key = ("ways", team.pk, board.find_count(team), zone, is_overview, may_send)
    draw = sync_to_async(draw_ways, thread_sensitive=True)
    return HttpResponse(await parts.find(key, lambda: draw(viewer.actor, team, zone, is_overview=is_overview)))


@require_safe
@for_viewers
async def live_offer(request: HttpRequest, viewer: Viewer) -> HttpResponse:
    """How many sessions would join the list of the page if it were drawn now, and whether its rows would have another
    order; empty when neither is so. Only the first page of a list without a search has sessions join it."""
    filters = SessionFilters.read(request.GET.dict())
    if filters.team:
        access.require_team(viewer.actor, filters.team, access.Act.SEE)
    place = read_place(request)
    shown = read_ids(request.GET.get("sessions", ""))
    if place or filters.text:
        offer = await sync_to_async(check_shown, thread_sensitive=True)(viewer.actor, filters, shown)
    else:
        newest_pk, *_ = [*read_ids(request.GET.get("newest", "")), 0]
        since_seconds, *_ = [*read_ids(request.GET.get("drawn_at", "")[:10]), 0]
        count = partial(count_offer, newest_pk=newest_pk, since_seconds=since_seconds)
        offer = await sync_to_async(count, thread_sensitive=True)(viewer.actor, filters, shown=shown)
    is_overview = request.GET.get("page") == "overview"
    context = {
        "offer": offer,
        "url": reverse("overview") if is_overview else list_url(filters),
        "sort_url": "" if is_overview else f"{reverse('sessions')}?{urlencode(filters.fields | place)}",
    }
    return HttpResponse(render_to_string("live/offer.html", context))


@require_safe
@for_viewers
async def live_breaks(request: HttpRequest, viewer: Viewer, slug: str) -> HttpResponse:
    """How many breaks would join the ledger of the page if it were drawn now; empty when none would."""
    team = access.require_team(viewer.actor, slug, access.Act.SEE)
    newest_pk, *_ = [*read_ids(request.GET.get("newest", "")), 0]
    query = {
        name: value for name, value in request.GET.dict().items() if name not in ("newest", "drawn_at", "sessions")
    }
    count = sync_to_async(count_new_breaks, thread_sensitive=True)
    found = await count(viewer.actor, team, query, newest_pk, read_zone(request))
    context = {"count": found, "words": say_some(found), "url": f"{reverse('ledger')}?{urlencode(query)}"}
    return HttpResponse(render_to_string("live/breaks.html", context))


def read_place(request: HttpRequest) -> dict[str, str]:
    """Where the page of a list begins or ends, as it stands in the address; empty for the first page."""
    return {name: request.GET[name] for name in ("after", "before") if name in request.GET}


def read_session_key(request: HttpRequest) -> str:
    return request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")


def read_zone(request: HttpRequest) -> ZoneInfo | None:
    return find_zone(request.COOKIES.get(ZONE_COOKIE, ""))


def ask_later(words: str) -> HttpResponse:
    retry = {"Retry-After": str(settings.RETRY_AFTER_SECONDS)}
    return HttpResponse(
        f"{words}\n", status=HTTPStatus.SERVICE_UNAVAILABLE, content_type="text/plain; charset=utf-8", headers=retry
    )
