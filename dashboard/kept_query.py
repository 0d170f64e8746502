"""Queries that every page asks, their SQL put together once: Django takes ten times as long for that as a database for
the answer. They are written as querysets like any other, with `Open` where a value differs from time to time.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Expression, Model, Q, QuerySet

Row = tuple[Any, ...]
_Model = TypeVar("_Model", bound=Model)
_NO_ROW = 0  # no table counts from it


class Open(Expression):
    """Stands for a value that is told when the query is asked: a number or a text, as the database keeps it."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:  # noqa: ARG002 (Django's signature)
        return "%s", (self,)


@dataclass(frozen=True)
class _Prepared:
    sql: str
    values: dict[str, Any]  # by their names in the SQL
    compiler: Any
    converters: Any


class KeptQuery:
    """`make` is called once, when the query is first asked; it returns rows of values (`values_list`)."""

    def __init__(self, make: Callable[[], QuerySet[Any, Row]]) -> None:
        self._make = make

    def read(self, **values: str | int) -> list[Row]:
        kept = self._prepared
        with connection.cursor() as cursor:
            cursor.execute(kept.sql, kept.values | values)
            rows: list[Row] = cursor.fetchall()
        if not kept.converters:
            return rows
        return [tuple(row) for row in kept.compiler.apply_converters(rows, kept.converters)]

    @cached_property
    def _prepared(self) -> _Prepared:
        compiler = self._make().query.get_compiler(DEFAULT_DB_ALIAS)
        sql, params = compiler.as_sql()
        names = [value.name if isinstance(value, Open) else f"kept_{place}" for place, value in enumerate(params)]
        values = {name: value for name, value in zip(names, params, strict=True) if not isinstance(value, Open)}
        # Django looks through the whole SQL for values without a name, each time: longer than SQLite takes to answer.
        named = sql.replace("%%", "%%%%") % tuple(f"%({name})s" for name in names)
        return _Prepared(named, values, compiler, compiler.get_converters([part[0] for part in compiler.select]))


class KeptListQuery:
    """About any of several rows, such as the teams of a person: put together once for each number of them."""

    def __init__(self, column: str, make: Callable[[Q], QuerySet[Any, Row]]) -> None:
        self._column = column
        self._make = make
        self._queries: dict[int, KeptQuery] = {}

    def read(self, ids: Collection[int], **values: str | int) -> list[Row]:
        named = {f"listed_{place}": pk for place, pk in enumerate(ids or [_NO_ROW])}
        query = self._queries.get(len(named))
        if query is None:
            any_of = reduce(or_, (Q((self._column, Open(name))) for name in named))
            query = self._queries[len(named)] = KeptQuery(lambda: self._make(any_of))
        return query.read(**named, **values)


def column_names(model: type[Model], through: str = "") -> list[str]:
    """All columns of a table, for values_list; `through` a relation that leads to it."""
    return [f"{through}{field.attname}" for field in model._meta.concrete_fields]


def make_object(model: type[_Model], row: Row) -> _Model:
    """As Django makes it of a row of `column_names`."""
    return model.from_db(DEFAULT_DB_ALIAS, column_names(model), row)
