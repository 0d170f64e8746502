"""Triggers that note which hours of a team changed, whoever writes them; dashboard.ingest.hour_sums adds those up.

Made after migrations, as the index of the search is: Django alters a table of SQLite by making it anew, without its
triggers.
"""

from collections.abc import Iterator
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

HOURS, CHANGED = "dashboard_sessionhour", "dashboard_changedhour"

_COLUMNS = "(team_id, hour_at)"
# One writer at a time: what is noted and not yet added up need not be noted twice.
_NOTE_ROW = (
    f"INSERT INTO {CHANGED} {_COLUMNS} SELECT {{row}}.team_id, {{row}}.hour_at WHERE NOT EXISTS "  # noqa: S608 (our own names)
    f"(SELECT 1 FROM {CHANGED} WHERE team_id = {{row}}.team_id AND hour_at = {{row}}.hour_at)"
)
_SQLITE_TRIGGERS = {
    f"session_hour_{event}": f"AFTER {event.upper()} ON {HOURS} BEGIN {_NOTE_ROW.format(row=row)}; END"
    for event, row in (("insert", "new"), ("update", "new"), ("delete", "old"))
}
_NOTE_FUNCTION = (
    "CREATE OR REPLACE FUNCTION dashboard_note_changed_hours() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "  # noqa: S608
    f"INSERT INTO {CHANGED} {_COLUMNS} SELECT DISTINCT team_id, hour_at FROM written; RETURN NULL; END $$"
)
_POSTGRESQL_TRIGGERS = {
    f"session_hour_{event}": f"AFTER {event.upper()} ON {HOURS} REFERENCING {table} TABLE AS written "
    "FOR EACH STATEMENT EXECUTE FUNCTION dashboard_note_changed_hours()"
    for event, table in (("insert", "NEW"), ("update", "NEW"), ("delete", "OLD"))
}
_ALL_HOURS = f"INSERT INTO {CHANGED} {_COLUMNS} SELECT DISTINCT team_id, hour_at FROM {HOURS}"  # noqa: S608


def ensure_hour_triggers(using: str, **_signal: Any) -> None:
    """Receives post_migrate. Where a trigger was missing, every hour counts as changed."""
    connection = connections[using]
    with connection.cursor() as cursor:
        if CHANGED not in connection.introspection.table_names(cursor):
            return
    with transaction.atomic(using=using), connection.cursor() as cursor:
        for statement in _find_missing(connection):
            cursor.execute(statement)


def _find_missing(connection: BaseDatabaseWrapper) -> Iterator[str]:
    is_sqlite = connection.vendor == "sqlite"
    triggers = _SQLITE_TRIGGERS if is_sqlite else _POSTGRESQL_TRIGGERS
    names = "SELECT name FROM sqlite_master WHERE type = 'trigger'" if is_sqlite else "SELECT tgname FROM pg_trigger"
    with connection.cursor() as cursor:
        cursor.execute(names)
        missing = triggers.keys() - {name for (name,) in cursor.fetchall()}
    if missing and not is_sqlite:
        yield _NOTE_FUNCTION
    for name in sorted(missing):
        yield f"CREATE TRIGGER {name} {triggers[name]}"
    if missing:
        yield _ALL_HOURS
