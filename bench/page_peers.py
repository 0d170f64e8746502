"""The list of sessions over HTTP beside Phoenix's lists of spans, in one run; called by bench/pages.py.

Not equal work: Phoenix's REST answer carries the attributes of every span with its text, and its GraphQL answer is what
its own list shows; ours are fifty sessions, each with gauge, forecast and hit rates, as a page for a person who is
signed in and as JSON for a program with a key. Phoenix, as it starts, asks nobody who they are.
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
    pid: int  # of the server
    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None = None

    def ask(self) -> "Answer":
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.connect()
            began, worked_ms = time.perf_counter(), read_cpu_ms(self.pid)
            connection.request(self.method, self.path, self.body, self.headers)
            answer = connection.getresponse()
            size = len(answer.read())
            milliseconds = (time.perf_counter() - began) * 1000
        if answer.status != 200:
            sys.exit(f"{self.name} answers {answer.status}")
        return Answer(milliseconds, read_cpu_ms(self.pid) - worked_ms, size)


@dataclass(frozen=True)
class Answer:
    """`cpu_ms` is the server's own: on a machine that does other things too it says more than the time."""

    milliseconds: float
    cpu_ms: float
    size_bytes: int


def read_cpu_ms(pid: int) -> float:
    """Of a process so far, in steps of ten milliseconds."""
    told = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(told[11]) + int(told[12])) * 1000 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Visitor:
    """The same person in a browser and behind a program."""

    cookies: str
    key: str


def compare_with_phoenix(data: Path, visitor: Visitor, scratch: Path, rounds: int) -> None:
    """Our server over the database that is there; without Phoenix, a sentence."""
    try:
        with started_phoenix(scratch) as peer, started_plimsoll(data) as (port, pid):
            asked = {"host": f"127.0.0.1:{port}", "accept-encoding": "identity"}
            in_browser, by_key = {"cookie": visitor.cookies}, {"authorization": f"Bearer {visitor.key}"}
            clients = [
                Client("our list page", port, pid, "GET", "/sessions/", asked | in_browser),
                Client("our API, 50 sessions", port, pid, "GET", "/api/v1/sessions", asked | by_key),
                Client("Phoenix REST, 50 spans", peer.port, peer.pid, "GET", REST_PATH, {}),
                Client(
                    "Phoenix GraphQL, 50 spans",
                    peer.port,
                    peer.pid,
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
def started_plimsoll(data: Path) -> Iterator[tuple[int, int]]:
    """`plimsoll web`, with its own compiled files; its port and process id."""
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
        yield port, process.pid
    finally:
        process.terminate()
        process.wait(30)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live", timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _measure(clients: list[Client], rounds: int) -> dict[str, tuple[float, float]]:
    """The median time and the server's mean CPU. Interleaved; the first two answers warm caches up and do not count."""
    answers: dict[str, list[Answer]] = {client.name: [] for client in clients}
    for _ in range(rounds + 2):
        for client in clients:
            answers[client.name].append(client.ask())
    print(f"\nover HTTP, one request after the other; Phoenix has {SPANS:,} spans")
    print(f"{'':44} {'p50':>9} {'p95':>8} {'its CPU':>8}             size")
    medians = {}
    for name, found in answers.items():
        times = sorted(answer.milliseconds for answer in found[2:])
        p50, cpu = statistics.median(times), statistics.mean(answer.cpu_ms for answer in found[2:])
        size = found[-1].size_bytes / 1024
        print(f"{name:44} {p50:7.1f}ms {times[int(rounds * 0.95)]:6.1f}ms {cpu:6.1f}ms {size:14.0f}kB")
        medians[name] = (p50, cpu)
    return medians


def _print_ratios(medians: dict[str, tuple[float, float]]) -> None:
    for ours in ("our list page", "our API, 50 sessions"):
        for theirs, goal in (("Phoenix REST, 50 spans", GOAL_REST), ("Phoenix GraphQL, 50 spans", GOAL_GRAPHQL)):
            ratio, of_cpu = (their / own for their, own in zip(medians[theirs], medians[ours], strict=True))
            verdict = "ok" if ratio >= goal else "MISSED"
            print(
                f"  {ours} beside {theirs}".ljust(56), f"{ratio:6.1f}x, CPU {of_cpu:6.1f}x  goal {goal:g}x  {verdict}"
            )
