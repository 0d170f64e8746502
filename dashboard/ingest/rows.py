"""Making the rows of a session what its picture says: new ones inserted, changed ones updated, others left alone."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from dashboard.ingest.picture.columns import Row

BATCH_ROWS = 400  # SQLite takes 32,766 values in one statement; a call has some thirty columns


@dataclass(frozen=True)
class RowChanges:
    """The natural keys of what was inserted, changed and taken away."""

    new: list[Hashable]
    changed: list[Hashable]
    gone: list[Hashable]


def sync_rows(rows: QuerySet[Any], key: str, wanted: Mapping[Any, Row], *, fixed: Row) -> RowChanges:
    """`rows`: all of this kind that the session has. `wanted`: columns by natural key. `fixed`: set on insert alone."""
    columns = list(next(iter(wanted.values()), {}))
    held = {row[0]: row[1:] for row in rows.values_list(key, "pk", *columns)}
    new = [name for name in wanted if name not in held]
    changed = [name for name in wanted if name in held and held[name][1:] != tuple(wanted[name].values())]
    gone = [name for name in held if name not in wanted]
    if gone:
        # First: what is gone may hold a value that a new row needs.
        rows.filter(pk__in=[held[name][0] for name in gone]).delete()
    _update(rows, columns, [(held[name][0], wanted[name]) for name in changed])
    rows.bulk_create(
        [rows.model(**fixed, **{key: name}, **wanted[name]) for name in new],
        batch_size=BATCH_ROWS,
    )
    return RowChanges(new, changed, gone)


def _update(rows: QuerySet[Any], columns: Sequence[str], changed: Sequence[tuple[int, Row]]) -> None:
    if not changed or not columns:
        return
    found = rows.in_bulk([pk for pk, _ in changed])
    for pk, row in changed:
        for column, value in row.items():
            setattr(found[pk], column, value)
    rows.bulk_update(found.values(), columns, batch_size=100)
