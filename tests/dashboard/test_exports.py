"""Lists as files: the rows, sums and rights of their pages, cells that no spreadsheet works out, and pieces."""

import asyncio
import csv
import io
import json
import re
import time
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import AsyncRequestFactory, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dashboard import access
from dashboard.accounts import audit
from dashboard.exports.formats import PIECE_ROWS, Format, guard_text, spell_cell, write_csv, write_json
from dashboard.exports.tables import ExportTable
from dashboard.jobs.perform import perform_due
from dashboard.models import (
    AgentSession,
    ApiCall,
    AuditAction,
    CacheBreak,
    Drop,
    Job,
    JobState,
    Membership,
    ObservedCompaction,
    Team,
)
from dashboard.runs.choices import RunChoices
from dashboard.runs.start import start_run
from dashboard.views.exports import send_export
from tests.builders import make_many_sessions, make_session, make_team, make_user
from tests.recorded_talk import RecordedTalk, record_talk, write_recorded_talk
from tests.session_rows import make_breaks, make_compactions, make_run
from tests.visitors import ask, read, sign_in

pytestmark = pytest.mark.django_db
SIGNS = "=+@＝＋－＠\\-"  # noqa: RUF001
FORMULA = '=HYPERLINK("http://evil.example","x")'


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", admin="anna", viewer="vera")


def fetch(client: Client, url: str) -> StreamingHttpResponse:
    answer = client.get(url)
    assert answer.status_code == 200, (url, answer.status_code)
    assert isinstance(answer, StreamingHttpResponse)
    return answer


def open_csv(client: Client, url: str) -> list[dict[str, str]]:
    """As a spreadsheet opens it."""
    answer = fetch(client, f"{url}{'&' if '?' in url else '?'}export=csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="plimsoll-')
    assert answer.headers["Cache-Control"] == "private, no-store"
    text = b"".join(answer).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def open_json(client: Client, url: str) -> Any:
    return json.loads(b"".join(fetch(client, f"{url}{'&' if '?' in url else '?'}export=json")))


@pytest.mark.parametrize(
    ("cell", "spelt"),
    [
        (FORMULA, f"'{FORMULA}"),
        ("+1", "'+1"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("  =1", "'  =1"),
        ("＝1", "'＝1"),  # noqa: RUF001
        ("plain = text", "plain = text"),
        ("", ""),
        (None, ""),
        (-3, "-3"),
        (-0.5, "-0.5"),
        (Decimal("-0.00000012"), "-0.00000012"),
        (True, "yes"),
        (datetime(2026, 11, 2, 9, 0, tzinfo=UTC), "2026-11-02 09:00:00"),
        (date(2026, 11, 2), "2026-11-02"),
    ],
)
def test_numbers_stay_numbers_and_formulas_become_text(cell: Any, spelt: str) -> None:
    assert spell_cell(cell) == spelt


HOSTILE = st.text("=+-@;,|\t\r\n\"' ax1\u2028\x85", max_size=8)


@given(HOSTILE | st.text())
def test_no_text_begins_like_a_formula(text: str) -> None:
    guarded = guard_text(text)
    assert not guarded.lstrip().startswith(("=", "+", "-", "@"))
    assert not guarded.startswith(("\t", "\r", "\n"))


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("a;=1+cmd", "a;'=1+cmd"),
        ("a\t@SUM(1)", "a\t'@SUM(1)"),
        ('a;"=1+cmd"', 'a;\'"=1+cmd"'),
        ("a; \n+1", "a;' \n'+1"),
        ("two, -v", "two,' -v"),
        ("a;\tb", "a;'\tb"),
        ("'=1", "''=1"),
        ("a,b;", "a,b;'"),
        ("a = b; c - d, e@f", "a = b; c - d, e@f"),
        ("two\r\n\r\nlines; and\tthree", "two\r\n\r\nlines; and\tthree"),
    ],
)
def test_formula_after_a_separator_becomes_text(text: str, guarded: str) -> None:
    assert guard_text(text) == guarded


