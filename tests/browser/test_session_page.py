"""The session page in a real Chromium: a call is picked by pointer, by keyboard and without scripts."""

import re

import pytest
from playwright.sync_api import FloatRect, Page, expect

from dashboard.models import AgentSession, User
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import Axe, SignIn
from tests.browser.keys import press
from tests.builders import make_session
from tests.dashboard.running import wait_until
from tests.session_builders import add_break, add_compaction, make_calls


@pytest.fixture
def session(owner: User) -> AgentSession:
    """A hundred calls and a sub-agent, compacted behind call 60, a break at call 20; a neighbour on either side."""
    team = owner.memberships.get().team
    make_session(team, "older one")
    session = make_session(team, "s-1", title="Mend the crane", owner=owner, has_content=True, call_count=104)
    make_session(team, "newer one")
    calls = make_calls(session, 100)
    make_calls(session, 4, agent_id="agent-1", at=None)
    add_break(calls[19])
    add_compaction(session, behind=60, before_tokens=50_000, after_tokens=20_000)
    return session


@pytest.fixture
def opened(page: Page, session: AgentSession, owner: User, sign_in: SignIn) -> Page:
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/")
    return page


PLACES = """() => [...document.querySelectorAll("main > *, #tab-content > *:not(#call-drawer)")].map((each) => {
  const { x, y, width, height } = each.getBoundingClientRect();
  return [x, y, width, height].map(Math.round);
})"""
# Where the picked call is marked, in pixels of the window.
MARKED_AT = """area => area.getBoundingClientRect().x + area._fullLayout.xaxis._offset
  + area._fullLayout.xaxis.d2p(area.layout.shapes.find((shape) => shape.name === "picked").x0)"""


def find_box(page: Page, selector: str) -> FloatRect:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box


def list_marks(page: Page) -> list[int]:
    """Where the figure marks a call as picked."""
    found: list[int] = page.locator("[data-pick-url]").evaluate(
        "area => area.layout.shapes.filter((shape) => shape.name === 'picked').map((shape) => shape.x0)"
    )
    return found


def read_range(page: Page) -> list[float]:
    shown: list[float] = page.locator("[data-pick-url]").evaluate("area => area.layout.xaxis.range")
    return shown


def test_click_on_a_call_shows_its_details_in_the_drawer(opened: Page, session: AgentSession) -> None:
    wait_for_charts(opened)
    area = opened.locator("[data-pick-url]")
    area.scroll_into_view_if_needed()
    box = area.locator(".nsewdrag").first.bounding_box()
    assert box is not None
    x = box["x"] + area.evaluate("area => area._fullLayout.xaxis.l2p(20)")
    y = box["y"] + box["height"] - 12
    opened.mouse.move(x - 2, y)
    opened.mouse.move(x, y)
    expect(opened.locator(".hoverlayer .hovertext")).to_have_count(1)
    expect(opened.locator(".hoverlayer .hovertext")).to_contain_text("call 20context")
    opened.mouse.click(x, y)
    details = opened.locator("#call-details")
    expect(details).to_contain_text("Call 20")
    expect(details).to_contain_text("cache break")
    expect(details).to_contain_text("$0.06 at list price")
    assert list_marks(opened) == [20]
    expect(opened).to_have_url(re.compile(r"/sessions/\d+/\?call=\d+"))
    details.get_by_role("link", name="Next call").click()
    expect(details).to_contain_text("Call 21")
    wait_until(lambda: list_marks(opened) == [21], seconds=10, what="the mark at the next call")
    expect(details.get_by_role("link", name="Next call")).to_be_focused()
    opened.get_by_role("link", name="90", exact=True).click()
    expect(details).to_contain_text("Call 90")
    wait_until(lambda: list_marks(opened) == [90], seconds=10, what="the mark at the row's call")
    opened.get_by_role("link", name="by time").click()
    expect(details).to_contain_text("Call 90")
    opened.get_by_role("link", name="by call").click()
    expect(details).to_contain_text("Call 90")
    wait_for_charts(opened)
    assert list_marks(opened) == [90]


