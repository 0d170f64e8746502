"""Pages that change by themselves, in a real Chromium: a session is followed while its client writes and exports."""

import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import Locator, Page, Route, expect

from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow import Follower
from dashboard.ingest.follow_delivery import IntakeDelivery
from dashboard.ingest.intake import Origin
from dashboard.live import room
from dashboard.models import AgentSession, Membership, Scope, SessionChange, Team, TeamPolicy, User
from dashboard.retention.deletion import delete_session
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.builders import make_key, make_many_sessions, make_session, make_team, make_user
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.ingest.otlp.exports import call, logs
from tests.dashboard.running import wait_until
from tests.session_rows import make_breaks

PROMISED_MS = 1000  # from a line in the file to the page; bench/live.py holds it to that on a machine of its own
BUSY = 3


class Writer:
    """A client that appends to its transcript."""

    def __init__(self, root: Path, name: str) -> None:
        self.talk = Conversation(name)
        self.talk.now = timezone.now()
        self.path = root / "-home-ann-harbour" / f"{self.talk.session_id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.calls = 0

    def answer(self, count: int = 1, *, to: str = "And now?") -> None:
        said = len(self.talk.lines)
        for _ in range(count):
            self.calls += 1
            self.talk.ask(to)
            self.talk.answer(f"msg_{self.talk.session_id}_{self.calls}", read=10_000 * self.calls, written=10_000)
        with self.path.open("ab") as file:
            file.write(b"".join(self.talk.lines[said:]))


@pytest.fixture
def team(live_url: str) -> Team:
    room.forget()
    team = make_team("Harbour", owner="alice", viewer="vera")
    Membership.objects.update(content_grant=True)
    return team


@pytest.fixture
def alice(page: Page, team: Team, sign_in: SignIn) -> User:
    alice = make_user("alice")
    sign_in(page, alice)
    return alice


@pytest.fixture
def followed(tmp_path: Path, team: Team, alice: User) -> Iterator[Path]:
    """A folder that is followed as `plimsoll follow` does, in a thread."""
    origin = Origin(team, alice, "follow")
    stopping = threading.Event()
    watch = FolderWatch(is_polling=False)

    def follow() -> None:
        follower = Follower(origin, (tmp_path,), IntakeDelivery(origin), watch=watch)
        while not stopping.is_set():
            follower.work(wait_seconds=0.2)
        connection.close()

    thread = threading.Thread(target=follow)
    thread.start()
    yield tmp_path
    stopping.set()
    thread.join(10)
    watch.close()


def find_session(writer: Writer) -> AgentSession:
    found = AgentSession.objects.filter(external_id=writer.talk.session_id)
    wait_until(found.exists, seconds=10, what="the session")
    return found.get()


def find_figure(page: Page, name: str) -> Locator:
    """In the header of a session; what explains another figure may hold the same word."""
    named = page.locator("dt").filter(has=page.get_by_role("button", name=name, exact=True))
    return page.locator("dl.figures > div").filter(has=named).locator("dd")


def wait_for_stream(page: Page) -> None:
    expect(page.locator('html[data-heard="stream"]')).to_have_count(1)


def test_session_is_followed_while_lines_and_telemetry_arrive(
    page: Page, alice: User, team: Team, followed: Path, live_url: str, axe: Axe
) -> None:
    writer = Writer(followed, "harbour")
    writer.answer(3)
    session = find_session(writer)
    page.goto(f"/sessions/{session.pk}/")
    wait_for_stream(page)
    calls = find_figure(page, "Calls")
    expect(calls).to_contain_text("3")
    rows = page.locator("#calls-table tbody > tr")
    expect(rows).to_have_count(3)
    page.locator("#tab-breaks").focus()

    began_at = time.monotonic()
    writer.answer()
    expect(calls).to_contain_text("4")
    assert (time.monotonic() - began_at) * 1000 < BUSY * PROMISED_MS
    expect(calls).to_have_class(re.compile("just-changed"))
    expect(page.locator(".gauge-says .figure")).to_contain_text("50")
    expect(page.locator("#tab-breaks")).to_be_focused()
    expect(rows).to_have_count(3)  # nothing jumps

    _, key = make_key(team, alice, Scope.INGEST)
    export = logs(
        call("req_otlp", 600.0, read=60_000, session=None, session__id=session.external_id, start=timezone.now())
    )
    sent = page.request.post(f"{live_url}/v1/logs", data=export, headers={"Authorization": f"Bearer {key}"})
    assert sent.ok, sent.text()
    offer = page.get_by_role("link", name="Show 2 new calls")
    expect(offer).to_be_visible()
    assert axe(page) == []
    offer.click()
    expect(rows).to_have_count(5)
    expect(page.locator("[data-live-offer] a")).to_have_count(0)


