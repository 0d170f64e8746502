"""The command palette by keyboard, the glossary, and pages on paper."""

import re

import pytest
from playwright.sync_api import Page, expect

from dashboard.models import AgentSession, SavedView, User
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.browser.keys import press
from tests.builders import make_team, make_user
from tests.dashboard.running import wait_until
from tests.recorded_talk import record_talk, write_recorded_talk

NAME = "Charts of the harbour"


@pytest.fixture
def owner(live_url: str) -> User:
    make_team("Harbour", owner="alice")
    return make_user("alice")


@pytest.fixture
def session(owner: User) -> AgentSession:
    return record_talk(owner.memberships.get().team, owner, write_recorded_talk())


@pytest.fixture
def signed_in(page: Page, owner: User, session: AgentSession, sign_in: SignIn) -> Page:
    sign_in(page, owner)
    return page


def test_palette_is_worked_by_keyboard(signed_in: Page, session: AgentSession, axe: Axe) -> None:
    signed_in.goto("/glossary/")
    press(signed_in, "Control+k")
    field = signed_in.get_by_role("combobox")
    expect(field).to_be_focused()
    expect(signed_in.get_by_role("option", name=NAME)).to_be_visible()
    assert axe(signed_in) == []
    signed_in.keyboard.type("harb")
    expect(signed_in.get_by_role("option", selected=True)).to_contain_text(NAME)  # pages of the team come after it
    expect(field).to_have_attribute("aria-activedescendant", "palette-option-0")
    press(signed_in, "Enter")
    expect(signed_in).to_have_url(re.compile(rf"/sessions/{session.pk}/$"))
    press(signed_in, "Control+k")
    signed_in.keyboard.type("compact this")
    expect(signed_in.get_by_role("option", selected=True)).to_contain_text("Compact this session")
    press(signed_in, "Escape")
    expect(field).to_be_hidden()
    press(signed_in, "Control+k")
    signed_in.keyboard.type("light and dark")
    press(signed_in, "Enter")
    expect(signed_in.locator("html")).to_have_attribute("data-theme", "dark")
    press(signed_in, "Meta+k")
    signed_in.keyboard.type("page")
    expect(signed_in.get_by_text("No results.")).to_be_visible()
    for _ in "page":
        press(signed_in, "Backspace")
    signed_in.keyboard.type("tab:")
    press(signed_in, "ArrowDown")
    expect(signed_in.get_by_role("option", selected=True)).to_contain_text("Tab: Compactions")
    press(signed_in, "ArrowUp")
    press(signed_in, "ArrowUp")
    expect(signed_in.get_by_role("option", selected=True)).to_contain_text("Tab: Effective settings")
    press(signed_in, "Enter")
    expect(signed_in).to_have_url(re.compile("/settings/$"))


FOUND = {
    "upload": "Upload transcripts",
    "keys api": "API keys",
    "thresholds": "Thresholds",
    "members": "Members",
    "webhooks": "Webhooks",
    "summariser": "Summariser",
    "redaction": "Redaction",
    "storage": "Storage",
    "automation": "Automatic mode",
    "settings proxy": "Proxy settings",
    "audit": "Audit log",
    "save view": "Save this view",
    "columns": "Choose columns",
    "sign out": "Sign out",
    "log out": "Sign out",
    "help": "Show keyboard shortcuts",
    "keys": "Show keyboard shortcuts",
    "theme": "Theme: dark",
    "dark mode": "Theme: dark",
    "make demo": "Load demo data",
    "web shop": "Web shop",
    "export csv": "Export sessions as CSV",
    "glossary": "Glossary",
}


def test_palette_finds_pages_and_what_can_be_done(signed_in: Page, owner: User) -> None:
    SavedView.objects.create(owner=owner, list_name="sessions", name="Web shop", query="project=web")
    signed_in.goto("/sessions/")
    press(signed_in, "Control+k")
    palette = signed_in.locator("#palette")
    field = palette.get_by_role("combobox")
    expect(palette.get_by_role("option", name="Audit log")).to_be_attached()
    for typed, found in FOUND.items():
        field.fill(typed)
        expect(palette.get_by_role("option", name=found), typed).to_have_count(1)
    field.fill("overview")
    expect(palette.get_by_role("option", selected=True).locator("kbd")).to_have_text(["g", "o"])
    field.fill("shop web")
    press(signed_in, "Enter")
    expect(signed_in).to_have_url("/sessions/?project=web")


def choose(page: Page, typed: str, found: str) -> None:
    press(page, "Control+k")
    page.locator("#palette-text").fill(typed)
    page.locator("#palette").get_by_role("option", name=found).click()


