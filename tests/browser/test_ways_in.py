"""The ways in, in a real Chromium: from an empty overview to the tick of the way that something came by."""

import re

import pytest
from django.test import override_settings
from playwright.sync_api import Page, expect

from dashboard.live import room
from dashboard.models import User
from tests.browser.conftest import Axe, SignIn
from tests.dashboard.ingest.conversation import make_conversation


@pytest.fixture
def signed_in(page: Page, owner: User, sign_in: SignIn) -> Page:
    room.forget()
    sign_in(page, owner)
    return page


def test_way_says_that_something_came(signed_in: Page, axe: Axe, live_url: str) -> None:
    signed_in.goto("/")
    expect(signed_in.get_by_role("heading", name="Nothing has arrived yet")).to_be_visible()
    assert axe(signed_in) == []
    signed_in.get_by_role("button", name="Make a key and fill it in").click()
    api = signed_in.get_by_role("region", name="JSON API").inner_text()
    assert live_url in api
    (key,) = re.findall(r"plk_[\w-]+", api)
    tick = signed_in.locator("#way-api")
    expect(tick).to_have_text("waiting")
    expect(signed_in.locator('html[data-heard="stream"]')).to_have_count(1)
    talk = make_conversation()
    sent = signed_in.request.post(
        f"{live_url}/api/v1/ingest/transcripts?session={talk.session_id}",
        data=talk.data,
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"},
    )
    assert sent.ok, sent.text()
    expect(tick).to_contain_text("received")
    expect(signed_in.locator("#way-otlp")).to_have_text("waiting")
    assert key in signed_in.get_by_role("region", name="JSON API").inner_text()
    assert axe(signed_in) == []
    signed_in.set_viewport_size({"width": 360, "height": 740})
    assert signed_in.evaluate("document.documentElement.scrollWidth") == 360


def test_snippets_can_be_read_without_scripts(signed_in: Page, owner: User, sign_in: SignIn, live_url: str) -> None:
    browser = signed_in.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    bare = context.new_page()
    sign_in(bare, owner)
    with override_settings(LOCAL_MODE=False):
        bare.goto("/connect/")
        bare.get_by_role("button", name="Make a key and fill it in").click()
        expect(bare.get_by_role("region", name="Proxy")).to_contain_text("X-Plimsoll-Key: plk_")
    context.close()
