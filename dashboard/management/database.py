"""The database as a command finds and leaves it."""

from django.core.management import call_command
from django.db import connections
from django.db.backends.postgresql.base import DatabaseWrapper as PostgreSQL


def migrate_database() -> None:
    call_command("migrate", interactive=False, verbosity=0)


def release_database() -> None:
    """Closes every connection, those waiting in PostgreSQL's pool included (`close_all` leaves these open)."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if isinstance(connection, PostgreSQL):
            connection.close_pool()
