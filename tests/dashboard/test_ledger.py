"""The ledger of cache breaks: sums, groups, periods in any time zone, the period before, and who sees it."""

import json
import random
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from dashboard import access
from dashboard.models import AgentSession, CacheBreak, Team
from dashboard.pages.ledger_filters import GroupName, LedgerFilters
from dashboard.pages.ledger_totals import Ledger, read_ledger
from dashboard.pages.periods import LocalDay, Period
from tests.builders import make_session, make_team, make_user
from tests.session_rows import make_breaks
from tests.visitors import ask, count_queries, read, sign_in

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 16, 14, 30, tzinfo=UTC)


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", viewer="vera")


def look(team: Team, zone: str = "UTC", **query: str) -> Ledger:
    actor = access.person(make_user("alice"))
    return read_ledger(actor, LedgerFilters.read(query, team, zone=ZoneInfo(zone), now=NOW))


def break_at(session: AgentSession, ago: timedelta, usd: str | None = "1.00", **columns: object) -> CacheBreak:
    lost_usd = None if usd is None else Decimal(usd)
    return make_breaks(session, 1, at=NOW - ago, lost_usd=lost_usd, **columns)[0]


def fill(team: Team) -> None:
    web = make_session(team, "web-1", project="web", developer="mia")
    api = make_session(team, "api-1", project="api", developer="tom", model="claude-opus-4-6")
    bare = make_session(team, "bare", model="")
    break_at(web, timedelta(days=1), "3.00", cause="tools_changed", grade="request", is_avoidable=True)
    break_at(web, timedelta(days=2), "1.00", cause="tools_changed", grade="inferred", is_avoidable=True)
    break_at(api, timedelta(days=2), "8.00", cause="likely_server_side", grade="inferred")
    break_at(api, timedelta(days=20), "2.00", cause="ttl_expired_5m", grade="api", is_avoidable=True)
    break_at(bare, timedelta(days=3), None)
    break_at(web, timedelta(days=40), "5.00", cause="tools_changed", grade="request", is_avoidable=True)
    # None of these belongs to the sums: a copy, an expected rebuild, another team's.
    break_at(api, timedelta(days=1), "100.00", is_counted=False)
    break_at(api, timedelta(days=1), "100.00", kind="expected")
    other = make_session(make_team("Marina", owner="charlie"), "web-1", project="web")
    break_at(other, timedelta(days=1), "100.00")


def test_totals_hold_what_counts_and_the_period_before(team: Team) -> None:
    fill(team)
    found = look(team)
    assert (found.total.breaks, found.total.lost_usd, found.total.avoidable_usd) == (5, Decimal(14), Decimal(6))
    assert (found.total.unpriced, found.total.avoidable_breaks) == (1, 3)
    assert found.total.recreated_tokens == 5 * 38_000
    assert (found.before.breaks, found.before.lost_usd) == (1, Decimal(5))
    assert look(team, days="7").total.lost_usd == Decimal(12)
    assert look(team, days="7").before.breaks == 0
    assert look(team, days="90").total.breaks == 6


EXPECTED_GROUPS = {
    "cause": [("tools_changed", 4, 4), ("ttl_expired_5m", 2, 2), ("likely_server_side", 0, 8), ("unexplained", 0, 0)],
    "project": [("web", 4, 4), ("api", 2, 10), ("", 0, 0)],
    "developer": [("mia", 4, 4), ("tom", 2, 10), ("", 0, 0)],
    "model": [("claude-sonnet-4-5", 4, 4), ("claude-opus-4-6", 2, 10), ("", 0, 0)],
    "day": [("2026-11-15", 3, 3), ("2026-11-14", 1, 9), ("2026-11-13", 0, 0), ("2026-10-27", 2, 2)],
}


@pytest.mark.parametrize("by", GroupName)
def test_groups_come_with_what_could_have_been_kept_first(team: Team, by: GroupName) -> None:
    fill(team)
    found = look(team, by=by)
    assert [(g.key, int(g.total.avoidable_usd), int(g.total.lost_usd)) for g in found.groups] == EXPECTED_GROUPS[by]
    assert sum((group.total.lost_usd for group in found.groups), Decimal(0)) == found.total.lost_usd
    assert sum(group.total.breaks for group in found.groups) == found.total.breaks
    assert found.before.lost_usd == 5
    for group in found.groups:
        if group.query:  # leads to exactly its breaks
            narrowed = LedgerFilters.read(_parse(group.query), team, zone=UTC, now=NOW)
            assert read_ledger(access.person(make_user("alice")), narrowed).total == group.total


