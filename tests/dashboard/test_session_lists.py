"""Lists of sessions: filters, sorts, and pages that hold while sessions come and change."""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import Value
from django.db.models.functions import Concat, Right
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from compaction.context.forecast import Pace
from dashboard import access
from dashboard.access import Actor
from dashboard.exports.sessions import export_sessions
from dashboard.models import LEVELS, AgentSession, Team
from dashboard.pages.gauges import list_sessions
from dashboard.pages.session_filters import SessionFilters, SortName
from dashboard.pages.session_page import read_header
from dashboard.pages.session_paging import FEW, BadPlace, Cursor
from dashboard.policies.changes import change_policy
from dashboard.policies.in_force import find_policy
from dashboard.session_forecasts import serialize_forecast
from dashboard.templatetags.session_rows import line_sums, session_rows
from tests.builders import make_many_sessions, make_session, make_team, make_user
from tests.visitors import ask, sign_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", viewer="vera")


@pytest.fixture
def alice(team: Team) -> Actor:
    return access.person(make_user("alice"))


def names(actor: Actor, query: dict[str, str]) -> list[str]:
    found = list_sessions(actor, SessionFilters.read(query), now=timezone.now())
    return [row.session.external_id for row in found.rows]


def walk(actor: Actor, filters: SessionFilters, *, size: int, forwards: bool = True) -> Iterator[list[int]]:
    """Page after page, from one end to the other and no further."""
    page = list_sessions(actor, filters, now=timezone.now(), size=size)
    if not forwards:
        while page.after:
            page = turn(actor, filters, page.after, size=size, forwards=True)
    while True:
        yield [row.session.pk for row in page.rows]
        place = page.after if forwards else page.before
        if not place:
            return
        page = turn(actor, filters, place, size=size, forwards=forwards)


def turn(actor: Actor, filters: SessionFilters, place: str, *, size: int, forwards: bool):  # type: ignore[no-untyped-def]
    cursor = Cursor.read(place, filters.sort, forwards=forwards)
    return list_sessions(actor, filters, now=timezone.now(), cursor=cursor, size=size)


FILTERED = [
    ({}, "live idle full quiet other"),
    ({"project": "web"}, "live full"),
    ({"model": "claude-opus-4-6"}, "idle"),
    ({"developer": "mia"}, "live quiet"),
    ({"level": "above"}, "idle full"),
    ({"level": "warning"}, "idle"),
    ({"level": "not known"}, "other"),
    ({"active": "live"}, "live"),
    ({"active": "hour"}, "live idle"),
    ({"active": "day"}, "live idle full"),
    ({"active": "week"}, "live idle full quiet"),
    ({"breaks": "yes"}, "full quiet"),
    ({"breaks": "yes", "level": "above"}, "full"),
    ({"text": "WEB"}, "live full"),
    ({"text": "feat mia"}, "live"),
    ({"text": "web", "breaks": "yes"}, "full"),
    ({"text": "nowhere"}, ""),
    ({"text": "we"}, "live idle full quiet other"),  # too short to search for
    ({"level": "purple", "active": "never", "sort": "colour"}, "live idle full quiet other"),
    ({"sort": "risk"}, "full idle quiet live other"),
    ({"sort": "lost"}, "quiet full other idle live"),
    ({"sort": "spend"}, "idle other quiet full live"),
    ({"sort": "spend", "project": "web"}, "full live"),
]


@pytest.mark.parametrize(("query", "expected"), FILTERED)
def test_filters_and_sorts_pick_what_they_say(team: Team, alice: Actor, query: dict[str, str], expected: str) -> None:
    now = timezone.now()

    def keep(name: str, age: timedelta, level: str, **columns: object) -> None:
        left = columns.pop("left", 50)
        make_session(
            team, name, last_at=now - age, level=level, level_rank=LEVELS.index(level),
            percent_left=None if level == "not known" else left, **columns,
        )  # fmt: skip

    keep("live", timedelta(minutes=1), "ok", project="web", developer="mia", branch="feat/x")
    keep("idle", timedelta(minutes=30), "warning", model="claude-opus-4-6", spent_usd=9, left=9)
    keep("full", timedelta(hours=5), "blocking", project="web", break_count=2, lost_usd=1, spent_usd=2, left=0)
    keep("quiet", timedelta(days=3), "ok", developer="mia", break_count=1, lost_usd=3, spent_usd=4, left=20)
    keep("other", timedelta(days=30), "not known", spent_usd=5)
    assert names(alice, query) == expected.split()


