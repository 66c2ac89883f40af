"""Reading a data file: every wrong value is noted with its place, and reading goes on.

A reader yields ``Row`` objects whose methods turn a cell into a value. A wrong cell gives ``None``
and one ``Problem``. A row with problems stays known by its key, so that rows which name it are not
reported too, but nothing is compared with its values.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from babel import Locale

COUNTRIES = {
    code: name
    for code, name in sorted(Locale("en").territories.items())
    if re.fullmatch(r"[A-Z]{2}", code) and code not in {"EU", "EZ", "QO", "UN", "XA", "XB", "ZZ"}
}
"""ISO 3166 alpha-2 codes with their English names (CLDR)."""

PRECISIONS = ("day", "month", "half_year", "year", "range", "upper_bound")
SHOWN = 80
"""Characters of a wrong value that a message repeats."""
_FLAG = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One wrong value: where it is, what it is, and what is allowed."""

    file: str
    line: int
    column: str
    value: str
    message: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        shown = self.value if len(self.value) <= SHOWN else self.value[:SHOWN] + "..."
        return f"{place}: {shown!r}: {self.message}" if self.column else f"{place}: {self.message}"


@dataclass(slots=True)
class Row:
    """One line of a data file, with the problems found in it so far."""

    file: str
    line: int
    cells: dict[str, str]
    problems: list[Problem]
    sound: bool = True
    """Whether nothing is wrong with it so far."""
    values: dict[str, Any] = field(default_factory=dict)
    """What the importer made of it: model fields by name, parents by their own keys."""

    def problem(self, column: str, message: str) -> None:
        """Note that ``column`` is wrong; the row no longer counts."""
        self.sound = False
        self.problems.append(
            Problem(file=self.file, line=self.line, column=column, value=self.cells.get(column, ""), message=message)
        )

    def text(self, column: str, *, blank: bool = False, max_length: int = 1000) -> str:
        """A cell as text; empty only where ``blank`` allows it."""
        value = self.cells[column]
        if not value and not blank:
            self.problem(column, "must not be empty")
        if len(value) > max_length:
            self.problem(column, f"at most {max_length} characters")
        return value

    def choice(self, column: str, allowed: Collection[str], *, blank: bool = False) -> str:
        """A cell that must be one of ``allowed``."""
        value = self.cells[column]
        if value not in allowed and not (blank and not value):
            self.problem(column, "allowed: " + ", ".join(sorted(allowed)))
        return value

    def known(self, column: str, keys: Collection[str], what: str, *, blank: bool = False) -> str:
        """A cell that must name a row of another file."""
        value = self.cells[column]
        if value not in keys and not (blank and not value):
            self.problem(column, f"unknown {what}")
        return value

    def decimal(
        self, column: str, *, blank: bool = False, above: Decimal | None = Decimal(0), places: int = 6
    ) -> Decimal | None:
        """A cell as an exact number greater than ``above``; ``None`` where empty means unknown."""
        value = self.cells[column]
        if not value:
            if not blank:
                self.problem(column, "must be a number, not empty")
            return None
        try:
            number = Decimal(value)
        except InvalidOperation:
            self.problem(column, "must be a number")
            return None
        if not number.is_finite():
            self.problem(column, "must be a finite number")
            return None
        if above is not None and number <= above:
            self.problem(column, f"must be greater than {above}")
            return None
        if number.adjusted() > 9 or -int(number.normalize().as_tuple().exponent) > places:
            self.problem(column, f"at most 10 digits before and {places} after the point")
            return None
        return number

    def number(
        self, column: str, *, blank: bool = False, maximum: float = math.inf, zero: bool = False
    ) -> float | None:
        """A cell as a number above 0 (or 0 where ``zero``); ``None`` where empty means unknown."""
        value = self.decimal(column, blank=blank, places=12, above=None if zero else Decimal(0))
        if value is not None and not 0 <= float(value) <= maximum:
            self.problem(column, f"must be between 0 and {maximum:g}")
            return None
        return None if value is None else float(value)

    def scaled(self, column: str, factor: int, *, blank: bool = False, maximum: float = math.inf) -> float | None:
        """A cell as a number above 0 times ``factor``, multiplied exactly: 66.9 x 10^12 stays round."""
        if self.number(column, blank=blank, maximum=maximum) is None:
            return None
        return float(Decimal(self.cells[column]) * factor)

    def integer(self, column: str, *, blank: bool = False, minimum: int = 1) -> int | None:
        """A cell as a whole number of at least ``minimum``; ``None`` where empty means unknown."""
        value = self.cells[column]
        if not value and blank:
            return None
        if not re.fullmatch(r"\d{1,18}", value) or int(value) < minimum:
            self.problem(column, f"must be a whole number of at least {minimum}")
            return None
        return int(value)

    def day(self, column: str, *, blank: bool = False) -> date | None:
        """A cell as a date, YYYY-MM-DD."""
        value = self.cells[column]
        if not value and blank:
            return None
        try:
            if not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
                raise ValueError
            return date.fromisoformat(value)
        except ValueError:
            self.problem(column, "must be a date as YYYY-MM-DD")
            return None

    def country(self, column: str, *, blank: bool = False) -> str:
        """A cell as an ISO 3166 alpha-2 code."""
        value = self.cells[column]
        if value not in COUNTRIES and not (blank and not value):
            self.problem(column, "unknown country: must be an ISO 3166 alpha-2 code")
        return value

    def flags(self, column: str, allowed: Collection[str], *, refused: Collection[str] = ()) -> list[str]:
        """A cell as flags separated by ``|``."""
        found = [part for part in self.cells[column].split("|") if part]
        for flag in found:
            if flag in refused:
                self.problem(column, f"{flag} rows do not belong into the catalog: leave the row out")
            elif flag not in allowed or not _FLAG.fullmatch(flag):
                self.problem(column, "allowed, separated by |: " + ", ".join(sorted(allowed)))
        return sorted(set(found))

    def origin(self) -> dict[str, Any]:
        """The columns every file has: ``source`` and ``as_of``."""
        return {"source": self.text("source"), "as_of": self.day("as_of")}


