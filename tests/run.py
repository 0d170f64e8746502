"""`make test`: every check in order, then the suite with its own PostgreSQL and Redis. No failure hides another one.

Missing programs are installed where that is possible (root on Debian); elsewhere what will be skipped is named.
With CI=true nothing may be missing.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.browser.programs import AXE, find_chromium
from tests.plugin import NOTHING_SKIPPED
from tests.services import find_postgresql, find_redis, started_postgresql, started_redis

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
GRACE_SECONDS = 20
PROCESSES = min(os.cpu_count() or 1, 4)
BROWSER = "tests/browser"
TYPESCRIPT = ROOT / "tests" / "dashboard" / "proxy" / "typescript"
# These start Plimsoll as a process with a database of its own: a second round would only repeat the first.
OWN_DATABASE = tuple(f"tests/dashboard/test_{name}.py" for name in ("backup", "cli", "supervisor"))


@dataclass(frozen=True)
class Need:
    package: str  # of Debian
    find: Callable[[], Path | None]
    without: str


NEEDS = (
    Need("chromium", find_chromium, "the tests in a browser are skipped"),
    Need("npm", lambda: _on_path("npm"), "the accessibility tests and the TypeScript SDK are skipped"),
    Need("postgresql", find_postgresql, "the tests run on SQLite alone"),
    Need("redis-server", find_redis, "the tests that need Redis are skipped"),
)


@dataclass
class Run:
    failed: list[str] = field(default_factory=list)

    def step(self, name: str, *command: str | Path, **environment: str) -> None:
        print(f"\n=== {name}", flush=True)
        began = time.monotonic()
        code = _wait_for([str(part) for part in command], {**os.environ, **environment})
        print(f"--- {name}: {'ok' if code == 0 else f'FAILED ({code})'}, {time.monotonic() - began:.1f} s", flush=True)
        if code != 0:
            self.failed.append(name)


def main() -> int:
    began = time.monotonic()
    signal.signal(signal.SIGTERM, _leave)
    os.chdir(ROOT)
    run = Run()
    install_missing(run)
    try:
        check_sources(run)
        run_suite(run)
    except KeyboardInterrupt:
        run.failed.append("interrupted")
    told = f"FAILED: {', '.join(run.failed)}" if run.failed else "all green"
    print(f"\n=== make test: {told}, {time.monotonic() - began:.0f} s")
    return 1 if run.failed else 0


def install_missing(run: Run) -> None:
    missing = [need for need in NEEDS if need.find() is None]
    if missing and os.geteuid() == 0 and _on_path("apt-get"):
        names = [need.package for need in missing]
        # An old package list is tried first: refreshing it is slow and often not needed.
        install = f"apt-get install -qq --no-install-recommends {' '.join(names)}"
        script = f"{install} || {{ apt-get update -qq && {install}; }}"
        run.step(f"install {', '.join(names)}", "sh", "-c", script, DEBIAN_FRONTEND="noninteractive")
    for need in (need for need in missing if need.find() is None):
        print(f"{need.package} is missing: {need.without}.")
        if NOTHING_SKIPPED:
            run.failed.append(f"no {need.package}")
    for folder in (AXE.parents[2], TYPESCRIPT):
        if not (folder / "node_modules").is_dir() and _on_path("npm"):
            options = ("--prefix", str(folder), "--no-package-lock", "--no-audit", "--no-fund", "--loglevel", "error")
            run.step(f"npm install for {folder.relative_to(ROOT)}", "npm", "install", *options)


def check_sources(run: Run) -> None:
    run.step("ruff format", BIN / "ruff", "format", "--check", ".")
    run.step("ruff check", BIN / "ruff", "check", ".")
    run.step("mypy --strict", BIN / "mypy")
    with tempfile.TemporaryDirectory(prefix="plimsoll-check-") as scratch:
        place = {"PLIMSOLL_DATA": scratch, "PLIMSOLL_PUBLIC_URL": "https://plimsoll.example"}
        manage = (sys.executable, "manage.py")
        run.step("check --deploy", *manage, "check", "--deploy", "--fail-level", "WARNING", **place)
        run.step("makemigrations --check", *manage, "makemigrations", "--check", "--dry-run", **place)


def run_suite(run: Run) -> None:
    # A file stays in one process: what it makes once for all its tests is made once.
    options = ("-n", str(PROCESSES), "--dist", "loadfile", "--no-loadscope-reorder", "--durations=25")
    pytest = (sys.executable, "-m", "pytest", "-q", *options)
    with ExitStack() as stack:
        redis, postgresql, faults = {}, {}, {}
        if find_redis():
            redis = {"PLIMSOLL_TEST_REDIS_URL": stack.enter_context(started_redis())}
        if find_postgresql():
            url = stack.enter_context(started_postgresql())
            # tests/faults makes databases of its own on this server, whatever the round is.
            postgresql, faults = {"PLIMSOLL_TEST_DATABASE_URL": url}, {"PLIMSOLL_TEST_POSTGRESQL_URL": url}
        run.step("pytest on SQLite", *pytest, f"--ignore={BROWSER}", **redis, **faults)
        # Playwright keeps an event loop in its process, in which other tests could not run asynchronous views.
        run.step("pytest in the browser", *pytest, BROWSER, **redis)
        if postgresql:
            ignored = [f"--ignore={name}" for name in OWN_DATABASE]
            run.step("pytest on PostgreSQL", *pytest, "tests/dashboard", *ignored, **redis, **postgresql)


def _wait_for(command: list[str], environment: Mapping[str, str]) -> int:
    """Like subprocess.run, but an interrupted child may finish its own cleaning up (browser, servers) first."""
    process = subprocess.Popen(command, env=environment)
    try:
        return process.wait()
    except (KeyboardInterrupt, SystemExit) as reason:
        if isinstance(reason, SystemExit):  # Ctrl-C reached the child by itself, a SIGTERM did not
            process.send_signal(signal.SIGINT)
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


def _on_path(program: str) -> Path | None:
    found = shutil.which(program)
    return Path(found) if found else None


if __name__ == "__main__":
    sys.exit(main())