def make_forecast(*calls: int) -> dict[str, object]:
    return {"growth": 900, "calls": calls, "turns": None, "minutes": None}


def make_varied(team: Team, count: int, chance: random.Random) -> None:
    """Few different values: most places differ in the id alone."""
    now = timezone.now()

    def rank(number: int) -> int:
        return number * 7 % 4

    make_many_sessions(
        team, count,
        last_at=lambda _: now - timedelta(minutes=chance.randrange(8), microseconds=chance.randrange(3)),
        level_rank=rank,
        level=lambda number: LEVELS[rank(number)],
        percent_left=lambda number: chance.randrange(4) if rank(number) else None,
        lost_usd=lambda _: Decimal(chance.randrange(3)) / 4,
        spent_usd=lambda _: Decimal(chance.randrange(10**9)) / 10**8,
        break_count=1,
        calls_left=lambda number: chance.randrange(4) if number % 3 else None,
        warm_until=lambda number: now + timedelta(seconds=chance.randrange(-2, 2)) if number % 4 else None,
        read_tokens=lambda number: chance.randrange(3) if number % 5 else 0,
        input_tokens=lambda number: 2 if number % 5 else 0,
    )  # fmt: skip


# Sorts by a figure that some sessions do not have.
WITH_GAPS = {
    SortName.FORECAST: "calls_left",
    SortName.HIT_RATE: "hit_rate_ppm",
    SortName.WARM: "warm_until",
}


@pytest.mark.parametrize("sort", SortName)
@pytest.mark.parametrize("query", [{}, {"breaks": "yes"}, {"text": "harbour"}], ids=["all", "filtered", "searched"])
@pytest.mark.parametrize("forwards", [True, False])
def test_every_session_is_on_exactly_one_page(
    team: Team,
    alice: Actor,
    sort: SortName,
    query: dict[str, str],
    forwards: bool,  # noqa: FBT001
) -> None:
    make_varied(team, 57, random.Random(sort))
    filters = SessionFilters.read({**query, "sort": sort})
    whole = [pk for page in walk(alice, filters, size=100) for pk in page]
    assert sorted(whole) == sorted(AgentSession.objects.values_list("pk", flat=True))
    pages = list(walk(alice, filters, size=5, forwards=forwards))
    assert all(len(page) == 5 for page in pages[1:-1])
    assert [pk for page in (pages if forwards else pages[::-1]) for pk in page] == whole


@pytest.mark.parametrize("sort", SortName)
def test_pages_of_several_teams_are_one_list(team: Team, sort: SortName) -> None:
    other = make_team("Marina", member="alice")
    make_team("Quay", owner="charlie")
    chance = random.Random(sort)
    make_varied(team, 23, chance)
    make_varied(other, 31, chance)
    make_varied(Team.objects.get(slug="quay"), 5, chance)
    both = access.person(make_user("alice"))
    whole = [pk for page in walk(both, SessionFilters(sort=sort), size=100) for pk in page]
    assert sorted(whole) == sorted(access.sessions(both).values_list("pk", flat=True))
    assert [pk for page in walk(both, SessionFilters(sort=sort), size=7) for pk in page] == whole


def test_many_matches_are_walked_like_few(team: Team, alice: Actor) -> None:
    make_varied(team, FEW + 40, random.Random(1))
    AgentSession.objects.filter(pk__in=AgentSession.objects.values("pk")[:20]).update(break_count=0)
    filters = SessionFilters(has_breaks=True, sort=SortName.RISK)
    seen = [pk for page in walk(alice, filters, size=200) for pk in page]
    assert len(seen) == len(set(seen)) == FEW + 20


