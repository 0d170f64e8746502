"""The sessions page, the overview and their endpoints: page and fragment, people, days, numbers of queries."""

import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from dashboard import access
from dashboard.api.answers import PlainEncoder
from dashboard.api.sessions import SessionOut
from dashboard.client.client_wishes import find_program
from dashboard.models import AgentSession, CacheBreak, Membership, ObservedCompaction, Scope, SessionHour, Team
from dashboard.pages.fleet import count_fleet
from dashboard.person_zone import find_zone
from tests.builders import make_key, make_many_sessions, make_session, make_team, make_user

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"
PAYLOAD = "<script>alert('x')</script>"


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice", member="mia", viewer="vera")
    Membership.objects.filter(user__username="alice").update(content_grant=True)
    return team


def enter(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name), backend=BACKEND)
    return client


def read(client: Client, url: str, **headers: str) -> str:
    answer = client.get(url, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def ask(client: Client, path: str) -> Any:
    return client.get(f"/api/v1/{path}").json()


def fill(team: Team, count: int) -> None:
    """Sessions with a break, a compaction and an hour each."""
    sessions = make_many_sessions(team, count, title="Fix login", break_count=1, level="warning", level_rank=2)
    now = timezone.now()
    CacheBreak.objects.bulk_create(
        CacheBreak(team=team, session=s, call_id="c", call_number=1, kind="break", at=s.last_at, cause="tools_changed",
                   recreated_tokens=9_000)
        for s in sessions
    )  # fmt: skip
    ObservedCompaction.objects.bulk_create(
        ObservedCompaction(team=team, session=s, entry_uuid="e", kind="full", at=s.last_at, trigger="auto")
        for s in sessions
    )
    SessionHour.objects.bulk_create(
        SessionHour(team=team, session=s, hour_at=now.replace(minute=0, second=0, microsecond=0), spent_usd=1)
        for s in sessions
    )


# --- the list --------------------------------------------------------------------------------------------------------


def test_title_is_shown_to_readers_of_content_alone(team: Team) -> None:
    make_session(team, "0123456789abcdef", title="Fix secret merger", project="web")
    assert "Fix secret merger" in read(enter("alice"), "/sessions/")
    for path in ("/sessions/", "/"):
        page = read(enter("vera"), path)
        assert "merger" not in page
        assert ">01234567</a>" in page


def test_fragment_is_the_part_that_changes(team: Team) -> None:
    make_session(team, "one")
    client = enter("alice")
    asked = {"hx-request": "true", "hx-target": "session-list"}
    answer = client.get("/sessions/?text=&sort=risk&level=", headers=asked)
    part = answer.content.decode()
    assert "<table" in part
    assert "session-filters" not in part
    assert answer.headers["HX-Push-Url"] == "/sessions/?sort=risk"
    assert "HX-Request" in answer.headers["Vary"]
    whole = read(client, "/sessions/", **{"hx-request": "true", "hx-target": "sessions"})
    assert "session-filters" in whole
    assert "<html" not in whole
    # The history of the browser asks for a whole page.
    assert "<html" in read(client, "/sessions/", **asked, **{"hx-history-restore-request": "true"})


def test_pages_lead_on_and_back_with_their_filters(team: Team) -> None:
    make_many_sessions(team, 120, project="a&b")
    client = enter("alice")
    first = read(client, "/sessions/?project=a%26b&sort=spend")
    assert first.count("<tr data-session") == 50
    assert 'rel="prev"' not in first
    following = first.split('rel="next" href="')[1].split('"')[0].replace("&amp;", "&")
    assert following.startswith("/sessions/?project=a%26b&sort=spend&after=")
    second = read(client, following)
    back = second.split('rel="prev" href="')[1].split('"')[0].replace("&amp;", "&")
    assert read(client, back).count("<tr data-session") == 50
    assert read(client, "/sessions/?after=nonsense").count("<tr data-session") == 50


def test_text_of_people_is_text(team: Team) -> None:
    make_session(
        team, PAYLOAD, title=PAYLOAD, project=PAYLOAD, branch=PAYLOAD, developer=PAYLOAD, model=PAYLOAD,
        client_version=PAYLOAD[:20],
    )  # fmt: skip
    for path in ("/", "/sessions/", "/sessions/", f"/sessions/?text={PAYLOAD}&project={PAYLOAD}"):
        page = read(enter("alice"), path)
        assert PAYLOAD not in page
        assert "&lt;script&gt;" in page


def test_empty_lists_say_why(team: Team) -> None:
    client = enter("alice")
    assert "No sessions yet" in read(client, "/sessions/")
    make_session(team, "one", title="Fix login")
    assert "No matching sessions" in read(client, "/sessions/?text=nowhere")
    assert "Titles are only searched in sessions" in read(client, "/sessions/?text=nowhere")
    assert "Type at least 3 characters" in read(client, "/sessions/?text=no")


def test_team_of_others_does_not_exist(team: Team) -> None:
    make_team("Marina", owner="charlie")
    assert enter("alice").get("/sessions/?team=marina").status_code == 404
    assert enter("alice").get("/sessions/?team=harbour").status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        "/sessions/",
        "/sessions/?sort=risk&breaks=yes",
        "/sessions/?text=login&sort=lost",
        "/",
        "/api/v1/sessions",
        "/api/v1/overview",
    ],
)
def test_many_sessions_cost_no_more_queries(team: Team, url: str) -> None:
    client, counts = enter("alice"), []
    for number in (10, 1000):
        AgentSession.objects.all().delete()
        fill(team, number)
        read(client, url)
        cache.clear()  # what is remembered for seconds is asked again both times
        with CaptureQueriesContext(connection) as asked:
            read(client, url)
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 24