def test_palette_does_what_can_be_done(signed_in: Page, session: AgentSession) -> None:
    signed_in.goto("/sessions/")
    choose(signed_in, "save view", "Save this view")
    expect(signed_in.get_by_label("Name")).to_be_focused()
    choose(signed_in, "columns", "Choose columns")
    expect(signed_in.locator(".menu-form").get_by_role("checkbox").first).to_be_focused()
    choose(signed_in, "search", "Search this list")
    expect(signed_in.get_by_label("Search")).to_be_focused()
    choose(signed_in, "theme dark", "Theme: dark")
    expect(signed_in.locator("html")).to_have_attribute("data-theme", "dark")
    choose(signed_in, "help", "Show keyboard shortcuts")
    expect(signed_in.get_by_role("heading", name="Keyboard")).to_be_visible()
    press(signed_in, "Escape")
    choose(signed_in, "api keys", "API keys")
    expect(signed_in).to_have_url(re.compile("/teams/harbour/keys/$"))
    choose(signed_in, "create key", "Create key")
    expect(signed_in.get_by_label("Name")).to_be_focused()  # it is filled in before it is sent
    signed_in.goto(f"/sessions/{session.pk}/settings/")
    choose(signed_in, "delete", "Delete session")
    expect(signed_in.get_by_role("dialog", name="Delete session")).to_be_visible()
    signed_in.goto("/glossary/")
    choose(signed_in, "demo", "Load demo data")
    expect(signed_in.locator(".demo-notice")).to_be_visible()
    choose(signed_in, "remove demo", "Remove demo data")
    expect(signed_in.locator(".demo-notice")).to_have_count(0)
    choose(signed_in, "log out", "Sign out")
    expect(signed_in).to_have_url(re.compile("/sign-in/"))


def test_palette_knows_the_links_of_the_page_when_places_cannot_be_asked_for(
    signed_in: Page, page_errors: PageErrors
) -> None:
    page_errors.expect("Failed to load resource")
    signed_in.route("**/palette/places", lambda route: route.abort())
    signed_in.goto("/")
    press(signed_in, "Control+k")
    expect(signed_in.get_by_role("option", name="Glossary")).to_have_count(1)


def test_palette_says_when_sessions_cannot_be_asked_for(signed_in: Page, page_errors: PageErrors) -> None:
    page_errors.expect("Failed to load resource")
    signed_in.route("**/palette/sessions*", lambda route: route.abort())
    signed_in.goto("/")
    signed_in.get_by_role("button", name="Find").click()
    expect(signed_in.get_by_text("Session search is unavailable.")).to_be_visible()
    expect(signed_in.get_by_role("option", name="Overview")).to_be_visible()


def test_keymap_names_the_palette(signed_in: Page) -> None:
    signed_in.goto("/")
    press(signed_in, "?")
    expect(signed_in.locator("#keymap")).to_contain_text("Find a session, a page or an action")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_glossary_has_no_serious_accessibility_findings(signed_in: Page, axe: Axe, scheme: str) -> None:
    signed_in.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    signed_in.set_viewport_size({"width": 360, "height": 720})
    signed_in.goto("/glossary/#term-ttl")
    assert signed_in.evaluate("document.documentElement.scrollWidth") == 360
    expect(signed_in.locator("#term-ttl")).to_be_in_viewport()
    assert axe(signed_in) == []


def _stands_still(page: Page) -> bool:
    """Asked from outside: what a page asks itself again and again, its policy takes for evaluated text."""
    return bool(page.evaluate("() => document.getAnimations().every((each) => each.playState !== 'running')"))


def test_pages_print_without_what_only_works_on_a_screen(signed_in: Page, session: AgentSession) -> None:
    loss, compaction = session.breaks.all()[0], session.compactions.get()
    tabs = [f"/sessions/{session.pk}/", f"/sessions/{session.pk}/transcript/"]
    signed_in.emulate_media(media="print", color_scheme="dark", reduced_motion="reduce")
    for url in (*tabs, f"/breaks/{loss.pk}/", f"/compactions/{compaction.pk}/", "/breaks/"):
        signed_in.goto(url)
        expect(signed_in.get_by_role("heading", level=1)).to_be_visible()
        for part in (".top", ".tabs", ".foot", ".exports", "form", ".actions"):
            expect(signed_in.locator(part).locator("visible=true"), f"{part} of {url}").to_have_count(0)
        expect(signed_in.locator("body"), url).to_have_css("color", "rgb(18, 33, 47)")
        wait_until(lambda: _stands_still(signed_in), seconds=10, what=f"{url} to stand still")