def test_drawer_opens_over_the_page_and_gives_the_focus_back(opened: Page) -> None:
    wait_for_charts(opened)
    opened.set_viewport_size({"width": 1280, "height": 600})
    drawer = opened.get_by_role("complementary", name="Call details")
    expect(drawer).to_be_hidden()
    row = opened.get_by_role("link", name="60", exact=True)
    row.scroll_into_view_if_needed()
    before, place = opened.evaluate(PLACES), row.bounding_box()
    row.click()
    expect(drawer.get_by_role("heading", name="Call 60")).to_be_in_viewport()
    expect(drawer).to_be_focused()
    # The chart is narrower; what is being read stays where it was.
    assert row.bounding_box() == place
    # The compaction behind it is a link away.
    expect(drawer).to_contain_text("Compacted after this call: 50k → 20k.")
    expect(drawer.get_by_role("link", name="View compaction")).to_be_visible()
    expect(row).to_have_attribute("aria-current", "true")
    expect(opened).to_have_url(re.compile(r"\?call=\d+$"))
    opened.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(row).to_be_focused()
    assert opened.evaluate(PLACES) == before
    expect(row).not_to_have_attribute("aria-current", "true")
    expect(opened).to_have_url(re.compile(r"/sessions/\d+/$"))
    assert list_marks(opened) == []


def test_escape_closes_a_menu_before_the_drawer(opened: Page) -> None:
    opened.get_by_role("link", name="100", exact=True).click()
    drawer = opened.locator("#call-drawer")
    expect(drawer).to_be_visible()
    summary = opened.locator(".session-about > summary")
    summary.click()
    expect(opened.locator(".session-about")).to_have_attribute("open", "")
    opened.keyboard.press("Escape")
    expect(opened.locator(".session-about")).not_to_have_attribute("open", "")
    expect(drawer).to_be_visible()
    opened.keyboard.press("Escape")
    expect(drawer).to_be_hidden()


def test_drawer_of_an_address_closes_by_its_button(opened: Page) -> None:
    opened.goto(f"{opened.url}?number=90")
    drawer = opened.locator("#call-drawer")
    expect(drawer).to_contain_text("Call 90")
    wait_for_charts(opened)
    assert list_marks(opened) == [90]
    drawer.get_by_role("button", name="Close").click()
    expect(drawer).to_be_hidden()
    expect(opened.get_by_role("link", name="90", exact=True)).to_be_focused()
    wait_until(lambda: list_marks(opened) == [], seconds=10, what="a chart without a mark")
    assert "call=" not in (opened.get_by_role("link", name="by time").get_attribute("href") or "")
    opened.reload()
    expect(drawer).to_be_hidden()


def click_call(page: Page, number: int) -> None:
    area = page.locator("[data-pick-url]")
    area.scroll_into_view_if_needed()
    box = find_box(page, "[data-pick-url] .nsewdrag")
    x = box["x"] + area.evaluate("(area, number) => area._fullLayout.xaxis.l2p(number)", number)
    y = box["y"] + box["height"] - 12
    page.mouse.move(x - 2, y)
    page.mouse.move(x, y)
    expect(page.locator(".hoverlayer .hovertext")).to_have_count(1)
    page.mouse.click(x, y)
    # On a narrow page a column is two pixels wide.
    expect(page.locator("#call-details")).to_contain_text(re.compile(f"Call ({number}|{number - 1})"))


def wait_for_drawer(page: Page) -> FloatRect:
    """Return its place once it has stopped moving."""
    drawer = page.locator("#call-drawer")
    expect(drawer).to_be_visible()
    drawer.evaluate("drawer => Promise.all(drawer.getAnimations().map((each) => each.finished))")
    return find_box(page, "#call-drawer")


