"""Breaks and compactions as a person reads them: from the session to the reason, narrow, without scripts, for axe."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.models import AgentSession, User
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.builders import make_team, make_user
from tests.recorded_talk import record_talk, write_recorded_talk


@pytest.fixture
def owner(live_url: str) -> User:
    make_team("Harbour", owner="alice", viewer="vera")
    return make_user("alice")


@pytest.fixture
def session(owner: User) -> AgentSession:
    return record_talk(owner.memberships.get().team, owner, write_recorded_talk())


def list_urls(session: AgentSession) -> Iterator[str]:
    yield from (f"/sessions/{session.pk}/{tab}/" for tab in ("compactions", "breaks", "context", "transcript"))
    yield from (f"/breaks/{loss.pk}/" for loss in session.breaks.all())
    yield from (f"/compactions/{compaction.pk}/" for compaction in session.compactions.all())


def test_person_reads_why_a_break_happened(page: Page, owner: User, session: AgentSession, sign_in: SignIn) -> None:
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/")
    page.locator("#tabs").get_by_role("link", name="Cache breaks").click()
    page.get_by_role("link", name="MCP server jira added").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("MCP server jira added")
    expect(page.get_by_role("main")).to_contain_text("mcp__jira__search")
    page.get_by_role("link", name="Go to first divergence").click()
    first = page.locator("#first-divergence")
    expect(first).to_be_in_viewport()
    expect(first.locator("ins")).to_contain_text("quickly")
    page.get_by_text("1 tool unchanged").click()
    expect(page.locator(".fold[open]")).to_contain_text("Read")
    expect(page.get_by_text("Connect MCP servers before the first prompt")).to_be_visible()


def test_person_opens_a_compaction_and_sees_what_came_back(
    page: Page, owner: User, session: AgentSession, sign_in: SignIn
) -> None:
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/compactions/")
    page.get_by_role("link", name="freed").click()
    expect(page.locator("#summary details[open]", has_text="Pending Tasks")).to_be_visible()
    restored = page.locator("#restored")
    expect(restored).to_contain_text("/home/ann/chart.py")
    restored.get_by_text("Show what it said").click()
    expect(restored.locator("pre")).to_contain_text("depth 12 m")
    page.locator("#lost .losses").get_by_role("link").first.click()
    expect(page.locator("#messages tr:target")).to_contain_text("Never touch the lighthouse module.")


def test_pages_have_no_serious_accessibility_findings(
    page: Page, owner: User, session: AgentSession, sign_in: SignIn, axe: Axe
) -> None:
    page.emulate_media(color_scheme="dark")  # test_every_page has both
    for name in ("alice", "vera"):
        page.context.clear_cookies()
        sign_in(page, make_user(name))
        for url in list_urls(session):
            page.goto(url)
            page.locator("main details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
            assert axe(page) == [], (url, name)


def test_pages_fit_a_narrow_screen(page: Page, owner: User, session: AgentSession, sign_in: SignIn) -> None:
    sign_in(page, owner)
    page.set_viewport_size({"width": 360, "height": 720})
    for url in list_urls(session):
        page.goto(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, url


def test_pages_can_be_read_without_scripts(
    browser: Browser, live_url: str, owner: User, session: AgentSession, sign_in: SignIn, page_errors: PageErrors
) -> None:
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/context/")
    expect(page.get_by_role("table").first).to_be_visible()
    page.locator("#tabs").get_by_role("link", name="Cache breaks").click()
    page.get_by_role("link", name="MCP server jira added").click()
    expect(page.locator("#first-divergence")).to_contain_text("quickly")
    page.goto(f"/sessions/{session.pk}/compactions/")
    page.get_by_role("link", name="freed").click()
    expect(page.locator("#summary details[open]", has_text="Pending Tasks")).to_be_visible()
    page.get_by_role("link", name="lost only").click()
    expect(page.locator("#messages tbody tr:not(.is-lost)")).to_have_count(0)
    expect(page.locator("#messages tbody tr.is-lost").first).to_be_visible()
    context.close()