def test_new_lines_of_a_transcript_are_shown_where_they_stand(
    page: Page, alice: User, team: Team, followed: Path
) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    writer = Writer(followed, "harbour")
    writer.answer(40)  # more than a page of it
    session = find_session(writer)
    page.goto(f"/sessions/{session.pk}/transcript/")
    wait_for_stream(page)
    for words in ("Is it high water now?", "And at noon?"):
        writer.answer(to=words)
        line = page.locator(".transcript .entry").filter(has_text=words)
        offer = page.get_by_role("link", name="Show new lines", exact=True)
        expect(offer).to_be_visible()
        expect(line).to_have_count(0)
        offer.click()
        expect(line).to_be_in_viewport()
        expect(offer).to_have_count(0)
        expect(page).to_have_url(re.compile(r"/transcript/\?last=$"))


def test_rows_change_where_they_stand_and_new_sessions_are_offered(
    page: Page, alice: User, team: Team, followed: Path
) -> None:
    make_many_sessions(team, 3, title=lambda number: f"Quiet {number}")
    writer = Writer(followed, "busy")
    writer.answer()
    session = find_session(writer)
    AgentSession.objects.filter(pk=session.pk).update(last_at=timezone.now() - timedelta(hours=2))
    page.goto("/sessions/")
    wait_for_stream(page)
    names = page.locator("[data-rows] > tr").evaluate_all("rows => rows.map((row) => row.dataset.session)")
    row = page.locator(f'tr[data-session="{session.pk}"]')
    writer.answer()
    expect(row.locator(".gauge-says")).to_contain_text("30")
    expect(row).to_have_class(re.compile("just-changed"))
    assert page.locator("[data-rows] > tr").evaluate_all("rows => rows.map((row) => row.dataset.session)") == names
    Writer(followed, "another").answer()
    page.get_by_role("link", name="Show 1 new session").click()
    expect(page.locator("[data-rows] > tr")).to_have_count(5)
    expect(page.locator("[data-live-offer] a")).to_have_count(0)


def test_deleted_session_leaves_the_list(page: Page, alice: User, team: Team) -> None:
    gone, left = make_many_sessions(team, 2)
    page.goto("/sessions/")
    wait_for_stream(page)
    delete_session(gone, by=alice, now=timezone.now())
    expect(page.locator(f'tr[data-session="{gone.pk}"]')).to_have_count(0)
    expect(page.locator(f'tr[data-session="{left.pk}"]')).to_have_count(1)


def test_ledger_offers_breaks_that_come(page: Page, alice: User, team: Team) -> None:
    (session,) = make_many_sessions(team, 1)
    make_breaks(session, 1, at=timezone.now())
    page.goto("/breaks/?by=model")
    wait_for_stream(page)
    other = make_session(team, "other")
    make_breaks(other, 2, at=timezone.now())
    SessionChange.objects.note(team.pk, [other.pk])
    page.get_by_role("link", name="Show 2 new cache breaks").click()
    expect(page).to_have_url(re.compile(r"/breaks/\?by=model$"))
    expect(page.locator("#breaks tbody > tr")).to_have_count(3)
    expect(page.locator("[data-live-offer] a")).to_have_count(0)


def test_overview_counts_by_itself(page: Page, alice: User, team: Team, followed: Path) -> None:
    make_many_sessions(team, 1, last_at=timezone.now() - timedelta(hours=3))
    page.goto("/")
    wait_for_stream(page)
    live = page.locator(".tile").filter(has_text="Live sessions").locator(".figure")
    expect(live).to_have_text("0")
    Writer(followed, "harbour").answer()
    expect(live).to_have_text("1")
    expect(page.get_by_role("link", name="Show 1 new session")).to_be_visible()


