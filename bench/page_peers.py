"""The list of sessions over HTTP beside Phoenix's lists of spans, in one run; called by bench/pages.py.

Not equal work: Phoenix's REST answer carries the attributes of every span with its text, and its GraphQL answer is what
its own list shows; ours are fifty sessions, each with gauge, forecast and hit rates, as a page and as JSON.
"""

import http.client
import os
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.phoenix_peer import REST_PATH, SPANS, PhoenixMissing, started_phoenix
from tests.services import free_port

GOAL_REST, GOAL_GRAPHQL = 5.0, 25.0
START_SECONDS = 60


@dataclass(frozen=True)
class Client:
    """A request, asked on a connection that is open already: a server may close one that waits for its next turn."""

    name: str
    port: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None = None

    def ask(self) -> tuple[float, int]:
        """Milliseconds, and the size of the answer."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.connect()
            began = time.perf_counter()
            connection.request(self.method, self.path, self.body, self.headers)
            answer = connection.getresponse()
            size = len(answer.read())
            milliseconds = (time.perf_counter() - began) * 1000
        if answer.status != 200:
            sys.exit(f"{self.name} answers {answer.status}")
        return milliseconds, size


def compare_with_phoenix(data: Path, cookies: str, scratch: Path, rounds: int) -> None:
    """Our server over the database that is there; without Phoenix, a sentence."""
    try:
        with started_phoenix(scratch) as peer, started_plimsoll(data) as port:
            ours = {"host": f"127.0.0.1:{port}", "cookie": cookies, "accept-encoding": "identity"}
            clients = [
                Client("our list page", port, "GET", "/sessions/", ours),
                Client("our API, 50 sessions", port, "GET", "/api/v1/sessions", ours),
                Client("Phoenix REST, 50 spans", peer.port, "GET", REST_PATH, {}),
                Client(
                    "Phoenix GraphQL, 50 spans",
                    peer.port,
                    "POST",
                    "/graphql",
                    {"content-type": "application/json"},
                    peer.graphql_body,
                ),
            ]
            _print_ratios(_measure(clients, rounds))
    except PhoenixMissing as missing:
        print(f"\nPhoenix is left out. {missing}")


@contextmanager
def started_plimsoll(data: Path) -> Iterator[int]:
    """`plimsoll web`, with its own compiled files."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    root = str(Path(__file__).resolve().parents[1])
    environment = kept | {"PLIMSOLL_DATA": str(data), "PLIMSOLL_PORT": str(port), "PYTHONPATH": root}
    process = subprocess.Popen([sys.executable, "-m", "dashboard.cli", "web"], env=environment, start_new_session=True)
    try:
        give_up_at = time.monotonic() + START_SECONDS
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > give_up_at:
                sys.exit("plimsoll web does not start")
            time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _measure(clients: list[Client], rounds: int) -> dict[str, float]:
    """Interleaved; the first two answers warm caches up and do not count."""
    times: dict[str, list[float]] = {client.name: [] for client in clients}
    sizes: dict[str, int] = {}
    for number in range(rounds + 2):
        for client in clients:
            milliseconds, sizes[client.name] = client.ask()
            if number >= 2:
                times[client.name].append(milliseconds)
    print(f"\nover HTTP, one request after the other; Phoenix has {SPANS:,} spans")
    for name, found in times.items():
        p50, p95 = statistics.median(found), sorted(found)[int(rounds * 0.95)]
        print(f"{name:44} {p50:7.1f}ms {p95:6.1f}ms {sizes[name] / 1024:26.0f}kB")
    return {name: statistics.median(found) for name, found in times.items()}


def _print_ratios(medians: dict[str, float]) -> None:
    for ours in ("our list page", "our API, 50 sessions"):
        for theirs, goal in (("Phoenix REST, 50 spans", GOAL_REST), ("Phoenix GraphQL, 50 spans", GOAL_GRAPHQL)):
            ratio = medians[theirs] / medians[ours]
            verdict = "ok" if ratio >= goal else "MISSED"
            print(f"  {ours} beside {theirs:<28} {ratio:6.1f}x  goal {goal:g}x  {verdict}")
