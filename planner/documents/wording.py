"""Words, numbers and dates of a document in its language."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from pathlib import Path
from typing import Final

from babel import Locale
from babel.dates import format_date
from babel.lists import format_list

from planner.documents.snapshot import Statement
from planner.engine.money import Currency, plain_decimal
from planner.engine.sentences import WRITTEN_NUMBER, pattern_of, without_formats

WORDS_DIR: Final = Path(__file__).resolve().parent / "words"
LANGUAGES: Final = ("en", "id")
ITEM_TEXTS: Final = ("stored", "nodes.", "suggested.", "price.", "fleet.")
ITEM_VALUES: Final = dict.fromkeys(("n", "size", "hours", "low", "high", "mean", "planned"), r"[\d.,]+") | {
    "shape": r"[\d.,]+x .+",
    "date": r"\d{4}-\d{2}-\d{2}",
}
"""What stands in such a text for a value: narrow enough that nobody's own words are taken for it."""
MINUS: Final = "\u2212"
_NUMBER: Final = re.compile(r"\d+(\.\d+)?", re.ASCII)
_VALUE: Final = re.compile(r"\{[^{}]*\}", re.ASCII)
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@lru_cache(maxsize=len(LANGUAGES))
def wording(language: str) -> Wording:
    """The words of one language; raises ``ValueError`` for one that no document is written in."""
    if language not in LANGUAGES:
        raise ValueError(f"no words in {language!r}: {', '.join(LANGUAGES)}")
    return Wording(language)


@lru_cache(maxsize=1)
def _planned_sentences() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """What plans say in English, as patterns with the values named, by code."""
    english = json.loads((WORDS_DIR / "en.json").read_text(encoding="utf-8"))
    return tuple(
        (code, re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+)", re.escape(words))))
        # Those with the most words of their own first: a shorter one may be how a longer one begins.
        for code, words in sorted(english.items(), key=lambda item: -len(_VALUE.sub("", item[1])))
        if code.startswith("planned.")
    )


@lru_cache(maxsize=1)
def _item_texts() -> tuple[tuple[str, str, re.Pattern[str]], ...]:
    """What a plan calls a quote's items, in every language: its code, and the text as a pattern."""
    return tuple(
        (language, code, re.compile(_VALUE.sub(_item_value, re.escape(words).replace(r"\{", "{").replace(r"\}", "}"))))
        for language in LANGUAGES
        for code, words in json.loads((WORDS_DIR / f"{language}.json").read_text(encoding="utf-8")).items()
        if code.startswith(ITEM_TEXTS)
    )


def _item_value(found: re.Match[str]) -> str:
    name = found[0][1:-1]
    return f"(?P<{name}>{ITEM_VALUES.get(name, '.+')})"


