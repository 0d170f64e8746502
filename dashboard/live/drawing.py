"""Parts of pages drawn anew: rows of sessions, the header of one, the tiles of a team. Queries in, HTML out."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import close_old_connections, connection
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils import timezone

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.charts.money import chart_spend_per_day
from dashboard.models import AgentSession, Team
from dashboard.pages.fleet import look_at_fleet
from dashboard.pages.gauges import draw_rows
from dashboard.pages.ledger import find_losses
from dashboard.pages.ledger_filters import LedgerFilters
from dashboard.pages.listed_session import read_listed
from dashboard.pages.live_gauges import list_live_gauges
from dashboard.pages.session_filters import SessionFilters, SortName
from dashboard.pages.session_page import read_header
from dashboard.pages.session_paging import sort_shown
from dashboard.pages.session_runs import look_at_runs
from dashboard.pages.session_tabs import count_shown, list_tabs
from dashboard.pages.tiles import list_tiles, list_url
from dashboard.pages.ways_in import find_arrivals, list_ways
from dashboard.templatetags.session_rows import session_rows
from dashboard.words import name_prices

MOST_OFFERED = 100


@dataclass(frozen=True)
class Belonging:
    """Whose a session is."""

    team_pk: int
    owner_pk: int | None


@dataclass(frozen=True)
class DrawnRow:
    session_pk: int
    belonging: Belonging
    html: str


@dataclass(frozen=True)
class DrawnSession:
    """`belonging` is what the drawing went by when it decided about content."""

    belonging: Belonging
    html: str


@dataclass(frozen=True)
class Offer:
    """Sessions that came since a page was drawn, and others that were busy since then and do not stand on it; counted
    up to one more than is said. `gone`: sessions on the page that are deleted, or not the person's to see any more.
    `is_reordered`: the rows of the page, which change in place, would have another order now."""

    new_count: int = 0
    busy_count: int = 0
    gone: Sequence[int] = ()
    is_reordered: bool = False

    @property
    def new_words(self) -> str:
        return say_some(self.new_count)

    @property
    def busy_words(self) -> str:
        return say_some(self.busy_count)


def say_some(count: int) -> str:
    return f"more than {MOST_OFFERED}" if count > MOST_OFFERED else str(count)


@contextmanager
def drawing(zone: ZoneInfo | None) -> Iterator[None]:
    """In the person's time zone. Outside of any request, so the connection is given back here."""
    try:
        with timezone.override(zone):
            yield
    finally:
        if not connection.in_atomic_block:
            close_old_connections()  # no request ends here that would do it


def draw_session_rows(
    actor: Actor, session_pks: Collection[int], zone: ZoneInfo | None, columns: Sequence[str]
) -> list[DrawnRow]:
    with drawing(zone):
        sessions = read_listed(access.sessions(actor).filter(pk__in=session_pks))
        rows = draw_rows(actor, sessions, access.teams(actor), now=timezone.now())
        return [
            DrawnRow(row.session.pk, Belonging(row.team.pk, row.session.owner_id), session_rows([row], columns))
            for row in rows
        ]


def read_belonging(session_pk: int) -> Belonging | None:
    with drawing(None):
        found = AgentSession.objects.filter(pk=session_pk).values_list("team_id", "owner_id").first()
        return Belonging(*found) if found else None


def draw_session(actor: Actor, session_pk: int, tab: str, zone: ZoneInfo | None) -> DrawnSession:
    """Raises Http404 for a session the actor does not see."""
    with drawing(zone):
        session = get_object_or_404(access.sessions(actor).select_related("team"), pk=session_pk)
        header = read_header(actor, session, now=timezone.now())
        own_runs = look_at_runs(actor, session)
        context = {
            "session": session,
            "header": header,
            "own_runs": own_runs,
            "tabs": list_tabs(session, tab, own_runs),
            "shown_count": count_shown(session, tab),
            "is_live": True,
        }
        html = render_to_string("live/session.html", context)
        return DrawnSession(Belonging(session.team_id, session.owner_id), html)


def draw_overview(actor: Actor, team: Team, zone: ZoneInfo | None, *, shown_period: str) -> str:
    """With the list of sessions only where the page shows those of another period: else its rows change in place."""
    with drawing(zone):
        fleet = look_at_fleet(actor, team, now=timezone.now())
        if fleet is None:
            return ""
        context = {
            "fleet": fleet,
            "tiles": list_tiles(team, fleet),
            "live_gauges": list_live_gauges(actor, team, live_count=fleet.numbers.live_count, now=timezone.now()),
            "chart": chart_spend_per_day(
                "spend-per-day", fleet.numbers.days, basis=name_prices(has_own=team.has_own_prices)
            ),
            "is_live": True,
            "risk_url": list_url(fleet.filters) if shown_period not in ("", fleet.period) else "",
        }
        return render_to_string("live/overview.html", context)


def draw_ways(actor: Actor, team: Team, zone: ZoneInfo | None, *, is_overview: bool) -> str:
    """Ways are shown to those who may send; the heading of the overview to everybody."""
    with drawing(zone):
        ways = list_ways(settings.PUBLIC_URL, "", is_local=settings.LOCAL_MODE)
        arrivals = find_arrivals(actor, team, ways)
        context = {
            "arrivals": arrivals if actor.may(Act.INGEST, team) else [],
            "has_come": any(arrival.has_come for arrival in arrivals),
            "is_overview": is_overview,
        }
        return render_to_string("live/ways.html", context)


def check_shown(actor: Actor, filters: SessionFilters, shown: Sequence[int]) -> Offer:
    """Return what became of the sessions on a page. One query."""
    with drawing(None):
        left = sort_shown(actor, filters, shown)
        still = set(left)
        stayed = [pk for pk in shown if pk in still]
        return Offer(gone=[pk for pk in shown if pk not in still], is_reordered=stayed != left)


def count_offer(
    actor: Actor, filters: SessionFilters, *, newest_pk: int, shown: Sequence[int], since_seconds: int
) -> Offer:
    """Sessions with a greater key than the newest are new. Of a list that shows the busiest first, those are counted
    too that were busy since it was drawn."""
    offer = check_shown(actor, filters, shown)
    with drawing(None):
        visible = access.sessions(actor).filter(filters.match_columns(timezone.now()))
        if filters.team:
            visible = visible.filter(team__slug=filters.team)
        new_count = _count_some(visible.filter(pk__gt=newest_pk))
        busy_count = 0
        if filters.sort is SortName.ACTIVE and not filters.is_reversed:
            since_at = datetime.fromtimestamp(since_seconds, tz=UTC)
            busy = visible.filter(pk__lte=newest_pk, last_at__gt=since_at).exclude(pk__in=shown)
            busy_count = _count_some(busy)
    return replace(offer, new_count=new_count, busy_count=busy_count)


def count_new_breaks(actor: Actor, team: Team, query: Mapping[str, str], newest_pk: int, zone: ZoneInfo | None) -> int:
    """Breaks that a ledger with this address would have in addition if it were drawn now."""
    with drawing(zone):
        filters = LedgerFilters.read(query, team, zone=timezone.get_current_timezone(), now=timezone.now())
        return _count_some(find_losses(actor, filters.wanted).filter(pk__gt=newest_pk))


def _count_some(rows: QuerySet[Any]) -> int:
    return rows.order_by()[: MOST_OFFERED + 1].count()
