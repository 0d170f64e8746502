"""Narrow screens, 200% zoom, and paper: nothing is cut off, and only tables of numbers scroll sideways."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from dashboard.live import room
from dashboard.models import AgentSession, CacheBreak, User
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import SignIn
from tests.builders import make_session
from tests.session_builders import add_break, make_calls

# What the page cannot show at once: elements beyond its edge, and words that a line without scrolling cuts.
CUT_OFF = """() => {
  const width = document.documentElement.clientWidth;
  const isSeen = (each) => each.checkVisibility({ visibilityProperty: true }) && each.getBoundingClientRect().width > 1;
  const scrolls = (each) => each.closest(".table-wrap, .js-plotly-plot, svg, pre, textarea, .visually-hidden");
  return [...document.querySelectorAll("body *")].filter((each) => isSeen(each) && !scrolls(each)).filter((each) => {
    const { left, right } = each.getBoundingClientRect();
    return left < -1 || right > width + 1;
  }).map((each) => `${each.tagName} ${each.className} ${each.textContent.trim().slice(0, 60)}`);
}"""
PROMPT = {
    "model": "claude-sonnet-4-5",
    "system": [
        {"type": "text", "text": "Today is 2026-11-16. You are careful.", "cache_control": {"type": "ephemeral"}}
    ],
    "messages": [{"role": "user", "content": "hello"}],
}
SIZES = {"360 px": (360, 740), "200% of 1280 px": (640, 450)}


@pytest.fixture
def session(owner: User) -> AgentSession:
    room.forget()
    team = owner.memberships.get().team
    session = make_session(team, "s-1", title="Mend the crane", owner=owner, has_content=True, call_count=30)
    add_break(make_calls(session, 30)[19])
    return session


@pytest.fixture
def signed_in(page: Page, session: AgentSession, owner: User, sign_in: SignIn) -> Page:
    sign_in(page, owner)
    return page


def check_prompt(page: Page) -> None:
    page.goto("/lint/")
    page.get_by_label("Request body").fill(json.dumps(PROMPT))
    page.get_by_role("button", name="Check prompt").click()
    expect(page.get_by_role("heading", name=re.compile(r"\d findings"))).to_be_visible()


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_beyond_the_edge_of_a_narrow_page(signed_in: Page, session: AgentSession, size: str) -> None:
    width, height = SIZES[size]
    signed_in.set_viewport_size({"width": width, "height": height})
    tabs = [f"/sessions/{session.pk}/{tab}" for tab in ("", "context/", "transcript/")]
    for path in (*tabs, f"/breaks/{CacheBreak.objects.get().pk}/", "/connect/"):
        signed_in.goto(path)
        wait_for_charts(signed_in)
        assert signed_in.evaluate(CUT_OFF) == [], path
    check_prompt(signed_in)
    assert signed_in.evaluate(CUT_OFF) == []
    assert signed_in.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("path", ["/connect/", "/lint/"])
def test_tables_of_sentences_do_not_scroll_on_a_phone(signed_in: Page, path: str) -> None:
    signed_in.set_viewport_size({"width": 360, "height": 740})
    if path == "/lint/":
        check_prompt(signed_in)
    else:
        signed_in.goto(path)
    frames = signed_in.locator(".table-wrap:has(> .of-words)")
    assert frames.count() == 1
    assert frames.evaluate("frame => frame.scrollWidth <= frame.clientWidth")
    labels = frames.locator("td[data-label]").first
    assert labels.evaluate("cell => getComputedStyle(cell, '::before').content") in ('"Provides: "', '"Where: "')


def test_all_thresholds_are_named_on_a_phone(signed_in: Page, session: AgentSession) -> None:
    signed_in.set_viewport_size({"width": 360, "height": 740})
    signed_in.goto(f"/sessions/{session.pk}/")
    names = signed_in.locator(".session-summary .gauge-lines > li")
    assert names.count() >= 4
    for name in names.all():
        box = name.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 360


def test_menus_and_person_have_their_names_on_a_phone(signed_in: Page) -> None:
    signed_in.set_viewport_size({"width": 360, "height": 740})
    signed_in.goto("/")
    person = signed_in.locator("summary", has_text="Signed in as").locator("span").last
    assert person.evaluate("name => name.scrollWidth <= name.clientWidth")
    assert signed_in.locator(".top-nav").evaluate("nav => nav.scrollWidth <= nav.clientWidth")


def test_paper_holds_everything_and_no_buttons(signed_in: Page, session: AgentSession) -> None:
    signed_in.set_viewport_size({"width": 718, "height": 1000})  # A4 with the margins that browsers leave
    signed_in.emulate_media(media="print")
    for path in (f"/sessions/{session.pk}/", f"/sessions/{session.pk}/context/", "/connect/", "/lint/"):
        signed_in.goto(path)
        assert signed_in.evaluate(CUT_OFF) == [], path
        expect(signed_in.locator("main .btn:visible")).to_have_count(0)
    signed_in.goto(f"/breaks/{CacheBreak.objects.get().pk}/")
    before, after = (signed_in.locator(".grid2 > .card").nth(at).bounding_box() for at in (-2, -1))
    assert before is not None
    assert after is not None
    assert after["y"] - before["y"] - before["height"] >= 12
