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


def render_pdf(snapshot: QuoteSnapshot, language: str = "") -> bytes:
    """The PDF in ``language``, the snapshot's own unless given; the same snapshot gives the same bytes.

    The time inside is the snapshot's. Fonts come with the package, those of the machine are not looked at, and
    nothing is fetched. Raises ``ValueError`` for a language without words.
    """
    data = _printable(printed(snapshot, wording(language or snapshot.language)))
    compiler = typst.Compiler(TEMPLATE, root=FOLDER, font_paths=_fonts(), ignore_system_fonts=True)
    document = compiler.compile(
        format="pdf",
        sys_inputs={"data": json.dumps(data, ensure_ascii=False)},
        pdf_standards=[STANDARD],
        timestamp=int(snapshot.made_at.astimezone(UTC).timestamp()),
    )
    if not isinstance(document, bytes):
        raise TypeError("the compiler gave no single file")
    return document


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
