"""Tables as bytes, piece by piece: CSV whose text no spreadsheet takes for a formula, and JSON.

Times are UTC. Dollars have all their digits; in JSON they are numbers.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum

import orjson

from dashboard.exports.tables import Cell, ExportTable

PIECE_ROWS = 500  # as many as are read at once
# Excel and LibreOffice take text that begins like this for a formula; the wide signs are what they fold into these.
_FORMULA_SIGNS = "=+@＝＋－＠-"  # noqa: RUF001 (the last one is last for regular expressions)
# A program may split a file at other signs than commas, as it does in many countries, and then quotes protect nothing.
_SEPARATORS = ";,|\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# Between a separator and a formula: what is ignored, or taken for the start of a quoted cell.
_GAP = re.compile(rf"[{_SEPARATORS}\s\"']+")
_START = re.compile(rf"[\s\"']*[{_FORMULA_SIGNS}]|['\" ]*[\t\r\n]")
_AFTER_SEPARATOR = re.compile(rf"(?<=[{_SEPARATORS}])")
_BEFORE_TAB = re.compile(rf"(?<=[{_SEPARATORS}])(?=['\" ]*\t)")
_BEFORE_TAB_OR_END = re.compile(rf"(?<=[{_SEPARATORS}])(?=['\" ]*\t|'*\Z)")
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
    """Put an apostrophe, as people type it to say that a cell is text, wherever a formula could begin.

    That is at the start, and after every separator at which a program could split the text; at the end too, where the
    closing quote of the cell would open one with the line end in it. Text that has apostrophes there already gets one
    more, so that taking one away gives the text back. Takes time in proportion to the length.
    """

    def guard(gap: re.Match[str]) -> str:
        if text.startswith(tuple(_FORMULA_SIGNS), gap.end()):
            return _AFTER_SEPARATOR.sub("'", gap[0])
        return (_BEFORE_TAB_OR_END if gap.end() == len(text) else _BEFORE_TAB).sub("'", gap[0])

    return ("'" if _START.match(text) else "") + _GAP.sub(guard, text)


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
