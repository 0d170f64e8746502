"""Which web server: uvicorn (as `plimsoll web` runs it) against granian, the same application, in one run.

Interleaved rounds on one machine, medians, wrk as the client (apt-get install wrk). `python bench/web_server.py`.
"""

import argparse
import itertools
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PATHS = ("/health/live", "/sign-in/")
CONNECTIONS = (1, 32)
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
CLEARLY_BETTER = 1.3


@dataclass(frozen=True)
class Round:
    per_second: float
    p50_ms: float
    p99_ms: float
    failed: int


Results = dict[tuple[str, str, int], list[Round]]


@dataclass(frozen=True)
class Server:
    name: str
    port: int
    process: "subprocess.Popen[bytes]"

    def rss_mb(self) -> float:
        """Of the process and its children: granian's worker is a child of its main process."""
        pid = str(self.process.pid)
        told = subprocess.run(
            ["ps", "-o", "rss=", "-p", pid, "--ppid", pid], capture_output=True, text=True, check=True
        )
        return sum(int(line) for line in told.stdout.split()) / 1024


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment_for(data: Path, port: int, libraries: Path | None = None) -> dict[str, str]:
    dropped = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "DATABASE_URL")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    paths = {"PYTHONPATH": str(libraries)} if libraries else {}
    return {**kept, **paths, "PLIMSOLL_DATA": str(data), "PLIMSOLL_PORT": str(port), "PLIMSOLL_FOLLOW": "off"}


@contextmanager
def started(name: str, command: list[str], port: int, environment: dict[str, str]) -> "Iterator[Server]":
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        give_up_at = time.monotonic() + 60
        while not answers(port):
            if process.poll() is not None or time.monotonic() > give_up_at:
                sys.exit(f"{name} did not start: {' '.join(command)}")
            time.sleep(0.1)
        yield Server(name, port, process)
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            print(f"{name} did not stop within 15 s of SIGTERM: killed")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/sign-in/", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def measure(server: Server, path: str, connections: int, seconds: int) -> Round:
    url = f"http://127.0.0.1:{server.port}{path}"
    command = [
        "wrk",
        "--threads",
        "1",
        "--connections",
        str(connections),
        "--duration",
        f"{seconds}s",
        "--latency",
        url,
    ]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    latency = {
        percent: float(value) * UNITS[unit]
        for percent, value, unit in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", told)
    }
    rate = re.search(r"Requests/sec:\s+([\d.]+)", told)
    if rate is None:
        sys.exit(f"wrk said nothing usable:\n{told}")
    failed = sum(int(number) for number in re.findall(r"Non-2xx or 3xx responses: (\d+)", told))
    failed += sum(int(number) for line in re.findall(r"Socket errors: .*", told) for number in re.findall(r"\d+", line))
    return Round(float(rate[1]), latency["50"], latency["99"], failed)


def median_round(rounds: list[Round]) -> Round:
    return Round(
        statistics.median(entry.per_second for entry in rounds),
        statistics.median(entry.p50_ms for entry in rounds),
        statistics.median(entry.p99_ms for entry in rounds),
        sum(entry.failed for entry in rounds),
    )


def install_granian(folder: Path) -> str | None:
    """Into a scratch folder; why not, when that fails."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), "granian>=2.5,<3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def run_rounds(servers: list[Server], *, rounds: int, seconds: int) -> Results:
    for server, path in itertools.product(servers, PATHS):
        measure(server, path, 8, 1)  # warm up
    results: Results = defaultdict(list)
    for _, path, connections in itertools.product(range(rounds), PATHS, CONNECTIONS):
        for server in random.sample(servers, len(servers)):
            results[server.name, path, connections].append(measure(server, path, connections, seconds))
    return results


def print_results(servers: list[Server], results: Results) -> None:
    print(f"\n{'path':<14}{'conns':>6}  {'server':<9}{'req/s':>9}{'p50 ms':>9}{'p99 ms':>9}{'failed':>8}")
    page_ratios = []
    for path, connections in itertools.product(PATHS, CONNECTIONS):
        medians = {server.name: median_round(results[server.name, path, connections]) for server in servers}
        for name, told in medians.items():
            numbers = f"{told.per_second:>9.0f}{told.p50_ms:>9.2f}{told.p99_ms:>9.2f}{told.failed:>8}"
            print(f"{path:<14}{connections:>6}  {name:<9}{numbers}")
        if len(medians) == 2:
            ratio = medians["granian"].per_second / medians["uvicorn"].per_second
            page_ratios += [ratio] if path == "/sign-in/" else []
            print(f"{'':<22}granian / uvicorn = {ratio:.2f}")
    for server in servers:
        print(f"RSS after load: {server.name} {server.rss_mb():.0f} MB")
    if page_ratios:
        best = max(page_ratios)
        verdict = "granian is clearly faster on the page" if best > CLEARLY_BETTER else "no reason to leave uvicorn"
        print(f"Verdict: {verdict} (at best {best:.2f}; {CLEARLY_BETTER} would count).")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    options = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("wrk is not installed (Debian: apt-get install wrk).")
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as scratch, ExitStack() as stack:
        data, libraries = Path(scratch) / "data", Path(scratch) / "libraries"
        plimsoll = [sys.executable, "-P", "-m", "dashboard.cli"]
        port = free_port()
        environment = environment_for(data, port)
        subprocess.run([*plimsoll, "migrate", "-v", "0"], env=environment, check=True)
        servers = [stack.enter_context(started("uvicorn", [*plimsoll, "web"], port, environment))]
        if reason := install_granian(libraries):
            print(f"granian is left out: {reason}")
        else:
            port = free_port()
            command = [sys.executable, "-P", "-m", "granian", "--interface", "asgi", "--loop", "uvloop", "--no-ws"]
            command += ["--workers", "1", "--port", str(port), "--no-log", "dashboard.asgi:application"]
            granian_environment = environment_for(data, port, libraries)
            servers.append(stack.enter_context(started("granian", command, port, granian_environment)))
        print_results(servers, run_rounds(servers, rounds=options.rounds, seconds=options.seconds))


if __name__ == "__main__":
    main()
