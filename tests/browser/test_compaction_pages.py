"""Navigation and the page Compactions in Chromium: by keyboard, on a phone, without scripts, for axe."""

import csv
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from dashboard.models import Team
from tests.browser.conftest import Axe, SignIn
from tests.browser.keys import press
from tests.builders import make_session, make_team, make_user
from tests.session_rows import make_compactions, make_run


@pytest.fixture
def team(live_url: str) -> Team:
    team = make_team("Harbour with a rather long name", owner="alice")
    make_team("Marina", owner="alice")
    now = timezone.now()
    audit = {"version": 2, "parts": [], "lost_count": 3, "lost": []}
    for number in range(4):
        session = make_session(team, f"s-{number}", project="web" if number % 2 else "api", developer="mia")
        make_compactions(
            session, 16, at=now - timedelta(days=number), retained_percent=Decimal(50 + 10 * number), audit=audit,
            is_mid_task=number == 0,
        )  # fmt: skip
        make_run(session, created_at=now - timedelta(days=number))
    return team


@pytest.fixture
def signed_in(page: Page, team: Team, sign_in: SignIn) -> Page:
    sign_in(page, make_user("alice"))
    page.goto(f"/compactions/?team={team.slug}")
    return page


def test_keys_lead_to_the_pages_and_to_what_is_in_the_settings_menu(signed_in: Page) -> None:
    for letter, url in (("o", "/"), ("s", "/sessions/"), ("b", "/breaks/"), ("m", "/compactions/"), ("c", "/compare/"),
                        ("d", "/connect/"), ("j", "/jobs/"), ("h", "/health/"), ("g", "/glossary/")):  # fmt: skip
        press(signed_in, "g")
        press(signed_in, letter)
        expect(signed_in).to_have_url(url)
    press(signed_in, "?")
    expect(signed_in.locator("[data-keymap]")).to_contain_text("Go to Compactions")
    expect(signed_in.locator("[data-keymap]")).to_contain_text("Go to Data sources")


def test_settings_menu_opens_by_keyboard_and_closes_with_escape(signed_in: Page) -> None:
    summary = signed_in.locator(".top summary", has_text="Settings")
    menu = signed_in.get_by_role("navigation", name="Settings")
    expect(menu).to_be_hidden()
    summary.focus()
    signed_in.keyboard.press("Enter")
    expect(menu.get_by_role("link")).to_have_text(["Team", "Data sources", "Jobs", "Health", "Glossary"])
    signed_in.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(summary).to_be_focused()


def test_top_bar_fits_a_phone_and_works_without_scripts(browser: Browser, signed_in: Page, live_url: str) -> None:
    signed_in.set_viewport_size({"width": 390, "height": 844})
    box = signed_in.locator(".top").bounding_box()
    assert box is not None
    assert box["height"] <= 96  # the mark and the menus in one row, the pages in another
    assert signed_in.evaluate("document.documentElement.scrollWidth") <= 390
    state = signed_in.context.storage_state()
    context = browser.new_context(java_script_enabled=False, storage_state=state, base_url=live_url)
    plain = context.new_page()
    plain.set_viewport_size({"width": 390, "height": 844})
    plain.goto("/compactions/")
    plain.locator(".top summary", has_text="Settings").click()
    plain.get_by_role("link", name="Data sources").click()
    expect(plain).to_have_url(re.compile(r"/connect/$"))
    plain.goto("/compactions/")
    plain.get_by_label("Retained", exact=True).select_option("below_60")
    plain.get_by_role("button", name="Apply").click()
    expect(plain.get_by_role("link", name="Remove the filter retained below 60%")).to_be_visible()
    context.close()


def test_list_is_filtered_paged_and_exported(signed_in: Page, team: Team) -> None:
    expect(signed_in.locator(".chart-area:not(.drawn)")).to_have_count(0)
    signed_in.get_by_label("Project").select_option("web")
    expect(signed_in).to_have_url(f"/compactions/?team={team.slug}&project=web")
    expect(signed_in.locator("#list tbody tr")).to_have_count(34)
    signed_in.get_by_role("link", name="Remove the filter project web").click()
    signed_in.get_by_role("link", name="Older").click()
    expect(signed_in.locator("#list tbody tr")).to_have_count(68 - 50)
    with signed_in.expect_download() as started:
        press(signed_in, "e")
    with started.value.path().open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == 68
    signed_in.locator("#list tbody [data-opens]").first.click()
    expect(signed_in).to_have_url(re.compile(r"/(compactions|runs)/\d+/$"))


@pytest.mark.parametrize("width", [390, 1280])
def test_page_keeps_the_rules_of_accessibility(signed_in: Page, axe: Axe, width: int) -> None:
    signed_in.set_viewport_size({"width": width, "height": 844})
    signed_in.locator(".top summary", has_text="Settings").click()
    assert axe(signed_in) == []
