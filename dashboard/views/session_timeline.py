"""The timeline tab of a session: the figure, the table behind it, and the call that is picked in either.

The same address answers htmx with the picked call alone, or with another page of the table alone, and the chart's
script with the figure of a range alone. ?number= and ?agent= lead to a call by its number in its thread; ?from= and
?to= zoom the figure, by time in the zone ?zone=.
"""

from urllib.parse import urlencode, urlsplit

import orjson
from django.http import Http404, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone

from dashboard import access
from dashboard.chart_data import TimelineAxis
from dashboard.charts.timeline_range import read_range
from dashboard.exports.sessions import export_calls
from dashboard.models import AgentSession
from dashboard.page_request import PageRequest
from dashboard.pages.session_call import read_call
from dashboard.pages.session_calls import read_calls, read_order, read_page
from dashboard.pages.session_page import read_header, read_threads
from dashboard.pages.session_tabs import FIRST_TAB, tab_url
from dashboard.pages.session_timeline import chart_session
from dashboard.pages.unanswered_calls import read_unanswered
from dashboard.views.exports import read_format, send_export
from dashboard.views.session_frame import render_tab

_MOST_CALLS = 2**31 - 1  # what a column for numbers of calls holds
CALL_PLACE, TABLE_PLACE = "call-details", "calls-table"  # ids in the page that htmx fills
FIGURE_PLACE = "timeline-figure"  # filled by static/js/chart_tools.js
RANGE_PARAMETERS = ("from", "to", "zone")


def show(request: PageRequest, session: AgentSession) -> HttpResponseBase:
    if wanted := read_format(request):
        return send_export(request, export_calls(request.actor, session), wanted)
    if request.htmx.target == CALL_PLACE:
        return _show_call(request, session)
    if request.htmx.target == TABLE_PLACE:
        return _show_table(request, session)
    if request.htmx.target == FIGURE_PLACE:
        return _send_figure(request, session)
    if (numbered := _find_numbered(request, session)) is not None:
        return redirect(f"{request.path}?call={numbered}#{CALL_PLACE}")
    header = read_header(request.actor, session, now=timezone.now())
    axis = _read_axis(request)
    calls = read_calls(request.actor, session, is_timed=axis is TimelineAxis.TIME)
    picked = _read_picked(request)
    context: dict[str, object] = {
        "chart": chart_session(header, calls, axis=axis, zoom=read_range(request.GET, axis), picked=picked)
        if calls.calls
        else None,
        "calls_page": read_page(request.actor, calls, header.threads, before=_read_id(request, "before")),
        "picked": picked or "number" in request.GET,
        "details": read_call(request.actor, calls, header.threads, picked) if picked else None,
        "copy_count": calls.copy_count,
        "axis": axis.value,
        "call_link": _link_calls(request),
        "timeline_url": tab_url(session, FIRST_TAB),
        "unanswered": read_unanswered(request.actor, session, header.threads),
    }
    return render_tab(request, session, FIRST_TAB, context, header=header)


def _show_call(request: PageRequest, session: AgentSession) -> HttpResponse:
    picked = _read_picked(request)
    calls, threads = read_order(session), read_threads(session)
    details = read_call(request.actor, calls, threads, picked) if picked else None
    if details is None:
        raise Http404("Call not found.")
    reads_content = access.reads_content(request.actor, session)
    context = {"session": session, "details": details, "reads_content": reads_content}
    response = render(request, "session/_call.html", context)
    # What is picked stays picked when the page is loaded again or its address is passed on.
    kept = request.GET.copy()
    kept.pop("break", None)
    shown = QueryDict(urlsplit(request.htmx.current_url or "").query)
    for name in RANGE_PARAMETERS:
        if name in shown:
            kept[name] = shown[name]
    kept["call"] = str(picked)
    response["HX-Replace-Url"] = f"{request.path}?{kept.urlencode()}"
    return response


def _send_figure(request: PageRequest, session: AgentSession) -> HttpResponse:
    """The figure of the range of the address, with its words."""
    header = read_header(request.actor, session, now=timezone.now())
    axis = _read_axis(request)
    calls = read_calls(request.actor, session, is_timed=axis is TimelineAxis.TIME)
    if not calls.calls:
        raise Http404("No calls yet.")
    chart = chart_session(header, calls, axis=axis, zoom=read_range(request.GET, axis), picked=_read_picked(request))
    answer = {"figure": chart.serialize_figure(), "title": chart.title, "note": chart.note}
    return HttpResponse(orjson.dumps(answer), content_type="application/json")


def _read_axis(request: PageRequest) -> TimelineAxis:
    return TimelineAxis.TIME if request.GET.get("x") == TimelineAxis.TIME else TimelineAxis.CALL


def _show_table(request: PageRequest, session: AgentSession) -> HttpResponse:
    calls, threads = read_order(session), read_threads(session)
    page = read_page(request.actor, calls, threads, before=_read_id(request, "before"))
    return render(request, "session/_calls.html", {"calls_page": page, "call_link": _link_calls(request)})


def _link_calls(request: PageRequest) -> str:
    """The address of this page with another call picked, up to its id."""
    kept = {name: request.GET[name] for name in ("x", "before") if name in request.GET}
    return f"?{urlencode(kept)}&call=" if kept else "?call="


def _find_numbered(request: PageRequest, session: AgentSession) -> int | None:
    number = _read_id(request, "number")
    if number is None:
        return None
    found = access.calls(request.actor).filter(
        session=session, agent_id=request.GET.get("agent", "").replace("\x00", ""), number=min(number, _MOST_CALLS)
    )
    return found.values_list("pk", flat=True).first()


def _read_picked(request: PageRequest) -> int | None:
    """A break is picked by its call too."""
    return _read_id(request, "call") or _read_id(request, "break")


def _read_id(request: PageRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
