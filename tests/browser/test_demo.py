"""The demo, in a real Chromium: one button on an empty installation, the overview fills, one button takes it away."""

import pytest
from playwright.sync_api import Page, expect

from dashboard.demo import making
from dashboard.demo.fleet import FLEET
from dashboard.live import room
from dashboard.models import AgentSession, Team, User
from tests.browser.conftest import Axe, SignIn
from tests.browser.test_runs import work_once


def test_button_fills_the_overview_and_button_takes_it_away(
    page: Page, owner: User, sign_in: SignIn, axe: Axe, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"blocked-desk", "seat-map", "slow-lane"}
    monkeypatch.setattr(making, "FLEET", tuple(planned for planned in FLEET if planned.name in names))
    room.forget()
    sign_in(page, owner)
    page.goto("/")
    page.get_by_role("button", name="Load demo data").click()
    expect(page.get_by_role("heading", name="Loading demo data")).to_be_visible()
    assert axe(page) == []
    work_once()
    expect(page.get_by_role("heading", name="Sessions by risk")).to_be_visible(timeout=20_000)
    expect(page.get_by_role("link", name="The day close hangs")).to_be_visible()
    expect(page.get_by_text("Sample data. Sessions, people and costs are fictional.")).to_be_visible(timeout=20_000)
    assert axe(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_role("button", name="Remove demo data").click()
    expect(page.get_by_text("Demo data removed: 3 sessions")).to_be_visible(timeout=20_000)
    expect(page.get_by_role("button", name="Load demo data")).to_be_visible()
    assert not AgentSession.objects.exists()
    assert not Team.objects.filter(is_demo=True).exists()
