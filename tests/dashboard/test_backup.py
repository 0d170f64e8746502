"""Backup while a writer writes, restore, and what is refused."""

import shutil
import sqlite3
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from dashboard.backup import find_restoration
from dashboard.data_folder import hold_data_folder
from tests.dashboard.running import run_plimsoll, wait_until
from tests.services import find_postgresql, started_postgresql

PASSWORD = "a long walk home\n"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    done = run_plimsoll(folder, "createowner", "alice", typed=PASSWORD)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def home(tmp_path: Path, prepared: Path) -> Path:
    """With alice, who owns the team Main."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return tmp_path


def database(home: Path) -> Path:
    return home / "data" / "plimsoll.sqlite3"


def teams(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT slug FROM dashboard_team ORDER BY id")]


class Writer(threading.Thread):
    """Adds two teams per transaction, so that a copy of half a transaction would show as an odd number."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.enough = threading.Event()
        self.written = 0

    def run(self) -> None:
        with closing(sqlite3.connect(self.path, timeout=20)) as connection:
            while not self.enough.is_set():
                rows = [(f"t{self.written + step}", f"t{self.written + step}") for step in (0, 1)]
                with connection:
                    connection.executemany(
                        "INSERT INTO dashboard_team "
                        "(name, slug, is_local, is_demo, created_at, has_own_prices, price_version) "
                        "VALUES (?, ?, 0, 0, '2026-01-01', 0, 0)",
                        rows,
                    )
                self.written += 2


def test_backup_under_a_writer_is_one_moment_and_restores_to_it(home: Path) -> None:
    writer = Writer(database(home))
    writer.start()
    try:
        wait_until(lambda: writer.written >= 100 or not writer.is_alive(), seconds=10, what="a hundred teams")
        done = run_plimsoll(home, "backup", "copy.sqlite3")
    finally:
        writer.enough.set()
        writer.join()
    assert done.returncode == 0, done.stderr
    assert "MB, checked." in done.stdout
    copy = home / "copy.sqlite3"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    saved, final = teams(copy), teams(database(home))
    assert 101 <= len(saved) < len(final)
    assert len(saved) % 2 == 1  # alice's team and whole transactions
    assert saved == final[: len(saved)]

    restored = run_plimsoll(home, "restore", "copy.sqlite3")
    assert restored.returncode == 0, restored.stderr
    assert teams(database(home)) == saved
    (kept,) = (home / "data").glob("plimsoll.sqlite3.before-*[0-9]")
    assert teams(kept) == final
    assert stat.S_IMODE(database(home).stat().st_mode) == 0o600
    assert not list((home / "data").glob(".plimsoll-*"))
    assert not list(home.glob(".plimsoll-*"))


def test_every_restoration_makes_another_database_of_the_same_rows(home: Path) -> None:
    """Machines that sent lines since the backup notice by it, and send them again."""
    numbers = [read_restoration(database(home))]
    assert run_plimsoll(home, "backup", "copy").returncode == 0
    for _ in range(2):
        assert run_plimsoll(home, "restore", "copy").returncode == 0
        numbers.append(read_restoration(database(home)))
    assert numbers[0] == 0
    assert len(set(numbers)) == 3
    assert read_restoration(home / "copy") == 0


@pytest.mark.django_db
def test_restoration_is_read_from_the_database_in_use() -> None:
    assert find_restoration() == 0
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA user_version = 4711")  # undone with the transaction of this test
        assert find_restoration() == 4711


def read_restoration(path: Path) -> int:
    with closing(sqlite3.connect(path)) as opened:
        number: int = opened.execute("PRAGMA user_version").fetchone()[0]
    return number


def test_existing_file_is_replaced_only_when_told(home: Path) -> None:
    (home / "copy").write_text("precious")
    refused = run_plimsoll(home, "backup", "copy")
    assert refused.returncode == 1
    assert "already exists" in refused.stderr
    assert (home / "copy").read_text() == "precious"
    assert run_plimsoll(home, "backup", "copy", "--force").returncode == 0
    assert teams(home / "copy") == ["main"]


