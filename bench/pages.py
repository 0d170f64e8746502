"""Pages over a full database: sessions list at any depth, every sort and filter, text search, overview, session page.

Server time inside one process through Django's test client (middleware, view, queries, template; no HTTP, no thread
hop); `asgi` rows go through the ASGI handler as `plimsoll web` does. SQLite and PostgreSQL, each in a scratch folder,
then our list beside Phoenix's (bench/page_peers.py says where that work is not equal). `python -m bench.pages` seeds
100,000 sessions and 5,000,000 calls, a few minutes for each database; `--sessions 20000 --calls 1000000` is quicker.
"""

# ruff: noqa: PLC0415 (Django is set up when the scratch folder is known)
import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.page_peers import Visitor, compare_with_phoenix
from tests.services import find_postgresql, started_postgresql

ROOT = Path(__file__).resolve().parents[1]
GOAL_LIST_MS, GOAL_SESSION_MS, GOAL_FRAGMENT_MS = 15, 60, 5
SORTS = (
    "active", "risk", "lost", "spend", "project", "developer", "compactions", "forecast", "forecast_reversed",
    "hit_rate", "hit_rate_reversed", "warm", "warm_reversed",
)  # fmt: skip


@dataclass(frozen=True)
class Ask:
    name: str
    url: str
    goal_ms: int | None = GOAL_LIST_MS
    target: str = ""  # the place in the page that htmx fills; empty for a whole page

    @property
    def headers(self) -> dict[str, str]:
        return {"hx-request": "true", "hx-target": self.target} if self.target else {}


FLOOR = Ask("account page (the floor: frame, no content)", "/account/", None)


@dataclass(frozen=True)
class Result:
    ask: Ask
    p50_ms: float
    p95_ms: float
    cpu_ms: float  # of this process: without PostgreSQL's
    queries: int
    size_bytes: int


def prepare(data: Path) -> None:
    os.environ |= {
        "PLIMSOLL_DATA": str(data),
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "PLIMSOLL_LOG_LEVEL": "ERROR",
    }
    import django

    django.setup()


def list_asks(sessions: int, big_session_pk: int) -> Iterator[Ask]:
    from bench.seeded_pages import RARE_WORD

    for sort in SORTS:
        yield Ask(f"sort {sort}", f"/sessions/?sort={sort}")
        for share in (0.5, 0.99):
            yield Ask(f"sort {sort}, {share:.0%} deep", deep_url(sort, int(sessions * share)))
    for name, query in (
        ("level above", "level=above"),
        ("level blocking", "level=blocking"),
        ("live", "active=live"),
        ("last 24 hours", "active=day"),
        ("with breaks", "breaks=yes"),
        ("common project", "project=web-shop"),
        ("rare project", "project=harbour-reports"),
        ("model", "model=claude-haiku-4-5"),
        ("developer", "developer=dev-30"),
        ("project and developer", "project=web-shop&developer=dev-30"),
        ("level, developer and model", "level=blocking&developer=dev-30&model=claude-haiku-4-5"),
        ("rare word", f"text={RARE_WORD}"),
        ("common word", "text=login"),
        ("three words", "text=fix+login+web"),
        ("no such word", "text=zzzzz"),
    ):
        yield Ask(f"{name}, by activity", f"/sessions/?{query}")
        yield Ask(f"{name}, by spend", f"/sessions/?{query}&sort=spend")
    # All matches at the far end of the sort.
    for name, query in (
        ("level above, furthest from a threshold first", "level=above&sort=risk_reversed"),
        ("level above, most calls left first", "level=above&sort=forecast_reversed"),
        ("last 7 days, cache cold longest first", "active=week&sort=warm_reversed"),
        ("with breaks, highest hit rate first", "breaks=yes&sort=hit_rate"),
        ("with breaks, lowest loss first", "breaks=yes&sort=lost_reversed"),
    ):
        yield Ask(name, f"/sessions/?{query}")
    yield Ask("list fragment", "/sessions/", GOAL_FRAGMENT_MS, target="session-list")
    yield Ask("API, 50 sessions", "/api/v1/sessions")
    yield Ask("overview", "/", None)
    session_url = f"/sessions/{big_session_pk}/"
    yield Ask("session page, 2,000 calls", session_url, GOAL_SESSION_MS)
    yield Ask("session fragment: page of calls", session_url, GOAL_FRAGMENT_MS, target="calls-table")
    yield Ask("session fragment: settings tab", f"{session_url}settings/", GOAL_FRAGMENT_MS, target="tab-content")


def deep_url(sort: str, depth: int) -> str:
    from dashboard.models import AgentSession
    from dashboard.pages.session_filters import SessionFilters
    from dashboard.pages.session_paging import find_columns, order_unindexed, spell_place

    columns = find_columns(SessionFilters.read({"sort": sort}))
    order = order_unindexed(columns, forwards=True)
    return f"/sessions/?sort={sort}&after={spell_place(columns, AgentSession.objects.order_by(*order)[depth])}"


def measure_all(asks: list[Ask], get: "Callable[..., Any]", rounds: int) -> list[Result]:
    """Interleaved: what else the machine does in between hits every page alike."""
    times: dict[Ask, list[float]] = {ask: [] for ask in asks}
    cpu: dict[Ask, list[float]] = {ask: [] for ask in asks}
    answers = {ask: get(ask.url, headers=ask.headers) for ask in asks}
    for ask, answer in answers.items():
        if answer.status_code != 200:
            sys.exit(f"{ask.url} answers {answer.status_code}")
    for _ in range(rounds):
        for ask in asks:
            started, worked = time.perf_counter(), time.process_time()
            get(ask.url, headers=ask.headers)
            times[ask].append((time.perf_counter() - started) * 1000)
            cpu[ask].append((time.process_time() - worked) * 1000)
    return [
        Result(
            ask,
            p50_ms=statistics.median(times[ask]),
            p95_ms=sorted(times[ask])[int(rounds * 0.95)],
            cpu_ms=statistics.median(cpu[ask]),
            queries=count_queries(ask, get),
            size_bytes=len(answers[ask].content),
        )
        for ask in asks
    ]