@given(st.lists(st.tuples(HOSTILE, st.integers(), HOSTILE), min_size=1, max_size=3))
@example([("a;=1+cmd|' /C calc'!A0", -1, 'b,"\t+1')])
@settings(max_examples=500)
def test_no_program_finds_a_formula_whatever_it_splits_at(rows: list[tuple[str, int, str]]) -> None:
    written = b"".join(write_csv(ExportTable("things", ("a", "b", "c"), rows))).decode("utf-8-sig")
    for delimiter in ";\t|":
        for row in csv.reader(io.StringIO(written, newline=""), delimiter=delimiter):
            for cell in row:
                assert not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r")), (delimiter, written)
        for cell in re.split(rf"[{delimiter}\r\n]", written):  # without a thought for quotes
            assert not cell.lstrip(' "').startswith(("=", "+", "-", "@")), (delimiter, written)
    read_again = list(csv.reader(io.StringIO(written, newline="")))[1:]
    assert [(restore(row[0]), int(row[1]), restore(row[2])) for row in read_again] == rows


def restore(text: str) -> str:
    """Take away the apostrophes that guard_text puts in."""
    gap = re.compile(r"[;,|\s\"']+")

    def unguard(found: re.Match[str]) -> str:
        is_formula = re.match(f"[{SIGNS}]", text[found.end() :])
        is_end = found.end() == len(text)
        behind = "" if is_formula else r"(?=['\" ]*\t|'*\Z)" if is_end else r"(?=['\" ]*\t)"
        return re.sub(rf"(?<=[;,|\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029])'{behind}", "", found[0])

    start = re.match(rf"'(?=[\s\"']*[{SIGNS}]|['\" ]*[\t\r\n])", text)
    return gap.sub(unguard, text)[1 if start else 0 :]


def test_long_text_is_guarded_in_time_in_proportion_to_it() -> None:
    for text in ("\n" * 1_000_000, "; " * 500_000, "'\t" * 500_000, ";" + "'" * 1_000_000):
        began = time.monotonic()
        guard_text(text)
        assert time.monotonic() - began < 20  # less than a second on a quiet machine


def test_what_is_written_is_read_again() -> None:
    texts = ('say "no"', "a,b;c", "two\nlines\r\n", "=1", "naïve ☂", "'quoted", "\u2028", "")
    rows = [(text, number - 3) for number, text in enumerate(texts)]
    table = ExportTable("things", ("name", "count"), rows)
    text = b"".join(write_csv(table)).decode("utf-8-sig")
    assert [(row[0], int(row[1])) for row in list(csv.reader(io.StringIO(text, newline="")))[1:]] == [
        (guard_text(name), count) for name, count in rows
    ]
    told = json.loads(b"".join(write_json(table)))
    assert [(row["name"], row["count"]) for row in told["rows"]] == rows
    assert json.loads(b"".join(write_json(ExportTable("none", ("name",), [])))) == {"list": "none", "rows": []}


def test_pieces_are_sent_while_the_rows_are_read() -> None:
    asked: list[int] = []

    def count() -> Any:
        for number in range(10 * PIECE_ROWS):
            asked.append(number)
            yield (number,)

    pieces = write_csv(ExportTable("numbers", ("number",), count()))
    next(pieces)
    next(pieces)
    assert len(asked) == PIECE_ROWS


def test_server_reads_rows_piece_by_piece() -> None:
    """Under ASGI Django would read a plain iterator to its end before the first byte."""
    request = AsyncRequestFactory().get("/sessions/")
    assert isinstance(request, ASGIRequest)
    answer = send_export(request, ExportTable("numbers", ("number",), [(1,), (2,)]), Format.CSV)
    assert answer.is_async

    async def gather(parts: AsyncIterator[bytes]) -> bytes:
        return b"".join([part async for part in parts])

    assert asyncio.run(gather(aiter(answer))) == "\ufeffnumber\r\n1\r\n2\r\n".encode()


