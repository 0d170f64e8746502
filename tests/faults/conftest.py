"""A fresh installation per test, on SQLite with files as the broker and on PostgreSQL with Redis."""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard.running import run_plimsoll
from tests.faults.brokers import Broker, FolderBroker, RedisBroker
from tests.faults.databases import Database, PostgresqlDatabase, SqliteDatabase, database_url, run_on_server
from tests.faults.figures import HEADING, IS_LONG, Figures
from tests.faults.installation import Installation
from tests.services import find_postgresql, find_redis, started_postgresql

# Test processes share the server: each makes a template of its own.
TEMPLATE = f"plimsoll_faults_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The one of `make test`, or one of our own where pytest was called by hand."""
    if url := os.environ.get("PLIMSOLL_TEST_POSTGRESQL_URL"):
        yield url
    elif find_postgresql():
        with started_postgresql() as url:
            yield url
    else:
        pytest.skip("PostgreSQL is not installed")


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    run_on_server(postgresql, f"CREATE DATABASE {TEMPLATE}")
    folder = tmp_path_factory.mktemp("migrated-postgresql")
    done = run_plimsoll(folder, "migrate", "-v", "0", DATABASE_URL=database_url(postgresql, TEMPLATE))
    assert done.returncode == 0, done.stderr
    return postgresql


# All of it twice takes longer than a run of the suite should: PLIMSOLL_TEST_LONG=1 does both, a few tests ask for both.
@pytest.fixture(params=["SQLite, files", "PostgreSQL, Redis"] if IS_LONG else ["SQLite, files"])
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    data = tmp_path / "data"
    database: Database
    broker: Broker
    if request.param.startswith("SQLite"):
        shutil.copytree(request.getfixturevalue("migrated_folder"), data)
        database, broker = SqliteDatabase(data / "plimsoll.sqlite3"), FolderBroker(data)
    else:
        if find_redis() is None:
            pytest.skip("Redis is not installed")
        server = request.getfixturevalue("migrated_postgresql")
        database = PostgresqlDatabase(server, f"plimsoll_{secrets.token_hex(6)}", template=TEMPLATE)
        broker = RedisBroker(tmp_path)
    attacked = Installation(request.param, tmp_path, database, broker)
    try:
        yield attacked
    finally:
        attacked.close()
        database.drop()
        broker.close()


@pytest.fixture
def figures(request: pytest.FixtureRequest, installation: Installation) -> Iterator[Figures]:
    case = request.node.originalname.removeprefix("test_").replace("_", " ")
    measured = Figures(case, installation)
    yield measured
    # Properties travel with the report, also from another process.
    request.node.user_properties.append(("faults", measured.line()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for report in terminalreporter.getreports("") if isinstance(report, pytest.TestReport)]
    lines = {str(line) for report in reports for name, line in report.user_properties if name == "faults"}
    if lines:
        terminalreporter.section("faults")
        for line in (HEADING, *sorted(lines)):
            terminalreporter.write_line(line)