def count_queries(ask: Ask, get: "Callable[..., Any]") -> int:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    get(ask.url, headers=ask.headers)
    with CaptureQueriesContext(connection) as asked:
        get(ask.url, headers=ask.headers)
    return len(asked)


def measure_asgi(url: str, cookies: str, rounds: int) -> float:
    """One request after the other through the handler of dashboard/asgi.py."""
    from dashboard.page_handler import PageHandler

    handler = PageHandler()
    scope = {
        "type": "http", "method": "GET", "path": url, "raw_path": url.encode(), "query_string": b"", "scheme": "http",
        "headers": [(b"host", b"localhost"), (b"cookie", cookies.encode())], "http_version": "1.1",
        "server": ("localhost", 80), "client": ("127.0.0.1", 1),
    }  # fmt: skip

    async def ask() -> None:
        messages = [{"type": "http.request", "body": b"", "more_body": False}]
        is_over = asyncio.Event()

        async def receive() -> dict[str, object]:
            if not messages:
                await is_over.wait()
                return {"type": "http.disconnect"}
            return messages.pop()

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start" and message["status"] != 200:
                sys.exit(f"{url} answers {message['status']}")

        await handler(dict(scope), receive, send)  # type: ignore[arg-type]
        is_over.set()

    async def ask_all() -> float:
        times = []
        for _ in range(rounds + 1):
            started = time.perf_counter()
            await ask()
            times.append((time.perf_counter() - started) * 1000)
        return statistics.median(times[1:])

    return asyncio.run(ask_all())


def run(sessions: int, calls: int, rounds: int) -> tuple[dict[str, float], Visitor]:
    """Seed unless the folder holds a database already, measure, print; the median of every ask by its name, and who
    asked."""
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from bench.seeded_pages import KEY_SCOPES, add_up_hours, find_place, seed
    from dashboard.accounts.keys import create_key
    from dashboard.static_build import build_static_files
    from dashboard.web_server import set_garbage_aside

    call_command("migrate", verbosity=0)
    build_static_files()
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    print(f"\n{connection.vendor}: {sessions:,} sessions, {calls:,} calls; load average {load}", flush=True)
    place = find_place() or seed(sessions, calls)
    add_up_hours()
    client = Client(headers={"host": "localhost"})
    client.force_login(place.owner, backend="django.contrib.auth.backends.ModelBackend")
    asks = [FLOOR, *list_asks(sessions, place.big_session_pk)]
    set_garbage_aside()  # as `plimsoll web` does
    results = measure_all(asks, client.get, rounds)
    print(f"{'':44} {'p50':>9} {'p95':>8} {'own CPU':>8}  queries     size")
    for result in results:
        goal = result.ask.goal_ms
        mark = "" if goal is None else "  ok" if result.p50_ms <= goal else f"  over {goal} ms"
        figures = f"{result.p50_ms:7.1f}ms {result.p95_ms:6.1f}ms {result.cpu_ms:6.1f}ms"
        print(f"{result.ask.name:44} {figures} {result.queries:8} {result.size_bytes / 1024:6.0f}kB{mark}")
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    print(f"{'asgi: sessions list':44} {measure_asgi('/sessions/', cookies, rounds):7.1f}ms")
    _, key = create_key(place.team, place.owner, name="bench", scopes=KEY_SCOPES, expires_at=None, by=None)
    return {result.ask.name: result.p50_ms for result in results}, Visitor(cookies, key)


def print_ratios(medians: dict[str, float]) -> None:
    print("\nratios within this run")
    for sort in SORTS:
        ratio = medians[f"sort {sort}, 99% deep"] / medians[f"sort {sort}"]
        print(f"  page at 99% to first, {sort:<17} {ratio:5.2f}x")
    lists = [ms for name, ms in medians.items() if name.startswith("sort ") or ", by " in name]
    print(f"  slowest list to the floor              {max(lists) / medians[FLOOR.name]:5.2f}x")


def run_on_postgresql(arguments: argparse.Namespace) -> None:
    """In a process of its own: Django knows one database for as long as it lives."""
    if find_postgresql() is None:
        print("\nPostgreSQL is not installed: left out.")
        return
    sizes = {name: getattr(arguments, name) for name in ("sessions", "calls", "rounds")}
    command = [sys.executable, "-m", "bench.pages", "--only", *(f"--{name}={size}" for name, size in sizes.items())]
    with started_postgresql() as url:
        kept = {name: value for name, value in os.environ.items() if name != "PLIMSOLL_DATA"}
        subprocess.run(command, env={**kept, "DATABASE_URL": url}, cwd=ROOT, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--data", type=Path, help="keep the SQLite database in this folder and use it again")
    parser.add_argument("--only", action="store_true", help="this database alone: SQLite, or an empty DATABASE_URL")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plimsoll-bench-")))
        data = arguments.data or scratch / "data"
        data.mkdir(parents=True, exist_ok=True)
        prepare(data)
        medians, visitor = run(arguments.sessions, arguments.calls, arguments.rounds)
        print_ratios(medians)
        if not (arguments.only or "DATABASE_URL" in os.environ):
            run_on_postgresql(arguments)
            compare_with_phoenix(data, visitor, scratch / "phoenix", arguments.rounds)


if __name__ == "__main__":
    main()
