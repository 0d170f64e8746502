"""Every page that the URL resolver knows, light and dark, before axe: none can be forgotten."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from dashboard.live import room
from dashboard.models import User
from dashboard.page_handler import LIVE
from dashboard.pages.session_tabs import TAB_NAMES
from tests.browser.conftest import Axe, PageErrors, SignIn
from tests.builders import make_team, make_user
from tests.dashboard.expectations import PAGES
from tests.dashboard.furniture import furnish
from tests.dashboard.test_expectations import page_url

GONE = 410  # a page too: an invitation or a link that is spent


def list_addresses(arguments: dict[str, object]) -> Iterator[str]:
    """Of all pages that are asked for with GET; tests/dashboard/test_expectations.py holds the table complete."""
    for row in PAGES:
        method, name = row.split()
        if method == "GET":
            tabs = TAB_NAMES[1:] if name == "session_tab" else [str(arguments["tab"])]
            yield from (page_url(name, arguments | {"tab": tab}) for tab in tabs)


def list_pages(page: Page, arguments: dict[str, object]) -> list[str]:
    """What whoever is signed in gets to see whole: not redirections, fragments, files and streams."""
    return [url for url in list_addresses(arguments) if not url.startswith(LIVE) and _is_page(page, url)]


def _is_page(page: Page, url: str) -> bool:
    answer = page.request.get(url, max_redirects=0)
    return answer.status in (200, GONE) and answer.body().lstrip().lower().startswith(b"<!doctype html")


@pytest.fixture
def owner(live_url: str) -> User:
    room.forget()
    make_team("Harbour", owner="olga")
    return make_user("olga")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_keeps_the_rules(
    page: Page, page_errors: PageErrors, owner: User, sign_in: SignIn, axe: Axe, scheme: str
) -> None:
    arguments = furnish(owner.memberships.get().team)
    page_errors.expect(str(GONE))
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    strange = list_pages(page, arguments)
    assert "/sign-in/" in strange
    broken = {url: found for url in strange if (found := _look(page, url, axe))}
    sign_in(page, owner)
    known = list_pages(page, arguments)
    assert len(known) > 30
    broken |= {url: found for url in known if (found := _look(page, url, axe))}
    assert broken == {}


def _look(page: Page, url: str, axe: Axe) -> list[str]:
    page.goto(url)
    return axe(page)
