"""The buttons below a chart: zoom by pointer and keyboard, a link to what is shown, files, and new calls."""

import re
from pathlib import Path

import pytest
from django.db import transaction
from playwright.sync_api import Page, expect

from dashboard.models import AgentSession, SessionChange, User
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import SignIn
from tests.builders import make_session
from tests.dashboard.running import wait_until
from tests.session_builders import add_break, make_calls

CALLS = 1_000
ZOOM_BUTTONS = ("Zoom out", "Earlier", "Later", "Reset zoom")


@pytest.fixture
def session(owner: User) -> AgentSession:
    """So many calls that a column stands for two of them; a break at call 500."""
    team = owner.memberships.get().team
    session = make_session(team, "s-1", title="Mend the crane", owner=owner, call_count=CALLS)
    calls = make_calls(session, CALLS)
    add_break(calls[499])
    return session


@pytest.fixture
def opened(page: Page, session: AgentSession, owner: User, sign_in: SignIn) -> Page:
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/")
    wait_for_charts(page)
    return page


def read_range(page: Page) -> list[float]:
    shown: list[float] = page.locator("[data-figure-url]").evaluate("area => area.layout.xaxis.range")
    return shown


def count_columns(page: Page) -> int:
    count: int = page.locator("[data-figure-url]").evaluate("area => area.data.at(-1).x.length")
    return count


def wait_for_columns(page: Page, count: int) -> None:
    wait_until(lambda: count_columns(page) == count, seconds=20, what=f"{count} columns")


def test_zoomed_part_shows_every_call_and_the_address_leads_back_to_it(opened: Page) -> None:
    wait_for_columns(opened, 500)
    note = opened.locator("[data-chart-note]")
    expect(note).to_contain_text("the largest context of up to 2 calls")
    for name in ZOOM_BUTTONS:
        expect(opened.get_by_role("button", name=name)).to_be_disabled()
    zoom_in = opened.get_by_role("button", name="Zoom in")
    zoom_in.press("Enter")
    zoom_in.press("Enter")
    assert read_range(opened) == [375.5, 625.5]
    expect(note).to_have_text("")
    expect(opened).to_have_url(re.compile(r"\?from=375.5&to=625.5$"))
    for name in ZOOM_BUTTONS:
        expect(opened.get_by_role("button", name=name)).to_be_enabled()
    opened.reload()
    wait_for_charts(opened)
    assert read_range(opened) == [375.5, 625.5]
    opened.get_by_role("button", name="Later").press("Enter")
    assert read_range(opened) == [500.5, 750.5]
    opened.get_by_role("button", name="Reset zoom").press("Enter")
    assert read_range(opened) == [0.5, CALLS + 0.5]
    wait_for_columns(opened, 500)
    expect(opened).to_have_url(re.compile(r"/sessions/\d+/$"))


def test_drag_zooms_and_a_double_click_shows_all(opened: Page) -> None:
    opened.locator("[data-figure-url]").scroll_into_view_if_needed()
    box = opened.locator("[data-figure-url] .nsewdrag").first.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    opened.mouse.move(box["x"] + box["width"] * 0.4, y)
    opened.mouse.down()
    opened.mouse.move(box["x"] + box["width"] * 0.6, y, steps=5)
    opened.mouse.up()
    low, high = read_range(opened)
    assert (low, high) == pytest.approx((400, 600), abs=3)
    opened.mouse.dblclick(box["x"] + box["width"] * 0.5, y, delay=20)
    wait_until(lambda: read_range(opened) == [0.5, CALLS + 0.5], seconds=10, what="all calls")


def test_link_holds_the_zoomed_part_and_the_picked_call(opened: Page, live_url: str) -> None:
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=live_url)
    opened.get_by_role("link", name="990", exact=True).click()
    expect(opened.locator("#call-details")).to_contain_text("Call 990")
    opened.get_by_role("button", name="Zoom in").click()
    opened.get_by_role("button", name="Copy link").click()
    expect(opened.get_by_role("button", name="Copied")).to_be_visible()
    link = opened.evaluate("navigator.clipboard.readText()")
    assert re.search(r"/sessions/\d+/\?call=\d+&from=250.5&to=750.5$", link)
    opened.get_by_role("link", name="989", exact=True).click()
    expect(opened.locator("#call-details")).to_contain_text("Call 989")
    # The range has moved to the call.
    expect(opened).to_have_url(re.compile(r"\?call=\d+&from=500.5&to=1000.5$"))


def test_call_without_a_column_of_its_own_is_marked_too(opened: Page) -> None:
    def list_marks() -> list[float]:
        found: list[float] = opened.locator("[data-figure-url]").evaluate(
            "area => area.layout.shapes.filter((shape) => shape.name === 'picked').map((shape) => shape.x0)"
        )
        return found

    for number in (990, 989):  # one of the two stands for both
        opened.get_by_role("link", name=str(number), exact=True).click()
        wait_until(lambda: list_marks() == [number], seconds=10, what=f"the mark at call {number}")  # noqa: B023


@pytest.mark.parametrize(("name", "start"), [("PNG", b"\x89PNG"), ("SVG", b"<svg")])
def test_figure_is_saved_as_a_file(opened: Page, tmp_path: Path, name: str, start: bytes) -> None:
    with opened.expect_download() as download:
        opened.get_by_role("button", name=f"Save {name}").last.click()
    assert download.value.suggested_filename == f"Mend-the-crane-Plimsoll-timeline-figure.{name.lower()}"
    download.value.save_as(tmp_path / "figure")
    data = (tmp_path / "figure").read_bytes()
    assert data.startswith(start)
    if name == "SVG":
        assert b"Context per call, in tokens: 1,000 calls" in data
        assert b"cache read" in data


def test_figure_follows_new_calls_until_it_is_zoomed(opened: Page, session: AgentSession) -> None:
    def add_calls(count: int) -> None:
        with transaction.atomic():
            session.calls.all().delete()
            session.threads.all().delete()
            make_calls(session, count)
        AgentSession.objects.filter(pk=session.pk).update(call_count=count)
        SessionChange.objects.note(session.team_id, [session.pk])

    title = opened.locator("[data-chart-title]").last
    add_calls(CALLS + 20)
    expect(title).to_have_text("Context per call, in tokens: 1,020 calls")
    assert read_range(opened) == [0.5, CALLS + 20.5]
    opened.get_by_role("button", name="Zoom in").click()
    shown = read_range(opened)
    add_calls(CALLS + 30)
    expect(opened.get_by_role("link", name="Show 30 new calls")).to_be_visible()
    assert read_range(opened) == shown
    opened.get_by_role("button", name="Reset zoom").click()
    expect(title).to_have_text("Context per call, in tokens: 1,030 calls")
    wait_until(lambda: read_range(opened) == [0.5, CALLS + 30.5], seconds=10, what="the newest calls")
