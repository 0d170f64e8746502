"""The database as a command finds and leaves it."""

from typing import TYPE_CHECKING, cast

from django.core.management import call_command
from django.db import connections

if TYPE_CHECKING:
    from django.db.backends.postgresql.base import DatabaseWrapper as PostgreSQL


def migrate_database() -> None:
    call_command("migrate", interactive=False, verbosity=0)


def release_database() -> None:
    """Closes every connection, those waiting in PostgreSQL's pool included (`close_all` leaves these open)."""
    for connection in connections.all(initialized_only=True):
        connection.close()
        if connection.vendor == "postgresql":  # its class would load a driver that SQLite never needs
            cast("PostgreSQL", connection).close_pool()