def test_walk_misses_nothing_while_sessions_come_and_move_up(team: Team, alice: Actor) -> None:
    settled = [session.pk for session in make_many_sessions(team, 40)]
    seen: list[int] = []
    for number, page in enumerate(walk(alice, SessionFilters(), size=6)):
        seen += page
        make_session(team, f"new-{number}", last_at=timezone.now() + timedelta(seconds=number))
        AgentSession.objects.filter(pk=page[0]).update(last_at=timezone.now())  # it was seen: it moves to the top
    assert seen == settled


@pytest.mark.parametrize(
    "place", ["", "x", "1", "1.2.3", "n", "1.n.2", "٣.1", "9" * 19 + ".1", "9" * 18 + ".1", "1.-", "1.2 ", "1..2"]
)
def test_what_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(BadPlace):
        Cursor.read(place, SortName.ACTIVE, forwards=True)


def test_total_is_told_of_few_matches(team: Team, alice: Actor) -> None:
    make_many_sessions(team, 60, break_count=lambda number: number % 2)
    now = timezone.now()
    assert list_sessions(alice, SessionFilters(has_breaks=True), now=now, size=10).total == 30
    assert list_sessions(alice, SessionFilters(), now=now, size=10).total is None


def test_chips_take_their_own_filter_away() -> None:
    filters = SessionFilters.read(
        {"text": "login", "project": "a&b", "breaks": "yes", "sort": "risk", "level": "above"}
    )
    assert filters.query == "text=login&project=a%26b&level=above&breaks=yes&sort=risk"
    assert {chip.label: chip.query_without for chip in filters.chips} == {
        "contains": "project=a%26b&level=above&breaks=yes&sort=risk",
        "project": "text=login&level=above&breaks=yes&sort=risk",
        "level": "text=login&project=a%26b&breaks=yes&sort=risk",
        "cache breaks": "text=login&project=a%26b&level=above&sort=risk",
    }


def test_chip_of_a_team_shows_its_name(team: Team) -> None:
    filters = SessionFilters.read({"team": team.slug})
    assert [chip.value for chip in filters.chips] == [team.slug]
    (chip,) = filters.name_team([team]).chips
    assert (chip.value, chip.query_without) == (team.name, "")
    assert filters.name_team([team]).query == filters.query


def test_row_says_what_is_not_known(team: Team, alice: Actor) -> None:
    now = timezone.now()
    make_session(team, "bare-session", model="somebody-elses", call_count=2, unpriced_count=2, context_tokens=5)
    (row,) = list_sessions(alice, SessionFilters(), now=now).rows
    assert (row.name, row.spent_usd, row.lost_usd) == ("bare-ses", None, None)
    assert (row.bar.window_tokens, row.forecast_words, row.warm_words, row.hit_rate) == (None, "", "unknown", None)


def test_row_says_how_soon_and_how_warm(team: Team, alice: Actor) -> None:
    now = timezone.now()
    told = {"growth": 900, "calls": [20, 30, 40], "turns": [4, 6, 9], "minutes": None}
    make_session(team, "a", context_tokens=90_000, forecast=told, warm_until=now + timedelta(seconds=192))
    make_session(team, "b", context_tokens=90_000, forecast=told | {"turns": None}, warm_until=now)
    make_session(team, "c", context_tokens=180_000, forecast=told)
    rows = {row.name: row for row in list_sessions(alice, SessionFilters(), now=now).rows}
    assert [rows[name].forecast_words for name in "abc"] == ["~30 calls (20-40)", "~30 calls (20-40)", "now"]
    assert [rows[name].warm_words for name in "abc"] == ["3:12", "cold", "unknown"]


def test_row_says_now_only_at_the_line(team: Team, alice: Actor) -> None:
    told = {"growth": 900, "calls": [1, 2, 3], "turns": None, "minutes": None}
    make_session(team, "a", context_tokens=166_450, forecast=told)
    make_session(team, "b", context_tokens=166_450, forecast=told | {"turns": [0, 0, 2]})
    make_session(team, "c", context_tokens=167_000, forecast=told)
    rows = {row.name: row for row in list_sessions(alice, SessionFilters(), now=timezone.now()).rows}
    assert rows["a"].reading.percent_left == 0
    assert [rows[name].forecast_words for name in "abc"] == ["~2 calls (1-3)", "~2 calls (1-3)", "now"]


