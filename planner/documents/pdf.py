"""A quote as a tagged PDF/UA-1 file."""

from __future__ import annotations

import json
from datetime import UTC
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import typst

from planner.documents.glyphs import printable
from planner.documents.printed import printed
from planner.documents.snapshot import QuoteSnapshot
from planner.documents.wording import wording

FOLDER: Final = Path(__file__).resolve().parent
TEMPLATE: Final = FOLDER / "quote.typ"
FONTS_DIR: Final = FOLDER / "fonts"
STANDARD: Final = "ua-1"
CLOSER: Final = (1, 2)
"""Densities of the template beside its own."""
MOSTLY_EMPTY_PT: Final = 421.0
"""Half the height of a page."""


def render_pdf(snapshot: QuoteSnapshot, language: str = "") -> bytes:
    """The PDF in ``language``, the snapshot's own unless given; the same snapshot gives the same bytes.

    The time inside is the snapshot's. Fonts come with the package, those of the machine are not looked at, and
    nothing is fetched. Raises ``ValueError`` for a language without words.
    """
    data = json.dumps(_printable(printed(snapshot, wording(language or snapshot.language))), ensure_ascii=False)
    document = _set_closely_enough(data).compile(
        format="pdf",
        pdf_standards=[STANDARD],
        timestamp=int(snapshot.made_at.astimezone(UTC).timestamp()),
    )
    if not isinstance(document, bytes):
        raise TypeError("the compiler gave no single file")
    return document


def _set_closely_enough(data: str) -> typst.Compiler:
    """The page as it reads best, unless a closer annex saves the last page, with little on it."""
    roomy = _compiler(data, 0)
    pages, end_pt = _end(roomy)
    if pages == 1 or end_pt > MOSTLY_EMPTY_PT:
        return roomy
    closer = (_compiler(data, density) for density in CLOSER)
    return next((each for each in closer if _end(each)[0] < pages), roomy)


def _compiler(data: str, density: int) -> typst.Compiler:
    inputs = {"data": data, "density": str(density)}
    return typst.Compiler(TEMPLATE, root=FOLDER, font_paths=_fonts(), ignore_system_fonts=True, sys_inputs=inputs)


def _end(compiler: typst.Compiler) -> tuple[int, float]:
    """The last page, and how far down it is printed on, in points."""
    end = json.loads(compiler.query("<end>", field="value", one=True))
    return int(end["page"]), float(end["y"])


@lru_cache(maxsize=1)
def _fonts() -> Any:
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[FONTS_DIR])


def _printable(value: Any) -> Any:
    """The same, with every text made of characters that the fonts have."""
    match value:
        case str():
            return printable(value)
        case dict():
            return {key: _printable(item) for key, item in value.items()}
        case list() | tuple():
            return [_printable(item) for item in value]
        case _:
            return value