PLACES = """() => [...document.querySelectorAll("main :is(tr, .card, .tile, .chart-area, h2, a.chip)")]
  .filter((each) => each.checkVisibility() && !each.matches(".live-gauge *"))
  .map((each) => `${each.localName} ${Math.round(each.getBoundingClientRect().top)}`)"""


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("path", ["/", "/sessions/", "/breaks/", "/sessions/{pk}/"])
def test_nothing_moves_when_an_offer_comes(
    page: Page, alice: User, team: Team, followed: Path, path: str, width: int
) -> None:
    writer = Writer(followed, "harbour")
    writer.answer(3)
    session = find_session(writer)
    make_breaks(session, 1, at=timezone.now())
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path.format(pk=session.pk))
    wait_for_stream(page)
    wait_for_charts(page)
    page.locator(".tabs, .heading").last.evaluate("(each) => each.scrollIntoView()")  # a phone has it further down
    before = page.evaluate(PLACES)
    if path == "/breaks/":
        other = make_session(team, "other")
        make_breaks(other, 1, at=timezone.now())
        SessionChange.objects.note(team.pk, [other.pk])
    elif path.startswith("/sessions/{"):
        writer.answer()
    else:
        Writer(followed, "another").answer()
    offer = page.locator("[data-live-offer] a")
    expect(offer).to_be_in_viewport()
    assert page.evaluate(PLACES) == before
    page.mouse.wheel(0, 200)
    expect(offer).to_be_in_viewport()
    expect(offer).to_have_css("pointer-events", "auto")  # soon, not at once: a click may be on its way


def test_open_details_stay_open_while_the_header_is_updated(
    page: Page, alice: User, team: Team, followed: Path
) -> None:
    writer = Writer(followed, "harbour")
    writer.answer(3)
    page.set_viewport_size({"width": 1280, "height": 600})
    page.goto(f"/sessions/{find_session(writer).pk}/")
    wait_for_stream(page)
    details, summary = page.locator(".session-about"), page.locator(".session-about > summary")
    summary.focus()
    summary.press("Enter")
    expect(details).to_have_attribute("open", "")
    details.locator("dl").evaluate("(each) => { each.isOld = true; }")
    before = page.evaluate(PLACES)
    writer.answer()
    expect(find_figure(page, "Calls")).to_contain_text("4")
    assert not details.locator("dl").evaluate("(each) => each.isOld ?? false")
    expect(details).to_have_attribute("open", "")
    expect(details.locator("dl")).to_be_visible()
    expect(summary).to_be_focused()
    assert page.evaluate(PLACES) == before


def test_open_drawer_stays_while_the_header_is_updated(page: Page, alice: User, team: Team, followed: Path) -> None:
    writer = Writer(followed, "harbour")
    writer.answer(3)
    page.goto(f"/sessions/{find_session(writer).pk}/")
    wait_for_stream(page)
    page.get_by_role("link", name="2", exact=True).click()
    drawer = page.locator("#call-drawer")
    expect(drawer).to_be_focused()
    writer.answer()
    expect(find_figure(page, "Calls")).to_contain_text("4")
    expect(drawer).to_be_focused()
    page.get_by_role("link", name="Show 1 new call").click()
    expect(page.locator("#calls-table tbody > tr")).to_have_count(4)
    expect(drawer).to_contain_text("Call 2")


def test_open_table_stays_open_when_new_calls_are_shown(page: Page, alice: User, team: Team, followed: Path) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    writer = Writer(followed, "harbour")
    writer.answer(3)
    page.goto(f"/sessions/{find_session(writer).pk}/context/")
    wait_for_stream(page)
    fold = page.locator("#tab-content .chart details")
    fold.locator("summary").click()
    fold.evaluate("(each) => { each.isOld = true; }")
    writer.answer()
    page.get_by_role("link", name="Show 1 new call").click()
    expect(page.locator("[data-live-offer] a")).to_have_count(0)
    assert not fold.evaluate("(each) => each.isOld ?? false")
    expect(fold).to_have_attribute("open", "")


