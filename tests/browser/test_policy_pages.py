"""Thresholds, storage and redaction as a person uses them: drafts while typing, undo, without scripts, axe, narrow."""

import re
from dataclasses import replace

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from dashboard.models import Beat, User
from dashboard.policies.changes import change_policy
from dashboard.policies.in_force import find_policy
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.browser.keys import press
from tests.builders import make_session, make_team, make_user

THRESHOLDS, STORAGE = "/teams/harbour/thresholds/", "/teams/harbour/storage/"
REDACTION = "/teams/harbour/redaction/"
PROXY = "/teams/harbour/proxy/"


@pytest.fixture
def anna(live_url: str) -> User:
    Beat.objects.create(name="sweeper here", at=timezone.now())
    team = make_team("Harbour", owner="olga", admin="anna", viewer="vera")
    for number, peak in enumerate((100_000, 130_000, 150_000)):
        make_session(team, str(number), peak_tokens=peak)
    current = find_policy(team)
    thresholds = {"models": {"claude-opus-4-5": {"auto_percent": 70}}}
    wanted = replace(current, thresholds=thresholds, own_patterns={"badge": "B-[0-9]{6}"})
    change_policy(team, wanted, by=make_user("olga"), base_version=0, note="a first try")
    return make_user("anna")


def warning_of_200k(page: Page) -> str:
    row = page.locator(".window", has_text="A window of 200k").get_by_role("row", name=re.compile("^warning"))
    return row.inner_text()


def test_lines_move_while_typing_are_saved_and_undone(page: Page, anna: User, sign_in: SignIn) -> None:
    sign_in(page, anna)
    page.goto(THRESHOLDS)
    assert "147,000" in warning_of_200k(page)
    page.get_by_label("early: warns 20,000 tokens earlier").check()
    expect(page.get_by_text("1 more session would have crossed the warning threshold")).to_be_visible()
    assert re.search(r"147,000\s+127,000", warning_of_200k(page))
    assert find_policy(anna.memberships.get().team).version == 1
    page.get_by_label("Error", exact=True).first.fill("50,000")
    fault = page.get_by_text("The error threshold would be below the warning threshold")
    expect(fault).to_be_visible()
    expect(page.get_by_text("the draft has errors")).to_be_visible()
    page.get_by_label("Error", exact=True).first.fill("")
    expect(fault).to_have_count(0)
    expect(page.get_by_text("not saved")).to_be_visible()
    page.get_by_label("Change note (optional)").fill("tell us sooner")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Thresholds saved.")).to_be_visible()
    assert "127,000" in warning_of_200k(page)
    page.get_by_role("button", name="Undo version 2").click()
    expect(page.get_by_text("Version 2 undone.")).to_be_visible()
    assert "147,000" in warning_of_200k(page)
    expect(page.get_by_text("undoes version 2")).to_be_visible()


def test_thresholds_are_moved_on_the_gauge_by_pointer_and_keys(page: Page, anna: User, sign_in: SignIn) -> None:
    sign_in(page, anna)
    page.goto(THRESHOLDS)
    slider = page.get_by_role("slider", name="Warning threshold, window of 200k")
    knob, track = slider.bounding_box(), page.locator(".tick-sliders").first.bounding_box()
    assert knob is not None
    assert track is not None
    page.mouse.move(knob["x"] + knob["width"] / 2, knob["y"] + 6)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] / 2, knob["y"] + 6, steps=4)
    expect(slider).to_have_attribute("aria-valuetext", "100,000 tokens, 50% of the window")
    page.mouse.up()
    expect(page.get_by_label("Warning", exact=True).first).to_have_value("67,000")
    expect(page.get_by_text("not saved")).to_be_visible()
    assert re.search(r"147,000\s+100,000", warning_of_200k(page))
    slider.focus()
    press(page, "ArrowRight")
    press(page, "PageUp")
    expect(page.get_by_label("Warning", exact=True).first).to_have_value("56,000")
    expect(page.locator(".is-moved").first).to_contain_text("111,000")
    expect(slider).to_be_focused()
    press(page, "End")
    expect(page.get_by_label("Warning", exact=True).first).to_have_value("20,000")


