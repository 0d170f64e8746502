"""The ledger of a team's cache breaks: what a period lost, by what, and every break of it."""

from dataclasses import dataclass, replace

from django.http import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from compaction.cache.causes import CAUSES
from dashboard import access
from dashboard.access import Act
from dashboard.chart_data import DayLoss, GroupLoss
from dashboard.charts import Chart
from dashboard.charts.money import chart_loss_by_group, chart_loss_per_day
from dashboard.exports.losses import export_groups, export_losses
from dashboard.exports.tables import ExportTable
from dashboard.live.page_state import note_ledger_state
from dashboard.models import ListName, Team
from dashboard.page_context import current_team, remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.keyset import read_place
from dashboard.pages.ledger import GRADES, MINOR_WORDS, list_losses, sum_minor
from dashboard.pages.ledger_filters import MINOR, GroupName, LedgerFilters
from dashboard.pages.ledger_totals import Ledger, LossGroup, read_ledger
from dashboard.pages.periods import USUAL_DAYS
from dashboard.pages.saved_views import list_views
from dashboard.pages.session_choices import list_choices
from dashboard.pages.trends import Trend, say_trend
from dashboard.views.exports import read_format, read_part, send_export
from dashboard.words import name_prices, say_percent, say_tokens, say_usd

MOST_GROUPS = 100
GROUPS = "groups"  # the part of the page that is exported apart


@dataclass(frozen=True)
class Tile:
    """A sum of the period, what it is a part of, and how it stands against the period before."""

    label: str
    figure: str
    detail: str
    trend: str
    url: str


@dataclass(frozen=True)
class GroupRow:
    """A group beside the same group in the period before."""

    group: LossGroup
    trend: Trend | None


@require_safe
def ledger(request: PageRequest) -> HttpResponseBase:
    team = _find_team(request)
    if team is None:
        return render(request, "breaks/ledger.html", {"ledger": None})
    remember_team(request, team)
    live = note_ledger_state(team)
    zone = timezone.get_current_timezone()
    filters = LedgerFilters.read(request.GET.dict(), team, zone=zone, now=timezone.now())
    found = read_ledger(request.actor, filters)
    if wanted := read_format(request):
        return send_export(request, _choose_table(request, found), wanted)
    before = read_place(request.GET.get("before", ""))
    context: dict[str, object] = {
        "ledger": found,
        "priced_team": team,
        "live": live,
        "is_live": True,
        "filters": filters,
        "tiles": list_tiles(found),
        "days_chart": _draw_days(found),
        "group_chart": _draw_groups(found),
        "groups": [GroupRow(group, _compare(group)) for group in found.groups[:MOST_GROUPS]],
        "hidden_groups": max(0, len(found.groups) - MOST_GROUPS),
        "breaks": list_losses(request.actor, filters.listed, before=before),
        "minor": None if filters.minor else sum_minor(request.actor, filters.wanted),
        "minor_words": MINOR_WORDS,
        "minor_url": f"{reverse('ledger')}?{filters.minor_query}#breaks",
        "minor_choices": MINOR.items(),
        "is_first": before is None,
        "views": list_views(request.actor, ListName.BREAKS, query=filters.query),
        **_offer_choices(request, filters),
    }
    response = render(request, "breaks/ledger.html", context)
    if request.htmx:
        push_url(response, f"{reverse('ledger')}?{filters.query}" if filters.query else reverse("ledger"))
    return response


def _choose_table(request: PageRequest, found: Ledger) -> ExportTable:
    if read_part(request) == GROUPS:
        return export_groups(found)
    return export_losses(request.actor, found.filters.wanted, total=found.total)


def _find_team(request: PageRequest) -> Team | None:
    slug = request.GET.get("team", "")
    return access.require_team(request.actor, slug, Act.SEE) if slug else current_team(request, request.actor)


def list_tiles(found: Ledger) -> list[Tile]:
    """What could have been kept comes first."""
    total, before, filters = found.total, found.before, found.filters
    against = f"the previous {'day' if found.period.days == 1 else f'{found.period.days} days'}"

    def compare(name: str) -> str:
        return say_trend(Trend(getattr(before, name), getattr(total, name), is_less_better=True), against=against)

    share = "" if total.avoidable_share is None else f"{say_percent(total.avoidable_share)} of lost cost"
    if total.told_gross_usd is not None:
        share += f"; gross {say_usd(total.told_gross_usd)}"
    basis = name_prices(has_own=found.filters.team.has_own_prices)
    unpriced = f"{total.unpriced:,} without a price" if total.unpriced else basis
    seen = "–" if found.known_share is None else say_percent(found.known_share)  # noqa: RUF001
    known = "no cache breaks" if found.known_share is None else "reported by the API or client, or seen in requests"
    everything, avoidable = (_link(each) for each in (filters, replace(filters, avoidable=True)))
    return [
        Tile(
            "Avoidable",
            say_usd(total.told_avoidable_usd),
            share or unpriced,
            compare("avoidable_usd"),
            avoidable,
        ),
        Tile("Lost", say_usd(total.told_lost_usd), unpriced, compare("lost_usd"), everything),
        Tile(
            "Cache breaks",
            f"{total.breaks:,}",
            f"{total.avoidable_breaks:,} avoidable",
            compare("breaks"),
            everything,
        ),
        Tile(
            "Re-written",
            say_tokens(total.recreated_tokens),
            "tokens re-written to cache",
            compare("recreated_tokens"),
            everything,
        ),
        Tile("Known cause", seen, known, "", "#evidence"),
    ]


def _link(filters: LedgerFilters) -> str:
    return f"{reverse('ledger')}?{filters.query}#breaks"


def _compare(group: LossGroup) -> Trend | None:
    if group.before is None:
        return None
    return Trend(group.before.lost_usd, group.total.lost_usd, is_less_better=True)


def _draw_days(found: Ledger) -> Chart:
    days = [DayLoss(day, each.breaks, each.lost_usd, each.avoidable_usd) for day, each in found.days]
    return chart_loss_per_day("ledger-days", days, basis=name_prices(has_own=found.filters.team.has_own_prices))


def _draw_groups(found: Ledger) -> Chart | None:
    """Days have a figure of their own."""
    groups = [
        GroupLoss(group.name, group.total.breaks, group.total.lost_usd, group.total.avoidable_usd)
        for group in found.groups
        if group.total.breaks
    ]
    if found.filters.by is GroupName.DAY or not groups:
        return None
    basis = name_prices(has_own=found.filters.team.has_own_prices)
    return chart_loss_by_group("ledger-groups", groups, by=found.filters.by.value, basis=basis)


def _offer_choices(request: PageRequest, filters: LedgerFilters) -> dict[str, object]:
    teams = access.teams(request.actor)
    return {
        "choices": list_choices([filters.team]),
        "teams": teams if len(teams) > 1 else [],
        "share_teams": teams,
        "causes": [(cause.value, note.title.rstrip(".")) for cause, note in CAUSES.items()],
        "grades": [(grade.value, words) for grade, (words, _) in GRADES.items()],
        "spans": [(days, filters.days_query(days)) for days in USUAL_DAYS],
        "groupings": [(name.value, filters.group_query(name)) for name in GroupName],
    }
