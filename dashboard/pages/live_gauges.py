"""Gauges of the sessions that are live now, for the overview."""

from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from dashboard import access
from dashboard.access import Actor
from dashboard.charts import Chart
from dashboard.charts.context import chart_indicator
from dashboard.models import Team
from dashboard.pages.gauges import SessionRow, draw_rows
from dashboard.pages.listed_session import read_listed
from dashboard.pages.live_state import match_live
from dashboard.pages.session_filters import ActiveWithin, SessionFilters, SortName

MOST_GAUGES = 6  # one row of the page


@dataclass(frozen=True, slots=True)
class LiveGauge:
    """`chart` is None where the window or the context is unknown: a gauge would show a zero nobody measured."""

    row: SessionRow
    chart: Chart | None


@dataclass(frozen=True, slots=True)
class LiveGauges:
    """The sessions closest to a threshold, oldest first: a gauge keeps its place while its session changes.
    `more_count` other sessions are live."""

    gauges: tuple[LiveGauge, ...]
    more_count: int
    all_query: str  # of the sessions list with all of them


def list_live_gauges(actor: Actor, team: Team, *, live_count: int, now: datetime) -> LiveGauges:
    """Two queries; none while nothing is live."""
    live = access.sessions(actor).filter(match_live(now), team=team).order_by("-risk_rank", "percent_left", "-pk")
    found = sorted(read_listed(live[:MOST_GAUGES]), key=attrgetter("pk")) if live_count else []
    gauges = tuple(LiveGauge(row, _chart_row(row)) for row in draw_rows(actor, found, [team], now=now))
    filters = SessionFilters(team=team.slug, active=ActiveWithin.LIVE, sort=SortName.RISK)
    return LiveGauges(gauges, max(0, live_count - len(gauges)), filters.query)


def _chart_row(row: SessionRow) -> Chart | None:
    if row.scale is None or not row.session.context_tokens:
        return None
    return chart_indicator(
        f"live-{row.session.pk}", row.scale.lines, row.reading, is_estimated=row.bar.is_estimated, is_small=True
    )