def fill_sessions(team: Team, count: int) -> None:
    make_many_sessions(
        team, count, title=FORMULA, project=lambda number: "web" if number % 2 else "-api", developer="mia",
        spent_usd=lambda number: Decimal(number) / 100, break_count=lambda number: number % 3, call_count=1,
    )  # fmt: skip


def test_sessions_are_exported_all_and_as_filtered(team: Team) -> None:
    fill_sessions(team, 1203)
    client = sign_in("vera")
    rows = open_csv(client, "/sessions/")
    assert [int(row["id"]) for row in rows] == list(
        AgentSession.objects.order_by("-last_at", "-id").values_list("pk", flat=True)
    )
    assert sum(Decimal(row["spent_usd"]) for row in rows) == sum(Decimal(number) / 100 for number in range(1203))
    assert {row["title"] for row in rows} == {""}  # content, and vera has no grant
    assert {row["project"] for row in rows} == {"web", "'-api"}
    web = open_json(client, "/sessions/?project=web&breaks=yes&sort=spend&after=1.2")["rows"]
    assert len(web) == len([number for number in range(1203) if number % 2 and number % 3])
    assert [row["spent_usd"] for row in web] == sorted((row["spent_usd"] for row in web), reverse=True)
    Membership.objects.filter(user=make_user("vera")).update(content_grant=True)
    assert {row["title"] for row in open_csv(client, "/sessions/?project=web")} == {f"'{FORMULA}"}
    assert {row["title"] for row in open_json(client, "/sessions/?project=web")["rows"]} == {FORMULA}


def test_ledger_and_its_export_have_the_same_totals(team: Team) -> None:
    now = timezone.now()
    for number in range(6):
        session = make_session(team, f"s-{number}", project=f"project-{number % 3}", developer="=mia")
        make_breaks(session, 130, at=now - timedelta(days=number), lost_usd=Decimal("0.00123"), cause="tools_changed",
                    is_avoidable=bool(number % 2))  # fmt: skip
        make_breaks(session, 2, at=now, is_counted=False)
        make_breaks(session, 1, at=now, lost_usd=None)
    client = sign_in("vera")
    told = ask(client, "breaks/ledger?days=7")["total"]
    for query in ("?days=7", "?days=7&project=project-1", "?days=7&avoidable=yes&by=project"):
        rows = open_csv(client, f"/breaks/{query}")
        listed = open_json(client, f"/breaks/{query}")
        groups = open_csv(client, f"/breaks/{query}&part=groups")
        totals = open_json(client, f"/breaks/{query}&part=groups")["totals"]
        assert listed["totals"] == totals
        assert len(rows) == totals["breaks"] == sum(int(group["breaks"]) for group in groups)
        lost = sum(Decimal(row["lost_usd"] or 0) for row in rows)
        assert lost == Decimal(str(totals["lost_usd"])) == sum(Decimal(group["lost_usd"]) for group in groups)
        if query == "?days=7":
            assert (totals["breaks"], lost) == (told["breaks"], Decimal(told["lost_usd"]))
            assert f">{totals['breaks']:,}<" in read(client, f"/breaks/{query}")
    assert {row["developer"] for row in open_csv(client, "/breaks/")} == {"'=mia"}


def test_lists_of_a_session_are_exported(team: Team) -> None:
    session = make_session(team, "s")
    make_breaks(session, 3)
    make_breaks(session, 2, kind="expected")
    make_compactions(session, 2)
    make_compactions(session, 1, kind="micro")
    runs = [make_run(session) for _ in range(30)]
    client, address = sign_in("vera"), f"/sessions/{session.pk}"
    assert [row["kind"] for row in open_csv(client, f"{address}/breaks/")].count("break") == 3
    assert len(open_json(client, f"{address}/breaks/")["rows"]) == 5
    assert sorted(row["kind"] for row in open_csv(client, f"{address}/compactions/")) == ["full", "full", "micro"]
    listed = [int(row["id"]) for row in open_csv(client, f"{address}/compactions/?part=runs")]
    assert listed == [run.pk for run in reversed(runs)]