@pytest.mark.parametrize("width", [1280, 1600])
def test_last_call_of_the_chart_stays_visible_beside_the_drawer(opened: Page, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 900})
    wait_for_charts(opened)
    area = opened.locator("[data-pick-url]")
    wide = area.evaluate("area => area._fullLayout.width")
    click_call(opened, 100)
    drawer = wait_for_drawer(opened)
    wait_until(lambda: area.evaluate("area => area._fullLayout.width") < wide, seconds=10, what="a narrower chart")
    box = find_box(opened, "[data-pick-url]")
    assert box["x"] + box["width"] <= drawer["x"]
    assert area.evaluate(MARKED_AT) < drawer["x"]
    opened.keyboard.press("Escape")
    wait_until(lambda: area.evaluate("area => area._fullLayout.width") == wide, seconds=10, what="its own width")


@pytest.mark.parametrize("width", [390, 768])
def test_drawer_is_a_sheet_below_the_call_on_a_narrow_page(opened: Page, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 844})
    wait_for_charts(opened)
    click_call(opened, 100)
    sheet = wait_for_drawer(opened)
    assert (sheet["x"], sheet["width"]) == (0, width)
    assert round(sheet["y"] + sheet["height"]) == 844
    box = find_box(opened, "[data-pick-url]")
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= sheet["y"]
    assert opened.locator("[data-pick-url]").evaluate(MARKED_AT) < width
    opened.keyboard.press("Escape")
    for number in ("98", "51"):  # 51 is the last row
        opened.get_by_role("link", name=number, exact=True).click()
        expect(opened.locator("#call-details")).to_contain_text(f"Call {number}")
        sheet = wait_for_drawer(opened)
        row = find_box(opened, "#calls-table tr:has([aria-current])")
        assert row["y"] >= 0
        assert row["y"] + row["height"] <= sheet["y"]
    opened.get_by_role("link", name="Next call").click()
    expect(opened.locator("#call-details")).to_contain_text("Call 52")
    row = find_box(opened, "#calls-table tr:has([aria-current])")
    assert row["y"] + row["height"] <= wait_for_drawer(opened)["y"]


def test_call_of_an_address_is_seen_above_the_sheet(opened: Page) -> None:
    opened.set_viewport_size({"width": 390, "height": 844})
    opened.goto(f"{opened.url}?number=90")
    expect(opened.locator("#call-details")).to_contain_text("Call 90")
    wait_for_charts(opened)
    box = find_box(opened, "[data-pick-url]")
    assert 0 <= box["y"] <= box["y"] + box["height"] <= wait_for_drawer(opened)["y"]
    assert list_marks(opened) == [90]


def test_zoomed_chart_moves_to_a_call_that_is_picked_in_the_table(opened: Page) -> None:
    wait_for_charts(opened)
    area = opened.locator("[data-pick-url]")
    area.evaluate("area => Plotly.relayout(area, {'xaxis.range': [9.5, 19.5]})")
    opened.get_by_role("link", name="90", exact=True).click()
    wait_until(lambda: read_range(opened) == [85, 95], seconds=10, what="a chart that shows the call")
    assert list_marks(opened) == [90]
    # Who moves on from there is not brought back.
    area.evaluate("area => Plotly.relayout(area, {'xaxis.range': [30, 40]})")
    opened.get_by_role("link", name="by call").hover()
    assert read_range(opened) == [30, 40]


def test_details_of_a_session_open_by_keyboard(opened: Page, session: AgentSession) -> None:
    about = opened.locator(".session-about")
    expect(about.get_by_text(session.external_id)).to_be_hidden()
    about.locator("summary").focus()
    opened.keyboard.press("Enter")
    expect(about.get_by_text(session.external_id, exact=True)).to_be_visible()
    opened.keyboard.press("Escape")
    expect(about.get_by_text(session.external_id, exact=True)).to_be_hidden()
    expect(about.locator("summary")).to_be_focused()


def test_ticks_stay_whole_numbers_in_a_part_that_is_zoomed_to(opened: Page) -> None:
    wait_for_charts(opened)
    area = opened.locator("[data-pick-url]")

    def read_ticks() -> list[str]:
        return area.locator(".xtick text").all_text_contents()

    area.evaluate("area => Plotly.relayout(area, {'xaxis.range': [9.5, 12.5]})")
    wait_until(lambda: read_ticks() == ["10", "11", "12"], seconds=10, what="a tick for each call")
    area.evaluate("area => Plotly.relayout(area, {'xaxis.range': [0.5, 100.5]})")
    wait_until(lambda: len(read_ticks()) < 12, seconds=10, what="fewer ticks than calls")


