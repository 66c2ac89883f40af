"""A quote as an XLSX workbook whose formulas recompute every amount and total."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any, Final

import xlsxwriter
from xlsxwriter.format import Format
from xlsxwriter.worksheet import Worksheet

from planner.documents.annex import annex
from planner.documents.notes import notes
from planner.documents.printed import column_label, line_label
from planner.documents.snapshot import QuoteSnapshot
from planner.documents.wording import Wording, wording
from planner.engine.money import UNIT_PRICE_EXTRA_DIGITS
from planner.engine.quote_math import Amounts, Line

QUANTITY, UNIT, PRICE, PERCENT, ONCE, MONTHLY, TERM = range(5, 12)
"""Columns of the price sheet, from 0; before them: number, category, item, detail, source."""
WIDTHS: Final = (5, 16, 34, 30, 30, 12, 14, 14, 8, 16, 16, 18)
LINE_HEIGHT: Final = 15
DUE: Final = {"once": ONCE, "monthly": MONTHLY, "term": TERM}
HEAD_ROW: Final = 9
UNKNOWN: Final = "#N/A"
"""Spreadsheets carry it through every sum: a total with an unknown part is unknown."""


def render_xlsx(snapshot: QuoteSnapshot, language: str = "") -> bytes:
    """The workbook in ``language``, the snapshot's own unless given; the same snapshot gives the same bytes.

    Text cells are text whatever they start with: nothing anybody typed is a formula or a link.
    """
    words = wording(language or snapshot.language)
    target = io.BytesIO()
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with xlsxwriter.Workbook(target, options) as book:
        book.set_properties(
            {
                "title": " ".join(part for part in (words.say("quotation"), snapshot.number, snapshot.title) if part),
                "author": snapshot.seller.name,
                "created": snapshot.made_at.astimezone(UTC).replace(tzinfo=None),
            }
        )
        _Prices(book, snapshot, words).write()
        _write_notes(book, snapshot, words)
        if snapshot.plan is not None:
            _write_annex(book, snapshot, words)
    return target.getvalue()


class _Prices:
    """The first sheet: who, what, and the lines with their formulas."""

    def __init__(self, book: Any, snapshot: QuoteSnapshot, words: Wording) -> None:
        self.snapshot = snapshot
        self.words = words
        self.sheet: Worksheet = book.add_worksheet(words.say("lines.title"))
        digits = snapshot.currency.minor_digits
        money = "#,##0" + ("." + "0" * digits if digits else "")
        price = "#,##0." + "0" * digits + "#" * UNIT_PRICE_EXTRA_DIGITS
        self.digits = digits
        self.plain: Format = book.add_format({"valign": "top"})
        self.unit: Format = book.add_format({"valign": "top", "indent": 1})
        self.wrapped: Format = book.add_format({"valign": "top", "text_wrap": True})
        self.bold: Format = book.add_format({"bold": True, "valign": "top"})
        self.title: Format = book.add_format({"bold": True, "font_size": 16})
        heading = {"bold": True, "bottom": 1, "text_wrap": True, "bg_color": "#E8F1F3"}
        self.head: Format = book.add_format(heading)
        self.head_right: Format = book.add_format({**heading, "align": "right"})
        self.money: Format = book.add_format({"num_format": money, "valign": "top"})
        self.sum: Format = book.add_format({"num_format": money, "bold": True, "top": 1})
        self.sum_label: Format = book.add_format({"bold": True, "top": 1})
        self.price: Format = book.add_format({"num_format": price, "valign": "top"})
        self.number: Format = book.add_format({"num_format": "General", "valign": "top"})
        self.months: Format = book.add_format({"num_format": "0", "align": "left", "valign": "top"})

    def write(self) -> None:
        self._write_head()
        first = HEAD_ROW + 1
        rows: dict[str, int] = {}
        lines = self.snapshot.lines
        for row, line in enumerate(lines, start=first):
            rows[line.id] = row
            self._write_line(row, line, self._base_end(lines, line, first), first)
        self._write_sums(first, first + len(lines))
        self._set_up_page(first + len(lines) + 2)

    def _write_head(self) -> None:
        snapshot, words, sheet = self.snapshot, self.words, self.sheet
        sheet.write_string(0, 0, f"{words.say('quotation')} {snapshot.number}".strip(), self.title)
        sheet.write_string(1, 0, words.say("draft") if snapshot.is_draft else "", self.bold)
        sheet.write_string(1, 2, snapshot.title, self.bold)
        facts = [
            ("seller", snapshot.seller.name),
            ("buyer", snapshot.buyer.name),
            ("date", words.day(snapshot.issued_on or snapshot.made_at.date())),
            ("valid_until", words.day(snapshot.valid_until) if snapshot.valid_until else ""),
            ("currency", words.currency(snapshot.currency)),
        ]
        for row, (code, text) in enumerate(facts, start=2):
            sheet.write_string(row, 0, words.say(code), self.plain)
            sheet.write_string(row, 2, text, self.plain)
        sheet.write_string(7, 0, words.say("term"), self.plain)
        sheet.write_number(7, 2, snapshot.months, self.months)
        headings = [
            *(words.say("col.number"), words.say("col.category"), words.say("col.item"), words.say("col.detail")),
            *(words.say("col.source"), words.say("col.quantity"), words.say("col.unit"), words.say("col.unit_price")),
            "%",
            *(column_label(name, snapshot.months, words) for name in DUE),
        ]
        for column, text in enumerate(headings):
            is_number = column in (QUANTITY, PRICE, PERCENT, *DUE.values())
            sheet.write_string(HEAD_ROW, column, text, self.head_right if is_number else self.head)

    @staticmethod
    def _base_end(lines: Sequence[Line], line: Line, first: int) -> int:
        """The row after the last that a percentage is taken of: where its own category begins."""
        return first + next(place for place, other in enumerate(lines) if other.category == line.category)

    def _write_line(self, row: int, line: Line, base_end: int, first: int) -> None:
        sheet, words = self.sheet, self.words
        sheet.write_number(row, 0, row - HEAD_ROW, self.months)
        sheet.set_row(row, LINE_HEIGHT * max(_text_lines(line_label(line, words), 2), *self._side_lines(line)))
        sheet.write_string(row, 1, words.name("category", line.category), self.plain)
        sheet.write_string(row, 2, line_label(line, words), self.wrapped)
        sheet.write_string(row, 3, words.item(line.detail), self.wrapped)
        sheet.write_string(row, 4, words.item(line.source), self.wrapped)
        if line.percent is None:
            self._write_known(row, QUANTITY, line.quantity, self.number)
            sheet.write_string(row, UNIT, words.name("unit", line.unit), self.unit)
            self._write_known(row, PRICE, line.unit_price, self.price)
        else:
            sheet.write_number(row, PERCENT, float(line.percent), self.number)
        for name in ("once", "monthly"):
            self._write_formula(row, DUE[name], self._formula(row, line, name, base_end, first), getattr(line, name))
        term = f"=J{row + 1}+$C$8*K{row + 1}"
        self._write_formula(row, TERM, term, line.term)

    @staticmethod
    def _side_lines(line: Line) -> tuple[int, int]:
        return _text_lines(line.detail, 3), _text_lines(line.source, 4)

    def _write_known(self, row: int, column: int, value: Decimal | None, style: Format) -> None:
        if value is None:
            self.sheet.write_formula(row, column, "=NA()", style, UNKNOWN)
        else:
            self.sheet.write_number(row, column, float(value), style)

    def _write_formula(self, row: int, column: int, formula: str, value: Decimal | None) -> None:
        self.sheet.write_formula(row, column, formula, self.money, UNKNOWN if value is None else float(value))

    def _formula(self, row: int, line: Line, name: str, base_end: int, first: int) -> str:
        """How a spreadsheet gets this amount: the rule of ``planner.engine.quote_math`` in its own words."""
        letter = {"once": "J", "monthly": "K"}[name]
        if line.percent is None:
            return f"=ROUND(F{row + 1}*H{row + 1},{self.digits})" if line.cadence == name else "=0"
        amounts, categories = f"{letter}${first + 1}:{letter}${base_end}", f"$B${first + 1}:$B${base_end}"
        if base_end == first:
            base = "0"
        elif line.of:
            base = "+".join(
                f'SUMIF({categories},"{self.words.name("category", category)}",{amounts})' for category in line.of
            )
        else:
            base = f"SUM({amounts})"
        factor = f"{'-' if line.category == 'discount' else ''}I{row + 1}/100"
        tax = self.snapshot.tax
        if line.category == "tax" and tax is not None:
            factor += f"*{tax.base_numerator}/{tax.base_denominator}"
        return f"=ROUND(({base})*{factor},{self.digits})"

    def _write_sums(self, first: int, end: int) -> None:
        taxed = [place for place, line in enumerate(self.snapshot.lines, start=first) if line.category == "tax"]
        net_end = taxed[0] if taxed else end
        sums: list[tuple[str, int, Amounts]] = [("net", net_end, self.snapshot.net)] if taxed else []
        sums.append(("total.taxed" if taxed else "total", end, self.snapshot.total))
        for row, (code, last, amounts) in enumerate(sums, start=end):
            for column in range(ONCE):
                self.sheet.write_blank(row, column, None, self.sum_label)
            self.sheet.write_string(row, 2, self.words.say(code), self.sum_label)
            for name, letter in zip(DUE, "JKL", strict=True):
                value = getattr(amounts, name)
                formula = f"=SUM({letter}{first + 1}:{letter}{last})" if last > first else "=0"
                self.sheet.write_formula(row, DUE[name], formula, self.sum, UNKNOWN if value is None else float(value))

    def _set_up_page(self, end: int) -> None:
        for column, width in enumerate(WIDTHS):
            self.sheet.set_column(column, column, width)
        self.sheet.freeze_panes(HEAD_ROW + 1, 3)
        self.sheet.set_landscape()
        self.sheet.set_paper(9)
        self.sheet.fit_to_pages(1, 0)
        self.sheet.repeat_rows(HEAD_ROW)
        self.sheet.print_area(0, 0, end, TERM)
        self.sheet.set_footer("&L&F&R&P / &N")


def _text_lines(text: str, column: int) -> int:
    """Lines that a wrapped text takes: spreadsheets don't all fit a row's height by themselves."""
    return max(1, math.ceil(len(text) / (1.15 * WIDTHS[column])))


def _write_notes(book: Any, snapshot: QuoteSnapshot, words: Wording) -> None:
    rows = [
        row for note in notes(snapshot, words) for row in ((note["title"], ""), *(("", item) for item in note["items"]))
    ]
    _write_texts(book, words.say("notes.sheet"), rows, (26, 110))


def _write_annex(book: Any, snapshot: QuoteSnapshot, words: Wording) -> None:
    if snapshot.plan is None:
        return
    content = annex(snapshot.plan, words)
    _write_texts(book, words.say("annex.title"), _annex_rows(content), (34, 26, 100))


def _annex_rows(content: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield (content["intro"],)
    yield (content["facts_title"],)
    yield from content["facts"]
    yield (content["working_title"], content["working_note"])
    yield content["columns"]
    for group in content["groups"]:
        yield (group["title"],)
        yield from group["rows"]
    yield (content["assumptions_title"],)
    for text in content["assumptions"]:
        yield (text,)


def _write_texts(book: Any, name: str, rows: Any, widths: Sequence[int]) -> None:
    """A sheet of texts; those in the first column alone are headings."""
    sheet = book.add_worksheet(name)
    wrapped, bold = book.add_format({"text_wrap": True, "valign": "top"}), book.add_format({"bold": True})
    for column, width in enumerate(widths):
        sheet.set_column(column, column, width)
    for row, cells in enumerate(rows):
        is_heading = not any(cells[1:])
        for column, text in enumerate(cells):
            sheet.write_string(row, column, text, bold if is_heading else wrapped)
    sheet.set_landscape()
    sheet.set_paper(9)
    sheet.fit_to_pages(1, 0)
