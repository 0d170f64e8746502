"""The index behind the text search of sessions: FTS5 on SQLite, pg_trgm on PostgreSQL, both made after migrations.

Not by a migration: Django alters a table of SQLite by making it anew, which silently drops the triggers. Without the
index (an old SQLite, no right to create the extension) the search finds the same, by reading every session.
"""

import logging
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

SESSIONS = "dashboard_agentsession"
INDEX = "dashboard_session_search"

_REMOVAL = (
    f"INSERT INTO {INDEX} ({INDEX}, rowid, title, search_text) "  # noqa: S608 (names of our own)
    "VALUES ('delete', old.id, old.title, old.search_text)"
)
_ADDITION = f"INSERT INTO {INDEX} (rowid, title, search_text) VALUES (new.id, new.title, new.search_text)"  # noqa: S608
_CHANGED = "old.title IS NOT new.title OR old.search_text IS NOT new.search_text"
_TRIGGERS = {
    "session_search_insert": f"AFTER INSERT ON {SESSIONS} BEGIN {_ADDITION}; END",
    "session_search_delete": f"AFTER DELETE ON {SESSIONS} BEGIN {_REMOVAL}; END",
    "session_search_update": (
        f"AFTER UPDATE OF title, search_text, project, developer, branch, external_id ON {SESSIONS} "
        f"WHEN {_CHANGED} BEGIN {_REMOVAL}; {_ADDITION}; END"
    ),
}
_FTS_TABLE = (
    f"CREATE VIRTUAL TABLE IF NOT EXISTS {INDEX} USING fts5("
    f"title, search_text, content='{SESSIONS}', content_rowid='id', tokenize='trigram')"
)
_TRIGRAM_INDEXES = (
    f"CREATE INDEX IF NOT EXISTS session_by_text ON {SESSIONS} USING gin (UPPER(search_text) gin_trgm_ops)",
    f"CREATE INDEX IF NOT EXISTS session_by_title ON {SESSIONS} USING gin (UPPER(title) gin_trgm_ops)",
)
_SAMPLE_ROWS = 1000  # of an index: half a second for a database of a gigabyte

log = logging.getLogger(__name__)


def refresh_statistics(using: str, plan: Sequence[Any] = (), **_signal: Any) -> None:
    """Receives post_migrate. SQLite takes an index it has no statistics of for a very good one beside others that
    it has: after a migration that adds one, the sessions page took three times as long."""
    connection = connections[using]
    if connection.vendor != "sqlite" or not plan:
        return
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA analysis_limit = {_SAMPLE_ROWS}")
        cursor.execute("ANALYZE")


def ensure_search_index(using: str, **_signal: Any) -> None:
    """Receives post_migrate. What is there already stays; what an altered table lost is made again and filled."""
    connection = connections[using]
    if not _has_columns(connection):
        return
    try:
        with transaction.atomic(using=using), connection.cursor() as cursor:
            for statement in _find_missing(connection):
                cursor.execute(statement)
    except DatabaseError as error:
        log.warning("no index for the text search of sessions", extra={"reason": str(error)})


@cache
def is_indexed(using: str = DEFAULT_DB_ALIAS) -> bool:
    """Whether candidates can be asked of FTS5. PostgreSQL decides by itself whether it uses its index."""
    connection = connections[using]
    if connection.vendor != "sqlite":
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM sqlite_master WHERE name = %s", [INDEX])
        return bool(cursor.fetchone()[0])


def _has_columns(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        if SESSIONS not in connection.introspection.table_names(cursor):
            return False
        cursor.execute(f"SELECT * FROM {SESSIONS} LIMIT 0")  # noqa: S608
        return any(name == "search_text" for name, *_ in cursor.description)


def _find_missing(connection: BaseDatabaseWrapper) -> Iterator[str]:
    if connection.vendor == "postgresql":
        yield "CREATE EXTENSION IF NOT EXISTS pg_trgm"
        yield from _TRIGRAM_INDEXES
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [SESSIONS])
        present = {name for (name,) in cursor.fetchall()}
    if present >= _TRIGGERS.keys():
        return
    yield _FTS_TABLE
    for name, body in _TRIGGERS.items():
        yield f"CREATE TRIGGER IF NOT EXISTS {name} {body}"
    yield f"INSERT INTO {INDEX} ({INDEX}) VALUES ('rebuild')"  # noqa: S608