def test_hit_rate_is_that_of_the_whole_session_wherever_it_is_shown(team: Team, alice: Actor) -> None:
    tokens = {"input_tokens": 100, "read_tokens": 750, "write_5m_tokens": 50, "write_1h_tokens": 100}
    session = make_session(team, "one", recent_hits=[90, 12], call_count=2, **tokens)
    (row,) = list_sessions(alice, SessionFilters(), now=timezone.now()).rows
    assert row.hit_rate == read_header(alice, session, now=timezone.now()).hit_rate == 0.75
    drawn = session_rows([row], ["hits"])
    assert "</svg> 75%</td>" in drawn
    assert 'aria-label="hit rate of the last call 12%, between 12% and 90% before"' in drawn
    table = export_sessions(alice, SessionFilters(), now=timezone.now())
    (told,) = [dict(zip(table.columns, values, strict=True)) for values in table.rows]
    assert (told["hit_rate"], told["last_hit_percent"]) == (0.75, 12)
    (listed,) = ask(sign_in("alice"), "sessions")["sessions"]
    assert (listed["hit_rate"], listed["recent_hits"]) == (0.75, [90, 12])


def test_what_the_client_paid_stands_where_no_call_is_known(team: Team, alice: Actor) -> None:
    make_session(team, "a", client_cost_usd=Decimal("0.10"))
    make_session(team, "b", client_cost_usd=Decimal("0.10"), call_count=1, spent_usd=Decimal("0.25"))
    rows = {row.name: row for row in list_sessions(alice, SessionFilters(), now=timezone.now()).rows}
    assert (rows["a"].spent_usd, rows["b"].spent_usd) == (None, Decimal("0.25"))
    assert "$0.10<small>by client</small>" in session_rows([rows["a"]])
    assert "$0.25</td>" in session_rows([rows["b"]])
    told = {row["external_id"]: row for row in ask(sign_in("alice"), "sessions")["sessions"]}
    assert (told["a"]["spent_usd"], told["a"]["client_cost_usd"]) == (None, "0.10000000")


def test_sums_behind_the_lines_stand_once_below_the_rows(team: Team, alice: Actor) -> None:
    for number in range(3):
        make_session(team, f"short-{number}")
    make_session(team, "long", model="claude-opus-5-5")
    make_session(team, "unknown", model="qwen-coder")
    rows = list_sessions(alice, SessionFilters(), now=timezone.now()).rows
    drawn = line_sums(rows)
    assert (drawn.count("<details"), drawn.count("<dl>")) == (1, 2)
    assert "<dt>blocking = available - 3,000 = 977,000</dt>" in drawn
    assert "from the client&#x27;s table for claude-sonnet-4-5</dd>" in drawn
    assert line_sums(rows, ["spent"]) == line_sums([]) == ""


@pytest.mark.parametrize("sort", SortName)
def test_reversed_sort_is_the_same_list_from_its_other_end(team: Team, alice: Actor, sort: SortName) -> None:
    make_varied(team, 41, random.Random(sort))
    AgentSession.objects.update(project=Right("external_id", 1), developer=Concat(Value("Ä"), Right("external_id", 1)))
    plain, turned = SessionFilters(sort=sort), SessionFilters(sort=sort, is_reversed=True)
    whole = [pk for page in walk(alice, plain, size=100) for pk in page]
    missing = find_missing(sort)
    expected = [*(pk for pk in whole[::-1] if pk not in missing), *(pk for pk in whole[::-1] if pk in missing)]
    assert [pk for page in walk(alice, turned, size=100) for pk in page] == expected
    assert [pk for page in walk(alice, turned, size=6) for pk in page] == expected
    back = list(walk(alice, turned, size=6, forwards=False))
    assert [pk for page in back[::-1] for pk in page] == expected


