"""From `plimsoll up --demo` to the first page, then what each page weighs and when it is first painted, in Chromium.

Run: python -m bench.first_paint [--rounds 3] [--slow] [--calls 5 500 3000 20000]. Needs Chromium and a quiet machine.
A visit is cold in a fresh browser context and warm when the page is opened once more; sizes are as they travelled,
compressed. --slow visits each page once more, cold, at 50 kB/s with 40 ms latency: when its text is painted, when its
scripts have run, and when its charts are drawn. --calls measures the overview, the list of sessions and sessions of
these many calls alone.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from bench.otlp import CHECKOUT, started
from tests.browser.conftest import CHROMIUM_OPTIONS
from tests.browser.programs import find_chromium
from tests.services import free_port

READY_SECONDS = 300
LINK = re.compile(r"http://\S+/sign-in/link/pls_[\w-]+/")
PAGES = (
    *("/", "/sessions/", "/breaks/", "/compare/", "/connect/", "/glossary/", "/teams/demo-harbour/thresholds/"),
    *("/jobs/", "/health/"),
)
TABS = ("", "compactions/", "breaks/", "context/", "transcript/", "notes/", "settings/")
FINDINGS = ("/breaks/", "/compactions/", "/runs/")  # one page of each kind, wherever the demo has it
SLOW = {"offline": False, "latency": 40, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
LONGEST_WAIT_SECONDS = 120
# Asked at every frame: the text of the page is complete (the data of the timeline's chart comes behind it), and charts
# that can be seen are drawn.
WATCH = """(() => {
    const end = "footer, #tab-content > script[type='application/json']";
    const look = () => {
        const words = document.querySelector(end) && performance.getEntriesByName("first-contentful-paint")[0];
        if (words) window.readableAt ??= performance.now();
        const areas = [...document.querySelectorAll("[data-chart]")].filter((area) => area.offsetParent);
        const drawn = areas.every((area) => area.classList.contains("drawn"));
        if (document.readyState === "complete" && drawn) window.drawnAt ??= performance.now();
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})()"""
MEASURE = """() => {
    const parts = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return {
        page: parts[0].transferSize, all: parts.reduce((sum, part) => sum + part.transferSize, 0), count: parts.length,
        paint: paint ? paint.startTime : 0, server: parts[0].responseStart - parts[0].requestStart,
    };
}"""


@dataclass(frozen=True)
class Visit:
    page_kb: float
    all_kb: float
    requests: int
    server_ms: float
    paint_ms: float


def visit(page: Page, path: str) -> Visit:
    page.goto(path)
    page.wait_for_timeout(300)  # what the page itself asks for after it is loaded
    told = page.evaluate(MEASURE)
    return Visit(told["page"] / 1024, told["all"] / 1024, told["count"], told["server"], told["paint"])


def compare_visits(signed_in: BrowserContext, base: str, path: str, rounds: int) -> None:
    cold, warm = [], []
    for _ in range(rounds):
        context = _find_browser(signed_in).new_context(base_url=base, storage_state=signed_in.storage_state())
        page = context.new_page()
        cold.append(visit(page, path))
        warm.append(visit(page, path))
        context.close()
    first, again = _take_median(cold), _take_median(warm)
    print(
        f"{path:34} {first.page_kb:6.1f} kB of {first.all_kb:7.1f} in {first.requests:2} requests, server "
        f"{first.server_ms:4.0f} ms, painted after {first.paint_ms:4.0f} ms; again {again.all_kb:6.1f} kB, "
        f"{again.paint_ms:4.0f} ms"
    )


def visit_slowly(signed_in: BrowserContext, base: str, path: str) -> None:
    context = _find_browser(signed_in).new_context(base_url=base, storage_state=signed_in.storage_state())
    page = context.new_page()
    page.add_init_script(WATCH)
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", SLOW)
    page.goto(path, wait_until="commit", timeout=LONGEST_WAIT_SECONDS * 1000)
    until = time.monotonic() + LONGEST_WAIT_SECONDS
    while page.evaluate("window.drawnAt ?? null") is None:
        # A chart further down is not fetched before it is near the visible part.
        if page.evaluate("document.readyState === 'complete' && Boolean(document.querySelector('[data-chart]'))"):
            page.locator("[data-chart]").first.evaluate("(area) => area.scrollIntoView()")
        if time.monotonic() > until:
            sys.exit(f"{path} was not complete within {LONGEST_WAIT_SECONDS} s.")
        page.wait_for_timeout(50)
    readable, drawn = page.evaluate("[window.readableAt, window.drawnAt]")
    scripts = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    print(
        f"{path:34} at 50 kB/s: readable after {readable / 1000:4.1f} s, scripts run after {scripts / 1000:4.1f} s, "
        f"complete after {drawn / 1000:4.1f} s"
    )
    context.close()


def _take_median(visits: list[Visit]) -> Visit:
    return sorted(visits, key=lambda each: each.paint_ms)[len(visits) // 2]


def _find_browser(context: BrowserContext) -> Browser:
    assert context.browser is not None
    return context.browser


def find_link(log: Path) -> str:
    until = time.monotonic() + READY_SECONDS
    while not (found := LINK.search(log.read_text())):
        if time.monotonic() > until:
            sys.exit(f"No sign-in link within {READY_SECONDS} s:\n{log.read_text()[-2000:]}")
        time.sleep(0.02)
    return found[0]


def measure_demo(browser: Browser, base: str, log: Path, began: float) -> BrowserContext:
    """Signed in, with the overview of the whole demo before it."""
    context = browser.new_context(base_url=base)
    page = context.new_page()
    page.goto(find_link(log))
    print(f"first page      {time.monotonic() - began:5.1f} s after the start, {page.title()}")
    page.get_by_role("heading", name="Sessions by risk").wait_for(timeout=READY_SECONDS * 1000)
    print(f"sessions on it  {time.monotonic() - began:5.1f} s")
    page.get_by_text("Sample data. Sessions, people and costs are fictional.").wait_for(timeout=READY_SECONDS * 1000)
    print(f"demo complete   {time.monotonic() - began:5.1f} s")
    return context


def list_paths(page: Page) -> list[str]:
    page.goto("/sessions/")
    sessions = _list_links(page, "/sessions/")
    tabs = [f"{sessions[len(sessions) // 3]}{tab}" for tab in TABS]
    return [*PAGES, *tabs, *(_find_finding(page, sessions, kind) for kind in FINDINGS)]


def list_long_paths(environment: dict[str, str], counts: list[int]) -> list[str]:
    command = [sys.executable, "-m", "bench.long_sessions", *map(str, counts)]
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=True)
    return ["/", "/sessions/", *done.stdout.split()]


def _find_finding(page: Page, sessions: list[str], kind: str) -> str:
    tab = "breaks/" if kind == "/breaks/" else "compactions/"
    for session in sessions:
        page.goto(f"{session}{tab}")
        if found := _list_links(page, kind):
            return found[0]
    sys.exit(f"The demo has nothing under {kind}.")


def _list_links(page: Page, kind: str) -> list[str]:
    links = page.locator("td a").evaluate_all("(all) => all.map((one) => one.getAttribute('href'))")
    return [link for link in links if re.fullmatch(rf"{kind}\d+/", link)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slow", action="store_true", help="also at 50 kB/s")
    parser.add_argument("--calls", type=int, nargs="+", help="only pages of sessions with these many calls")
    asked = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        sys.exit("Chromium is not installed.")
    with tempfile.TemporaryDirectory(prefix="plimsoll-paint-") as scratch, sync_playwright() as playwright:
        folder, port = Path(scratch), free_port()
        base = f"http://127.0.0.1:{port}"
        own = {"PLIMSOLL_DATA": f"{scratch}/data", "PLIMSOLL_FOLLOW": "off", "PLIMSOLL_PORT": str(port)}
        environment = {**os.environ, **own, "PYTHONPATH": str(CHECKOUT), "PYTHONDONTWRITEBYTECODE": ""}
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_OPTIONS)
        began = time.monotonic()
        command = [sys.executable, "-m", "dashboard.cli", "up", "--demo"]
        with started(command, environment, f"{base}/health/live", folder):
            context = measure_demo(browser, base, folder / "log", began)
            for path in list_long_paths(environment, asked.calls) if asked.calls else list_paths(context.pages[0]):
                compare_visits(context, base, path, asked.rounds)
                if asked.slow:
                    visit_slowly(context, base, path)
            browser.close()


if __name__ == "__main__":
    main()