def test_calls_are_exported_with_what_they_lost(team: Team) -> None:
    session = make_session(team, "s")
    ApiCall.objects.bulk_create(
        ApiCall(
            team=team, session=session, agent_id=agent, number=number, call_id=f"{agent}s-{number}",
            at=timezone.now(), cost_usd=Decimal("0.1"),
        )
        for agent in ("", "a1")
        for number in range(1, 601)
    )  # fmt: skip
    make_breaks(session, 1, cause="tools_changed")
    rows = open_csv(sign_in("vera"), f"/sessions/{session.pk}/")
    assert len(rows) == 1200
    assert [row["cause"] for row in rows if row["cause"]] == ["The tools changed."]
    assert sum(Decimal(row["cost_usd"]) for row in rows) == 120


def test_lists_of_admins_are_exported_for_them_alone(team: Team) -> None:
    alice = make_user("alice")
    for _ in range(3):
        audit.note(team, AuditAction.TEAM_RENAMED, by=alice, subject="@Quay")
    Job.objects.create(kind="forget_expired", team=team, key="1", state=JobState.DEAD, last_error="=1+1")
    Job.objects.create(kind="forget_expired", team=team, key="2", state=JobState.DONE)
    Drop.objects.create(team=team, source="otlp", reason="-too old", count=7)
    owner, viewer = sign_in("alice"), sign_in("vera")
    assert [row["whom_or_which"] for row in open_csv(owner, "/teams/harbour/audit/")] == ["'@Quay"] * 3
    assert [row["last_error"] for row in open_csv(owner, "/jobs/?state=dead")] == ["'=1+1"]
    assert len(open_json(owner, "/jobs/")["rows"]) == 2
    assert open_json(owner, "/health/")["rows"][0] | {"last_at": ""} == {
        "not_kept": "-too old", "count": 7, "way_in": "otlp", "team": "harbour", "last_at": "", "where": "",
    }  # fmt: skip
    for url in ("/teams/harbour/audit/", "/jobs/", "/health/"):
        assert viewer.get(f"{url}?export=csv").status_code == 403


def test_outsider_exports_nothing_of_the_team(team: Team) -> None:
    session = make_session(team, "s")
    make_breaks(session, 3, at=timezone.now())
    make_team("Marina", owner="charlie")
    stranger = sign_in("charlie")
    for url in (
        "/sessions/?team=harbour",
        "/breaks/?team=harbour",
        f"/sessions/{session.pk}/",
        "/teams/harbour/audit/",
    ):
        answer = stranger.get(f"{url}{'&' if '?' in url else '?'}export=json")
        assert answer.status_code == 404, url
    assert open_csv(stranger, "/sessions/") == []
    assert open_json(stranger, "/breaks/")["rows"] == []
    assert Client().get("/sessions/?export=csv").status_code == 302


def test_queries_grow_with_batches_not_with_rows(team: Team) -> None:
    client = sign_in("vera")
    session = make_session(team, "s")
    make_breaks(session, 10, at=timezone.now())

    def count(url: str) -> int:
        open_csv(client, url)  # the session remembers its team with the first visit
        with CaptureQueriesContext(connection) as queries:
            open_csv(client, url)
        return len(queries)

    few = {url: count(url) for url in ("/breaks/", "/sessions/", f"/sessions/{session.pk}/breaks/")}
    make_breaks(session, 480, at=timezone.now())
    make_many_sessions(team, 480)
    assert {url: count(url) for url in few} == few
    assert CacheBreak.objects.count() == 490


def test_lists_name_their_session_by_its_ids(team: Team) -> None:
    session = make_session(team, "s-external", title="Fix login", owner=make_user("anna"))
    make_breaks(session, 1, at=timezone.now())
    make_compactions(session, 1)
    make_run(session)
    for name, told in (("vera", "s-external"), ("anna", "Fix login")):
        client, address = sign_in(name), f"/sessions/{session.pk}"
        lists = ("/breaks/", f"{address}/breaks/", f"{address}/compactions/", f"{address}/compactions/?part=runs")
        for url in lists:
            (row,) = open_csv(client, url)
            named = (row["session_id"], row["external_id"], row["session"])
            assert named == (str(session.pk), "s-external", told), url