def test_bars_are_the_dearest_groups_and_add_up_to_what_was_lost(team: Team) -> None:
    """What could not be avoided is as dear as what could: the figure must not leave it out."""
    for number in range(25):
        session = make_session(team, f"s-{number}", project=f"project {number:02}")
        make_breaks(session, 1, at=timezone.now(), is_avoidable=number % 5 != 3, lost_usd=Decimal(number + 1))
    chart = sign_in("vera").get("/breaks/?by=project").context["group_chart"]
    assert [row[0] for row in chart.rows] == [f"project {number:02}" for number in range(24, 12, -1)] + ["13 others"]
    avoidable, other = ([*trace["x"]] for trace in chart.figure["data"])
    assert other[:3] == [0, 24, 0]
    assert sum(avoidable) + sum(other) == sum(range(1, 26))
    assert sum(int(row[1]) for row in chart.rows) == 25
    assert "the 12 most expensive of 25 projects" in chart.title


def test_one_group_more_than_bars_has_a_bar_of_its_own(team: Team) -> None:
    for number in range(13):
        make_breaks(make_session(team, f"s-{number}", project=f"project {number}"), 1, at=timezone.now())
    chart = sign_in("vera").get("/breaks/?by=project").context["group_chart"]
    assert len(chart.rows) == 13
    assert " of 13" not in chart.title


def test_column_of_the_period_before_adds_up(team: Team) -> None:
    fill(team)
    gone = make_session(team, "gone", project="gone", developer="ina", model="claude-haiku-4-5")
    break_at(gone, timedelta(days=35), "7.00", cause="system_changed", is_avoidable=True)
    for by in ("cause", "project", "developer", "model"):
        found = look(team, by=by)
        assert sum((group.before.lost_usd for group in found.groups if group.before), Decimal(0)) == Decimal(12)
        assert found.before.lost_usd == Decimal(12)
        assert (found.groups[-1].total.breaks, found.groups[-1].query) == (0, "")


def test_days_without_a_break_are_held_against_the_days_before(team: Team) -> None:
    session = make_session(team, "s", project="web")
    make_breaks(session, 1, at=timezone.now() - timedelta(days=10), lost_usd=Decimal("3.00"))
    page = read(sign_in("vera"), "/breaks/?by=project&days=7")
    assert "No cache breaks in this period" in page
    assert "−100% vs. the previous 7 days, better" in page  # noqa: RUF001
    row = page.partition('<td class="names">web</td>')[2].partition("</tr>")[0]
    assert "$3.00" in row
    assert "−100% better" in row  # noqa: RUF001
    assert "$3.00" in page.partition("<tfoot>")[2]
    assert "All cache breaks" not in page


def _parse(query: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in query.split("&"))


def test_evidence_is_told_best_first(team: Team) -> None:
    fill(team)
    found = look(team)
    assert [(each.grade.value, each.total.breaks) for each in found.evidence] == [
        ("api", 1), ("request", 1), ("inferred", 2), ("unknown", 1),
    ]  # fmt: skip
    assert found.known_share == pytest.approx(0.4)
    (tools,) = (group for group in found.groups if group.key == "tools_changed")
    assert tools.evidence_words == "1 request diff, 1 inferred"
    assert tools.before is not None
    assert tools.before.lost_usd == 5


@pytest.mark.parametrize(
    ("query", "breaks"),
    [
        ({"project": "web"}, 2),
        ({"developer": "tom"}, 2),
        ({"model": "claude-opus-4-6"}, 2),
        ({"cause": "tools_changed"}, 2),
        ({"cause": "unknown cause"}, 5),
        ({"evidence": "api"}, 1),
        ({"avoidable": "yes"}, 3),
        ({"avoidable": "yes", "project": "web", "by": "project"}, 2),
        ({"from": "2026-11-14", "to": "2026-11-14"}, 2),
        ({"to": "2026-11-14", "from": "2026-11-15"}, 3),
        ({"from": "tomorrow", "to": "9999-99-99"}, 5),
        ({"from": "2026-11-15"}, 1),
    ],
)
def test_filters_cut_sums_groups_and_days_alike(team: Team, query: dict[str, str], breaks: int) -> None:
    fill(team)
    found = look(team, **query)
    assert found.total.breaks == breaks
    assert sum(group.total.breaks for group in found.groups) == breaks
    assert sum(total.breaks for _, total in found.days) == breaks