@lru_cache(maxsize=len(LANGUAGES))
def _sentences(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Sentences and formulas of plans as patterns of the engine's English, with what they are in a language.

    Those with the most words of their own come first.
    """
    path = WORDS_DIR / f"sentences.{language}.json"
    known: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return tuple(
        (pattern_of(english), without_formats(translated))
        for english, translated in sorted(known.items(), key=lambda item: -len(_VALUE.sub("", item[0])))
    )


class Wording:
    """The words of one language by code, and how it writes numbers and dates."""

    nothing: Final = "\u2013"
    """In the place of an amount that a line does not have."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._words: dict[str, str] = json.loads((WORDS_DIR / f"{language}.json").read_text(encoding="utf-8"))
        self._locale = Locale.parse(language)
        symbols = self._locale.number_symbols["latn"]
        self._separators = {ord(","): str(symbols["group"]), ord("."): str(symbols["decimal"]), ord("-"): MINUS}

    def say(self, code: str, **values: object) -> str:
        """The words of ``code`` with its values put in; raises ``KeyError`` for an unknown code."""
        return self._words[code].format_map({name: str(value) for name, value in values.items()})

    def name(self, prefix: str, code: str) -> str:
        """The name of a code of some kind; one without words is made readable."""
        return self._words.get(f"{prefix}.{code}", code.replace("_", " "))

    def planned(self, text: str) -> str:
        """A plan's own sentence in this language, where it is one that is known here; else as it is.

        >>> wording("id").planned("one GPU in the node"), wording("id").planned("of nobody")
        ('satu GPU di dalam node', 'of nobody')
        """
        for code, pattern in _planned_sentences():
            if found := pattern.fullmatch(text):
                return self.say(code, **{name: self._planned_part(part) for name, part in found.groupdict().items()})
        return self.formula(text)

    def item(self, text: str) -> str:
        """What a plan called a quote's item, in this language; any other text as it is.

        >>> wording("id").item("5 nodes of 1x H200 SXM"), wording("en").item("Bobot model")
        ('5 node 1x H200 SXM', 'Model weights')
        >>> wording("en").item("1 node 8x H200 SXM"), wording("en").item("5 node 8x H200 SXM")
        ('1 node of 8x H200 SXM', '5 nodes of 8x H200 SXM')
        """
        for language, code, pattern in _item_texts():
            if language != self.language and (found := pattern.fullmatch(text)):
                written = wording(language)
                said = {name: self._from(written, part) for name, part in found.groupdict().items()}
                # Not every language tells one from many.
                number = ".one" if said.get("n") == "1" else ".other"
                return self.say(f"nodes{number}" if code in ("nodes.one", "nodes.other") else code, **said)
        return text

    def _from(self, written: Wording, part: str) -> str:
        """A value of an item's text, which was written in another language."""
        plain = part.translate({ord(mark): sign for sign, mark in written.separators.items()})
        return plain.translate(self._separators) if WRITTEN_NUMBER.fullmatch(plain) else part

    @property
    def separators(self) -> dict[str, str]:
        """How a number's group and decimal signs are written."""
        return {sign: self._separators[ord(sign)] for sign in ",."}

    def _planned_part(self, text: str) -> str:
        # A version looks like a number too: only thousands tell one for sure.
        is_number = "," in text and WRITTEN_NUMBER.fullmatch(text)
        return text.translate(self._separators) if is_number else self.planned(text)

    def formula(self, text: str) -> str:
        """The formula of a plan's term in this language, where it is one that is known here; else as it is.

        >>> wording("id").formula("12.5 req/s / 3 replicas"), wording("en").formula("12.5 req/s / 3 replicas")
        ('12,5 permintaan/dtk / 3 replika', '12.5 req/s / 3 replicas')
        """
        for pattern, translated in _sentences(self.language):
            if found := pattern.fullmatch(text):
                return translated.format_map({name: self._part(part) for name, part in found.groupdict().items()})
        return text

    def _part(self, text: str) -> str:
        """A value inside a formula: a number with the language's separators, words in the language."""
        return text.translate(self._separators) if WRITTEN_NUMBER.fullmatch(text) else self.planned(text)

    def statement(self, statement: Statement) -> str:
        """A sentence: its own text, or that of its code."""
        values = {name: self._value(value) for name, value in statement.values.items()}
        return self.item(statement.text) or self.say(f"statement.{statement.code}", **values)

    def _value(self, text: str) -> str:
        """A statement's value: numbers and days as the language writes them."""
        if _NUMBER.fullmatch(text):
            return self.exact(Decimal(text))
        return self.day(date.fromisoformat(text)) if _DAY.fullmatch(text) else text

    def months(self, count: int) -> str:
        """``12 months``."""
        return self.say("months.one" if count == 1 else "months.other", n=count)

    def nodes(self, count: int, shape: str) -> str:
        """``2 nodes of 8x H200 SXM``."""
        return self.say("nodes.one" if count == 1 else "nodes.other", n=count, shape=shape)

    def fixed(self, value: Decimal | float, places: int) -> str:
        """``value`` with that many decimals and the language's separators, rounded half up."""
        step = Decimal(1).scaleb(-places)
        exact = (value if isinstance(value, Decimal) else Decimal(repr(value))).quantize(step, ROUND_HALF_UP)
        return f"{exact:,.{places}f}".translate(self._separators)

    def exact(self, value: Decimal, least_places: int = 0) -> str:
        """Every digit of ``value``, and at least so many decimals."""
        short = plain_decimal(value)
        return self.fixed(short, max(least_places, -int(short.as_tuple().exponent)))

    def rounded(self, value: float, digits: int = 4) -> str:
        """``value`` to so many significant digits, whole numbers without decimals."""
        if value == 0:
            return "0"
        exact = Decimal(repr(value))
        step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        return self.exact(exact.quantize(step, ROUND_HALF_UP) if exact.adjusted() < digits else Decimal(round(exact)))

    def percent(self, percent: Decimal) -> str:
        """``11.5 %`` with a space that doesn't break."""
        return f"{self.exact(percent)}\u00a0%"

    def share(self, share: float) -> str:
        """A fraction as a percentage with at most one decimal: ``0.084`` is ``8.4 %``."""
        value = round(share * 100, 1)
        if share and not value:
            return f"< {self.exact(Decimal('0.1'))}\u00a0%"
        return f"{self.exact(Decimal(repr(value)))}\u00a0%"

    def amount(self, value: Decimal | None, currency: Currency) -> str:
        """An amount without its currency; words where it isn't known."""
        return self.say("unknown") if value is None else self.fixed(value, currency.minor_digits)

    def money(self, value: Decimal | None, currency: Currency) -> str:
        """An amount after its currency's code: ``IDR 1.234``."""
        return self.say("unknown") if value is None else f"{currency.code}\u00a0{self.amount(value, currency)}"

    def day(self, day: date) -> str:
        """``29 November 2026``."""
        return str(format_date(day, "d MMMM yyyy", locale=self._locale))

    def country(self, code: str) -> str:
        """A country's name."""
        return str(self._locale.territories.get(code, code))

    def currency(self, currency: Currency) -> str:
        """``USD (US Dollar)``."""
        name = self._locale.currencies.get(currency.code)
        return f"{currency.code} ({name})" if name else currency.code

    def listed(self, items: Sequence[str]) -> str:
        """``a, b and c``."""
        return str(format_list(list(items), locale=self._locale))
