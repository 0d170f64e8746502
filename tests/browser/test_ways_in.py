"""The ways in, in a real Chromium: from an empty overview to the tick of the way that something came by."""

import re

import pytest
from django.test import override_settings
from django.utils import timezone
from playwright.sync_api import Page, expect

from dashboard.live import room
from dashboard.models import ApiKey, Membership, Role, SessionChange, User
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.builders import make_session, make_user
from tests.dashboard.ingest.conversation import make_conversation


@pytest.fixture
def signed_in(page: Page, owner: User, sign_in: SignIn) -> Page:
    room.forget()
    sign_in(page, owner)
    return page


def test_way_says_that_something_came(signed_in: Page, axe: Axe, live_url: str) -> None:
    signed_in.goto("/")
    expect(signed_in.get_by_role("heading", name="No data yet")).to_be_visible()
    assert axe(signed_in) == []
    fold = signed_in.locator("#way-fold-api")
    expect(signed_in.get_by_role("region", name="JSON API")).to_have_count(0)  # folded; its state is seen
    expect(signed_in.locator("#way-api")).to_be_visible()
    fold.locator("summary").click()
    signed_in.get_by_role("button", name="Create key and fill it in").click()
    expect(fold).to_have_attribute("open", "")
    expect(signed_in.get_by_role("region", name="JSON API")).to_contain_text("plk_")
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
    expect(signed_in.get_by_role("heading", name="The first session has arrived. View sessions")).to_be_visible()
    expect(signed_in.locator("#way-otlp")).to_have_text("waiting")
    assert key in signed_in.get_by_role("region", name="JSON API").inner_text()
    assert axe(signed_in) == []
    signed_in.set_viewport_size({"width": 360, "height": 740})
    assert signed_in.evaluate("document.documentElement.scrollWidth") == 360


def test_copy_hands_out_no_snippet_without_its_key(signed_in: Page, page_errors: PageErrors) -> None:
    signed_in.context.grant_permissions(["clipboard-read", "clipboard-write"])
    signed_in.goto("/")
    push = signed_in.locator("#way-fold-push")
    push.locator("summary").click()
    copy = push.get_by_role("button", name="Create key and copy")
    signed_in.route("**/connect/", lambda route: route.abort())
    page_errors.expect("Failed to load resource")
    page_errors.expect("htmx:")
    copy.click()
    expect(push.get_by_role("button", name="Key not created")).to_be_visible()
    assert not ApiKey.objects.exists()
    signed_in.unroute("**/connect/")
    copy.click()
    expect(push.get_by_role("button", name="Copied", exact=True)).to_be_focused()
    copied = signed_in.evaluate("navigator.clipboard.readText()")
    assert re.match(r"export PLIMSOLL_KEY=plk_[\w-]{20,}\n", copied)
    assert ApiKey.objects.count() == 1
    expect(signed_in.get_by_text("API key created and filled into every snippet that needs one.")).to_be_visible()
    expect(signed_in.get_by_text("YOUR_KEY")).to_have_count(0)
    expect(signed_in.get_by_role("button", name="Create key and copy")).to_have_count(0)
    signed_in.locator("#way-fold-api summary").click()
    signed_in.locator(".code").last.get_by_role("button", name="Copy").click()
    expect(signed_in.locator(".code").last.get_by_role("button", name="Copied", exact=True)).to_be_visible()
    assert ApiKey.objects.count() == 1


def test_parts_of_an_empty_overview_keep_their_distance(signed_in: Page) -> None:
    for width in (1280, 360):
        signed_in.set_viewport_size({"width": width, "height": 800})
        signed_in.goto("/")
        pairs = (("[aria-labelledby=demo-title]", "#ways-state"), (".ways-in > .sub", ".connect-recommended"))
        for above, below in (*pairs, (".connect-recommended", "#make-key"), ("#make-key", ".connect-ways")):
            assert find_edge(signed_in, below, "top") - find_edge(signed_in, above, "bottom") >= 12


ORDERS = {"local": "recommended, others, key", "server": "recommended, key, others"}


@pytest.mark.parametrize("mode", ORDERS)
def test_recommended_source_comes_first_and_the_key_where_it_is_needed(signed_in: Page, mode: str) -> None:
    signed_in.set_viewport_size({"width": 1280, "height": 900})
    with override_settings(LOCAL_MODE=mode == "local"):
        signed_in.goto("/connect/")
        places = {"recommended": "#recommended-title", "key": "#make-key", "others": ".connect-others"}
        tops = {name: find_edge(signed_in, place, "top") for name, place in places.items()}
        assert ", ".join(sorted(tops, key=tops.__getitem__)) == ORDERS[mode]
        # Everything but the recommended source is folded.
        assert tops["recommended"] < 200
        expect(signed_in.locator(".connect-ways details[open]")).to_have_count(0)
        assert signed_in.locator(".connect-recommended #make-key").count() == (mode == "server")


def find_edge(page: Page, part: str, side: str) -> float:
    edge: float = page.locator(part).evaluate("(each, side) => each.getBoundingClientRect()[side]", side)
    return edge


def test_viewer_of_an_empty_team_hears_of_the_first_session(page: Page, owner: User, sign_in: SignIn) -> None:
    room.forget()
    team = owner.memberships.get().team
    vera = make_user("vera")
    Membership.objects.create(team=team, user=vera, role=Role.VIEWER)
    sign_in(page, vera)
    page.goto("/")
    expect(page.get_by_role("heading", name="No data yet")).to_be_visible()
    expect(page.locator('html[data-heard="stream"]')).to_have_count(1)
    session = make_session(team, "first", sources=["push"], last_at=timezone.now())
    SessionChange.objects.note(team.pk, [session.pk])
    page.get_by_role("link", name="View sessions").click()
    expect(page.get_by_role("heading", name="Sessions by risk")).to_be_visible()


def test_snippets_can_be_read_without_scripts(signed_in: Page, owner: User, sign_in: SignIn, live_url: str) -> None:
    browser = signed_in.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    bare = context.new_page()
    sign_in(bare, owner)
    with override_settings(LOCAL_MODE=False):
        bare.goto("/connect/")
        bare.get_by_role("button", name="Create key and fill it in").click()
        bare.locator("#way-fold-proxy summary").click()
        expect(bare.get_by_role("region", name="Proxy")).to_contain_text("X-Plimsoll-Key: plk_")
    context.close()
