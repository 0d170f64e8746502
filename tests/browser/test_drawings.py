"""Gauges and figures in a real Chromium: what a tick says to the keyboard, what a click on a call asks for."""

import re

from playwright.sync_api import Page, expect

from tests.browser.test_look import owner, styleguide  # noqa: F401 (fixtures)


def test_tick_of_a_gauge_tells_its_formula_to_the_keyboard(styleguide: Page) -> None:  # noqa: F811
    header = styleguide.locator(".gauge-header").nth(1)
    tick = header.get_by_role("button", name=re.compile("^auto-compact"))
    tip = header.get_by_role("tooltip").filter(has_text="auto = available - 13,000 = 167,000")
    header.get_by_role("button", name=re.compile("^warning and error")).focus()
    expect(tip).to_be_visible()
    styleguide.keyboard.press("Tab")
    expect(tick).to_be_focused()
    expect(tip).to_have_count(1)
    expect(tip).to_contain_text("window 200,000 from the client's table for claude-opus-4-5")
    styleguide.keyboard.press("Escape")
    expect(header.get_by_role("tooltip")).to_have_count(0)


def test_tick_on_the_bar_answers_to_the_pointer_as_its_name_does(styleguide: Page) -> None:  # noqa: F811
    header = styleguide.locator(".gauge-header").nth(1)
    header.scroll_into_view_if_needed()
    bar = header.locator(".gauge-bar").bounding_box()
    assert bar is not None
    styleguide.mouse.move(bar["x"] + bar["width"] * 0.885, bar["y"] + bar["height"] / 2)
    expect(header.get_by_role("tooltip")).to_contain_text("blocking = available - 3,000 = 177,000")
