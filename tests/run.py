"""`make test`: every check and the suite with its own PostgreSQL and Redis, side by side. No failure hides another one.

Missing programs are installed where that is possible (root on Debian); elsewhere what will be skipped is named.
With CI=true nothing may be missing.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, MappingProxyType

from tests.browser.programs import AXE, find_chromium
from tests.plugin import NOTHING_SKIPPED
from tests.services import find_postgresql, find_redis, started_postgresql
from tests.steps import Run

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CORES = os.cpu_count() or 1
BROWSER = "tests/browser"
DASHBOARD = ROOT / "tests" / "dashboard"
JAVASCRIPT = (DASHBOARD / "proxy" / "typescript", DASHBOARD / "ingest" / "otlp" / "javascript")
# These start Plimsoll as a process with a database of its own, and wait for it more than they compute.
OWN_DATABASE = tuple(
    f"tests/dashboard/{name}.py"
    for name in (
        *("test_backup", "test_cli", "test_damaged_database", "test_supervisor"),
        *("ingest/test_import_processes", "proxy/test_private_socket", "proxy/test_whole_proxy"),
    )
)
PROCESSES = ("tests/faults", "tests/upgrades", "tests/test_wheel.py", *OWN_DATABASE)


@dataclass(frozen=True)
class Need:
    package: str  # of Debian
    find: Callable[[], Path | None]
    without: str


NEEDS = (
    Need("chromium", find_chromium, "the tests in a browser are skipped"),
    Need(
        "npm",
        lambda: _on_path("npm"),
        "the tests of accessibility, of the TypeScript SDK and of JavaScript exporters are skipped",
    ),
    Need("postgresql", find_postgresql, "the tests run on SQLite alone"),
    Need("redis-server", find_redis, "the tests that need Redis are skipped"),
)


def main() -> int:
    began = time.monotonic()
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # where it was ignored, as in the background of a shell
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory(prefix="plimsoll-bytecode-", ignore_cleanup_errors=True) as bytecode:
        # Also where bytecode beside the sources is not wanted: compiled once for the many processes of a run.
        run = Run({"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""})
        try:
            install_missing(run)
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
    for folder in (AXE.parents[2], *JAVASCRIPT):
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
    """Two lanes, as many as most machines have cores. What waits for processes comes last, when one core is free."""
    with ExitStack() as stack:
        postgresql: dict[str, str] = {}
        faults: dict[str, str] = {}
        if find_postgresql():
            url = stack.enter_context(started_postgresql())
            # tests/faults makes databases of its own on this server.
            # One process answers all pages: each thread that did holds a connection, beside those that a test opens.
            postgresql = {"PLIMSOLL_TEST_DATABASE_URL": url, "PLIMSOLL_DATABASE_POOL": "80"}
            faults = {"PLIMSOLL_TEST_POSTGRESQL_URL": url}
        elsewhere = tuple(f"--ignore={name}" for name in (BROWSER, *PROCESSES))

        def begin_with_sqlite() -> None:
            _run_pytest(run, "pytest on SQLite", elsewhere, spread=spread(CORES // 2, "loadfile"))
            _run_pytest(run, "pytest with processes", PROCESSES, spread=spread(2, "loadgroup"), environment=faults)

        def begin_with_checks() -> None:
            check_sources(run)
            if postgresql:
                # Kept, as the server goes anyway: threads that answer pages hold their connection as long as they live.
                repeated = ("tests/dashboard", "--reuse-db", *elsewhere)
                _run_pytest(run, "pytest on PostgreSQL", repeated, environment=postgresql)
            # Playwright keeps an event loop in its process, in which other tests could not run asynchronous views.
            _run_pytest(run, "pytest in the browser", (BROWSER,))

        run.side_by_side(begin_with_sqlite, begin_with_checks)


def spread(processes: int, unit: str) -> tuple[str, ...]:
    """Over several processes; what one of them makes once serves its unit: a file, or a marked group of tests."""
    return ("-n", str(min(processes, 4)), "--dist", unit, "--no-loadscope-reorder") if processes > 1 else ()


def _run_pytest(
    run: Run,
    name: str,
    arguments: tuple[str, ...],
    *,
    spread: tuple[str, ...] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> None:
    run.step(name, sys.executable, "-m", "pytest", "-q", "--durations=25", *spread, *arguments, **environment)


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


def _on_path(program: str) -> Path | None:
    found = shutil.which(program)
    return Path(found) if found else None


if __name__ == "__main__":
    sys.exit(main())
