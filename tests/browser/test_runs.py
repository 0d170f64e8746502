"""Compactions as a person does them: from the session to the result, cancel, edit, compare; keyboard, no scripts."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from dashboard import access
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, Beat, CompactionRun, RunKind, RunRevision, Team, ThreadBreaker, User
from dashboard.runs.choices import RunChoices
from dashboard.runs.start import start_run
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.browser.keys import press
from tests.builders import make_team, make_user
from tests.dashboard.runs.test_missing_lines import drop_turns, write_long_talk
from tests.dashboard.runs.test_predicted_losses import write_forgetful_talk
from tests.dashboard.runs.world import record_session, run_now, write_talk

RUN = re.compile(r"/runs/\d+/$")


@pytest.fixture
def team(live_url: str) -> Team:
    Beat.objects.create(name="sweeper here", at=timezone.now())
    return make_team("Harbour", owner="alice", admin="anna", viewer="vera")


@pytest.fixture
def alice(team: Team) -> User:
    return make_user("alice")


@pytest.fixture
def session(team: Team, alice: User) -> AgentSession:
    return record_session(team, write_talk("charting", turns=10, growth=1_200))


def work_once() -> None:
    """As a worker does: in a thread and on a connection of its own, so that the page is watching meanwhile."""

    def work() -> None:
        try:
            perform_due()
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def start(session: AgentSession, choices: RunChoices | None = None) -> CompactionRun:
    actor = access.person(make_user("alice"))
    return start_run(actor, session, choices or RunChoices(), source="page", now=timezone.now())


@contextmanager
def without_scripts(browser: Browser, live_url: str, sign_in: SignIn, user: User) -> Iterator[Page]:
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    context.set_default_timeout(10_000)
    page = context.new_page()
    sign_in(page, user)
    yield page
    context.close()


def test_person_compacts_a_session_and_reads_the_result(
    page: Page, alice: User, session: AgentSession, sign_in: SignIn
) -> None:
    sign_in(page, alice)
    page.goto(f"/sessions/{session.pk}/")
    press(page, "c")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compact")
    expect(page.get_by_text("Press Preview to see the messages")).to_be_hidden()
    page.get_by_label("Instructions").fill("Keep the basins.")
    expect(page.get_by_text("'/compact Keep the basins.'")).to_be_visible()
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(RUN)
    expect(page.locator("[aria-current=step]")).to_contain_text("Waiting for a worker")
    before = page.locator(".elapsed > b").inner_text()
    expect(page.locator(".elapsed > b")).not_to_have_text(before)  # it ticks
    work_once()
    expect(page.get_by_role("heading", level=1)).to_contain_text(" lost")
    expect(page.locator("#run-progress")).to_have_count(0)
    expect(page.locator("#summary details[open]", has_text="All User Messages")).to_contain_text("Turn 9")
    expect(page.locator("#restored")).to_contain_text("/home/ann/basin_9.py")
    expect(page.locator("#restored")).to_contain_text("not restored")
    expect(page.locator("#restored")).to_contain_text("skipped")
    page.locator(".crumbs").get_by_role("link", name="Compactions").click()
    expect(page.get_by_role("region", name="By Plimsoll")).to_contain_text("done")


def test_cards_say_what_each_kind_would_lose_before_it_starts(
    page: Page, alice: User, team: Team, sign_in: SignIn
) -> None:
    session = record_session(team, write_forgetful_talk())
    sign_in(page, alice)
    page.goto(f"/sessions/{session.pk}/compact/")
    full = page.locator(".kind-card", has_text="The whole conversation becomes one summary")
    expect(full.locator(".losses")).to_contain_text(re.compile(r"\d+ things lostretained ~\d+%, exact for this"))
    predicted = full.locator(".losses").inner_text().splitlines()[0]
    page.get_by_label("Clear all but the last 5 tool results").check()
    full.get_by_text("Show the 3 most important").click()  # on a card that is not chosen, and stays so
    expect(full.locator("q")).to_have_count(3)
    expect(full.locator("q").first).to_be_visible()
    expect(page.get_by_label("Clear all but the last 5 tool results")).to_be_checked()
    full.locator(".figures").click(force=True)  # the label covers the card: a click anywhere chooses it
    expect(page.get_by_label("Full")).to_be_checked()
    page.get_by_label("Up to a message").check()
    part = page.locator(".kind-card", has_text="Up to a message")
    expect(part).to_contain_text("pick a message")
    page.get_by_role("radio", name=re.compile(r"^Message \d+,")).nth(3).check()
    expect(part.locator(".losses")).to_contain_text("exact for this preview")
    expect(full.locator("q").first).to_be_visible()  # still unfolded
    page.get_by_label("Full").check()
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(RUN)
    work_once()
    expect(page.get_by_role("heading", level=1)).to_contain_text(predicted)


def test_losses_that_cannot_be_predicted_are_tried_again(
    page: Page, alice: User, session: AgentSession, sign_in: SignIn, page_errors: PageErrors
) -> None:
    sign_in(page, alice)
    page_errors.expect("Failed to load resource")
    page_errors.expect("Response Status Error Code 500")
    page.route("**/compact/losses/", lambda route: route.fulfill(status=500))
    page.goto(f"/sessions/{session.pk}/compact/")
    expect(page.get_by_text("The losses could not be predicted.")).to_be_visible()
    expect(page.locator("#figures-full .losses")).to_have_text(re.compile("losses not predicted"))
    expect(page.locator("#figures-full .skeleton")).to_be_hidden()
    page.unroute("**/compact/losses/")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#figures-full .losses")).to_contain_text("exact for this preview")
    expect(page.get_by_text("The losses could not be predicted.")).to_be_hidden()


def test_what_does_not_add_up_is_confirmed_before_it_starts(
    page: Page, alice: User, team: Team, sign_in: SignIn
) -> None:
    session = record_session(team, drop_turns(write_long_talk("short"), range(1, 6)))
    sign_in(page, alice)
    page.goto(f"/sessions/{session.pk}/compact/")
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile(r"/compact/$"))  # the browser asks for the box
    assert not CompactionRun.objects.exists()
    box = page.get_by_label("Compact the stored messages anyway")
    box.check()
    with page.expect_response(lambda response: response.request.method == "POST"):
        page.get_by_label("Instructions").fill("Keep the basins.")
    expect(box).to_be_checked()  # the preview was drawn again
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(RUN)
    assert CompactionRun.objects.get().accepts_difference


def test_range_is_picked_on_the_list_of_messages(
    page: Page, alice: User, session: AgentSession, sign_in: SignIn
) -> None:
    sign_in(page, alice)
    page.goto(f"/sessions/{session.pk}/compact/")
    expect(page.locator("#pivots")).to_be_hidden()
    page.get_by_label("Up to a message").check()
    expect(page.get_by_text("Choose the message to compact from or up to.")).to_be_visible()
    expect(page.get_by_role("button", name="Start")).to_be_disabled()
    expect(page.get_by_text("51 to 60 of 60")).to_be_visible()
    page.get_by_label("Message 55,").check()
    expect(page.get_by_text("messages verbatim")).to_be_visible()
    page.get_by_role("button", name="Earlier").click()
    expect(page.get_by_text("1 to 50 of 60")).to_be_visible()
    expect(page.get_by_label("Picked: message 55")).to_be_checked()
    page.get_by_label("Message 31,").check()
    expect(page.get_by_text("30 messages", exact=True)).to_be_visible()
    page.get_by_role("button", name="Start").click()
    work_once()
    expect(page.locator("#messages")).to_contain_text("30 kept")
    expect(page.locator("#messages")).to_contain_text("30 summarised")


def test_run_is_cancelled_and_tried_again_with_the_same_choices(
    page: Page, alice: User, session: AgentSession, sign_in: SignIn
) -> None:
    run = start(session, RunChoices(instructions="Keep the basins."))
    sign_in(page, alice)
    page.goto(f"/sessions/{session.pk}/")
    page.get_by_role("link", name="Compaction queued").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compaction cancelled")
    expect(page.get_by_text("The session is as it was")).to_be_visible()
    work_once()
    assert CompactionRun.objects.get(pk=run.pk).state == "cancelled"
    page.get_by_role("link", name="Try again").last.click()
    expect(page.get_by_label("Instructions")).to_have_value("Keep the basins.")


def test_summary_is_edited_and_revisions_are_chosen_and_compared(
    page: Page, alice: User, session: AgentSession, sign_in: SignIn
) -> None:
    one, two = run_now(session), run_now(session, RunChoices(kind=RunKind.FULL, instructions="Be short."))
    sign_in(page, alice)
    page.goto(f"/runs/{two.pk}/")
    press(page, "e")
    area = page.get_by_label("Text of the new revision")
    area.fill(area.input_value().replace("Current Work", "Current Work: painting the buoys"))
    page.get_by_role("button", name="Save as a new revision").click()
    expect(page.get_by_text("Revision 2 is saved.")).to_be_visible()
    expect(page.locator("#summary > .sections")).to_contain_text("painting the buoys")
    page.get_by_role("link", name="1 as written").click()
    expect(page.locator("#summary > .sections")).not_to_contain_text("painting the buoys")
    page.get_by_role("link", name=f"Compare with run {one.pk}").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Run {two.pk} and run {one.pk}")
    expect(page.locator("#sections del", has_text="buoys")).to_have_count(1)


def test_second_of_two_editors_keeps_the_words(
    page: Page, alice: User, session: AgentSession, sign_in: SignIn, page_errors: PageErrors
) -> None:
    run = run_now(session)
    sign_in(page, alice)
    page.goto(f"/runs/{run.pk}/")
    page.get_by_text("Edit the summary").click()
    page.get_by_label("Text of the new revision").fill("1. Pending Tasks:\nmine")
    first = RunRevision.objects.get(run=run)
    RunRevision.objects.create(run=run, number=2, text="theirs", edited_by_name="anna", audit=first.audit)
    page_errors.expect("status of 409")
    page.get_by_role("button", name="Save as a new revision").click()
    expect(page.get_by_text("anna saved revision 2 meanwhile.")).to_be_visible()
    expect(page.get_by_label("Text of your new revision")).to_have_value("1. Pending Tasks:\nmine")
    page.get_by_role("button", name="Save as a new revision").click()
    expect(page.get_by_text("Revision 3 is saved.")).to_be_visible()


def test_everything_is_done_by_keyboard(page: Page, alice: User, session: AgentSession, sign_in: SignIn) -> None:
    sign_in(page, alice)
    page.goto(f"/sessions/{session.pk}/")
    press(page, "?")
    expect(page.get_by_role("dialog")).to_contain_text("Compact this session")
    press(page, "?")
    press(page, "c")
    page.wait_for_url("**/compact/")
    page.wait_for_load_state()  # with its scripts: the preview follows what is chosen from then on
    page.get_by_label("Full").focus()
    for _ in range(2):
        press(page, "ArrowDown")
    expect(page.get_by_label("Clear all but the last 5 tool results")).to_be_checked()
    expect(page.get_by_label("Instructions")).to_be_hidden()
    expect(page.get_by_text("results and attachments")).to_be_visible()
    page.get_by_role("button", name="Start").focus()
    press(page, "Enter")
    expect(page).to_have_url(RUN)
    press(page, "x")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compaction cancelled")
    press(page, "c")
    expect(page.get_by_label("Clear all but the last 5 tool results")).to_be_checked()


def test_walk_works_without_scripts(
    browser: Browser, live_url: str, alice: User, session: AgentSession, sign_in: SignIn
) -> None:
    with without_scripts(browser, live_url, sign_in, alice) as page:
        page.goto(f"/sessions/{session.pk}/")
        page.get_by_role("link", name="Compact", exact=True).click()
        page.get_by_label("From a message on").check()
        page.get_by_role("button", name="Preview").click()
        page.get_by_role("button", name="Earlier").click()
        page.get_by_label("Message 31,").check()
        page.get_by_role("button", name="Preview").click()
        expect(page.get_by_label("Message 31,")).to_be_checked()
        expect(page.get_by_text("messages verbatim")).to_be_visible()
        page.get_by_role("button", name="Start").click()
        expect(page.locator("[aria-current=step]")).to_contain_text("Waiting for a worker")
        work_once()
        page.get_by_role("link", name="Load it now").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("nothing saved")
        page.get_by_text("Edit the summary").click()
        page.get_by_label("Text of the new revision").fill("1. Pending Tasks:\npaint the buoys")
        page.get_by_role("button", name="Save as a new revision").click()
        expect(page.get_by_text("Revision 2 is saved.")).to_be_visible()


def list_states(session: AgentSession) -> dict[str, Callable[[], str]]:
    """Every state of the pages, each as something to do before its address is opened."""

    def end(**columns: object) -> str:
        run = start(session)
        CompactionRun.objects.filter(pk=run.pk).update(**columns)
        return f"/runs/{run.pk}/"

    def compare() -> str:
        one, two = run_now(session), run_now(session, RunChoices(instructions="Be short."))
        return f"/runs/{one.pk}/compare/{two.pk}/"

    return {
        "choices": lambda: f"/sessions/{session.pk}/compact/",
        "done": lambda: f"/runs/{run_now(session).pk}/",
        "micro": lambda: f"/runs/{run_now(session, RunChoices(kind=RunKind.MICRO_IDLE)).pk}/",
        "compared": compare,
        "failed": lambda: end(state="failed", failure_code="overloaded", failure_sentence="The API is overloaded."),
        "cancelled": lambda: end(state="cancelled"),
        "tab": lambda: f"/sessions/{session.pk}/compactions/",
        "open": lambda: end(state="running", stage="summarising", written_tokens=800),
    }


def test_no_state_has_a_serious_accessibility_finding(
    page: Page, alice: User, session: AgentSession, sign_in: SignIn, axe: Axe
) -> None:
    ThreadBreaker.objects.create(session=session, failures=3, opened_at=timezone.now(), last_failure_code="overloaded")
    page.emulate_media(color_scheme="dark")  # test_every_page has both
    for name, make in list_states(session).items():
        url = make()
        for person in ("alice", "vera") if name != "choices" else ("alice",):
            page.context.clear_cookies()
            sign_in(page, make_user(person))
            page.goto(url)
            page.locator("main details:not(.confirm)").evaluate_all(
                "(all) => all.forEach((one) => { one.open = true; })"
            )
            assert axe(page) == [], (name, person)
    sign_in(page, alice)
    page.goto(f"/sessions/{session.pk}/compact/")
    page.get_by_label("Up to a message").check()
    page.get_by_label("Message 55,").check()
    expect(page.get_by_text("messages verbatim")).to_be_visible()
    assert axe(page) == []


def test_every_state_fits_a_narrow_screen(page: Page, alice: User, session: AgentSession, sign_in: SignIn) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    sign_in(page, alice)
    for name, make in list_states(session).items():
        page.goto(make())
        page.locator("main details:not(.confirm)").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, name
    CompactionRun.objects.filter(state="running").update(state="cancelled")
    page.goto(f"/sessions/{session.pk}/compact/")
    page.get_by_label("From a message on").check()
    expect(page.get_by_label("Message 55,")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