def test_period_before_ends_at_the_same_time_of_day(team: Team) -> None:
    session = make_session(team, "s")
    break_at(session, timedelta(days=7, hours=1), "1.00")
    break_at(session, timedelta(days=7, hours=-1), "2.00")
    for by in ("cause", "day"):
        assert look(team, days="7", by=by).before.lost_usd == Decimal(1)
    assert look(team, **{"from": "2026-11-10", "to": "2026-11-10"}).before.lost_usd == Decimal(3)  # it is over
    assert look(team, **{"from": "2026-11-11", "to": "2026-11-11"}).before.lost_usd == 0


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Sao_Paulo"]
)
def test_days_are_those_of_the_zone_also_when_clocks_change(team: Team, zone: str) -> None:
    session, place = make_session(team, "s"), ZoneInfo(zone)
    chance = random.Random(zone)
    moments = [datetime(2026, 3, 1, tzinfo=UTC) + timedelta(minutes=chance.randrange(300 * 1440)) for _ in range(400)]
    for moment in moments:
        make_breaks(session, 1, at=moment)
    period = Period.between(date(2026, 2, 20), date(2027, 1, 10), zone=place, now=NOW)
    days = dict(CacheBreak.objects.annotate(day=LocalDay("at", period)).values_list("at", "day"))
    assert days == {moment: moment.astimezone(place).date() for moment in moments}


@pytest.mark.parametrize(
    ("query", "fields", "days"),
    [
        ({}, {}, 30),
        ({"days": "7"}, {"days": "7"}, 7),
        ({"days": "8"}, {}, 30),
        ({"from": "2026-11-10", "to": "2026-11-16"}, {"days": "7"}, 7),  # what a form sends back
        ({"from": "2026-11-10", "to": "2026-11-12"}, {"from": "2026-11-10", "to": "2026-11-12"}, 3),
        ({"from": "2001-01-01", "to": "2026-11-16"}, {"from": "2025-11-16", "to": "2026-11-16"}, 366),
        ({"from": "2026-11-20"}, {"from": "2026-11-20", "to": "2026-11-20"}, 1),
    ],
)
def test_period_is_read_from_its_address(query: dict[str, str], fields: dict[str, str], days: int) -> None:
    period = Period.read(query, zone=UTC, now=NOW)
    assert (period.fields, period.days) == (fields, days)
    assert Period.read(period.fields, zone=UTC, now=NOW) == period
    assert period.before.end_at == period.start_at
    assert period.before.days == period.days