# --- the overview ----------------------------------------------------------------------------------------------------


def read_tile(page: str, label: str) -> tuple[str, str]:
    """Its figure, and what stands below it."""
    figure, detail = re.findall(r">([^<]+)</span>", page.split(f">{label}: </span>")[1])[:2]
    return figure, detail


def test_overview_counts_and_links(team: Team, settings: Settings) -> None:
    now = timezone.now()
    fill(team, 3)
    make_session(team, "ancient", last_at=now - timedelta(days=9), level="blocking", level_rank=5, percent_left=0)
    page = read(enter("alice"), "/")
    assert "Sessions by risk" in page
    for tile in (
        "Live sessions",
        "Over a threshold",
        "Spend today",
        "Lost to cache breaks today",
        "Cache hit rate today",
    ):
        assert tile in page
    assert read_tile(page, "Over a threshold") == ("3", "in the last 24 hours")
    assert '<span class="figure bad">3</span>' in page
    assert "The highest threshold the context has reached." in page.split('id="tiles"')[1].split("</ul>")[0]
    assert 'href="/sessions/?team=harbour&amp;level=above&amp;active=day&amp;sort=risk"' in page
    assert page.count("The tools changed") == 3
    for pk in CacheBreak.objects.values_list("pk", flat=True):
        assert f'href="/breaks/{pk}/"' in page
    assert "ancient" not in page.split("Sessions by risk")[1].split("View all sessions")[0]


