"""A new database is made by one migration that stands for 18: it leaves what they leave, and leaves it whole or not.

What SQLite keeps of the two ways is compared in tests/upgrades, where earlier databases go the long one anyway.
"""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

AT_ONCE = ("dashboard", "0001_squashed_0018_webhooks")
LAST_OF_MANY = ("dashboard", "0018_webhooks")
WHAT_POSTGRESQL_KEEPS = (
    "SELECT table_name, column_name, data_type, character_maximum_length, numeric_precision, numeric_scale, "
    "is_nullable, column_default, identity_generation, generation_expression "
    "FROM information_schema.columns WHERE table_schema = current_schema",
    "SELECT tablename, indexname, replace(indexdef, current_schema || '.', '') "
    "FROM pg_indexes WHERE schemaname = current_schema",
    "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) "
    "FROM pg_constraint WHERE connamespace = current_schema::regnamespace",
)


class KilledError(Exception):
    pass


def migrate(database: BaseDatabaseWrapper, target: tuple[str, str]) -> None:
    executor = MigrationExecutor(database)
    executor.loader = MigrationLoader(database, replace_migrations=False)  # knows both ways
    executor.migrate([target])


def test_later_migrations_find_the_same_models_on_both_ways() -> None:
    loader = MigrationLoader(None, replace_migrations=False)
    at_once, by_many = loader.project_state([AT_ONCE]), loader.project_state([LAST_OF_MANY])
    assert len(at_once.models) == len(by_many.models) > 40
    assert MigrationAutodetector(at_once, by_many).changes(loader.graph) == {}


@pytest.mark.postgresql_only
@pytest.mark.django_db
def test_both_ways_leave_the_same_tables_indexes_and_constraints() -> None:
    by_many, at_once = read_made_schema("by_many", LAST_OF_MANY), read_made_schema("at_once", AT_ONCE)
    assert len(at_once) > 500
    assert at_once == by_many


def read_made_schema(name: str, target: tuple[str, str]) -> set[tuple[Any, ...]]:
    """All of it is gone with the transaction of the test."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA {name}; SET LOCAL search_path TO {name}")
        migrate(connection, target)
        found: set[tuple[Any, ...]] = set()
        for query in WHAT_POSTGRESQL_KEEPS:
            cursor.execute(query)
            found.update(cursor.fetchall())
    return found


@pytest.mark.sqlite_only
@pytest.mark.django_db
def test_first_start_killed_halfway_leaves_nothing_in_the_way_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = connections["new"] = connection.copy("new")  # a transaction is found by its alias
    new.settings_dict["NAME"] = tmp_path / "new.sqlite3"
    noted: list[str] = []

    def note_half(self: MigrationRecorder, app: str, name: str) -> None:
        if len(noted) == 9:
            raise KilledError
        noted.append(name)
        note(self, app, name)

    note = MigrationRecorder.record_applied
    try:
        with monkeypatch.context() as patched:
            patched.setattr(MigrationRecorder, "record_applied", note_half)
            with pytest.raises(KilledError):
                migrate(new, AT_ONCE)
        assert new.introspection.table_names() == ["django_migrations"]
        assert MigrationRecorder(new).applied_migrations() == {}
        migrate(new, AT_ONCE)
        assert {AT_ONCE, LAST_OF_MANY} <= MigrationRecorder(new).applied_migrations().keys()
    finally:
        new.close()
        del connections["new"]