def spread(team: Team, count: int) -> None:
    """As many breaks as sessions, all of the last days."""
    now = timezone.now()
    for number in range(count // 10):
        session = make_session(team, f"many-{number}", project=f"project-{number}", developer=f"dev-{number}")
        make_breaks(session, 10, at=now - timedelta(hours=number), is_avoidable=bool(number % 2))


@pytest.mark.parametrize(
    "path", ["/breaks/", "/breaks/?by=project&avoidable=yes", "/breaks/?by=day", "/api/v1/breaks/ledger"]
)
def test_number_of_queries_does_not_grow(team: Team, path: str) -> None:
    client = sign_in("vera")
    spread(team, 10)
    few = count_queries(client, path)
    spread_more = make_team("Later", owner="zoe")  # other teams change nothing either
    spread(spread_more, 100)
    CacheBreak.objects.filter(team=team).delete()
    AgentSession.objects.filter(team=team).delete()
    spread(team, 1000)
    assert count_queries(client, path) == few


def test_page_tells_sums_trend_and_links(team: Team) -> None:
    session = make_session(team, "web-1", project="web & sons", developer="mia")
    now = timezone.now()
    (loss,) = make_breaks(session, 1, at=now - timedelta(days=1), cause="tools_changed", is_avoidable=True)
    make_breaks(session, 2, at=now - timedelta(days=40), cause="tools_changed")
    page = read(sign_in("vera"), "/breaks/?by=project")
    assert "−50% vs. the previous 30 days, better" in page  # noqa: RUF001
    assert "100% of lost cost" in page
    assert f'href="/breaks/{loss.pk}/"' in page
    assert "project=web+%26+sons" in page
    assert "−50% better" in page  # noqa: RUF001
    assert 'aria-current="page"' in page.split("Cache breaks</a>")[0].rsplit("<a", 1)[1]


@pytest.mark.parametrize("query", ["", "?by=day", "?project=nowhere", "?days=7&avoidable=yes"])
def test_empty_ledger_says_so(team: Team, query: str) -> None:
    page = read(sign_in("vera"), f"/breaks/{query}")
    assert (
        "No matching cache breaks" if "project" in query or "avoidable" in query else "No cache breaks in this period"
    ) in page


def test_person_without_a_team_is_told_so() -> None:
    assert "No team yet" in read(sign_in("nobody"), "/breaks/")


def test_list_goes_on_behind_the_last_break(team: Team) -> None:
    spread(team, 120)
    client = sign_in("vera")
    seen: list[str] = []
    url = "/breaks/"
    while url:
        page = read(client, url)
        table = page.split('id="list-title"')[1]
        seen += [part.split("/")[0] for part in table.split('href="/breaks/')[1:] if part[0].isdigit()]
        url = table.split('rel="next" href="')[1].split("#")[0].replace("&amp;", "&") if 'rel="next"' in table else ""
    assert sorted(map(int, seen)) == sorted(CacheBreak.objects.values_list("pk", flat=True))


def test_outsider_finds_no_ledger_of_the_team(team: Team) -> None:
    fill(team)
    stranger = sign_in("charlie")
    assert stranger.get("/breaks/?team=harbour").status_code == 404
    assert stranger.get("/api/v1/breaks/ledger?team=harbour").status_code == 404
    assert ask(stranger, "breaks?team=harbour")["items"] == []


def test_member_of_two_teams_chooses(team: Team) -> None:
    second = make_team("Quay", viewer="vera")
    make_breaks(make_session(second, "q"), 3, at=timezone.now())
    client = sign_in("vera")
    assert "Quay, why" in read(client, "/breaks/?team=quay")
    assert "Quay, why" in read(client, "/breaks/")  # remembered
    assert client.get("/api/v1/breaks/ledger").status_code == 422
    assert ask(client, "breaks/ledger?team=quay")["total"]["breaks"] == 3


def test_api_and_page_add_up_alike(team: Team) -> None:
    session = make_session(team, "web-1", project="web")
    make_breaks(session, 7, at=timezone.now(), lost_usd=Decimal("0.12345678"))
    told: dict[str, Any] = ask(sign_in("vera"), "breaks/ledger?by=project&days=7")
    assert told["total"]["lost_usd"] == "0.86419746"
    assert [group["key"] for group in told["groups"]] == ["web"]
    assert len(told["days"]) == 7
    listed = ask(sign_in("vera"), "breaks?project=web&counted=true&avoidable=false&evidence=unknown")["items"]
    assert sum(Decimal(row["lost_usd"]) for row in listed) == Decimal(told["total"]["lost_usd"])
    assert json.dumps(told)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "days=7",
        "from=DAY3&to=DAY1",
        "from=DAY2",
        "to=DAY3",
        "from=DAY40&to=DAY2&avoidable=yes",
        "from=DAY30&project=web&developer=mia",
        "cause=tools_changed&evidence=request&days=90",
        "model=claude-opus-4-6&by=day",
    ],
)
def test_api_takes_the_query_of_the_page_and_gives_the_same_totals(team: Team, query: str) -> None:
    web = make_session(team, "web-1", project="web", developer="mia")
    api = make_session(team, "api-1", project="api", developer="tom", model="claude-opus-4-6")
    now = timezone.now()
    for days in (1, 2, 3, 20, 40):
        at = now - timedelta(days=days)
        make_breaks(web, days, at=at, cause="tools_changed", grade="request", is_avoidable=True)
        make_breaks(api, 1, at=at)
    query = re.sub(r"DAY(\d+)", lambda found: f"{now.date() - timedelta(days=int(found[1]))}", query)
    client = sign_in("vera")
    shown = client.get(f"/breaks/?{query}").context["ledger"]
    answer = ask(client, f"breaks/ledger?{query}")
    assert (answer["first_day"], answer["last_day"]) == (str(shown.period.first), str(shown.period.last))
    assert (answer["total"]["breaks"], answer["before"]["breaks"]) == (shown.total.breaks, shown.before.breaks)
    assert Decimal(answer["total"]["lost_usd"]) == shown.total.lost_usd
    assert [group["key"] for group in answer["groups"]] == [group.key for group in shown.groups]


@pytest.mark.parametrize(
    "query", ["zone=Moon", "cause=magic", "days=8", "by=colour", "from=1999-12-31", "form=2026-11-01"]
)
def test_api_refuses_what_it_does_not_know(team: Team, query: str) -> None:
    assert sign_in("vera").get(f"/api/v1/breaks/ledger?{query}").status_code == 422


def test_minor_breaks_are_folded_in_the_list_and_stay_in_every_sum(team: Team) -> None:
    session = make_session(team, "web-1")
    break_at(session, timedelta(days=1), "3.00")
    small = [
        break_at(session, timedelta(days=1), "0.04"),
        break_at(session, timedelta(days=2), "1.00", recreated_tokens=9),
    ]
    query = "from=2026-11-01&to=2026-11-16"
    page = read(sign_in("vera"), f"/breaks/?{query}")
    assert "2 minor breaks, $1.04" in page
    assert "under 2,000 tokens re-written, or under $0.05" in page
    assert not any(f'href="/breaks/{each.pk}/"' in page for each in small)
    shown = read(sign_in("vera"), f"/breaks/?{query}&minor=show")
    assert all(f'href="/breaks/{each.pk}/"' in shown for each in small)
    assert (look(team).total.breaks, look(team, minor="show").total.breaks) == (3, 3)
    assert look(team).total.lost_usd == Decimal("4.04")
    assert look(team, minor="only").total.lost_usd == Decimal("1.04")
    exported: Any = sign_in("vera").get(f"/breaks/?{query}&export=json", secure=True)
    assert sorted(row["is_minor"] for row in json.loads(b"".join(exported))["rows"]) == [False, True, True]