def find_missing(sort: SortName) -> set[int]:
    """Sessions without the figure of a sort."""
    if sort not in WITH_GAPS:
        return set()
    return set(AgentSession.objects.filter(**{f"{WITH_GAPS[sort]}__isnull": True}).values_list("pk", flat=True))


@pytest.mark.parametrize("is_reversed", [False, True])
@pytest.mark.parametrize("query", [{}, {"breaks": "yes"}, {"text": "harbour"}], ids=["all", "filtered", "searched"])
@pytest.mark.parametrize("sort", WITH_GAPS)
def test_sessions_without_the_figure_come_last_in_both_directions(
    team: Team, alice: Actor, sort: SortName, query: dict[str, str], *, is_reversed: bool
) -> None:
    make_varied(team, 40, random.Random(sort))
    filters = SessionFilters.read({**query, "sort": f"{sort}_reversed" if is_reversed else sort})
    whole = [pk for page in walk(alice, filters, size=7) for pk in page]
    figures = dict(AgentSession.objects.values_list("pk", WITH_GAPS[sort]))
    ordered = [figures[pk] for pk in whole]
    known = [figure for figure in ordered if figure is not None]
    assert 0 < len(known) < len(ordered) == 40
    is_rising = (sort is SortName.FORECAST) is not is_reversed
    assert ordered == [*sorted(known, reverse=not is_rising), *[None] * (40 - len(known))]


FORECASTS = [
    (90_000, 167_000, 86, "~86 calls (34-140)"),
    (166_999, 167_000, 1, "~1 call (0-4)"),
    (167_000, 167_000, 0, "now"),
    (190_000, 167_000, 0, "now"),
    (90_000, None, None, ""),
    (190_000, None, None, ""),  # auto-compact is off
]


@pytest.mark.parametrize(("used_tokens", "line_tokens", "calls_left", "words"), FORECASTS)
def test_list_is_sorted_by_the_calls_that_its_rows_show(
    team: Team, alice: Actor, used_tokens: int, line_tokens: int | None, calls_left: int | None, words: str
) -> None:
    if line_tokens is None:
        change_policy(team, replace(find_policy(team), thresholds={"is_auto_enabled": False}), by=None, base_version=0)
    forecast = serialize_forecast(Pace(900), line_tokens, used_tokens)
    make_session(team, "one", context_tokens=used_tokens, auto_line_tokens=line_tokens, **forecast._asdict())
    (row,) = list_sessions(alice, SessionFilters(sort=SortName.FORECAST), now=timezone.now()).rows
    assert (row.session.calls_left, row.forecast_words) == (calls_left, words)


def test_stored_sessions_get_the_calls_that_their_rows_show(team: Team, alice: Actor) -> None:
    for number, (used_tokens, line_tokens, _, _) in enumerate(FORECASTS):
        forecast = serialize_forecast(Pace(900), line_tokens, used_tokens).forecast
        stored = {"context_tokens": used_tokens, "auto_line_tokens": line_tokens, "forecast": forecast}
        make_session(team, str(number), **stored)
    make_session(team, "no pace, at the line", context_tokens=167_000, auto_line_tokens=167_000)
    make_session(team, "no pace", context_tokens=90_000, auto_line_tokens=167_000)
    make_session(team, "long", auto_line_tokens=2**52, forecast=make_forecast(2**50, 2**51, 2**52))
    import_module("dashboard.migrations.0036_session_sorts").fill_calls_left(apps, None)
    found = AgentSession.objects.order_by("pk").values_list("calls_left", flat=True)
    assert list(found) == [*(calls_left for _, _, calls_left, _ in FORECASTS), 0, None, 2**51]


