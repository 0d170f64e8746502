"""The database as a command finds and leaves it."""

from typing import TYPE_CHECKING, cast

from django.core.management import call_command
from django.db import connection, connections

if TYPE_CHECKING:
    from django.db.backends.postgresql.base import DatabaseWrapper as PostgreSQL


def migrate_database() -> None:
    call_command("migrate", interactive=False, verbosity=0)


def prepare_bulk_writing() -> None:
    """For a process that writes many rows: SQLite holds the indexes in memory, and copies its log less often, which
    nobody waits for who reads or writes."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA cache_size=-32768")  # 32 MB instead of 2
            cursor.execute("PRAGMA wal_autocheckpoint=8000")  # 32 MB instead of 4


def release_database() -> None:
    """Closes every connection, those waiting in PostgreSQL's pool included (`close_all` leaves these open)."""
    for each in connections.all(initialized_only=True):
        each.close()
        if each.vendor == "postgresql":  # its class would load a driver that SQLite never needs
            cast("PostgreSQL", each).close_pool()
