"""A list that is written out: named columns, and rows that are read while they are sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

Cell = str | int | float | Decimal | bool | datetime | date | None


@dataclass(frozen=True)
class ExportTable:
    """`totals` are the sums that the page shows of the same list, where it shows any."""

    name: str
    columns: tuple[str, ...]
    rows: Iterable[Sequence[Cell]]
    totals: Mapping[str, Cell] = field(default_factory=dict)
