"""The notes of a session as a person uses them: taken, edited, compared; narrow, in both looks, without scripts."""

import pytest
from playwright.sync_api import Browser, Page, expect

from dashboard.models import AgentSession, SessionNote, Team, User
from tests.browser.conftest import Axe, SignIn
from tests.browser.test_runs import work_once
from tests.builders import make_team, make_user
from tests.dashboard.runs.world import record_session, write_talk


@pytest.fixture
def alice(live_url: str) -> User:
    make_team("Harbour", owner="alice", viewer="vera")
    return make_user("alice")


@pytest.fixture
def session(alice: User) -> AgentSession:
    team: Team = alice.memberships.get().team
    return record_session(team, write_talk("charting", turns=6))


def test_person_takes_edits_and_compacts_from_notes(
    browser: Browser, live_url: str, alice: User, session: AgentSession, sign_in: SignIn
) -> None:
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, alice)
    page.goto(f"/sessions/{session.pk}/")
    page.get_by_role("link", name="Notes", exact=True).click()
    expect(page.get_by_text("No notes for this session yet.")).to_be_visible()
    page.get_by_role("button", name="Take notes now").click()
    expect(page.get_by_role("button", name="Taking notes…")).to_be_disabled()
    work_once()
    page.reload()
    expect(page.locator("#notes details[open]").nth(1)).to_contain_text("Current State")
    page.locator("summary", has_text="Edit notes").click()
    area = page.get_by_label("Text of the new version")
    area.fill(area.input_value().replace("# Worklog", "# Key Decisions\nThe lighthouse stays.\n\n# Worklog"))
    page.get_by_role("button", name="Save new version").click()
    expect(page.locator("#changes .line.add").first).to_contain_text("Key Decisions")
    page.locator("#history").get_by_role("link", name="1", exact=True).click()
    expect(page.get_by_text("This is not the newest version.")).to_be_visible()
    page.get_by_role("link", name="Compact from notes").click()
    expect(page.get_by_role("radio", name="From the notes")).to_be_checked()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_reads_well_for_everybody(
    page: Page, alice: User, session: AgentSession, sign_in: SignIn, axe: Axe, scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    for number, words in ((1, "Basin 2 is drawn."), (2, "Basin 3 is drawn." + "x" * 400)):
        text = f"# Current State\n_Now._\n{words}\n\n# Worklog\n"
        SessionNote.objects.create(team=session.team, session=session, number=number, text=text, writer="extractive")
    for name in ("alice", "vera"):
        page.context.clear_cookies()
        sign_in(page, make_user(name))
        page.goto(f"/sessions/{session.pk}/notes/")
        page.locator("main details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
        assert axe(page) == [], name
        page.set_viewport_size({"width": 360, "height": 720})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
