"""The browser fixtures themselves: the real application answers, and what goes wrong in a page is noticed."""

from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from playwright.sync_api import Page

from dashboard.live import room
from dashboard.models import SessionChange
from tests.builders import make_session, make_team, make_user
from tests.visitors import sign_in as enter

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


def test_stream_is_sent_event_by_event_to_a_client_that_takes_compressed_answers(live_url: str) -> None:
    room.forget()
    team = make_team("Harbour", owner="alice")
    session = make_session(team, "one")
    cookie = f"plimsoll_session={enter('alice').cookies['plimsoll_session'].value}"
    connection = HTTPConnection(urlsplit(live_url).netloc, timeout=20)
    headers = {"Cookie": cookie, "Accept-Encoding": "gzip, deflate, br"}
    connection.request("GET", f"/live/stream?since=harbour:0&sessions={session.pk}", headers=headers)
    answer = connection.getresponse()
    try:
        assert answer.getheader("Content-Encoding") is None
        assert [answer.readline() for _ in range(3)] == [b"event: still\n", b"data: {}\n", b"\n"]
        SessionChange.objects.note(team.pk, [session.pk])
        assert answer.readline() == b"event: changed\n"
    finally:
        connection.close()
    connection.request("GET", "/", headers=headers)
    page = connection.getresponse()
    assert page.getheader("Content-Encoding") == "gzip"
    connection.close()
