"""The page Compactions: all of a team's, by clients and by Plimsoll, with a trend and filters."""

from dataclasses import replace

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from dashboard import access
from dashboard.access import Act
from dashboard.charts import Chart
from dashboard.charts.compactions import DayCompactions, chart_compactions_per_day
from dashboard.exports.compactions import export_history
from dashboard.models import ListName, Team
from dashboard.page_context import current_team, remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.compaction_filters import CHOICES, LOW_PERCENT, CompactionFilters, Performer, RetainedBand
from dashboard.pages.compaction_history import list_history, parse_position
from dashboard.pages.compaction_totals import CompactionSum, CompactionTotals, compute_totals
from dashboard.pages.periods import USUAL_DAYS
from dashboard.pages.saved_views import list_views
from dashboard.pages.session_choices import list_choices
from dashboard.views.exports import read_format, send_export
from dashboard.views.ledger import Tile
from dashboard.words import format_retained, say_percent


@require_safe
def compactions(request: PageRequest) -> HttpResponseBase:
    team = _find_team(request)
    if team is None:
        return render(request, "compactions/history.html", {"filters": None})
    remember_team(request, team)
    zone = timezone.get_current_timezone()
    filters = CompactionFilters.parse(request.GET.dict(), team, zone=zone, now=timezone.now())
    totals = compute_totals(request.actor, filters)
    if wanted := read_format(request):
        return send_export(request, export_history(request.actor, filters, totals), wanted)
    before = parse_position(request.GET.get("before", ""))
    teams = access.teams(request.actor)
    context: dict[str, object] = {
        "filters": filters,
        "priced_team": team,
        "totals": totals,
        "tiles": list_tiles(filters, totals),
        "days_chart": _chart_days(totals),
        "history": list_history(request.actor, filters, before=before),
        "is_first": before is None,
        "views": list_views(request.actor, ListName.COMPACTIONS, query=filters.query),
        "choices": list_choices([team]),
        "selects": [(name, getattr(filters, name), choices.items()) for name, choices in CHOICES.items()],
        "teams": teams if len(teams) > 1 else [],
        "share_teams": teams,
        "spans": [(days, filters.build_days_query(days)) for days in USUAL_DAYS],
    }
    response = render(request, "compactions/history.html", context)
    if request.htmx:
        push_url(response, _build_url(filters))
    return response


def _find_team(request: PageRequest) -> Team | None:
    slug = request.GET.get("team", "")
    return access.require_team(request.actor, slug, Act.SEE) if slug else current_team(request, request.actor)


def _build_url(filters: CompactionFilters) -> str:
    return f"{reverse('compactions')}?{filters.query}" if filters.query else reverse("compactions")


def list_tiles(filters: CompactionFilters, totals: CompactionTotals) -> list[Tile]:
    """Return the sums of the period, each as a link to its compactions."""
    total = totals.total
    low = replace(filters, retained=RetainedBand.BELOW_60)
    mid_task = replace(filters, mid_task="yes")
    own = replace(filters, by=Performer.PLIMSOLL)
    return [
        Tile("Compactions", f"{total.count:,}", filters.period.words, "", f"{_build_url(filters)}#list"),
        Tile(
            "Mean retained",
            "–" if total.mean_percent is None else format_retained(total.mean_percent),  # noqa: RUF001
            _describe_mean(total),
            _describe_change(filters, totals),
            f"{_build_url(filters)}#days",
        ),
        Tile(
            f"Retained below {LOW_PERCENT}%",
            f"{total.low_count:,}",
            _format_share(total.low_count, total.measured, "of those measured"),
            "",
            f"{_build_url(low)}#list",
        ),
        Tile(
            "Mid-task",
            f"{total.mid_task_count:,}",
            _format_share(total.mid_task_count, total.count - total.own_count, "of those by the client"),
            "",
            f"{_build_url(mid_task)}#list",
        ),
        Tile("By Plimsoll", f"{total.own_count:,}", "runs beside the session", "", f"{_build_url(own)}#list"),
    ]


def _describe_mean(total: CompactionSum) -> str:
    if total.averaged == total.measured:
        return f"of {total.measured:,} measured"
    return f"of {total.averaged:,} written by a model; {total.measured:,} measured"


def _format_share(count: int, whole: int, words: str) -> str:
    return f"{say_percent(count / whole)} {words}" if whole else ""


def _describe_change(filters: CompactionFilters, totals: CompactionTotals) -> str:
    """Compare the mean with the period before, in points."""
    now, before = totals.total.mean_percent, totals.before.mean_percent
    if now is None or before is None:
        return ""
    days = filters.period.days
    against = f"the {'day' if days == 1 else f'{days} days'} before"
    points = round(now) - round(before)
    if points == 0:
        return f"as in {against}"
    return f"{abs(points)} point{'' if abs(points) == 1 else 's'} {'up' if points > 0 else 'down'} on {against}"


def _chart_days(totals: CompactionTotals) -> Chart:
    days = [DayCompactions(day, each.count, each.averaged, each.mean_percent) for day, each in totals.days]
    return chart_compactions_per_day("compaction-days", days)
