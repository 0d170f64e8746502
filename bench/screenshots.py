"""Pictures of every page of a running Plimsoll: light, dark and 360 px wide, for who changes how pages look.

Run: python -m bench.screenshots LINK FOLDER [--session ID], with a sign-in link as `plimsoll up` or `plimsoll
signinlink` prints it. Needs Chromium. The session with the most breaks, its newest break and the newest compaction
stand for all others.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.browser.charts import wait_for_charts
from tests.browser.conftest import CHROMIUM_OPTIONS
from tests.browser.programs import find_chromium

WIDE, NARROW = ViewportSize(width=1280, height=900), ViewportSize(width=360, height=740)
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": WIDE, "color_scheme": "light"},
    "dark": {"viewport": WIDE, "color_scheme": "dark"},
    "narrow": {"viewport": NARROW, "color_scheme": "light", "has_touch": True, "is_mobile": True},
}
PAGES = (
    "",
    "sessions",
    "breaks",
    "compactions",
    "compare",
    "connect",
    "upload",
    "glossary",
    "lint",
    "jobs",
    "health",
    "account",
)
TEAM_PAGES = (
    "",
    "settings",
    "keys",
    "invitations",
    "thresholds",
    "storage",
    "redaction",
    "prices",
    "summarizer",
    "proxy",
    "automation",
    "webhooks",
    "audit",
)
TABS = ("", "compactions", "breaks", "context", "transcript", "notes", "settings", "compact")
TALLEST_PIXELS = 6000  # beyond this a picture is cut: nobody looks at more of it
LONGEST_MS = 120_000


def list_addresses(page: Page, session_id: int | None) -> Iterator[tuple[str, str]]:
    """Names of pictures and addresses."""
    yield from ((name or "overview", f"/{name}/" if name else "/") for name in PAGES)
    yield from (("api", "/api/docs/"), ("styleguide", "/styleguide/"))
    team = _ask(page, "me")["teams"][0]["slug"]
    yield from ((f"team-{name or 'members'}", f"/teams/{team}/{name}/".replace("//", "/")) for name in TEAM_PAGES)
    sessions = _ask(page, "sessions?sort=lost&limit=1")["sessions"]
    chosen = session_id or (sessions[0]["id"] if sessions else None)
    if chosen is not None:
        for tab in TABS:
            yield f"session-{tab or 'timeline'}", f"/sessions/{chosen}/{tab}/".replace("//", "/")
        yield "session-by-time", f"/sessions/{chosen}/?x=time"
    for kind, asked in (("breaks", "breaks?kind=break&limit=1"), ("compactions", "compactions?kind=full&limit=1")):
        yield from ((f"one-of-{kind}", f"/{kind}/{row['id']}/") for row in _ask(page, asked)["items"])


def _ask(page: Page, path: str) -> Any:
    return page.request.get(f"/api/v1/{path}").json()


def take_pictures(page: Page, look: str, addresses: list[tuple[str, str]], folder: Path) -> Iterator[str]:
    """Writes them, and tells what went wrong on the way."""
    viewport: ViewportSize = LOOKS[look]["viewport"]
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    for name, address in addresses:
        answer = page.goto(address)
        if answer is None or not answer.ok:
            yield f"{look} {address}: {answer.status if answer else 'no answer'}"
            continue
        wait_for_charts(page)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            yield f"{look} {address}: wider than the window"
        # The window grows instead of the picture: of a page of a hundred screens only the first ones are drawn.
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({**viewport, "height": min(height, TALLEST_PIXELS)})
        page.screenshot(path=folder / f"{name}-{look}.png", timeout=LONGEST_MS)
        page.set_viewport_size(viewport)
        yield from (f"{look} {address}: {fault}" for fault in faults)
        faults.clear()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("link", help="a sign-in link, which works once")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--session", type=int, help="whose pages are taken")
    asked = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        sys.exit("Chromium is not installed.")
    asked.folder.mkdir(parents=True, exist_ok=True)
    parts = urlsplit(asked.link)
    base = f"{parts.scheme}://{parts.netloc}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        context = browser.new_context(base_url=base)
        page = context.new_page()
        page.goto(asked.link)
        if "/sign-in/" in page.url:
            sys.exit("The link did not sign in; ask for a fresh one with `plimsoll signinlink`.")
        addresses = list(list_addresses(page, asked.session))
        for look, options in LOOKS.items():
            seen = browser.new_context(base_url=base, storage_state=context.storage_state(), **options)
            for fault in take_pictures(seen.new_page(), look, addresses, asked.folder):
                print(fault)
            seen.close()
        browser.close()
    print(f"{len(LOOKS) * len(addresses)} pictures in {asked.folder}")


if __name__ == "__main__":
    main()