def test_comparison_is_exported_as_it_stands(team: Team) -> None:
    first = make_session(team, "one", title="=1+1", owner=make_user("anna"), break_count=2, call_count=4)
    second = make_session(team, "two", break_count=1, call_count=4)
    url = f"/compare/?first={first.pk}&second={second.pk}"
    rows = {row["figure"]: row for row in open_csv(sign_in("vera"), url)}
    breaks = rows["breaks"]
    assert (breaks["first"], breaks["first_figure"], breaks["second_figure"]) == ("one", "2", "1")
    assert (breaks["difference"], breaks["change"], breaks["verdict"]) == ("-1", "-0.5", "")
    rate = rows["break_rate"]
    assert (rate["first_figure"], rate["second_figure"], rate["verdict"]) == ("50.0", "25.0", "better")
    assert {row["first"] for row in open_csv(sign_in("anna"), url)} == {"'=1+1"}
    periods = open_json(sign_in("vera"), "/compare/?team=harbour")["rows"]
    assert {"spent_usd", "sessions"} <= {row["figure"] for row in periods}
    make_team("Marina", owner="charlie")
    assert sign_in("charlie").get(f"{url}&export=csv").status_code == 404


def test_context_and_losses_are_exported_by_right(team: Team) -> None:
    reading = RecordedTalk("reading")
    reading.ask("Draw the harbour chart.")
    for number in (1, 2):
        reading.read_file(f"toolu_{number}", "/home/ann/chart.py", at_call=f"reading-{number}", read=0, written=9_000)
    read_twice = record_talk(team, make_user("anna"), reading)
    session = record_talk(team, make_user("anna"), write_recorded_talk())
    owner, viewer = sign_in("anna"), sign_in("vera")
    address = f"/sessions/{read_twice.pk}/context/"
    parts = open_csv(viewer, address)
    assert parts
    assert open_csv(owner, address) == parts
    for part in ("files", "twice", "largest"):
        url = f"{address}?part={part}"
        files = [row["file"] for row in open_csv(owner, url)]
        assert any(files), part
        assert not any(row["file"] for row in open_csv(viewer, url)), part
    compaction = ObservedCompaction.objects.filter(session=session, kind="full").order_by("pk")[0]
    lost = open_json(owner, f"/compactions/{compaction.pk}/")
    assert "Never touch the lighthouse module." in {row["text"] for row in lost["rows"]}
    assert lost["totals"]["lost"] >= len(lost["rows"])
    withheld = open_json(viewer, f"/compactions/{compaction.pk}/")
    assert (withheld["rows"], withheld["totals"]) == ([], lost["totals"])
    run = start_run(access.person(make_user("anna")), session, RunChoices(), source="page", now=timezone.now())
    perform_due()
    assert open_json(owner, f"/runs/{run.pk}/")["list"] == "lost"
    for page in (address, f"/compactions/{compaction.pk}/"):
        assert read(owner, page).count('data-key="e"') == 1, page


def test_every_list_offers_its_export(team: Team) -> None:
    session = make_session(team, "s")
    make_breaks(session, 1, at=timezone.now())
    make_compactions(session, 1)
    make_run(session)
    Drop.objects.create(team=team, source="otlp", reason="too old", count=7)
    audit.note(team, AuditAction.TEAM_RENAMED, by=make_user("alice"), subject="Quay")
    owner = sign_in("alice")
    for url in (
        "/sessions/?project=", "/breaks/?by=model", f"/sessions/{session.pk}/breaks/?before=x",
        f"/sessions/{session.pk}/compactions/", "/teams/harbour/audit/", "/jobs/?state=dead", "/health/",
        "/compare/?team=harbour",
    ):  # fmt: skip
        page = read(owner, url)
        assert page.count('data-key="e"') == 1, url
        link = page.split('data-key="e"')[0].rsplit('href="', 1)[1].split('"')[0].replace("&amp;", "&")
        assert "before" not in link
        fetch(owner, link)