def read_rows(path: Path, columns_line: str, problems: list[Problem]) -> Iterator[Row]:
    """Yield the rows of a CSV file whose header must hold exactly the columns, in any order."""
    columns = columns_line.split(",")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        problems.append(Problem(file=path.name, line=0, column="", value="", message="the file is missing"))
        return
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        problems.append(Problem(file=path.name, line=line, column="", value="", message="must be UTF-8 text"))
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(reader, [])
    if set(header) != set(columns) or len(header) != len(columns):
        for name in sorted(set(columns) - set(header)):
            problems.append(Problem(file=path.name, line=1, column=name, value="", message="the column is missing"))
        for name in sorted({name for name in header if name not in columns or header.count(name) > 1}):
            problems.append(
                Problem(file=path.name, line=1, column=name, value=name, message="allowed columns: " + columns_line)
            )
        return
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problems.append(
                Problem(file=path.name, line=reader.line_num, column="", value="", message=f"not CSV: {error}")
            )
            return
        row = Row(path.name, reader.line_num, dict(zip(header, (c.strip() for c in cells), strict=False)), problems)
        if len(cells) != len(header):
            row.problem("", f"has {len(cells)} cells, the header has {len(header)}")
            continue
        yield row


def unique_rows(rows: list[Row], columns: Sequence[str]) -> list[Row]:
    """Drop and report rows that repeat the key ``columns`` of an earlier row."""
    first: dict[tuple[str, ...], Row] = {}
    kept = []
    for row in rows:
        key = tuple(row.cells[name] for name in columns)
        if key in first:
            row.problem(columns[-1], f"repeats line {first[key].line}: {', '.join(columns)} must be unique together")
        else:
            first[key] = row
            kept.append(row)
    return kept