def test_loss_of_today_leads_to_the_ledger_of_today(team: Team) -> None:
    fill(team, 1)
    client = enter("alice")
    page = read(client, "/")
    link = page.split(">Lost to cache breaks today: <")[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
    named = re.fullmatch(r"/breaks/\?team=harbour&from=([\d-]{10})&to=\1", link)
    assert named
    assert named[1] in read(client, link)


def make_hour(session: AgentSession, **columns: object) -> None:
    hour_at = timezone.now().replace(minute=0, second=0, microsecond=0)
    SessionHour.objects.create(team=session.team, session=session, hour_at=hour_at, **columns)


def test_day_without_any_price_is_not_told_as_free(team: Team) -> None:
    strange = make_session(team, "strange", call_count=3, unpriced_count=3)
    make_hour(strange, input_tokens=900)
    client = enter("alice")
    page = read(client, "/")
    for label in ("Spend today", "Lost to cache breaks today"):
        assert read_tile(page, label) == ("unknown", "no price")
    assert re.search(r"Unknown, because the models have no price: [\d-]{10}\.", page)
    told = ask(client, "overview")
    assert (told["spent_today_usd"], told["lost_today_usd"], told["has_unpriced_today"]) == (None, None, True)
    assert (told["days"][-1]["spent_usd"], told["days"][0]["spent_usd"]) == (None, "0")
    make_hour(make_session(team, "known", call_count=1), input_tokens=100, spent_usd=2)
    assert read_tile(read(client, "/"), "Spend today") == ("$2.00", "list price, some calls unpriced")
    strange.delete()
    assert read_tile(read(client, "/"), "Spend today") == ("$2.00", "list price")


def test_session_that_ended_is_not_live(team: Team) -> None:
    now = timezone.now()
    make_session(team, "working", last_at=now)
    make_session(team, "ended", last_at=now, ended_at=now)
    make_session(team, "resumed", last_at=now, ended_at=now - timedelta(minutes=1))
    make_session(team, "silent", last_at=now - timedelta(minutes=6))
    client = enter("alice")
    assert ask(client, "overview")["live"] == 2
    listed = {row["external_id"]: row["state"] for row in ask(client, "sessions?active=live")["sessions"]}
    assert listed == {"working": "live", "resumed": "live"}
    assert read_tile(read(client, "/"), "Live sessions")[0] == "2"


def test_live_sessions_are_found_without_reading_every_session(team: Team) -> None:
    now = timezone.now()
    make_many_sessions(team, 300, last_at=lambda number: now - timedelta(hours=number))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with CaptureQueriesContext(connection) as asked:
        assert count_fleet(access.person(make_user("alice")), team, now=now, zone=UTC).live_count == 1
    if connection.vendor == "sqlite":
        query = next(one["sql"] for one in asked.captured_queries if "ended_at" in one["sql"])
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {query}")
            assert "session_by_activity (team_id=? AND last_at>?)" in str(cursor.fetchall())


def test_overview_shows_the_latest_when_nothing_is_recent(team: Team) -> None:
    make_session(team, "old", title="Fix login", last_at=timezone.now() - timedelta(days=9))
    page = read(enter("alice"), "/")
    assert "Latest sessions" in page
    assert "Fix login" in page
    assert "No cache breaks yet, apart from minor ones." in page


def test_overview_leaves_minor_breaks_to_the_ledger(team: Team) -> None:
    session = make_session(team, "s", last_at=timezone.now())
    figures = [(50_000, "0.30"), (50_000, None), (2_000, "0.05"), (1_999, "0.30"), (50_000, "0.03")]
    kept, unpriced, least, *minor = [
        CacheBreak.objects.create(
            team=team, session=session, call_id=f"c{number}", call_number=number, kind="break", cause="tools_changed",
            grade="request", at=session.last_at, expected_tokens=60_000, lost_tokens=tokens, recreated_tokens=tokens,
            lost_usd=None if usd is None else Decimal(usd),
        )
        for number, (tokens, usd) in enumerate(figures)
    ]  # fmt: skip
    newest = read(enter("alice"), "/").split('id="newest-breaks"')[1].split("</ul>")[0]
    assert all(f"/breaks/{each.pk}/" in newest for each in (kept, unpriced, least))
    assert not any(f"/breaks/{each.pk}/" in newest for each in minor)
    CacheBreak.objects.exclude(pk__in=[each.pk for each in minor]).delete()
    assert "No cache breaks yet, apart from minor ones." in read(enter("alice"), "/")


def test_empty_overview_tells_the_ways_in(team: Team, settings: Settings) -> None:
    settings.LOCAL_MODE = True
    page = read(enter("alice"), "/")
    assert f"{shlex.join(find_program())} import ~/.claude" in page
    assert "Follow this machine" in page
    assert 'href="/upload/"' in page
    settings.LOCAL_MODE = False
    assert "Follow this machine" not in read(enter("alice"), "/")
    assert "plimsoll import ~/.claude" not in read(enter("vera"), "/")


@pytest.mark.parametrize(
    ("zone", "today", "yesterday"),
    [("UTC", 1, 2), ("Asia/Tokyo", 3, 0), ("America/New_York", 3, 0), ("Asia/Kolkata", 2, 1)],
)
def test_days_are_those_of_the_zone(team: Team, zone: str, today: int, yesterday: int) -> None:
    """02:30 UTC: hours at 01, 23 and 16 o'clock."""
    now = datetime(2026, 5, 10, 2, 30, tzinfo=UTC)
    session = make_session(team, "one", last_at=now)
    for back in (1, 3, 10):
        hour_at = now.replace(minute=0) - timedelta(hours=back)
        SessionHour.objects.create(
            team=team, session=session, hour_at=hour_at, spent_usd=1, lost_usd=Decimal("0.5"), input_tokens=200,
            read_tokens=150,
        )  # fmt: skip
    found = find_zone(zone)
    assert found is not None
    numbers = count_fleet(access.person(make_user("alice")), team, now=now, zone=found)
    assert len(numbers.days) == 14
    assert (numbers.days[-1].spend_usd, numbers.days[-2].spend_usd) == (Decimal(today), Decimal(yesterday))
    assert numbers.spent_today_usd == today
    assert numbers.lost_today_usd == Decimal(today) / 2
    assert numbers.hit_rate_today == (0.75 if today else None)


def test_zone_comes_from_the_browser(team: Team) -> None:
    make_session(team, "one")
    client = enter("alice")
    for cookie, shown in (
        ("Asia/Tokyo", "Asia/Tokyo"),
        ("Europe", "UTC"),
        ("../../etc/passwd", "UTC"),
        ("x" * 99, "UTC"),
    ):
        client.cookies["plimsoll_zone"] = cookie
        assert f"today in {shown}" in read(client, "/")


# --- the API ---------------------------------------------------------------------------------------------------------


def test_api_lists_what_the_page_lists(team: Team) -> None:
    make_many_sessions(team, 7, title="Fix login", project="web", level="warning", level_rank=2, percent_left=9)
    client, seen, url = enter("alice"), [], "/api/v1/sessions?limit=3&level=above&text=login&sort=risk"
    place = ""
    while True:
        answer = client.get(f"{url}&after={place}" if place else url).json()
        seen += [session["external_id"] for session in answer["sessions"]]
        place = answer["after"]
        if not place:
            break
    assert sorted(seen) == [f"harbour-{number:05}" for number in range(7)]
    assert answer["before"]
    one = client.get("/api/v1/sessions?limit=1").json()["sessions"][0]
    assert (one["title"], one["team"], one["state"], one["project"]) == ("Fix login", "harbour", "live", "web")
    assert enter("vera").get("/api/v1/sessions?limit=1").json()["sessions"][0]["title"] is None


def test_api_list_holds_exactly_what_its_schema_says(team: Team) -> None:
    fill(team, 3)
    make_session(team, "bare")
    response = enter("alice").get("/api/v1/sessions")
    assert response["content-type"] == "application/json; charset=utf-8"
    sessions = response.json()["sessions"]
    assert len(sessions) == 4
    for session in sessions:
        assert session.keys() == SessionOut.model_fields.keys()
        written = json.dumps(SessionOut.model_validate(session).model_dump(), cls=PlainEncoder)
        assert json.loads(written) == session


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("sort=colour", 422), ("level=purple", 422), ("active=never", 422), ("after=x", 422), ("limit=0", 422),
        ("limit=5000", 422), ("projet=web", 422), ("text=ab", 422), ("team=marina", 404), ("team=harbour", 200),
        ("project=%00x", 200), ("before=1.2", 200),
    ],
)  # fmt: skip
def test_api_refuses_what_it_does_not_know(team: Team, query: str, status: int) -> None:
    make_team("Marina", owner="charlie")
    assert enter("alice").get(f"/api/v1/sessions?{query}").status_code == status


def test_api_tells_the_overview(team: Team) -> None:
    fill(team, 2)
    answer = enter("alice").get("/api/v1/overview?zone=Europe/Berlin").json()
    assert (answer["team"], answer["live"], answer["above_a_line"]) == ("harbour", 2, 2)
    assert len(answer["days"]) == 14
    assert Decimal(answer["spent_today_usd"]) == 2
    assert enter("alice").get("/api/v1/overview?zone=Mars").status_code == 422
    assert enter("alice").get("/api/v1/overview?team=marina").status_code == 404
    make_team("Marina", owner="alice")
    assert enter("alice").get("/api/v1/overview").status_code == 422
    assert enter("alice").get("/api/v1/overview?team=marina").json()["live"] == 0


def test_api_key_sees_its_team_alone(team: Team) -> None:
    marina = make_team("Marina", owner="alice")
    make_session(team, "ours")
    make_session(marina, "theirs")
    _, text = make_key(team, make_user("alice"), Scope.READ)
    answer = Client().get("/api/v1/sessions", headers={"authorization": f"Bearer {text}"}).json()
    assert [session["external_id"] for session in answer["sessions"]] == ["ours"]