def test_thresholds_are_entered_in_percent_and_the_client_setting_is_copied(
    page: Page, anna: User, sign_in: SignIn
) -> None:
    sign_in(page, anna)
    page.goto(THRESHOLDS)
    assert page.get_by_label("Auto-compact (%)", exact=True).is_hidden()
    page.get_by_label("percent", exact=True).check()
    expect(page.get_by_label("Warning (%)", exact=True)).to_have_value("73.5")
    page.get_by_label("Auto-compact (%)", exact=True).fill("60")
    expect(page.get_by_label("Auto-compact", exact=True).first).to_have_value("60,000")
    box = page.locator("#client-rule")
    expect(box).to_contain_text("Your threshold is 120,000.")
    expect(box.locator(".code").first).to_contain_text("CLAUDE_CODE_AUTO_COMPACT_WINDOW=153000")
    expect(box.locator(".code").first.get_by_role("button", name="Copy")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Thresholds saved.")).to_be_visible()
    assert find_policy(anna.memberships.get().team).thresholds["auto_margin_tokens"] == 60_000


def test_model_gets_values_of_its_own_by_keyboard(page: Page, anna: User, sign_in: SignIn) -> None:
    sign_in(page, anna)
    page.goto(THRESHOLDS)
    page.locator("summary", has_text="Add a model").focus()
    press(page, "Enter")
    press(page, "Tab")
    page.keyboard.type("claude-haiku-4-5")
    press(page, "Tab")
    page.keyboard.type("30,000")
    expect(page.get_by_role("heading", name="claude-haiku-4-5, window of 200k")).to_be_visible()
    page.get_by_role("button", name="Save").focus()
    press(page, "Enter")
    expect(page.get_by_text("claude-haiku-4-5: warning margin")).to_be_visible()


def test_pasted_text_shows_what_would_be_redacted(page: Page, anna: User, sign_in: SignIn) -> None:
    sign_in(page, anna)
    page.goto(REDACTION)
    page.get_by_label("Sample text").fill("B-123456 met C-1234 <img src=x onerror=alert(1)>")
    expect(page.get_by_text("[redacted:badge] met C-1234 <img")).to_be_visible()
    page.get_by_label("Name").last.fill("crate")
    page.get_by_label("Pattern").last.fill("C-[0-9]+")
    expect(page.get_by_text("has an unbounded repeat")).to_be_visible()
    page.get_by_label("Pattern").last.fill("C-[0-9]{4}")
    expect(page.get_by_text("[redacted:badge] met [redacted:crate] <img")).to_be_visible()
    page.get_by_label("Test with one rule turned on or off").select_option("badge")
    expect(page.get_by_text("B-123456 met [redacted:crate] <img")).to_be_visible()
    page.get_by_role("button", name="Save patterns").click()
    expect(page.get_by_text("redaction crate")).to_be_visible()
    assert set(find_policy(anna.memberships.get().team).own_patterns) == {"badge", "crate"}


def test_rule_is_switched_off_after_a_question_and_a_mark_is_reported(page: Page, anna: User, sign_in: SignIn) -> None:
    team = anna.memberships.get().team
    sign_in(page, anna)
    page.goto(REDACTION)
    page.get_by_text("rules without a mark").click()
    page.locator("summary", has_text="Turn off jwt").click()
    question = page.get_by_role("dialog", name="Turn off jwt")
    expect(question.get_by_text("will be stored unredacted")).to_be_visible()
    question.get_by_role("button", name="Cancel").click()
    page.locator("summary", has_text="Turn off jwt").click()
    question.get_by_role("button", name="Turn off rule").click()
    expect(page.get_by_text("Saved. Re-reading followed files now")).to_be_visible()
    assert find_policy(team).disabled_rules == {"jwt"}
    page.get_by_role("button", name="Undo version 2").click()
    expect(page.get_by_text("Version 2 undone.")).to_be_visible()
    assert find_policy(team).disabled_rules == frozenset()
    page.get_by_label("Sample text").fill("B-123456")
    page.get_by_role("link", name="[redacted:badge]").click()
    expect(page.get_by_label("Rule", exact=True)).to_have_value("badge")
    page.get_by_label("What was redacted (optional)").fill("numbers of berths")
    page.get_by_role("button", name="Send report").click()
    expect(page.get_by_text("Report on badge sent.")).to_be_visible()
    page.get_by_role("button", name="Resolve the report on badge").click()
    expect(page.get_by_text("No open reports")).to_be_visible()


def test_pages_have_no_serious_accessibility_findings(
    page: Page, anna: User, sign_in: SignIn, axe: Axe, page_errors: PageErrors
) -> None:
    page.emulate_media(color_scheme="dark")  # test_every_page has both
    sign_in(page, anna)
    for url in (PROXY, THRESHOLDS, STORAGE, REDACTION):
        page.goto(url)
        assert axe(page) == [], url
    page.get_by_text("rules without a mark").click()
    page.get_by_label("Sample text").fill("B-123456")
    expect(page.get_by_text("[redacted:badge]")).to_be_visible()
    assert axe(page) == []
    page.goto(THRESHOLDS)
    page.get_by_label("Warning", exact=True).first.fill("60000")
    expect(page.get_by_text("not saved")).to_be_visible()
    assert axe(page) == []
    page.get_by_label("Error", exact=True).first.fill("x")
    expect(page.get_by_text("must be a whole number of tokens")).to_be_visible()
    assert axe(page) == []
    page_errors.expect("status of 422")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("must be a whole number of tokens")).to_be_visible()
    assert axe(page) == []
    sign_in(page, make_user("vera"))
    page.goto(THRESHOLDS)
    assert axe(page) == []


def test_thresholds_and_storage_work_without_scripts(
    browser: Browser, live_url: str, anna: User, sign_in: SignIn
) -> None:
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    page = context.new_page()
    sign_in(page, anna)
    page.goto(THRESHOLDS)
    expect(page.locator(".tick-slider").first).to_be_hidden()
    form, field = page.locator("form.card").bounding_box(), page.locator("#id_blocking_margin_tokens").bounding_box()
    assert form is not None
    assert field is not None
    assert form["x"] < field["x"] < field["x"] + field["width"] < form["x"] + form["width"]
    page.get_by_label("early: warns 20,000 tokens earlier").check()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("not saved")).to_be_visible()
    assert re.search(r"147,000\s+127,000", warning_of_200k(page))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Thresholds saved.")).to_be_visible()
    page.get_by_role("button", name="Undo version 2").click()
    expect(page.get_by_text("Version 2 undone.")).to_be_visible()
    page.goto(REDACTION)
    page.get_by_label("Sample text").fill("B-123456")
    page.get_by_role("button", name="Test text").click()
    expect(page.get_by_text("[redacted:badge]")).to_be_visible()
    context.close()


def test_pages_fit_a_narrow_screen(page: Page, anna: User, sign_in: SignIn) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    sign_in(page, anna)
    for url in (PROXY, THRESHOLDS, STORAGE, REDACTION):
        page.goto(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, url
    page.goto(THRESHOLDS)
    page.get_by_label("Auto-compact at %").first.fill("85")
    expect(page.get_by_text("not saved")).to_be_visible()
    clipped = (
        "[...document.querySelectorAll('.card > .body')].filter(body => body.scrollWidth > body.clientWidth).length"
    )
    assert page.evaluate(clipped) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