@pytest.mark.parametrize("path", ["", "breaks/", "compactions/"])
def test_printed_tables_keep_inside_their_cards(opened: Page, path: str) -> None:
    opened.set_viewport_size({"width": 718, "height": 1000})  # A4 with the margins that browsers leave
    opened.goto(opened.url + path)
    opened.emulate_media(media="print")
    widths = opened.locator(".table-wrap > table").evaluate_all(
        "tables => tables.map((table) => [table.scrollWidth, table.parentElement.clientWidth])"
    )
    assert widths
    assert [pair for pair in widths if pair[0] > pair[1]] == []
    expect(opened.locator("#call-drawer")).to_be_hidden()


def test_printed_header_holds_the_details_and_no_letters_below_each_other(opened: Page) -> None:
    opened.set_viewport_size({"width": 718, "height": 1000})
    opened.emulate_media(media="print")
    expect(opened.locator("#session-about")).to_be_visible()
    expect(opened.locator(".session-more")).to_be_hidden()
    heights = opened.locator(".figures > div").evaluate_all("figures => figures.map((each) => each.offsetHeight)")
    assert heights
    assert max(heights) < 60


def test_actions_begin_at_the_edge_of_a_narrow_page(opened: Page) -> None:
    opened.set_viewport_size({"width": 360, "height": 700})
    left = {round(box["x"]) for box in (find_box(opened, "h1"), find_box(opened, ".heading > .actions > .btn"))}
    assert len(left) == 1


def test_printed_figure_is_light_and_as_wide_as_paper(opened: Page) -> None:
    opened.emulate_media(color_scheme="dark")
    opened.reload()
    wait_for_charts(opened)
    area = opened.locator("[data-pick-url]")

    def read_colour() -> str:
        colour: str = area.evaluate("area => area.data[0].fillcolor")
        return colour

    dark, wide = read_colour(), area.evaluate("area => area._fullLayout.width")
    opened.emulate_media(media="print", color_scheme="dark")
    wait_until(lambda: read_colour() != dark, seconds=10, what="the light colours")
    assert area.evaluate("area => area._fullLayout.width") <= 680 < wide
    opened.emulate_media(media="screen", color_scheme="dark")
    wait_until(lambda: read_colour() == dark, seconds=10, what="the dark colours again")
    wait_until(lambda: area.evaluate("area => area._fullLayout.width") == wide, seconds=10, what="its own width")


def test_finger_zooms_by_buttons_and_scrolls_the_page(opened: Page, session: AgentSession, live_url: str) -> None:
    browser = opened.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, has_touch=True, is_mobile=True)
    context.add_cookies(opened.context.cookies())  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"/sessions/{session.pk}/")
    wait_for_charts(page)
    area = page.locator("[data-pick-url]")

    expect(page.get_by_text("Zoom with the buttons below the chart")).to_be_visible()
    expect(page.get_by_text("Drag to zoom")).to_be_hidden()
    assert area.evaluate("area => area.layout.dragmode") is False
    page.get_by_role("button", name="Zoom in").tap()
    wait_until(lambda: read_range(page) == [25.5, 75.5], seconds=10, what="a figure of fewer calls")
    page.get_by_role("button", name="Reset zoom").tap()
    wait_until(lambda: read_range(page) == [0.5, 100.5], seconds=10, what="the figure of all calls")
    context.close()


def test_table_is_walked_by_keyboard_alone(opened: Page) -> None:
    press(opened, "j")
    press(opened, "j")
    press(opened, "Enter")
    details = opened.locator("#call-details")
    expect(details).to_contain_text("Call 99")
    expect(details).to_contain_text("cache hit")
    opened.get_by_role("link", name="Older").last.press("Enter")
    expect(opened.locator("#calls-table")).to_contain_text("Rows 51 to 100 of 104.")
    expect(details).to_contain_text("Call 99")
    opened.get_by_role("link", name="50", exact=True).press("Enter")
    expect(details).to_contain_text("Call 50")


def test_keys_lead_to_tabs_and_neighbours(opened: Page, session: AgentSession) -> None:
    press(opened, "2")
    expect(opened).to_have_url(re.compile(rf"/sessions/{session.pk}/\w+/$"))
    press(opened, "1")
    expect(opened).to_have_url(re.compile(rf"/sessions/{session.pk}/$"))
    press(opened, "[")
    expect(opened.get_by_role("heading", level=1)).to_have_text("newer one")
    press(opened, "]")
    expect(opened.get_by_role("heading", level=1)).to_have_text("Mend the crane")
    press(opened, "?")
    overlay = opened.get_by_role("dialog")
    for words in ("Older session", "Newer session", "Tab: Timeline"):
        expect(overlay).to_contain_text(words)


def test_everything_is_read_without_scripts(opened: Page, live_url: str) -> None:
    browser = opened.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    context.add_cookies(opened.context.cookies())  # type: ignore[arg-type]
    bare = context.new_page()
    bare.goto(opened.url)
    expect(bare.get_by_role("img", name=re.compile("of 200,000 tokens in use")).first).to_be_visible()
    bare.get_by_role("link", name="Older").last.click()
    expect(bare.locator("#calls-table")).to_contain_text("Rows 51 to 100 of 104.")
    bare.get_by_role("link", name="20", exact=True).click()
    expect(bare.locator("#call-details")).to_contain_text("cache break")
    expect(bare.locator("#calls-table")).to_contain_text("Rows 51 to 100 of 104.")
    expect(bare.locator(".chart-area").first).to_be_hidden()
    expect(bare.get_by_text("This chart needs JavaScript").last).to_be_visible()
    bare.get_by_role("link", name="Effective settings").click()
    expect(bare.get_by_role("row", name=re.compile("auto = available - 13,000 = 167,000"))).to_be_visible()
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["", "settings/", "?x=time"])
def test_no_serious_accessibility_finding(opened: Page, axe: Axe, path: str, theme: str) -> None:
    opened.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    opened.goto(opened.url + path)
    wait_for_charts(opened)
    if not path:
        newest = opened.locator("#calls-table tbody a").first
        number = newest.inner_text()
        newest.click()
        expect(opened.locator("#call-details")).to_contain_text(f"Call {number}")
    assert axe(opened) == []


@pytest.mark.parametrize("path", ["", "settings/"])
def test_nothing_scrolls_sideways_on_a_small_phone(opened: Page, path: str) -> None:
    opened.set_viewport_size({"width": 360, "height": 740})
    opened.goto(opened.url + path)
    wait_for_charts(opened)
    assert opened.evaluate("document.documentElement.scrollWidth") == 360


def test_bar_of_a_short_session_answers_over_its_whole_height(
    page: Page, owner: User, sign_in: SignIn, live_url: str
) -> None:
    session = make_session(owner.memberships.get().team, "short", call_count=12, context_tokens=25_500)
    make_calls(session, 12)
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/")
    wait_for_charts(page)
    box = find_box(page, "[data-pick-url] .nsewdrag")
    across = page.locator("[data-pick-url]").evaluate("area => area._fullLayout.xaxis.l2p(12)")
    for share in (0.95, 0.05):  # inside the bar, and above it
        page.mouse.move(box["x"] + across - 2, box["y"] + share * box["height"])
        page.mouse.move(box["x"] + across, box["y"] + share * box["height"])
        expect(page.locator(".hoverlayer .hovertext")).to_contain_text("call 12context")
    page.mouse.click(box["x"] + across, box["y"] + 0.95 * box["height"])
    expect(page.locator("#call-details")).to_contain_text("Call 12")


def test_way_back_leads_to_the_page_and_not_to_the_part_that_a_script_fetched(opened: Page) -> None:
    opened.get_by_role("link", name="90", exact=True).click()
    expect(opened.locator("#call-details")).to_contain_text("Call 90")
    opened.goto("/glossary/")
    opened.go_back()
    expect(opened.get_by_role("heading", level=1)).to_have_text("Mend the crane")
    expect(opened.locator("#call-drawer")).to_contain_text("Call 90")
