"""A real Chromium on the real ASGI application over the test database."""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeAlias

import pytest
import uvicorn
from django.conf import settings as django_settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from playwright.sync_api import Browser, Page, expect, sync_playwright
from pytest_django import Settings

from dashboard.asgi import build_application
from dashboard.models import User
from tests.browser.programs import AXE, find_chromium
from tests.builders import make_team, make_user

SignIn: TypeAlias = Callable[[Page, User], None]
Axe: TypeAlias = Callable[[Page], list[str]]

CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

NOTE_VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: Playwright keeps an event loop running, which other tests must not see."""
    items.sort(key=lambda item: item.path.is_relative_to(AXE.parents[2]))


@dataclass
class PageErrors:
    """What went wrong in the page; a test that provokes an error says so with expect()."""

    seen: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, part: str) -> None:
        self.expected.append(part)

    def unexpected(self) -> list[str]:
        return [error for error in self.seen if not any(part in error for part in self.expected)]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        # Playwright's own loop runs in this thread, so Django takes every query of a test for an async one.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        expect.set_options(timeout=20_000)  # for slow machines, as below
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="session")
def _server(django_db_setup: None) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # A page that polls is answered after its test too, when pytest has closed what the log would be written to.
        logging.getLogger("dashboard.front_door").setLevel(logging.WARNING)
        server = uvicorn.Server(uvicorn.Config(build_application(), log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="live server")
        thread.start()
        try:
            deadline = time.monotonic() + 15
            while not server.started:
                assert thread.is_alive(), "the live server ended while starting"
                assert time.monotonic() < deadline, "the live server did not start"
                time.sleep(0.02)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(15)


@pytest.fixture
def live_url(_server: str, transactional_db: None, settings: Settings) -> str:
    settings.PUBLIC_URL = _server
    settings.CSRF_TRUSTED_ORIGINS = [_server]
    return _server


@pytest.fixture
def page_errors() -> PageErrors:
    return PageErrors()


@pytest.fixture
def page(browser: Browser, live_url: str, page_errors: PageErrors) -> Iterator[Page]:
    """A fresh context. Script errors, console errors (CSP violations among them) and foreign hosts fail the test."""
    context = browser.new_context(base_url=live_url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(30_000)  # for slow machines; nothing waits that long on others
    seen = page_errors.seen
    context.on("weberror", lambda error: seen.append(f"script error: {error.error}"))
    context.on(
        "console",
        lambda message: seen.append(f"{message.text} {message.location}") if message.type == "error" else None,
    )
    context.on("request", lambda request: _note_foreign(request.url, live_url, seen))
    yield context.new_page()
    context.close()
    assert not page_errors.unexpected()


def _note_foreign(url: str, live_url: str, seen: list[str]) -> None:
    if not url.startswith((f"{live_url}/", "data:", "blob:")):
        seen.append(f"request to another host: {url}")


@pytest.fixture
def sign_in(live_url: str) -> SignIn:
    """Give the page a real session, without walking through the form."""

    def sign_in(page: Page, user: User) -> None:
        session = import_module(django_settings.SESSION_ENGINE).SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.save()
        cookie = {"name": django_settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": live_url}
        page.context.add_cookies([cookie])  # type: ignore[list-item]

    return sign_in


@pytest.fixture
def owner(live_url: str) -> User:
    make_team("Harbour", owner="alice")
    return make_user("alice")


@pytest.fixture
def styleguide(page: Page, owner: User, sign_in: SignIn) -> Page:
    sign_in(page, owner)
    page.add_init_script(NOTE_VIOLATIONS)
    page.goto("/styleguide/")
    return page


@pytest.fixture(scope="session")
def axe() -> Axe:
    """Check the page as it stands; each serious or critical finding is one line."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed")
    source = AXE.read_text()

    def find_violations(page: Page) -> list[str]:
        page.evaluate(source)
        found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{violation['impact']} {violation['id']}: {violation['help']}; {node['target']}"
            for violation in found["violations"]
            if violation["impact"] in ("serious", "critical")
            for node in violation["nodes"]
        ]

    return find_violations
