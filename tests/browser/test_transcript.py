"""The transcript as a person reads it: unfold a call, follow a loss to its line, page and search without scripts."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.models import AgentSession, User
from tests.browser.conftest import SignIn
from tests.builders import make_team, make_user
from tests.dashboard.ingest.conversation import make_agent
from tests.recorded_talk import record_talk, write_recorded_talk


@pytest.fixture
def owner(live_url: str) -> User:
    make_team("Harbour", owner="alice")
    return make_user("alice")


@pytest.fixture
def session(owner: User) -> AgentSession:
    talk = write_recorded_talk()
    for number in range(60):
        talk.ask(f"Tide {number}")
    team = owner.memberships.get().team
    record_talk(team, owner, make_agent("recorded"))
    return record_talk(team, owner, talk)


def test_person_follows_a_loss_to_what_was_said(
    page: Page, owner: User, session: AgentSession, sign_in: SignIn
) -> None:
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/")
    page.get_by_role("link", name="Transcript").click()
    page.locator(".tool-group > details > summary").first.click()
    call = page.locator("details.tool-call").first
    expect(call.locator("summary")).to_contain_text("/home/ann/chart.py")
    expect(call.get_by_label("Result of Read")).to_be_hidden()
    call.locator("summary").click()
    expect(call.get_by_label("Result of Read")).to_contain_text("depth 12 m")
    page.locator(".divider").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/compactions/"))
    page.locator("#lost").get_by_role("link", name="in the transcript").first.click()
    wanted = page.locator(".entry.is-wanted")
    expect(wanted).to_be_in_viewport()
    expect(wanted).to_contain_text("Never touch the lighthouse module.")
    result = page.locator("details.tool-call [id^=entry-]").last.get_attribute("id") or ""
    page.goto(f"/sessions/{session.pk}/transcript/?entry={result.removeprefix('entry-')}")
    expect(page.locator("details.tool-call[open] .is-wanted")).to_be_in_viewport()


def test_transcript_is_paged_and_searched_without_scripts(
    browser: Browser, live_url: str, owner: User, session: AgentSession, sign_in: SignIn
) -> None:
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/transcript/")
    page.locator(".tool-group > details > summary").first.click()
    page.locator("details.tool-call > summary").first.click()
    expect(page.get_by_label("Result of Read").first).to_be_visible()
    page.get_by_role("link", name="Later").first.click()
    expect(page.get_by_text("Tide 59")).to_be_visible()
    page.get_by_role("link", name="Earlier").first.click()
    page.get_by_label("Search the conversation").fill("tide 57")
    page.get_by_role("button", name="Search").click()
    page.locator(".transcript-found").get_by_role("link", name="Tide 57").click()
    expect(page.locator(".entry.is-wanted mark")).to_have_text("Tide 57")
    expect(page).to_have_url(re.compile("text=tide%2057"))
    page.reload()
    expect(page.locator(".entry.is-wanted mark")).to_have_text("Tide 57")
    page.locator(".transcript-threads > summary").click()
    page.get_by_role("link", name="sub-agent").click()
    expect(page.get_by_text("Look at the tides.")).to_be_visible()
    context.close()


def test_keys_go_from_prompt_to_prompt_across_pages(
    page: Page, owner: User, session: AgentSession, sign_in: SignIn
) -> None:
    sign_in(page, owner)
    page.goto(f"/sessions/{session.pk}/transcript/")
    page.keyboard.press("?")
    expect(page.locator("#keymap")).to_contain_text("Next prompt")
    page.keyboard.press("Escape")
    prompts = page.locator(".transcript > .is-prompt")
    for number in (0, 1, 2):
        page.keyboard.press("n")
        expect(prompts.nth(number)).to_be_focused()
        expect(prompts.nth(number)).to_be_in_viewport()
    page.keyboard.press("p")
    expect(prompts.nth(1)).to_be_focused()
    last = prompts.last
    last_id = last.get_attribute("id") or ""
    last.get_by_role("link", name="Next prompt").focus()
    page.keyboard.press("n")
    expect(page.locator(".entry.is-wanted")).to_be_in_viewport()
    expect(page.locator(f"#{last_id}")).not_to_have_class(re.compile("is-wanted"))
    page.locator(".entry.is-wanted").get_by_role("link", name="Previous prompt").click()
    expect(page.locator(".entry.is-wanted")).to_have_id(last_id)
