"""Making the rows of a session what its picture says: new ones inserted, changed ones updated, others left alone.

Written as one statement per table: a call has some thirty columns, and the ORM's bulk writers take ten times as long.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Model, QuerySet

from dashboard.ingest.picture.columns import Row
from dashboard.ingest.picture.spelling import spell_rows


@dataclass(frozen=True)
class RowChanges:
    """The natural keys of what was inserted, changed and taken away."""

    new: list[Hashable]
    changed: list[Hashable]
    gone: list[Hashable]


HeldRows = dict[Any, tuple[Any, ...]]  # natural key -> primary key and columns


@dataclass(frozen=True)
class RowPlan:
    """What there is to do to rows of one kind: worked out before a transaction, carried out in it."""

    changes: RowChanges
    wanted: Mapping[Any, Row]  # those that are new or changed
    gone: list[Any]  # primary keys


def sync_rows(rows: QuerySet[Any], key: str, wanted: Mapping[Any, Row], *, fixed: Row, is_new: bool) -> RowChanges:
    """`rows`: all of this kind that the session has. `wanted`: columns by natural key, unique within the session.

    `fixed`: columns set on insert alone, the session's among them. `is_new`: the session has no rows yet.
    """
    held = {} if is_new else read_held(rows, key, list_columns(wanted))
    plan = plan_rows(held, wanted)
    carry_out(plan, rows, key, fixed)
    return plan.changes


def list_columns(wanted: Mapping[Any, Row]) -> list[str]:
    return list(next(iter(wanted.values()), {}))


def read_held(rows: QuerySet[Any], key: str, columns: Iterable[str]) -> HeldRows:
    return {row[0]: row[1:] for row in rows.values_list(key, "pk", *columns)}


def plan_rows(held: HeldRows, wanted: Mapping[Any, Row]) -> RowPlan:
    new = [name for name in wanted if name not in held]
    changed = [name for name in wanted if name in held and held[name][1:] != tuple(wanted[name].values())]
    gone = [name for name in held if name not in wanted]
    return RowPlan(
        RowChanges(new, changed, gone),
        {name: wanted[name] for name in (*changed, *new)},
        [held[name][0] for name in gone],
    )


def carry_out(plan: RowPlan, rows: QuerySet[Any], key: str, fixed: Row) -> None:
    if plan.gone:
        # First: what is gone may hold a value that a new row needs.
        rows.filter(pk__in=plan.gone).delete()
    if plan.wanted:
        values = [{**fixed, key: name, **row} for name, row in plan.wanted.items()]
        _upsert(rows, key, values, list_columns(plan.wanted))


def insert_rows(model: type[Model], columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Rows of which none is there yet, their values spelt as the database takes them."""
    table = connection.ops.quote_name(model._meta.db_table)
    listed = ", ".join(map(connection.ops.quote_name, columns))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({listed}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            places = ", ".join(["%s"] * len(columns))
            statement = f"INSERT INTO {table} ({listed}) VALUES ({places})"  # noqa: S608 (names of our own columns)
            cursor.executemany(statement, rows)


def _upsert(rows: QuerySet[Any], key: str, values: list[Row], updated: Iterable[str]) -> None:
    meta = rows.model._meta
    columns = [meta.get_field(name).column for name in values[0]]
    unique = ("session_id", meta.get_field(key).column)
    upsert_rows(rows.model, columns, spell_rows(row.values() for row in values), unique=unique, updated=updated)


def upsert_rows(
    model: type[Model],
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    unique: Sequence[str],
    updated: Iterable[str],
) -> None:
    """Rows of which some may be there: of those the columns in `updated` change. Values as for `insert_rows`."""
    quote = connection.ops.quote_name
    listed, found_by = ", ".join(map(quote, columns)), ", ".join(map(quote, unique))
    places = ", ".join(["%s"] * len(columns))
    changes = ", ".join(f"{quote(name)} = excluded.{quote(name)}" for name in updated)
    statement = (
        f"INSERT INTO {quote(model._meta.db_table)} ({listed}) VALUES ({places}) "  # noqa: S608 (names of our own columns)
        f"ON CONFLICT ({found_by}) DO UPDATE SET {changes}"
    )
    with connection.cursor() as cursor:
        cursor.executemany(statement, rows)
