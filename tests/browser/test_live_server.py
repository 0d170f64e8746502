"""The browser fixtures themselves: the real application answers, and what goes wrong in a page is noticed."""

from typing import TYPE_CHECKING

from playwright.sync_api import Page

from tests.builders import make_team, make_user

if TYPE_CHECKING:
    from tests.browser.conftest import Axe, PageErrors, SignIn


def test_sign_in_page_opens_styled_and_accessible(page: Page, axe: "Axe") -> None:
    page.goto("/sign-in/")
    assert page.evaluate("document.styleSheets.length") > 0
    assert axe(page) == []


def test_session_cookie_signs_in(page: Page, sign_in: "SignIn") -> None:
    make_team("Harbour", owner="alice")
    sign_in(page, make_user("alice"))
    page.goto("/")
    assert "/sign-in/" not in page.url


def test_script_error_and_foreign_host_are_noticed(page: Page, page_errors: "PageErrors") -> None:
    page.goto("/sign-in/")
    page.evaluate("setTimeout(() => { throw new Error('planted') })")
    page.evaluate("fetch('http://elsewhere.invalid/').catch(() => null)")
    page.evaluate("document.head.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    page.wait_for_timeout(200)
    seen = "\n".join(page_errors.unexpected())
    page_errors.expected.append("")
    assert "planted" in seen
    assert "elsewhere.invalid" in seen
    assert "script-src" in seen
    assert page.evaluate("window.ran") is None


def test_axe_finds_a_planted_fault(page: Page, axe: "Axe") -> None:
    page.goto("/sign-in/")
    page.evaluate("document.querySelector('main').append(document.createElement('button'))")
    assert any("button-name" in violation for violation in axe(page))
