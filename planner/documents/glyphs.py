"""Which characters the documents' fonts can show; what they can't is replaced, for PDF/UA forbids missing glyphs."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import Final

COVERAGE: Final = Path(__file__).resolve().parent / "fonts" / "coverage.txt"
REPLACEMENT: Final = "\ufffd"
BREAK: Final = "\u200b"
KEPT: Final = frozenset("\n\u200c\u200d")
"""Line breaks, and joiners that shape their neighbours."""
LONGEST_WORD: Final = 24
_LONG_WORD: Final = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")
INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def printable(text: str) -> str:
    """``text`` as the fonts can show it: invisible controls left out, what no font has as a replacement mark.

    Marks that turn the direction of text are left out too: with them one name could make another read backwards.

    >>> printable("a\\u202eb\\x07"), printable("PT Maju 🚀"), printable("\\U00012000")
    ('ab', 'PT Maju 🚀', '\ufffd')
    """
    shown = text if text.isascii() and text.isprintable() else "".join(_shown(character) for character in text)
    return _LONG_WORD.sub(_divisible, shown)


def _divisible(word: re.Match[str]) -> str:
    """A word that may be too long for its column, with places where a line can break."""
    text = word.group()
    return BREAK.join(text[start : start + LONGEST_WORD // 2] for start in range(0, len(text), LONGEST_WORD // 2))


def _shown(character: str) -> str:
    if character in KEPT:
        return character
    if unicodedata.category(character) in INVISIBLE or "\ufe00" <= character <= "\ufe0f":
        return ""
    return character if _is_covered(ord(character)) else REPLACEMENT


def _is_covered(code: int) -> bool:
    starts, ends = _ranges()
    place = bisect_right(starts, code) - 1
    return place >= 0 and code <= ends[place]


@lru_cache(maxsize=1)
def _ranges() -> tuple[list[int], list[int]]:
    """First and last code points of the ranges that some font covers, in order."""
    pairs = [line.split("-") for line in COVERAGE.read_text(encoding="ascii").split()]
    return [int(pair[0], 16) for pair in pairs], [int(pair[-1], 16) for pair in pairs]
