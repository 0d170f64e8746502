"""The summariser's page as a person uses it: key, faults at their fields, without scripts, for axe, narrow."""

from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from dashboard.models import Beat, User
from dashboard.runs.settings_changes import SettingsChange, change_settings, set_key
from dashboard.runs.spend import reserve, settle
from dashboard.runs.team_settings import find_key, find_settings
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.browser.keys import press
from tests.builders import make_team, make_user

PAGE, PRICES = "/teams/harbour/summarizer/", "/teams/harbour/prices/"
KEY = "sk-ant-api03-secret-of-the-harbour-wxyz"


@pytest.fixture
def anna(live_url: str) -> User:
    now = timezone.now()
    Beat.objects.create(name="sweeper here", at=now)
    team, anna = make_team("Harbour", owner="olga", admin="anna"), make_user("anna")
    set_key(team, KEY, by=anna)
    prices = {"claude-mythos-5-2": ("10", "50", "12.5", "20", "0.25")}
    change_settings(team, SettingsChange(own_prices=prices), by=anna)
    reserve(team, Decimal(2), Decimal(5), now=now)
    settle(team, now=now, released_usd=Decimal("1.5"), spent_usd=Decimal("1.25"))
    return anna


def test_key_is_replaced_and_removed_after_a_question(page: Page, anna: User, sign_in: SignIn) -> None:
    team = anna.memberships.get().team
    sign_in(page, anna)
    page.goto("/teams/harbour/")
    page.get_by_role("link", name="Summariser").click()
    expect(page.get_by_text("ending in …wxyz")).to_be_visible()
    page.get_by_label("API key", exact=True).fill(KEY.replace("wxyz", "1234"))
    page.get_by_role("button", name="Replace API key").click()
    expect(page.get_by_text("ending in …1234")).to_be_visible()
    assert page.get_by_label("API key", exact=True).input_value() == ""
    assert find_key(team).endswith("1234")
    page.locator("summary", has_text="Remove API key").click()
    page.get_by_role("button", name="Remove API key", exact=True).click()
    expect(page.get_by_text("Team API key removed.")).to_be_visible()
    assert not find_settings(team).has_key


def test_price_of_a_model_is_added_by_keyboard(page: Page, anna: User, sign_in: SignIn) -> None:
    sign_in(page, anna)
    page.goto(PRICES)
    page.locator("summary", has_text="Add a price").focus()
    press(page, "Enter")
    for typed in ("claude-next-6", "3", "15"):
        press(page, "Tab")
        page.keyboard.type(typed)
    page.get_by_role("button", name="Save").focus()
    press(page, "Enter")
    expect(page.locator("summary", has_text="claude-next-6")).to_be_visible()
    assert set(find_settings(anna.memberships.get().team).own_prices) == {"claude-mythos-5-2", "claude-next-6"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_has_no_serious_accessibility_findings(
    page: Page, anna: User, sign_in: SignIn, axe: Axe, page_errors: PageErrors, scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    sign_in(page, anna)
    page_errors.expect("status of 422")
    page.goto(PAGE)
    assert axe(page) == []
    page.get_by_label("Daily cap (USD)").fill("a lot")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Enter a cap from 0 to")).to_be_visible()
    assert axe(page) == []
    page.goto(PRICES)
    page.locator("summary", has_text="claude-mythos-5-2").click()
    assert axe(page) == []
    page.get_by_label("Output").first.fill("-1")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Enter a number of dollars from 0 to 10,000.")).to_be_visible()
    assert axe(page) == []


def test_page_works_without_scripts(browser: Browser, live_url: str, anna: User, sign_in: SignIn) -> None:
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, anna)
    page.goto(PAGE)
    page.get_by_label("Daily cap (USD)").fill("2.50")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Summariser settings saved. They apply to new compactions.")).to_be_visible()
    page.locator("summary", has_text="Remove API key").click()
    page.get_by_role("button", name="Remove API key", exact=True).click()
    expect(page.get_by_text("Without a key, summaries are assembled from quotations")).to_be_visible()
    context.close()


def test_page_fits_a_narrow_screen(page: Page, anna: User, sign_in: SignIn) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    sign_in(page, anna)
    page.goto(PAGE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.goto(PRICES)
    page.locator("summary", has_text="claude-mythos-5-2").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