def test_backup_without_a_database_or_folder_is_refused(tmp_path: Path) -> None:
    assert "No database at" in run_plimsoll(tmp_path, "backup", "copy").stderr
    assert not (tmp_path / "copy").exists()
    done = run_plimsoll(tmp_path, "backup", "missing/copy")
    assert (done.returncode, "Cannot write in" in done.stderr) == (1, True)


def test_restore_is_refused_while_plimsoll_runs(home: Path) -> None:
    assert run_plimsoll(home, "backup", "copy").returncode == 0
    with hold_data_folder(home / "data"):
        done = run_plimsoll(home, "restore", "copy")
    assert done.returncode == 1
    assert "in use by another Plimsoll" in done.stderr


@pytest.mark.parametrize("kind", ["text", "damaged", "foreign", "absent"])
def test_file_that_is_no_backup_changes_nothing(home: Path, kind: str) -> None:
    file = home / "file"
    if kind == "text":
        file.write_text("not a database, but long enough to be read as one" * 100)
    elif kind == "damaged":
        assert run_plimsoll(home, "backup", "file").returncode == 0
        content = bytearray(file.read_bytes())
        content[4096 * 3 : 4096 * 20] = b"\xff" * (4096 * 17)
        file.write_bytes(content)
    elif kind == "foreign":
        with closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE something (id)")
            other.commit()
    done = run_plimsoll(home, "restore", "file")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert teams(database(home)) == ["main"]
    assert not list((home / "data").glob("*.before-*"))


def test_damaged_database_is_kept_as_it_is(home: Path) -> None:
    assert run_plimsoll(home, "backup", "copy").returncode == 0
    database(home).write_bytes(b"rubbish" * 1000)
    done = run_plimsoll(home, "restore", "copy")
    assert done.returncode == 0, done.stderr
    assert teams(database(home)) == ["main"]
    (kept,) = (home / "data").glob("plimsoll.sqlite3.before-*[0-9]")
    assert kept.read_bytes() == b"rubbish" * 1000


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    if find_postgresql() is None:
        pytest.skip("PostgreSQL is not installed")
    with started_postgresql() as url:
        yield url


def test_postgresql_is_dumped_and_the_way_back_is_named(tmp_path: Path, postgresql: str) -> None:
    programs = find_postgresql()
    assert programs is not None
    with psycopg.connect(postgresql, autocommit=True) as connection:
        connection.execute("CREATE DATABASE backed_up")
        connection.execute("CREATE DATABASE brought_back")
    server = postgresql.rsplit("/", 1)[0]
    settings = {"DATABASE_URL": f"{server}/backed_up", "PATH": f"{programs}:/usr/bin:/bin"}
    made = run_plimsoll(tmp_path, "createowner", "alice", typed=PASSWORD, **settings)
    assert made.returncode == 0, made.stderr
    done = run_plimsoll(tmp_path, "backup", "copy", **settings)
    assert done.returncode == 0, done.stderr
    assert stat.S_IMODE((tmp_path / "copy").stat().st_mode) == 0o600

    told = run_plimsoll(tmp_path, "restore", "copy", **settings)
    password = postgresql.split(":")[2].split("@", maxsplit=1)[0]
    assert told.returncode == 1
    assert "pg_restore --clean --if-exists" in told.stderr
    assert password not in told.stderr

    back = f"{server}/brought_back"
    subprocess.run([programs / "pg_restore", "-d", back, "--no-owner", tmp_path / "copy"], check=True)
    with psycopg.connect(back) as connection:
        assert connection.execute("SELECT slug FROM dashboard_team").fetchall() == [("main",)]


def test_missing_pg_dump_is_said(tmp_path: Path) -> None:
    done = run_plimsoll(tmp_path, "backup", "copy", DATABASE_URL="postgresql://a:b@127.0.0.1:1/c", PATH="/nowhere")
    assert (done.returncode, done.stderr[:35]) == (1, "plimsoll: pg_dump is not installed.")
