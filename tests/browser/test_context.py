"""The context page in a browser: areas of the treemap with readable labels, and the way from waste to its clearing."""

import re

import pytest
from playwright.sync_api import Page, expect

from dashboard.models import AgentSession, User
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import SignIn
from tests.builders import make_team, make_user
from tests.recorded_talk import RecordedTalk, record_talk


@pytest.fixture
def owner(live_url: str) -> User:
    make_team("Harbour", owner="alice")
    return make_user("alice")


@pytest.fixture
def session(owner: User) -> AgentSession:
    talk = RecordedTalk("reading")
    talk.ask("Draw the chart.")
    for number in range(20):
        talk.read_file(f"toolu_{number}", "/home/ann/chart.py", at_call=f"reading-{number}", read=0, written=12_000)
    return record_talk(owner.memberships.get().team, owner, talk)


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 360)])
def test_areas_show_tokens_and_share_inside_the_figure(
    page: Page, owner: User, session: AgentSession, sign_in: SignIn, theme: str, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/context/")
    area = page.locator("[data-chart=composition-figure]")
    area.scroll_into_view_if_needed()
    wait_for_charts(page)
    label = area.locator("text.slicetext", has_text="tool results").first
    expect(label).to_have_text(re.compile(r"tool results ~\d+\.\dk · \d+%"))
    expect(label).to_have_css("font-size", "12px")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_waste_leads_to_the_clearing_that_is_chosen_in_the_form(
    page: Page, owner: User, session: AgentSession, sign_in: SignIn
) -> None:
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/context/")
    expect(page.get_by_role("heading", name="tokens wasted on 1 file read again")).to_be_visible()
    page.locator(".wasted").get_by_role("link", name="Clear").click()
    expect(page).to_have_url(re.compile("kind=micro_"))
    expect(page.locator("input[name=kind]:checked")).to_have_value(re.compile("micro_"))
