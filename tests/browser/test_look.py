"""The look in a real Chromium: themes, keyboard, dialogs, charts under the content policy, accessibility."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from dashboard.models import User
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.browser.keys import press

CHARTS = 6
SHOWN_BACKGROUND = "getComputedStyle(document.body).backgroundColor"
LIGHT, DARK = "rgb(246, 248, 250)", "rgb(14, 21, 28)"


def theme_cookie(context: BrowserContext) -> str | None:
    return next((cookie["value"] for cookie in context.cookies() if cookie["name"] == "plimsoll_theme"), None)


def test_theme_key_flips_at_once_and_is_remembered_by_the_server(styleguide: Page) -> None:
    assert styleguide.evaluate(SHOWN_BACKGROUND) == LIGHT
    press(styleguide, "t")
    assert styleguide.evaluate(SHOWN_BACKGROUND) == DARK
    assert theme_cookie(styleguide.context) == "dark"
    # No flash: the first byte of the next page already says it, before any script runs.
    answer = styleguide.request.get("/styleguide/")
    assert '<html lang="en" data-theme="dark">' in answer.text()
    styleguide.reload()
    assert styleguide.evaluate(SHOWN_BACKGROUND) == DARK


def test_theme_menu_goes_back_to_the_system(styleguide: Page) -> None:
    styleguide.locator("summary", has_text="Signed in as").click()
    styleguide.get_by_role("button", name="Dark").click()
    expect(styleguide.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert styleguide.evaluate(SHOWN_BACKGROUND) == DARK
    styleguide.get_by_role("button", name="System", exact=True).click()
    assert theme_cookie(styleguide.context) is None
    assert styleguide.evaluate(SHOWN_BACKGROUND) == LIGHT
    styleguide.emulate_media(color_scheme="dark")
    assert styleguide.evaluate(SHOWN_BACKGROUND) == DARK


def test_overlay_lists_the_keys_that_work_here(styleguide: Page) -> None:
    press(styleguide, "?")
    overlay = styleguide.get_by_role("dialog", name="Keyboard")
    expect(overlay).to_be_visible()
    listed = [" ".join(keys.split()) for keys in overlay.locator("dt").all_inner_texts()]
    assert listed == [
        "g o",
        "g s",
        "g b",
        "g m",
        "g c",
        "g t",
        "g d",
        "g j",
        "g h",
        "g g",
        "/",
        "Esc",
        "j",
        "k",
        "Enter",
        "Ctrl K",
        "t",
        "?",
    ]
    press(styleguide, "?")
    expect(overlay).to_be_hidden()


def test_every_listed_key_works(styleguide: Page) -> None:
    press(styleguide, "j")
    press(styleguide, "j")
    press(styleguide, "k")
    expect(styleguide.locator("tr.is-current")).to_have_count(1)
    expect(styleguide.get_by_role("link", name="Fix flaky login tests")).to_be_focused()
    press(styleguide, "Enter")
    expect(styleguide).to_have_url("/styleguide/#tables")
    press(styleguide, "/")
    expect(styleguide.get_by_label("Search sessions")).to_be_focused()
    styleguide.keyboard.type("t?jg")
    expect(styleguide.get_by_label("Search sessions")).to_have_value("t?jg")
    press(styleguide, "Tab")
    press(styleguide, "g")
    press(styleguide, "o")
    expect(styleguide).to_have_url("/")


def test_confirmation_asks_in_a_dialog_and_gives_the_focus_back(styleguide: Page) -> None:
    opener = styleguide.locator("summary", has_text="Remove alice")
    opener.press("Enter")
    dialog = styleguide.get_by_role("dialog", name="Remove alice from Harbour?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    expect(dialog.locator("input[name=csrfmiddlewaretoken]")).to_have_count(1)
    press(styleguide, "Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()
    expect(styleguide.locator("details.confirm > .ask form")).to_have_count(1)


def test_tooltip_answers_to_the_keyboard(styleguide: Page) -> None:
    word = styleguide.get_by_role("button", name="list price").first
    word.focus()
    tooltip = styleguide.get_by_role("tooltip").filter(has_text="API list prices")
    expect(tooltip).to_be_visible()
    press(styleguide, "Escape")
    expect(tooltip).to_be_hidden()


def test_code_is_copied_quietly(styleguide: Page, live_url: str) -> None:
    styleguide.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=live_url)
    styleguide.get_by_role("button", name="Copy").first.click()
    expect(styleguide.get_by_role("button", name="Copied")).to_be_visible()
    assert styleguide.evaluate("navigator.clipboard.readText()").startswith("plimsoll createkey")


def test_charts_draw_under_the_content_policy(styleguide: Page) -> None:
    wait_for_charts(styleguide, CHARTS)
    expect(styleguide.locator(".indicatorlayer .angular path")).not_to_have_count(0)
    expect(styleguide.locator(".scatterlayer .trace")).not_to_have_count(0)
    expect(styleguide.locator(".barlayer .trace")).not_to_have_count(0)
    expect(styleguide.locator(".treemaplayer .slice")).not_to_have_count(0)
    press(styleguide, "t")
    wait_for_charts(styleguide, CHARTS)
    assert styleguide.evaluate("window.violations") == []
    assert styleguide.evaluate("document.querySelectorAll('style').length") == 0


def test_charts_follow_the_theme(styleguide: Page) -> None:
    wait_for_charts(styleguide, CHARTS)
    area = styleguide.locator(".scatterlayer .js-fill").nth(2)
    expect(area).to_have_css("fill", "rgb(15, 47, 84)")
    press(styleguide, "t")
    expect(area).to_have_css("fill", "rgb(195, 226, 251)")


def test_plotly_comes_after_the_page_and_only_once_a_chart_is_near(page: Page, owner: User, sign_in: SignIn) -> None:
    sign_in(page, owner)
    page.set_viewport_size({"width": 1280, "height": 300})
    with page.expect_event("load"):
        page.goto("/styleguide/")
    page.wait_for_timeout(1500)  # longer than the page waits for an idle moment
    assert page.evaluate("'Plotly' in window") is False
    reserved = page.locator(".chart-area").first.bounding_box()
    assert reserved is not None
    page.locator(".chart-area").first.scroll_into_view_if_needed()
    wait_for_charts(page, CHARTS)
    drawn = page.locator(".chart-area").first.bounding_box()
    assert drawn is not None
    assert (drawn["width"], drawn["height"]) == (reserved["width"], reserved["height"])
    loaded, asked = page.evaluate(
        "[performance.getEntriesByType('navigation')[0].loadEventEnd,"
        " performance.getEntriesByType('resource').find((one) => one.name.includes('plotly.min')).startTime]"
    )
    assert loaded < asked


def test_chart_says_that_it_did_not_load(page: Page, owner: User, sign_in: SignIn, page_errors: PageErrors) -> None:
    page_errors.expect("ERR_FAILED")
    sign_in(page, owner)
    page.route("**/plotly/*", lambda route: route.abort())
    page.goto("/styleguide/")
    page.locator(".chart-area").first.scroll_into_view_if_needed()
    expect(page.locator(".chart-area.failed")).to_have_count(CHARTS)
    words = page.locator(".chart-area").first.evaluate("(area) => getComputedStyle(area, '::before').content")
    assert "The chart did not load" in words


def test_pages_without_charts_do_not_load_plotly(page: Page, owner: User, sign_in: SignIn) -> None:
    sign_in(page, owner)
    page.goto("/")
    assert page.locator("script[src*=plotly]").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_style_guide_has_no_serious_accessibility_finding(styleguide: Page, axe: Axe, theme: str) -> None:
    if theme == "dark":
        press(styleguide, "t")
    wait_for_charts(styleguide, CHARTS)
    assert axe(styleguide) == []
    press(styleguide, "?")
    assert axe(styleguide) == []


@pytest.mark.parametrize("path", ["/styleguide/", "/", "/sign-in/", "/no-such-page/"])
def test_nothing_scrolls_sideways_on_a_small_phone(
    page: Page, owner: User, sign_in: SignIn, page_errors: PageErrors, path: str
) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    if path != "/sign-in/":
        sign_in(page, owner)
    if path == "/no-such-page/":
        page_errors.expect("404")
    page.goto(path)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_page_works_without_scripts(page: Page, owner: User, sign_in: SignIn, live_url: str) -> None:
    browser = page.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    bare = context.new_page()
    sign_in(bare, owner)
    bare.goto("/styleguide/")
    bare.locator("summary", has_text="Remove alice").click()
    expect(bare.get_by_role("button", name="Remove", exact=True)).to_be_visible()
    bare.locator("summary", has_text="Signed in as").click()
    bare.get_by_role("button", name="Dark").click()
    expect(bare.locator("html")).to_have_attribute("data-theme", "dark")
    expect(bare).to_have_url("/styleguide/")
    context.close()