def test_overview_draws_its_figure_again_and_says_how_old_it_is(
    page: Page, alice: User, team: Team, followed: Path
) -> None:
    Writer(followed, "harbour").answer()
    wait_until(AgentSession.objects.exists, seconds=10, what="the session")
    page.goto("/")
    wait_for_stream(page)
    wait_for_charts(page)
    page.locator("#spend-and-loss summary").click()
    spent = page.locator("#spend-and-loss tbody > tr").last.locator("td").nth(1)
    bars = "() => document.querySelector('#spend-and-loss .chart-area').data.at(-1).y.at(-1)"
    before, told, age = page.evaluate(bars), spent.inner_text(), page.locator("#spend-and-loss figcaption time")
    expect(age).to_have_text("just now")
    expect(age).to_have_text(re.compile(r"^\d+ s ago$"))
    Writer(followed, "another").answer(5)
    expect(spent).not_to_have_text(told)
    expect(age).to_have_text("just now")
    wait_until(lambda: page.evaluate(bars) > before, seconds=10, what="higher bars")


def test_page_says_that_the_server_is_gone_until_it_is_back(
    page: Page, page_errors: PageErrors, alice: User, team: Team
) -> None:
    (session,) = make_many_sessions(team, 1, title=lambda _: "Quiet")
    page_errors.expect("Failed to load resource")
    page.goto("/sessions/")
    wait_for_stream(page)
    lost = page.get_by_role("status").filter(has_text="Connection to Plimsoll lost")
    expect(lost).to_have_count(0)
    page.route("**/live/*", lambda route: route.abort())
    hide(page, is_hidden=True)
    hide(page, is_hidden=False)  # the stream is opened anew, in vain
    expect(lost).to_have_text(re.compile(r"Connection to Plimsoll lost \d+ (s|min) ago\. Retrying…"))
    change(session, "Louder")
    page.unroute("**/live/*")
    expect(page.locator(f'tr[data-session="{session.pk}"]')).to_contain_text("Louder")
    expect(lost).to_have_count(0)


def test_page_asks_when_the_stream_is_refused_and_a_hidden_tab_hears_nothing(
    page: Page, page_errors: PageErrors, alice: User, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    (session,) = make_many_sessions(team, 1, title=lambda _: "Quiet")
    monkeypatch.setattr(room.streams, "most", 0)
    page_errors.expect("503")
    page.goto("/sessions/")
    expect(page.locator('html[data-heard="asking"]')).to_have_count(1)
    row = page.locator(f'tr[data-session="{session.pk}"]')
    change(session, "Louder")
    expect(row).to_contain_text("Louder")
    monkeypatch.setattr(room.streams, "most", 200)
    wait_for_stream(page)
    wait_until(lambda: len(room.streams) == 1, seconds=5, what="the stream")
    hide(page, is_hidden=True)
    wait_until(lambda: len(room.streams) == 0, seconds=5, what="the end of the stream")
    change(session, "Loudest")
    hide(page, is_hidden=False)
    expect(row).to_contain_text("Loudest")


def test_page_that_has_its_stream_again_asks_no_further(
    page: Page, page_errors: PageErrors, alice: User, team: Team
) -> None:
    make_many_sessions(team, 1)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page_errors.expect("503")
    page.clock.install()
    page.route("**/live/changes?*", hold)
    page.route("**/live/stream?*", lambda route: route.continue_() if held else route.fulfill(status=503))
    with page.expect_request("**/live/changes?*"):
        page.goto("/sessions/")
    wait_for_stream(page)
    with page.expect_response("**/live/changes?*"):
        held[0].continue_()
    settle = "fetch('/health/live').then((answer) => answer.text())"
    page.evaluate(settle)  # by now the answer is read
    page.clock.fast_forward(15_000)  # longer than it waits before it asks again, shorter than it takes for silence
    page.evaluate(settle)
    assert len(held) == 1


def test_stream_ends_when_the_person_leaves_the_team(page: Page, team: Team, sign_in: SignIn) -> None:
    make_many_sessions(team, 1)
    vera = make_user("vera")
    sign_in(page, vera)
    page.goto("/sessions/")
    wait_for_stream(page)
    wait_until(lambda: len(room.streams) == 1, seconds=5, what="the stream")
    Membership.objects.filter(user=vera).delete()
    wait_until(lambda: len(room.streams) == 0, seconds=5, what="the end of the stream")


def change(session: AgentSession, title: str) -> None:
    AgentSession.objects.filter(pk=session.pk).update(title=title)
    SessionChange.objects.note(session.team_id, [session.pk])


def hide(page: Page, *, is_hidden: bool) -> None:
    """As a browser does when another tab is chosen."""
    page.evaluate(
        """(isHidden) => {
          Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )
