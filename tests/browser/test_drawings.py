"""Gauges and figures in a real Chromium: what a tick says to the keyboard, what a click on a call asks for."""

import re

import pytest
from playwright.sync_api import Page, expect

from dashboard.charts import escape_markup
from tests.browser.charts import wait_for_charts
from tests.browser.keys import press


def test_tick_of_a_gauge_tells_its_formula_to_the_keyboard(styleguide: Page) -> None:
    header = styleguide.locator(".gauge-header").nth(1)
    header.get_by_role("button", name=re.compile("^warning and error")).focus()
    tip = header.get_by_role("tooltip")
    expect(tip).to_contain_text("warning = auto - 20,000 = 147,000")
    press(styleguide, "Tab")
    expect(header.get_by_role("button", name=re.compile("^auto-compact"))).to_be_focused()
    expect(tip).to_have_count(1)
    expect(tip).to_contain_text("auto = available - 13,000 = 167,000")
    expect(tip).to_contain_text("window 200,000 from the client's table for claude-opus-4-5")
    press(styleguide, "Escape")
    expect(tip).to_have_count(0)


def test_tick_on_the_bar_answers_to_the_pointer_as_its_name_does(styleguide: Page) -> None:
    header = styleguide.locator(".gauge-header").nth(1)
    header.scroll_into_view_if_needed()
    bar = header.locator(".gauge-bar").bounding_box()
    assert bar is not None
    styleguide.mouse.move(bar["x"] + bar["width"] * 0.885, bar["y"] + bar["height"] / 2)
    expect(header.get_by_role("tooltip")).to_contain_text("blocking = available - 3,000 = 177,000")


@pytest.mark.parametrize(("query", "call"), [("", "call-65"), ("?long=1", "call-")], ids=["150 calls", "5,000 calls"])
def test_click_on_a_call_asks_for_its_details(styleguide: Page, query: str, call: str) -> None:
    if query:
        styleguide.goto(f"/styleguide/{query}")
    wait_for_charts(styleguide)
    plot = styleguide.locator(".chart-area").first.locator(".nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] * 65 / 150, box["y"] + box["height"] - 20
    styleguide.mouse.move(x - 3, y)
    styleguide.mouse.move(x - 2, y)
    expect(styleguide.locator(".hoverlayer .hovertext")).to_have_count(1)
    with styleguide.expect_request(re.compile(r"/styleguide/\?call=call-\d+")) as asked:
        styleguide.mouse.click(x - 2, y)
    assert asked.value.headers["hx-request"] == "true"
    assert call in asked.value.url
    expect(styleguide.locator("#picked")).to_contain_text(f"Picked: {call}")
    assert styleguide.evaluate("window.violations") == []


def test_call_is_picked_from_the_table_by_keyboard(styleguide: Page) -> None:
    figure = styleguide.locator("figure.chart").first
    figure.locator("summary").press("Enter")
    figure.get_by_role("link", name="42", exact=True).press("Enter")
    expect(styleguide.locator("#picked")).to_contain_text("Picked: call-42")


def test_gauges_and_tables_tell_everything_without_scripts(styleguide: Page, live_url: str) -> None:
    browser = styleguide.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    context.add_cookies(styleguide.context.cookies())  # type: ignore[arg-type]
    bare = context.new_page()
    bare.goto("/styleguide/")
    header = bare.locator(".gauge-header").nth(1)
    header.get_by_role("button", name=re.compile("^blocking")).focus()
    expect(header.get_by_role("tooltip")).to_contain_text("blocking = available - 3,000 = 177,000")
    expect(bare.get_by_role("img", name=re.compile("^231,000 of 200,000 tokens in use")).first).to_be_visible()
    figure = bare.locator("figure.chart").first
    figure.locator("summary").click()
    figure.get_by_role("link", name="42", exact=True).click()
    expect(bare.locator("#picked")).to_contain_text("Picked: call-42")
    context.close()


def test_times_are_in_the_zone_of_the_browser_from_the_first_page_on(styleguide: Page, live_url: str) -> None:
    browser = styleguide.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, timezone_id="Asia/Tokyo")
    context.add_cookies(styleguide.context.cookies())  # type: ignore[arg-type]
    context.clear_cookies(name="plimsoll_zone")
    abroad = context.new_page()
    abroad.goto("/styleguide/")
    expect(abroad.locator("time").first).to_have_attribute("title", re.compile(r"GMT\+9$"))
    moments = abroad.locator("time").filter(has_text=re.compile(r"^\d{4}-"))
    first = moments.all_inner_texts()
    abroad.reload()
    expect(abroad.locator("time").first).to_have_attribute("title", re.compile("JST$"))
    assert moments.all_inner_texts() == first
    context.close()


def test_page_without_scripts_says_that_its_times_are_utc(styleguide: Page, live_url: str) -> None:
    browser = styleguide.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, timezone_id="Asia/Tokyo", java_script_enabled=False)
    context.add_cookies(styleguide.context.cookies())  # type: ignore[arg-type]
    context.clear_cookies(name="plimsoll_zone")
    abroad = context.new_page()
    abroad.goto("/styleguide/")
    expect(abroad.locator("footer noscript span")).to_be_visible()  # its words are no text for a driver
    context.close()


def test_text_of_people_stays_text_in_a_figure(styleguide: Page) -> None:
    wait_for_charts(styleguide)
    area = styleguide.locator("[data-chart=parts-sample-figure]")
    label = escape_markup('<a href="https://example.org">here</a>')
    area.evaluate("(area, label) => Plotly.restyle(area, {'labels[4]': label})", label)
    expect(area.get_by_text('<a href="https://example.org">here</a>')).to_have_count(1)
    expect(area.locator("a")).to_have_count(0)
