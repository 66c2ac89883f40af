"""The PDF of a quote: the same bytes each time, tagged, whole at page breaks, whatever people are called."""

import io
import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from planner.documents.pdf import MOSTLY_EMPTY_PT, _compiler, _end, _printable, render_pdf
from planner.documents.printed import printed
from planner.documents.wording import wording
from tests.planner.documents.quotes import BUYER, IDR, ITEMS, long_quote, quote

MOST_SECONDS = 0.3


def text_of(pdf: bytes, tmp_path: Path) -> str:
    path = tmp_path / "quote.pdf"
    path.write_bytes(pdf)
    command = ["pdftotext", "-layout", str(path), "-"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_same_quote_gives_the_same_bytes():
    assert render_pdf(quote()) == render_pdf(quote())
    assert render_pdf(quote()) != render_pdf(quote(number="2026-0043"))


@pytest.mark.parametrize("language", ["en", "id"])
def test_it_says_it_is_pdf_ua_and_has_what_that_needs(language):
    with pikepdf.open(io.BytesIO(render_pdf(quote(), language))) as pdf, pdf.open_metadata() as metadata:
        assert metadata["pdfuaid:part"] == "1"
        assert metadata["dc:title"].endswith("2026-0042 GPU capacity for the support chat")
        root = pdf.Root
        assert str(root.Lang) == language
        assert bool(root.MarkInfo.Marked) is True
        assert bool(root.ViewerPreferences.DisplayDocTitle) is True
        roles = [str(element.S) for element in elements(root.StructTreeRoot)]
        assert {"/H1", "/H2", "/Table", "/TH", "/TD", "/L", "/LI", "/Figure"} <= set(roles)
        figures = [element for element in elements(root.StructTreeRoot) if element.get("/S") == "/Figure"]
        assert all(str(figure.Alt) for figure in figures)
        fonts = [font for page in pdf.pages for font in page.Resources.get("/Font", {}).values()]
        assert all("/FontFile2" in descendant.FontDescriptor or "/FontFile3" in descendant.FontDescriptor
                   for font in fonts if "/DescendantFonts" in font for descendant in font.DescendantFonts)  # fmt: skip


def elements(node: Any) -> Iterator[Any]:
    """Structure elements below ``node``."""
    children = node.get("/K", [])
    for child in children if isinstance(children, pikepdf.Array) else [children]:
        if isinstance(child, pikepdf.Dictionary) and "/S" in child:
            yield child
            yield from elements(child)


def test_sixty_lines_break_over_pages_with_the_heading_on_each(tmp_path):
    snapshot = long_quote(60)
    started = time.perf_counter()
    pdf = render_pdf(snapshot)
    seconds = time.perf_counter() - started
    pages = text_of(pdf, tmp_path).split("\f")[:-1]
    priced = [page for page in pages if "Unit price" in page]
    assert len(priced) >= 3
    assert all(page.count("Unit price") == 1 for page in priced)
    tables = [page.split("Unit price")[1] for page in priced]
    # A line's number stands before its label, and no label of these is empty.
    rows = [int(n) for table in tables for n in re.findall(r"^ *(\d+) {2,7}[A-Z1]", table, re.MULTILINE)]
    assert rows == list(range(1, 64))
    # The three sums stand on one page.
    (last,) = (page for page in pages if "Total with tax" in page)
    assert "Net total" in last
    # Twice the target: other tests share the machine. The figure itself is measured by the benchmark.
    assert seconds < 2 * MOST_SECONDS


def test_names_in_any_script_and_markup_are_text(tmp_path):
    name = '#import "x": * *bold* $x$ @ref <label>'
    buyer = replace(BUYER, name=name, address="شركة الحوسبة\n株式会社データ 한국 ไทย 🚀\u202e\x07\nא" + "x" * 200)
    items = [replace(ITEMS[0], label="[link](x) `code` #rm", detail="\U00012000 {{ 7*7 }}")]
    text = text_of(render_pdf(quote(buyer=buyer, items=items)), tmp_path)
    assert "株式会社データ 한국" in text
    assert '#import "x"' in text
    assert "[link](x) `code` #rm" in text
    assert "\ufffd {{ 7*7 }}" in text
    assert "\u202e" not in text


def test_indonesian_with_rupiah(tmp_path):
    items = [replace(ITEMS[0], unit_price=Decimal("704160"))]
    text = text_of(render_pdf(quote(items=items, shares=(), currency=IDR), "id"), tmp_path)
    assert "Penawaran Harga" in text
    assert "514.036.800" in text
    assert "IDR 6.846.970.176" in text
    assert ",00" not in text


def test_a_draft_says_so_and_has_nothing_to_sign(tmp_path):
    text = text_of(render_pdf(quote(number="", issued_on=None, items=[replace(ITEMS[0], unit_price=None)])), tmp_path)
    assert "Draft, not an offer" in text
    assert "not known: 1." in text
    assert "Acceptance" not in text


def test_no_words_in_a_language_is_an_error():
    with pytest.raises(ValueError, match="en, id"):
        render_pdf(quote(), "xx")


def test_no_last_page_has_hardly_anything_on_it(tmp_path: Path) -> None:
    closer = 0
    for terms in range(8, 60, 3):
        plan = quote().plan
        assert plan is not None
        working = tuple(plan.working[place % len(plan.working)] for place in range(terms))
        shown = replace(quote(), plan=replace(plan, working=working))
        data = json.dumps(_printable(printed(shown, wording("en"))), ensure_ascii=False)
        pages, end_pt = _end(_compiler(data, 0))
        with pikepdf.open(io.BytesIO(render_pdf(shown, "en"))) as pdf:
            assert len(pdf.pages) <= pages
            closer += len(pdf.pages) < pages
            # A page that is mostly full is left as it reads best.
            assert len(pdf.pages) == pages or end_pt < MOSTLY_EMPTY_PT
            # What a few lines more of a page take is found by setting the annex closer.
            assert len(pdf.pages) < pages or pages == 1 or end_pt > 150
    assert closer > 1
