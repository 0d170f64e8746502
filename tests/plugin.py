"""Loaded by pytest before Django's settings (`-p tests.plugin`): tests get a scratch data folder, never a person's own,
and under CI=true a skipped test is a failed one.
"""

import atexit
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

RECORDED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
NOTHING_SKIPPED = os.environ.get("CI", "").lower() in ("1", "true")


def _isolate() -> None:
    """Drop the settings of the person who runs the tests; only names made for tests get through."""
    for name in list(os.environ):
        if name == "DATABASE_URL" or (name.startswith("PLIMSOLL_") and not name.startswith("PLIMSOLL_TEST_")):
            del os.environ[name]
    scratch = tempfile.TemporaryDirectory(prefix="plimsoll-tests-", ignore_cleanup_errors=True)
    atexit.register(scratch.cleanup)
    os.environ["PLIMSOLL_DATA"] = scratch.name
    os.environ["PLIMSOLL_FOLLOW"] = "off"  # the transcripts of whoever runs the tests are none of their business
    if url := os.environ.get("PLIMSOLL_TEST_DATABASE_URL"):
        os.environ["DATABASE_URL"] = url


_isolate()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "recorded_data: needs the recorded sessions that lie beside the checkout")
    config.addinivalue_line("markers", "sqlite_only: about SQLite itself; left out of the round on PostgreSQL")
    config.addinivalue_line("markers", "any_database: the same on every database; left out of the round on PostgreSQL")
    config.addinivalue_line("markers", "postgresql_only: about PostgreSQL itself; part of the round on it alone")


# They take minutes each: begun first, they do not keep one process busy when the others are done.
LONG = (
    "tests/faults/",
    "tests/upgrades/",
    "tests/dashboard/test_supervisor.py",
    "tests/browser/test_stored_text_never_runs.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    if "DATABASE_URL" in os.environ:
        left_out = [item for item in items if _is_for_sqlite(item) or not _uses_database(item)]
    else:
        left_out = [item for item in items if item.get_closest_marker("postgresql_only")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _is_for_sqlite(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in ("sqlite_only", "any_database"))


def _uses_database(item: pytest.Item) -> bool:
    """Of a test that touches no database, a round on another one would tell nothing."""
    fixtures = {"db", "transactional_db"} & set(getattr(item, "fixturenames", ()))
    return bool(fixtures) or item.get_closest_marker("django_db") is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("recorded_data") and not RECORDED_DATA.is_dir():
        pytest.skip("the recorded sessions are not beside this checkout")


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if NOTHING_SKIPPED and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"CI=true allows no skips. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not item.get_closest_marker("recorded_data") or RECORDED_DATA.is_dir():
        _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _forbid_skip(report)
    return report
