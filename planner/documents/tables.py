"""The lines of a quote as CSV: written so that no spreadsheet runs a cell, read back to the same lines."""

from __future__ import annotations

import csv as plain_csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final, cast

from defusedcsv import csv

from planner.documents.snapshot import QuoteSnapshot
from planner.engine.quote_math import CATEGORIES, Category, Line
from planner.engine.sentences import Sentence, say

COLUMNS: Final = (
    "quote",
    "currency",
    "months",
    "line",
    "category",
    "label",
    "detail",
    "source",
    "quantity",
    "unit",
    "unit_price",
    "percent",
    "percent_of",
    "cadence",
    "once",
    "monthly",
    "term",
)
NUMBERS: Final = ("quantity", "unit_price", "percent", "once", "monthly", "term")
CADENCES: Final = ("once", "monthly", "both")
BOM: Final = "\ufeff"
"""Without it spreadsheets read UTF-8 as something else."""
MOST_ROWS: Final = 5_000
# What a spreadsheet may take for the start of a formula, in any width; and the quote that marks a cell as text.
_STARTS_FORMULA: Final = re.compile(r"[\s]*[=+\-@|%\uff1d\uff0b\uff0d\uff20']")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_WITH_COMMA: Final = re.compile(r"-?[0-9]+,[0-9]+", re.ASCII)
MARK: Final = "'"


class TableError(ValueError):
    """A table that isn't a quote's lines; ``row`` counts from 1 with the heading, ``column`` is its name or empty."""

    def __init__(self, row: int, column: str, message: Sentence) -> None:
        self.sentence = (
            say("row {row}, {column}: {reason}", row=row, column=column, reason=message)
            if column
            else say("row {row}: {reason}", row=row, reason=message)
        )
        super().__init__(self.sentence)
        self.row = row
        self.column = column
        self.message = message


def render_csv(snapshot: QuoteSnapshot) -> bytes:
    """The lines, one a row, every number in full; a value that isn't known is an empty cell."""
    text = io.StringIO(newline="")
    text.write(BOM)
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for line in snapshot.lines:
        writer.writerow([as_cell(value) for value in _row(line, snapshot)])
    return text.getvalue().encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a table says of a quote as a whole, and its lines."""

    currency: str
    months: str
    lines: tuple[Line, ...]


def read_csv(data: bytes) -> tuple[Line, ...]:
    """The lines of a table that ``render_csv`` wrote; raises ``TableError`` naming the first wrong cell."""
    return read_table(data).lines


def read_table(data: bytes) -> Table:
    """The lines, with the one currency and term that every row names; raises ``TableError``."""
    rows = _rows(data)
    lines = tuple(_line(number, cells) for number, cells in enumerate(rows, start=2))
    return Table(currency=_common("currency", rows), months=_common("months", rows), lines=lines)


def _common(column: str, rows: list[list[str]]) -> str:
    """What every row has in a column."""
    place = COLUMNS.index(column)
    for number, cells in enumerate(rows, start=2):
        if cells[place] != rows[0][place]:
            given = repr(cells[place][:40])
            raise TableError(number, column, say("{given} is not that of the rows before", given=given))
    return rows[0][place] if rows else ""


def _rows(data: bytes) -> list[list[str]]:
    """The rows below the heading."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TableError(1, "", say("not UTF-8 at byte {byte}", byte=error.start)) from None
    # Where a comma separates decimals, spreadsheets separate cells by semicolons.
    by_semicolon = text.startswith(";".join(COLUMNS[:2]))
    try:
        rows = list(
            plain_csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=";" if by_semicolon else ",")
        )
    except plain_csv.Error as error:
        raise TableError(1, "", say("not CSV: {reason}", reason=str(error))) from None
    if not rows or tuple(rows[0]) != COLUMNS:
        raise TableError(1, "", say("the heading must be {heading}", heading=",".join(COLUMNS)))
    if len(rows) > MOST_ROWS:
        raise TableError(MOST_ROWS, "", say("more than {most:,} rows", most=MOST_ROWS))
    return [_with_points(cells) for cells in rows[1:]] if by_semicolon else rows[1:]


def _with_points(cells: list[str]) -> list[str]:
    """A row's numbers with decimal points, where they have commas."""
    return [
        cell.replace(",", ".") if name in NUMBERS and _WITH_COMMA.fullmatch(cell) else cell
        for name, cell in zip(COLUMNS, cells, strict=False)
    ] + cells[len(COLUMNS) :]


def as_cell(text: str) -> str:
    """``text`` marked as text where a spreadsheet could take it for a formula; ``from_cell`` undoes it.

    >>> as_cell("=1+1"), as_cell("-5.00"), as_cell("'tis"), as_cell("plain")
    ("'=1+1", '-5.00', "''tis", 'plain')
    """
    return MARK + text if _STARTS_FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_cell(cell: str) -> str:
    """The text that ``as_cell`` made the cell from.

    >>> from_cell(as_cell("@SUM(A1)")), from_cell(as_cell("'=x")), from_cell("'")
    ('@SUM(A1)', "'=x", "'")
    """
    text = cell.removeprefix(MARK)
    return text if as_cell(text) == cell else cell


def _row(line: Line, snapshot: QuoteSnapshot) -> list[str]:
    values: Mapping[str, object] = {
        "quote": snapshot.number,
        "currency": snapshot.currency.code,
        "months": snapshot.months,
        "line": line.id,
        "percent_of": " ".join(line.of),
    }
    return [_text(values[name] if name in values else getattr(line, name)) for name in COLUMNS]


def _text(value: object) -> str:
    if value is None:
        return ""
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _line(number: int, cells: list[str]) -> Line:
    if len(cells) != len(COLUMNS):
        raise TableError(number, "", say("{count} cells instead of {wanted}", count=len(cells), wanted=len(COLUMNS)))
    texts = {name: from_cell(cell) for name, cell in zip(COLUMNS, cells, strict=True)}
    amounts = {name: _number(number, name, texts[name]) for name in NUMBERS}
    of = tuple(texts["percent_of"].split())
    for name, given, known in (
        ("category", (texts["category"],), CATEGORIES),
        ("percent_of", of, CATEGORIES),
        ("cadence", (texts["cadence"],), CADENCES),
    ):
        unknown = [item for item in given if item not in known]
        if unknown:
            message = say("{given} is none of {known}", given=repr(unknown[0]), known=", ".join(known))
            raise TableError(number, name, message)
    return Line(
        id=texts["line"],
        category=cast(Category, texts["category"]),
        label=texts["label"],
        detail=texts["detail"],
        source=texts["source"],
        unit=texts["unit"],
        of=of,
        cadence=texts["cadence"],
        **amounts,
    )


def _number(row: int, column: str, text: str) -> Decimal | None:
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or len(text) > 40:
        raise TableError(row, column, say("{given} is not a number like 1234.50", given=repr(text[:40])))
    try:
        return Decimal(text)
    except InvalidOperation:
        raise TableError(row, column, say("{given} is not a number like 1234.50", given=repr(text))) from None
