"""CSV and XLSX of a quote: what is written reads back, recomputes, and runs nothing."""

import csv
import io
import re
import shutil
import subprocess
import time
import zipfile
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.documents.spreadsheet import render_xlsx
from planner.documents.tables import COLUMNS, NUMBERS, TableError, as_cell, from_cell, read_csv, render_csv
from tests.planner.documents.quotes import ITEMS, long_quote, quote

FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "|cmd",
    "%x",
    "'=1",
    " =1+1",
    "\uff1d1+1",
    "\t=1",
    '=HYPERLINK("http://x")',
]


@pytest.mark.parametrize("snapshot", [quote(), long_quote(60), quote(items=[replace(ITEMS[0], unit_price=None)])])
def test_csv_reads_back_to_the_same_lines(snapshot):
    assert read_csv(render_csv(snapshot)) == snapshot.lines


def test_a_table_as_a_spreadsheet_with_decimal_commas_saves_it_reads_back_too():
    snapshot = quote()
    rows = list(csv.reader(io.StringIO(render_csv(snapshot).decode("utf-8-sig"), newline="")))
    numbers = [rows[0].index(name) for name in NUMBERS]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";").writerows(
        [cell.replace(".", ",") if place in numbers else cell for place, cell in enumerate(row)] for row in rows
    )
    assert read_csv(text.getvalue().encode()) == snapshot.lines


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r"), max_size=40))
def test_any_text_reads_back(text):
    items = [replace(ITEMS[0], label=text, detail=f"={text}", source=f"'{text}")]
    snapshot = quote(items=items, shares=())
    assert from_cell(as_cell(text)) == text
    assert read_csv(render_csv(snapshot)) == snapshot.lines


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_starts_a_formula(text):
    written = render_csv(quote(items=[replace(ITEMS[0], label=text, detail=text)])).decode("utf-8-sig")
    cells = [cell for row in csv.reader(io.StringIO(written, newline="")) for cell in row]
    assert f"'{text}" in cells
    dangerous = [
        cell for cell in cells if re.match(r"\s*[=+\-@|%\uff1d]", cell) and not re.fullmatch(r"-?[0-9.]+", cell)
    ]
    assert dangerous == []


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("quantity", "many", "row 2, quantity: 'many' is not a number"),
        ("term", "1e5", "row 2, term: '1e5' is not a number"),
        ("category", "gold", "row 2, category: 'gold' is none of"),
        ("percent_of", "gold", "row 2, percent_of: 'gold' is none of"),
        ("cadence", "weekly", "row 2, cadence: 'weekly' is none of"),
    ],
)
def test_a_wrong_cell_is_named(column, value, message):
    rows = list(csv.reader(io.StringIO(render_csv(quote()).decode("utf-8-sig"), newline="")))
    rows[1][COLUMNS.index(column)] = value
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    with pytest.raises(TableError, match=re.escape(message)):
        read_csv(text.getvalue().encode())


@pytest.mark.parametrize("data", [b"", b"a,b\n", b"\xff", b'"', render_csv(quote()) + b"x,y\n"])
def test_what_is_no_table_is_refused(data):
    with pytest.raises(TableError):
        read_csv(data)


def test_xlsx_is_the_same_at_another_time():
    first = render_xlsx(quote())
    time.sleep(2.1)  # the clock of a ZIP archive ticks every two seconds
    assert render_xlsx(quote()) == first


def test_xlsx_holds_no_formula_or_link_that_somebody_typed():
    items = [replace(ITEMS[0], label=text, detail=text, source=text) for text in FORMULAS]
    with zipfile.ZipFile(io.BytesIO(render_xlsx(quote(items=items, title="=1+1")))) as book:
        sheets = [book.read(name).decode() for name in book.namelist() if name.startswith("xl/worksheets/")]
    formulas = {formula for sheet in sheets for formula in re.findall(r"<f>(.*?)</f>", sheet)}
    ours = re.compile(r"ROUND\(.*|SUM\([JKL]\d+:[JKL]\d+\)|J\d+\+\$C\$8\*K\d+|0|NA\(\)")
    assert [formula for formula in formulas if not ours.fullmatch(formula)] == []
    assert not any("hyperlink" in sheet for sheet in sheets)


@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice Calc is not installed")
def test_libreoffice_recomputes_the_same_amounts_and_shows_csv_as_text(tmp_path):
    items = [replace(item, label="=1+1", detail="@SUM(A1)") for item in ITEMS]
    snapshot = quote(items=items)
    folder = tmp_path / "profile" / "user"
    folder.mkdir(parents=True)
    (folder / "registrymodifications.xcu").write_text(
        '<?xml version="1.0" encoding="UTF-8"?><oor:items xmlns:oor="http://openoffice.org/2001/registry">'
        '<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse">'
        "<value>0</value></prop></item></oor:items>"
    )
    # The values kept beside the formulas are spoilt: what comes out was computed.
    (tmp_path / "quote.xlsx").write_bytes(_without_values(render_xlsx(snapshot)))
    (tmp_path / "lines.csv").write_bytes(render_csv(snapshot))
    export = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false"
    command = ["soffice", f"-env:UserInstallation=file://{tmp_path}/profile", "--headless", "--convert-to", export]
    command += ["--outdir", str(tmp_path / "out"), str(tmp_path / "quote.xlsx"), str(tmp_path / "lines.csv")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    rows = list(csv.reader(io.StringIO((tmp_path / "out" / "quote.csv").read_text(encoding="utf-8"))))
    computed = [[Decimal(cell.replace(",", "")) for cell in row[9:12]] for row in rows[10 : 10 + len(snapshot.lines)]]
    assert computed == [[line.once, line.monthly, line.term] for line in snapshot.lines]
    total = [Decimal(cell.replace(",", "")) for cell in rows[11 + len(snapshot.lines)][9:12]]
    assert total == [snapshot.total.once, snapshot.total.monthly, snapshot.total.term]
    shown = list(csv.reader(io.StringIO((tmp_path / "out" / "lines.csv").read_text(encoding="utf-8"))))
    assert {row[COLUMNS.index("label")] for row in shown[1 : 1 + len(items)]} == {"'=1+1"}


def _without_values(workbook: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as source, zipfile.ZipFile(target, "w") as changed:
        for name in source.namelist():
            data = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                data = re.sub(rb"(</f>)<v>[^<]*</v>", rb"\1<v>7</v>", data)
            changed.writestr(name, data)
    return target.getvalue()
