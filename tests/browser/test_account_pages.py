"""The account and team pages as a person uses them: links, forms in place, narrow, without scripts, for axe."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Page, expect

from dashboard.accounts import invitations
from dashboard.accounts.sign_in_links import create_link
from dashboard.models import ApiKey, Job, JobState, Membership, Role, Scope, User
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.browser.keys import press
from tests.builders import make_key, make_team, make_user

PAGES = (
    "/",
    "/account/",
    "/account/password/",
    "/teams/harbour/",
    "/teams/harbour/keys/",
    "/teams/harbour/invitations/",
    "/teams/harbour/settings/",
    "/teams/harbour/automation/",
    "/teams/harbour/webhooks/",
    "/teams/harbour/audit/",
    "/jobs/",
    "/lint/",
    "/api/docs/",
    "/health/",
)


@pytest.fixture
def owner(live_url: str) -> User:
    team = make_team("Harbour", owner="alice", member="mia", viewer="vera")
    alice = make_user("alice")
    make_key(team, alice, Scope.READ, Scope.INGEST)
    invitations.invite(team, Role.VIEWER, note="for Nora", by=alice, now=timezone.now())
    for state in JobState:
        lease = timezone.now() if state == JobState.RUNNING else None
        Job.objects.create(
            kind="forget_expired",
            team=team,
            key=state,
            state=state,
            lease_until=lease,
            started_at=lease,
            progress_done=3,
            progress_total=9,
        )
    return alice


def test_link_from_the_terminal_opens_the_product(page: Page, owner: User) -> None:
    page.goto(create_link(owner, now=timezone.now(), valid_for=timedelta(hours=1)))
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.locator(".top summary", has_text="Settings").click()
    page.get_by_role("link", name="Team", exact=True).click()
    expect(page.get_by_role("heading", name="Harbour")).to_be_visible()


def test_person_signs_in_out_and_in_again(page: Page, owner: User) -> None:
    page.goto("/teams/harbour/")
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("alice-password")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Harbour")).to_be_visible()
    page.get_by_text("alice", exact=True).first.click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You have signed out.")).to_be_visible()


def test_role_and_grant_change_in_place(page: Page, owner: User, sign_in: SignIn) -> None:
    sign_in(page, owner)
    page.goto("/teams/harbour/")
    page.get_by_label("Role of vera").select_option("admin")
    expect(page.get_by_text("vera is now an admin.")).to_be_visible()
    page.get_by_role("button", name="Grant access to vera").click()
    expect(page.get_by_role("button", name="Withdraw access from vera")).to_be_visible()
    vera = Membership.objects.get(user__username="vera")
    assert (vera.role, vera.content_grant) == (Role.ADMIN, True)
    page.get_by_label("Role of alice").select_option("viewer")
    expect(page.get_by_text("A team needs an owner.")).to_be_visible()
    expect(page.get_by_label("Role of alice")).to_have_value("owner")


def test_member_is_removed_only_after_a_question(page: Page, owner: User, sign_in: SignIn) -> None:
    sign_in(page, owner)
    page.goto("/teams/harbour/")
    page.locator("summary", has_text="Remove mia").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("their API keys and open invitations in it are revoked")
    press(page, "Escape")
    expect(dialog).to_be_hidden()
    assert Membership.objects.filter(user__username="mia").exists()
    page.locator("summary", has_text="Remove mia").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("mia removed from Harbour")).to_be_visible()
    assert not Membership.objects.filter(user__username="mia").exists()


def test_key_is_made_shown_once_and_revoked(page: Page, owner: User, sign_in: SignIn) -> None:
    sign_in(page, owner)
    page.goto("/teams/harbour/keys/")
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("ingest:").check()
    page.get_by_role("button", name="Create key").click()
    shown = page.get_by_role("region", name="API key", exact=True)
    expect(shown).to_have_text(re.compile(r"plk_[\w-]{43}"))
    page.goto("/teams/harbour/keys/")
    expect(page.get_by_text(ApiKey.objects.get(name="laptop").prefix)).to_be_visible()
    expect(shown).to_have_count(0)
    page.locator("summary", has_text="Revoke laptop").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(page.get_by_text("Key laptop revoked.")).to_be_visible()


def test_invited_person_joins(page: Page, owner: User) -> None:
    team = owner.memberships.get().team
    _, link = invitations.invite(team, Role.MEMBER, note="", by=owner, now=timezone.now())
    page.goto(link)
    page.get_by_label("Name").fill("nora")
    page.get_by_label("Password", exact=True).fill("correct horse staple")
    page.get_by_label("Password confirmation").fill("correct horse staple")
    page.get_by_role("button", name="Create account and join").click()
    expect(page.get_by_text("You joined Harbour as a member.")).to_be_visible()


def test_pages_outside_the_house_have_no_serious_accessibility_findings(
    page: Page, owner: User, sign_in: SignIn, axe: Axe, page_errors: PageErrors
) -> None:
    page_errors.expect("status of 4")  # the pages asked for below are refused on purpose
    _, link = invitations.invite(owner.memberships.get().team, Role.MEMBER, note="", by=owner, now=timezone.now())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for url in (link, "/invitations/pli_spent/", "/sign-in/link/pls_spent/"):
            page.goto(url)
            assert axe(page) == [], (url, scheme)
    sign_in(page, make_user("vera"))
    for url in ("/nothing/here/", "/teams/harbour/audit/"):
        page.goto(url)
        assert axe(page) == [], url


def test_pages_fit_a_narrow_screen(page: Page, owner: User, sign_in: SignIn) -> None:
    sign_in(page, owner)
    page.set_viewport_size({"width": 360, "height": 720})
    for url in PAGES:
        page.goto(url)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, url


def test_pages_work_without_scripts(browser: Browser, live_url: str, owner: User, page_errors: PageErrors) -> None:
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/sign-in/")
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill("alice-password")
    page.get_by_role("button", name="Sign in").click()
    page.goto("/teams/harbour/")
    row = page.locator("tr", has_text="vera")
    row.get_by_label("Role of vera").select_option("admin")
    row.get_by_role("button", name="Save").click()
    expect(page.get_by_text("vera is now an admin.")).to_be_visible()
    page.locator("summary", has_text="Remove mia").click()
    page.locator("tr", has_text="mia").get_by_role("button", name="Remove").click()
    expect(page.get_by_text("mia removed from Harbour")).to_be_visible()
    context.close()
