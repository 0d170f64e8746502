"""The two databases of the fault tests: read from outside, without Django, while the product writes to them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import psycopg

EFFECT_TABLE = "CREATE TABLE effect (job varchar(200) NOT NULL)"  # not unique: a double must be able to show
LOCK_PROBE_SECONDS = 0.3


class Database(Protocol):
    settings: dict[str, str]

    def rows(self, statement: str) -> list[tuple[Any, ...]]: ...
    def is_locked(self) -> bool: ...
    def drop(self) -> None: ...


class SqliteDatabase:
    def __init__(self, path: Path) -> None:
        self.settings: dict[str, str] = {}
        self._path = path
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(EFFECT_TABLE)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._path, timeout=20)) as connection:
            return connection.execute(statement).fetchall()

    def is_locked(self) -> bool:
        with closing(sqlite3.connect(self._path, timeout=LOCK_PROBE_SECONDS)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            connection.rollback()
            return False

    def drop(self) -> None:
        """Goes with the test's folder."""


class PostgresqlDatabase:
    def __init__(self, server: str, name: str, *, template: str) -> None:
        self._server, self._name = server, name
        run_on_server(server, f"CREATE DATABASE {name} TEMPLATE {template}")
        self.settings = {"DATABASE_URL": database_url(server, name)}
        self._connection = psycopg.connect(self.settings["DATABASE_URL"], autocommit=True)
        self._connection.execute(EFFECT_TABLE)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement.encode()).fetchall()

    def is_locked(self) -> bool:
        """A stopped process outside a transaction holds no lock: the server ends its statements by itself."""
        idle = "state LIKE 'idle in transaction%' AND datname = current_database()"  # others share the server
        return bool(self.rows(f"SELECT 1 FROM pg_stat_activity WHERE {idle}"))

    def drop(self) -> None:
        self._connection.close()
        run_on_server(self._server, f"DROP DATABASE {self._name} WITH (FORCE)")


def database_url(server: str, name: str) -> str:
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def run_on_server(server: str, statement: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement.encode())
