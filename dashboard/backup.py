"""Writing the database to one file while it is in use, and putting such a file back."""

import os
import secrets
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp

from django.conf import settings
from django.db import connection
from django.db.backends.postgresql.client import DatabaseClient

from dashboard.data_folder import hold_data_folder

SIDE_FILES = ("-wal", "-shm")
_LARGEST_NUMBER = 2**31 - 1  # that SQLite keeps for its users in a file's header


class BackupFailed(Exception):
    """The message says why; nothing was replaced."""


def write_backup(file: Path, *, replace: bool = False) -> int:
    """Its size in bytes. The file appears whole or not at all, for its owner alone (0600)."""
    file = file.expanduser().absolute()
    if file.is_dir() or (file.exists() and not replace):
        raise BackupFailed(f"{file} already exists. Choose another name, or overwrite it with --force.")
    with _scratch_file(file.parent) as fresh:
        if _is_sqlite():
            _copy_sqlite(_sqlite_path(), fresh)
        else:
            _dump_postgresql(fresh)
        _sync(fresh)
        fresh.replace(file)
        _sync(file.parent)
    return file.stat().st_size


def restore_backup(file: Path) -> Path | None:
    """Where the database that was replaced is kept, None when there was none."""
    file = file.expanduser().absolute()
    if not file.is_file():
        raise BackupFailed(f"File {file} not found.")
    if not _is_sqlite():
        arguments, _ = _postgresql_command("pg_restore")
        where = " ".join(arguments[1:-1])
        raise BackupFailed(
            "Stop Plimsoll and restore PostgreSQL with its own tool: "
            f"pg_restore --clean --if-exists --single-transaction {where} -d {arguments[-1]} {file}"
        )
    database = _sqlite_path()
    with hold_data_folder(settings.DATA), _scratch_file(database.parent) as fresh:
        _copy_sqlite(file, fresh)
        _require_plimsoll(fresh, file)
        _mark_restoration(fresh)
        _sync(fresh)
        kept = _set_aside(database) if database.exists() else None
        fresh.replace(database)
        _sync(database.parent)
    return kept


def _is_sqlite() -> bool:
    return str(settings.DATABASES["default"]["ENGINE"]).endswith("sqlite3")


def _sqlite_path() -> Path:
    return Path(settings.DATABASES["default"]["NAME"])


@contextmanager
def _scratch_file(folder: Path) -> Iterator[Path]:
    """A place for an unfinished file on the same disk; mkdtemp's folder is 0700 from the start."""
    try:
        scratch = Path(mkdtemp(prefix=".plimsoll-", dir=folder))
    except OSError as error:
        raise BackupFailed(f"Cannot write in {folder}: {error.strerror}.") from None
    try:
        yield scratch / "database"
    finally:
        shutil.rmtree(scratch)


def _copy_sqlite(source: Path, target: Path) -> None:
    """One read transaction: writers go on meanwhile, and the copy is one moment of the database."""
    if not source.is_file():
        raise BackupFailed(f"No database at {source} yet.")
    target.touch(mode=0o600)
    try:
        with closing(sqlite3.connect(source, timeout=20)) as live, closing(sqlite3.connect(target)) as copy:
            live.backup(copy)  # all pages in one step: in smaller steps every write would start it over
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
            findings = [row[0] for row in copy.execute("PRAGMA integrity_check(5)")]
    except sqlite3.Error as error:
        raise BackupFailed(f"{source} cannot be read as a database: {error}.") from error
    if findings != ["ok"]:
        raise BackupFailed(f"{source} is damaged: {findings[0]}.")


def _require_plimsoll(copy: Path, named: Path) -> None:
    with closing(sqlite3.connect(copy)) as database:
        tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"django_migrations", "dashboard_team"} <= tables:
        raise BackupFailed(f"{named} is a database, but not a Plimsoll database.")


def _mark_restoration(copy: Path) -> None:
    """What machines sent since the backup was made is missing: by another number they notice, and send it again."""
    with closing(sqlite3.connect(copy)) as database:
        database.execute(f"PRAGMA user_version = {secrets.randbelow(_LARGEST_NUMBER) + 1}")


def find_restoration() -> int:
    """Which restored backup this database is; 0 for none, and for what other tools put back."""
    if not _is_sqlite():
        return 0
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA user_version")
        return int(cursor.fetchone()[0])


def _set_aside(database: Path) -> Path:
    kept = database.with_name(f"{database.name}.before-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    try:
        with closing(sqlite3.connect(database, timeout=20)) as old:
            old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError:
        # Damaged, which may be why somebody restores: it is kept as it is, its log with it.
        pass
    # The log first: left beside the restored file, it would be played into it.
    for suffix in SIDE_FILES:
        if (side := Path(f"{database}{suffix}")).exists():
            side.rename(f"{kept}{suffix}")
    database.rename(kept)
    return kept


def _postgresql_command(program: str) -> tuple[list[str], dict[str, str]]:
    """The password travels in the environment: a command line can be read by every user of the machine."""
    arguments, environment = DatabaseClient.settings_to_cmd_args_env(settings.DATABASES["default"], [])
    return [program, *arguments[1:]], environment or {}


def _dump_postgresql(target: Path) -> None:
    arguments, environment = _postgresql_command("pg_dump")
    program = shutil.which(arguments[0])
    if program is None:
        raise BackupFailed("pg_dump is not installed. It is part of PostgreSQL's client package.")
    target.touch(mode=0o600)
    for command in (
        [program, *arguments[1:-1], "--no-password", "--format=custom", f"--file={target}", arguments[-1]],
        [str(Path(program).with_name("pg_restore")), "--list", str(target)],  # reads the whole table of contents back
    ):
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode:
            raise BackupFailed(f"{Path(command[0]).name} failed: {done.stderr.strip()}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
