"""Tables as bytes, piece by piece: CSV whose text no spreadsheet takes for a formula, and JSON.

Times are UTC. Dollars have all their digits; in JSON they are numbers.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum

import orjson

from dashboard.exports.tables import Cell, ExportTable

PIECE_ROWS = 500  # as many as are read at once
# Excel and LibreOffice take text that begins like this for a formula; the wide signs are what they fold into these.
_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001
_MARK = "\ufeff"  # Excel reads a file without it in the encoding of the machine


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"


CONTENT_TYPES = {Format.CSV: "text/csv; charset=utf-8", Format.JSON: "application/json; charset=utf-8"}


def write_csv(table: ExportTable) -> Iterator[bytes]:
    yield (_MARK + _write_lines([table.columns])).encode()
    for rows in _batch(table.rows):
        yield _write_lines([[spell_cell(cell) for cell in row] for row in rows]).encode()


def write_json(table: ExportTable) -> Iterator[bytes]:
    head = {"list": table.name, "totals": {name: _make_value(cell) for name, cell in table.totals.items()}}
    yield orjson.dumps(head if table.totals else {"list": table.name})[:-1] + b',"rows":['
    comma = b"\n"
    for rows in _batch(table.rows):
        values = [dict(zip(table.columns, map(_make_value, row), strict=True)) for row in rows]
        yield comma + b",\n".join(orjson.dumps(value) for value in values)
        comma = b",\n"
    yield b"\n]}\n"


WRITERS: dict[Format, Callable[[ExportTable], Iterator[bytes]]] = {Format.CSV: write_csv, Format.JSON: write_json}


def spell_cell(cell: Cell) -> str:
    """Numbers stay numbers, a negative one too; text that a spreadsheet would work out gets a mark in front."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, Decimal):
        return f"{cell:f}"
    if isinstance(cell, datetime):
        return f"{cell.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    if isinstance(cell, str):
        return guard_text(cell)
    return cell.isoformat() if isinstance(cell, date) else str(cell)


def guard_text(text: str) -> str:
    """An apostrophe, as people type it to say that a cell is text."""
    if text.startswith(("\t", "\r", "\n")) or text.lstrip().startswith(_FORMULA_STARTS):
        return f"'{text}"
    return text


def _make_value(cell: Cell) -> object:
    """What JSON knows; a decimal number has fewer digits than a floating one can hold."""
    if isinstance(cell, Decimal):
        return float(cell)
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return cell.isoformat() if isinstance(cell, date) else cell


def _write_lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def _batch(rows: Iterable[Sequence[Cell]]) -> Iterator[list[Sequence[Cell]]]:
    kept: list[Sequence[Cell]] = []
    for row in rows:
        kept.append(row)
        if len(kept) == PIECE_ROWS:
            yield kept
            kept = []
    if kept:
        yield kept