def test_list_is_sorted_by_the_hit_rate_that_its_rows_show(team: Team, alice: Actor) -> None:
    most = 2**53 - 1
    for number, (read, plain, once, hourly) in enumerate(
        [(0, 0, 0, 0), (0, 7, 0, 0), (1, 2, 0, 0), (999, 0, 1, 0), (5, 0, 0, 0), (most, most, most, most)]
    ):
        make_session(
            team, str(number), read_tokens=read, input_tokens=plain, write_5m_tokens=once, write_1h_tokens=hourly
        )  # fmt: skip
    rows = list_sessions(alice, SessionFilters(sort=SortName.HIT_RATE), now=timezone.now()).rows
    assert [row.session.external_id for row in rows] == ["4", "3", "2", "5", "1", "0"]
    for row in rows[:-1]:
        assert row.hit_rate is not None
        assert row.session.hit_rate_ppm == pytest.approx(1e6 * row.hit_rate, abs=1)
    assert (rows[-1].session.hit_rate_ppm, rows[-1].hit_rate) == (None, None)


def test_hit_rate_of_sums_beyond_any_count_is_stored(team: Team) -> None:
    largest = 2**63 - 1
    session = make_session(team, "hostile", read_tokens=largest, input_tokens=largest, write_5m_tokens=largest)
    session.refresh_from_db()
    assert session.hit_rate_ppm == 333_333


INDEXES = {
    SortName.PROJECT: "session_of_project",
    SortName.DEVELOPER: "session_of_developer",
    SortName.COMPACTIONS: "session_by_compactions",
    SortName.FORECAST: "session_by_calls_left",
    SortName.HIT_RATE: "session_by_hit_rate",
    SortName.WARM: "session_by_warmth",
}


@pytest.mark.parametrize("sort", INDEXES)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_sort_walks_an_index(team: Team, alice: Actor, sort: SortName, *, is_reversed: bool) -> None:
    make_many_sessions(team, FEW + 40, compaction_count=lambda number: number % 5)
    filters = SessionFilters(sort=sort, is_reversed=is_reversed)
    with CaptureQueriesContext(connection) as asked:
        names = list_sessions(alice, filters, now=timezone.now(), size=5)
    assert len(names.rows) == 5
    if connection.vendor == "sqlite":
        query = next(one["sql"] for one in asked.captured_queries if "started_at" in one["sql"])
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query}")
            plan = str(cursor.fetchall())
        assert INDEXES[sort] in plan
        assert "USING INDEX" in plan or "USING COVERING INDEX" in plan


def test_texts_stand_in_places_as_they_are(team: Team, alice: Actor) -> None:
    for name in ("", "a.b", "n", "Zoë 🚢", "x00"):
        make_session(team, f"of {name}", project=name)
    found = [pk for page in walk(alice, SessionFilters(sort=SortName.PROJECT), size=1) for pk in page]
    assert len(found) == len(set(found)) == 5
    for place in ("n.1.1", "xzz.1.1", "x00.1.1", "xff.1.1", "x61.x61.1"):
        with pytest.raises(BadPlace):
            Cursor.read(place, SortName.PROJECT, forwards=True)


def test_sessions_since_a_day(team: Team, alice: Actor) -> None:
    now = timezone.now()
    for days in (0, 2, 4):
        make_session(team, f"{days} days", last_at=now - timedelta(days=days))
    day = (now - timedelta(days=2)).date().isoformat()
    assert names(alice, {"since": day}) == ["0 days", "2 days"]
    assert SessionFilters.read({"since": day}).query == f"since={day}"
    for nonsense in ("", "yesterday", "0001-01-01", "2026-13-01"):
        assert SessionFilters.read({"since": nonsense}).query == ""


@pytest.mark.parametrize("sort", SortName)
def test_api_has_the_sorts_of_the_page_in_both_directions(team: Team, alice: Actor, sort: SortName) -> None:
    make_varied(team, 12, random.Random(sort))
    client = sign_in("alice")
    for is_reversed in (False, True):
        asked, found, after = f"sessions?sort={sort}&reversed={is_reversed}&limit=5", list[str](), ""
        while after is not None:
            answer = ask(client, f"{asked}&after={after}")
            found += [session["external_id"] for session in answer["sessions"]]
            after = answer["after"]
        assert found == names(alice, {"sort": f"{sort}_reversed" if is_reversed else sort})
