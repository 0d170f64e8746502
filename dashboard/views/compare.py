"""Two sessions, or two periods of a team, a project or a developer, side by side."""

from dataclasses import replace
from decimal import Decimal

from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from dashboard import access
from dashboard.access import Act
from dashboard.charts import Chart
from dashboard.charts.comparison import Curve, chart_two_curves
from dashboard.exports.findings import export_comparison
from dashboard.models import AgentSession
from dashboard.page_context import current_team
from dashboard.page_request import PageRequest
from dashboard.pages.comparison import Comparison, Scope, compare_periods, compare_sessions
from dashboard.pages.gauges import list_sessions, name_session
from dashboard.pages.periods import read_periods
from dashboard.pages.session_choices import list_choices
from dashboard.pages.session_filters import LONGEST_VALUE, SessionFilters
from dashboard.views.exports import read_format, send_export
from dashboard.words import name_prices, say_tokens, say_usd

OFFERED = 20


@require_safe
def compare(request: PageRequest) -> HttpResponseBase:
    first, second = (_find_session(request, name) for name in ("first", "second"))
    if first and second:
        return _show_sessions(request, first, second)
    if first or second:
        return _offer_sessions(request, first or second)
    return _show_periods(request)


def _show_sessions(request: PageRequest, first: AgentSession, second: AgentSession) -> HttpResponseBase:
    found = compare_sessions(request.actor, first, second)
    if wanted := read_format(request):
        return send_export(request, export_comparison(found), wanted)
    context = {
        "mode": "sessions",
        "found": found,
        "sides": (found.first, found.second),
        "charts": [_draw(found, "context", "Context by call, in tokens", along="call")],
        "swap_query": f"first={second.pk}&second={first.pk}",
        "first": first,
    }
    return render(request, "compare/page.html", context)


def _offer_sessions(request: PageRequest, session: AgentSession | None) -> HttpResponseBase:
    """The second one is still to be chosen: of the same project first, or by a search."""
    if session is None:
        return _show_periods(request)
    text = request.GET.get("text", "").replace("\x00", "")[:LONGEST_VALUE]
    now = timezone.now()
    filters = SessionFilters(text=text, project="" if text else session.project)
    rows = list_sessions(request.actor, filters, now=now, size=OFFERED + 1).rows
    context = {
        "mode": "choosing",
        "first": session,
        "first_name": name_session(request.actor, session, session.team),
        "text": text,
        "rows": [row for row in rows if row.session.pk != session.pk][:OFFERED],
    }
    return render(request, "compare/page.html", context)


def _show_periods(request: PageRequest) -> HttpResponseBase:
    slug = request.GET.get("team", "")
    team = access.require_team(request.actor, slug, Act.SEE) if slug else current_team(request, request.actor)
    if team is None:
        return render(request, "compare/page.html", {"mode": "nothing"})
    project, developer = (
        request.GET.get(name, "").replace("\x00", "").strip()[:LONGEST_VALUE] for name in ("project", "developer")
    )
    zone, now = timezone.get_current_timezone(), timezone.now()
    before, period, is_before = read_periods(request.GET.dict(), zone=zone, now=now)
    scope = Scope(team, project, developer)
    found = compare_periods(request.actor, scope, before, period, is_before=is_before)
    if wanted := read_format(request):
        return send_export(request, export_comparison(found), wanted)
    teams = access.teams(request.actor)
    context = {
        "mode": "periods",
        "found": found,
        "sides": (found.first, found.second),
        "scope": scope,
        "periods": (before, period),
        "is_before": is_before,
        "charts": [
            _draw(found, "context", "Context per call by day, in tokens", along="day"),
            _draw(found, "spent", f"Spent by day, {name_prices(has_own=team.has_own_prices)}", along="day", prefix="$"),
        ],
        "choices": list_choices([team]),
        "teams": teams if len(teams) > 1 else [],
    }
    return render(request, "compare/page.html", context)


def _draw(found: Comparison, name: str, title: str, *, along: str, prefix: str = "") -> Chart:
    first, second = (Curve(side.name, side.curves[name], side.length) for side in (found.first, found.second))
    if first.name == second.name:
        first, second = replace(first, name=f"{first.name} (first)"), replace(second, name=f"{second.name} (second)")
    say = _say_dollars if prefix else _say_tokens
    return chart_two_curves(f"compared-{name}", title, (first, second), along=along, say=say, prefix=prefix)


def _say_dollars(amount: float) -> str:
    return say_usd(Decimal(str(amount)))


def _say_tokens(count: float) -> str:
    return say_tokens(round(count))


def _find_session(request: PageRequest, name: str) -> AgentSession | None:
    """None where none is named; one that does not exist for this person is not found."""
    text = request.GET.get(name, "")
    if not text:
        return None
    pk = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    return access.find_session(request.actor, pk)
