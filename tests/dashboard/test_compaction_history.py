"""The page Compactions: what it lists, filters, sums, paging, exports, and its number of queries."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard import access
from dashboard.models import AgentSession, CompactionRun, ObservedCompaction, RunRevision, SavedView, Team
from dashboard.pages.compaction_filters import CompactionFilters
from dashboard.pages.compaction_history import list_history, parse_position
from dashboard.pages.compaction_totals import compute_totals
from tests.builders import make_session, make_team, make_user
from tests.session_rows import make_compactions, make_run
from tests.visitors import ask, count_queries, read, read_words, sign_in

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 16, 14, 30, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", viewer="vera")


def compact_at(session: AgentSession, ago: timedelta, **columns: Any) -> ObservedCompaction:
    return make_compactions(session, 1, at=NOW - ago, **columns)[0]


def run_at(session: AgentSession, ago: timedelta, percent: str | None = None, **columns: Any) -> CompactionRun:
    run = make_run(session, created_at=NOW - ago, **columns)
    if percent is not None:
        audit = {"version": 2, "parts": [], "lost_count": 4, "lost": []}
        RunRevision.objects.create(run=run, number=1, text="x", retained_percent=Decimal(percent), audit=audit)
    return run


def parse(team: Team, **query: str) -> CompactionFilters:
    return CompactionFilters.parse(query, team, zone=UTC, now=NOW)


def list_labels(team: Team, **query: str) -> list[str]:
    """Return the trigger and state of each row: every row of the fixture has its own."""
    page = list_history(access.person(make_user("alice")), parse(team, **query))
    return [f"{row.performer[0]}{row.id}" for row in page.rows]


@pytest.fixture
def rows(team: Team) -> dict[str, str]:
    """One row for each state that a filter tells apart; newest first by age."""
    web = make_session(team, "web-1", project="web", developer="mia")
    api = make_session(team, "api-1", project="api", developer="tom", is_claude_code=False)
    audit = {"version": 2, "parts": [], "lost_count": 3, "lost": []}
    observed = {
        "low": compact_at(web, 1 * DAY, retained_percent=Decimal("59.9"), is_mid_task=True, audit=audit),
        "middle": compact_at(web, 2 * DAY, retained_percent=Decimal(60), trigger="manual", is_mid_task=False),
        "high": compact_at(api, 3 * DAY, retained_percent=Decimal(80), restored=[{"kind": "file"}]),
        "unmeasured": compact_at(api, 4 * DAY, trigger=""),
        "micro": compact_at(web, 5 * DAY, kind="micro"),
        "failed": compact_at(web, 6 * DAY, kind="failed", failure="too long"),
        "old": compact_at(web, 40 * DAY, retained_percent=Decimal(40)),
    }
    runs = {
        "run": run_at(web, DAY / 2, "71.4"),
        "micro_run": run_at(web, 5.5 * DAY, kind="micro_size"),
        "failed_run": run_at(api, 6.5 * DAY, state="failed"),
    }
    other = make_session(make_team("Marina", owner="charlie"), "web-1", project="web")
    compact_at(other, DAY)
    run_at(other, DAY)
    return {name: f"c{row.pk}" for name, row in observed.items()} | {name: f"p{row.pk}" for name, row in runs.items()}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["run", "low", "middle", "high", "unmeasured"]),
        ({"kind": "all"}, [
            "run", "low", "middle", "high", "unmeasured", "micro", "micro_run", "failed", "failed_run",
        ]),
        ({"kind": "micro"}, ["micro", "micro_run"]),
        ({"kind": "failed"}, ["failed", "failed_run"]),
        ({"by": "client"}, ["low", "middle", "high", "unmeasured"]),
        ({"by": "plimsoll"}, ["run"]),
        ({"retained": "below_60"}, ["low"]),
        ({"retained": "60_to_80"}, ["run", "middle"]),
        ({"retained": "80_or_more"}, ["high"]),
        ({"retained": "not_measured"}, ["unmeasured"]),
        ({"trigger": "auto"}, ["low", "high"]),
        ({"trigger": "manual"}, ["run", "middle"]),
        ({"trigger": "unknown"}, ["unmeasured"]),
        ({"mid_task": "yes"}, ["low"]),
        ({"mid_task": "no"}, ["middle"]),
        ({"mid_task": "unknown"}, ["high", "unmeasured"]),
        ({"project": "api"}, ["high", "unmeasured"]),
        ({"developer": "mia"}, ["run", "low", "middle"]),
        ({"agent": "claude_code"}, ["run", "low", "middle"]),
        ({"agent": "other"}, ["high", "unmeasured"]),
        ({"days": "90"}, ["run", "low", "middle", "high", "unmeasured", "old"]),
        ({"from": "2026-11-14", "to": "2026-11-14"}, ["middle"]),
        ({"project": "api", "retained": "80_or_more", "by": "client"}, ["high"]),
        ({"retained": "everything", "by": "somebody", "kind": "odd"}, ["run", "low", "middle", "high", "unmeasured"]),
    ],
)  # fmt: skip
def test_filters_list_what_matches_and_totals_count_the_same(
    team: Team, rows: dict[str, str], query: dict[str, str], expected: list[str]
) -> None:
    assert list_labels(team, **query) == [rows[name] for name in expected]
    assert compute_totals(access.person(make_user("alice")), parse(team, **query)).total.count == len(expected)


@pytest.mark.usefixtures("rows")
def test_totals_are_of_the_period_and_the_one_before(team: Team) -> None:
    totals = compute_totals(access.person(make_user("alice")), parse(team))
    assert (totals.total.count, totals.total.own_count, totals.total.measured) == (5, 1, 4)
    assert totals.total.mean_percent == Decimal("66.6")  # of 59.9, 60 and 80: the run at 71.4 quotes
    own = compute_totals(access.person(make_user("alice")), parse(team, by="plimsoll"))
    assert own.total.mean_percent == Decimal("71.4")
    assert (totals.total.low_count, totals.total.mid_task_count) == (1, 1)
    assert (totals.before.count, totals.before.mean_percent) == (1, Decimal(40))
    by_day = {day.isoformat(): found.count for day, found in totals.days if found.count}
    assert by_day == {"2026-11-16": 1, "2026-11-15": 1, "2026-11-14": 1, "2026-11-13": 1, "2026-11-12": 1}
    assert len(totals.days) == 30


def test_pages_show_every_row_once_when_moments_are_equal(team: Team) -> None:
    session = make_session(team, "s")
    expected = {f"c{row.pk}" for row in make_compactions(session, 7, at=NOW - DAY)}
    expected |= {f"p{run_at(session, DAY).pk}" for _ in range(6)}
    expected |= {f"c{compact_at(session, 2 * DAY).pk}", f"p{run_at(session, 3 * DAY).pk}"}
    actor, filters = access.person(make_user("alice")), parse(team)
    seen: list[str] = []
    position = None
    for _ in range(20):
        page = list_history(actor, filters, before=position, size=2)
        seen += [f"{row.performer[0]}{row.id}" for row in page.rows]
        if page.next is None:
            break
        position = parse_position(str(page.next))
        assert position == page.next
    assert len(seen) == len(expected) == 15
    assert set(seen) == expected


@pytest.mark.parametrize("text", ["", "x", "c", "c~4", "q2026-11-16T14:30:00Z~4", "c2026-11-16T14:30:00Z~x"])
def test_malformed_position_is_the_first_page(team: Team, text: str) -> None:
    assert parse_position(text) is None
    assert sign_in("vera").get("/compactions/", {"before": text}).status_code == 200


def test_page_says_what_a_row_is(team: Team) -> None:
    session = make_session(team, "web-1", project="web & sons", developer="mia", title="Fix the login")
    now = timezone.now()
    audit = {"version": 2, "parts": [], "lost_count": 13, "lost": []}
    (compaction,) = make_compactions(
        session, 1, at=now - DAY, before_tokens=167_800, after_tokens=36_400, is_mid_task=True, restored=[{}, {}],
        retained_percent=Decimal("71.2"), audit=audit, duration_seconds=41.0,
    )  # fmt: skip
    run = make_run(session, created_at=now, after_origin="estimate", summarizer="claude", spent_usd=Decimal("0.31"))
    client = sign_in("vera")
    page = read(client, "/compactions/")
    assert f'href="/compactions/{compaction.pk}/"' in page
    assert f'href="/runs/{run.pk}/"' in page
    words = read_words(client, "/compactions/")
    assert "168k → 36k full auto mid-task ~71% 13 2 – 41.0 s" in words  # noqa: RUF001
    assert "150k → ~21k full manual not measured – – $0.31 –" in words  # noqa: RUF001
    assert "web & sons · mia" in words
    assert "Fix the login" not in words  # the viewer may not read content
    session.owner = make_user("alice")
    session.save()
    assert "Fix the login" in read_words(sign_in("alice"), "/compactions/")
    assert "By Plimsoll 1 runs beside the session" in words


def test_filters_in_force_are_chips_that_can_be_removed(team: Team) -> None:
    make_compactions(make_session(team, "s"), 1, at=timezone.now(), retained_percent=Decimal(50))
    page = read(sign_in("vera"), "/compactions/?retained=below_60&mid_task=unknown&days=7")
    assert 'aria-label="Remove the filter retained below 60%"' in page
    assert 'href="/compactions/?days=7&amp;mid_task=unknown"' in page
    assert '<option value="below_60" selected>below 60%</option>' in page


def test_empty_states_say_what_to_do(team: Team) -> None:
    client = sign_in("vera")
    assert "No compactions in this period" in read(client, "/compactions/")
    filtered = read(client, "/compactions/?project=nowhere")
    assert "No compaction matches" in filtered
    assert 'href="/compactions/"' in filtered.split("No compaction matches")[1]


def test_person_without_a_team_is_told_so(team: Team) -> None:
    make_user("loner")
    assert "Compactions belong to a team." in read(sign_in("loner"), "/compactions/")
    assert sign_in("loner").get(f"/compactions/?team={team.slug}").status_code == 404


def fetch(client: Client, url: str) -> bytes:
    return client.get(url).getvalue()


@pytest.mark.usefixtures("rows")
def test_exports_hold_the_rows_of_the_page(team: Team) -> None:
    client, query = sign_in("vera"), "from=2026-10-01&to=2026-11-17&kind=all"
    table = fetch(client, f"/compactions/?{query}&export=csv").decode("utf-8-sig")
    exported = [f"{row['by'][0]}{row['id']}" for row in csv.DictReader(io.StringIO(table))]
    assert exported == list_labels(team, **{"from": "2026-10-01", "to": "2026-11-17", "kind": "all"})
    assert len(exported) == 10
    answer = json.loads(fetch(client, f"/compactions/?{query}&retained=below_60&export=json"))
    assert [row["retained_percent"] for row in answer["rows"]] == [59.9, 40.0]
    assert [row["lost"] for row in answer["rows"]] == [3, None]
    assert answer["totals"]["compactions"] == 2


def test_view_can_be_saved_and_found_again(team: Team) -> None:
    client = sign_in("vera")
    read(client, "/compactions/")
    client.post("/views/compactions/save/", {"name": "Weak", "query": "retained=below_60&nonsense=1", "share": ""})
    view = SavedView.objects.get()
    assert view.query == f"team={team.slug}&retained=below_60"
    assert "Weak" in read(client, "/compactions/")


def spread(team: Team, count: int) -> None:
    now = timezone.now()
    audit = {"version": 2, "parts": [], "lost_count": 3, "lost": []}
    for number in range(count // 10):
        session = make_session(team, f"many-{number}", project=f"project-{number}", developer=f"dev-{number}")
        make_compactions(session, 10, at=now - timedelta(hours=number), retained_percent=Decimal(70), audit=audit)
        make_compactions(session, 1, at=now, kind="micro")
        run = make_run(session, created_at=now - timedelta(hours=number))
        RunRevision.objects.create(run=run, number=1, text="x", retained_percent=Decimal(60), audit=audit)


@pytest.mark.parametrize(
    "path",
    [
        "/compactions/",
        "/compactions/?kind=all&retained=60_to_80",
        "/compactions/?project=project-1",
        "/api/v1/compactions",
    ],
)
def test_number_of_queries_does_not_grow(team: Team, path: str) -> None:
    client = sign_in("vera")
    spread(team, 20)
    few = count_queries(client, path)
    assert few <= 17
    AgentSession.objects.filter(team=team).delete()
    spread(make_team("Later", owner="zoe"), 60)
    spread(team, 600)
    assert count_queries(client, path) == few


def test_api_has_the_same_filters(team: Team, rows: dict[str, str]) -> None:
    client = sign_in("vera")

    def list_ids(query: str) -> list[str]:
        return [f"c{item['id']}" for item in ask(client, f"compactions?{query}")["items"]]

    assert list_ids("retained_below=60&since=2026-11-01T00:00:00Z") == [rows["low"]]
    assert list_ids("retained_from=60&retained_below=80") == [rows["middle"]]
    assert list_ids("project=api&kind=full") == [rows["high"], rows["unmeasured"]]
    assert list_ids("developer=mia&trigger=manual") == [rows["middle"]]
    assert list_ids("is_mid_task=true") == [rows["low"]]
    assert list_ids("until=2026-11-01T00:00:00Z") == [rows["old"]]
    assert client.get("/api/v1/compactions?retained_from=101").status_code == 422


def test_overview_titles_the_newest_with_what_they_lost(team: Team) -> None:
    session = make_session(team, "web-1")
    audit = {"version": 2, "parts": [], "lost_count": 3, "lost": []}
    compact_at(session, 2 * DAY, before_tokens=168_274, after_tokens=36_021, audit=audit)
    compact_at(session, 3 * DAY, before_tokens=168_274, after_tokens=36_021)
    run_at(session, DAY, "71.4", before_tokens=150_000, after_tokens=40_000, finished_at=NOW - DAY)
    page = read(sign_in("vera"), "/")
    newest = page[page.index('id="newest-compactions"') :].split("</div>")[0]
    titles = [line.split("</a>")[0].rsplit(">", 1)[1] for line in newest.split("<li>")[1:]]
    assert [title.replace("~", "") for title in titles] == [
        "Compacted 150k to 40k: 4 things lost",
        "Compacted 168k to 36k: 3 things lost",
        "Compacted 168k to 36k: losses not measured",
    ]
    assert 'href="/compactions/?team=harbour">View all compactions</a>' in page
