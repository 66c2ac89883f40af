"""The engine's sentences in the page's language: its template translated, its values as people read them.

A number keeps the format its template asks for, with the language's separators; a field is called by its label,
a choice by its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import Any, Final

from babel.messages.mofile import read_mo
from django.utils.translation import get_language, gettext

from frontend import numbers, words
from planner.engine.sentences import (
    WRITTEN_NUMBER,
    Code,
    FieldName,
    Noun,
    Sentence,
    pattern_of,
    without_formats,
)

CATALOG: Final = Path(__file__).resolve().parent / "locale" / "id" / "LC_MESSAGES" / "django.mo"
"""Any language's: the English templates are the same in each."""
LONGEST: Final = 1_000
"""Letters of a text that is looked for among templates: the engine's have a quarter, and the time grows faster."""
FEWEST_LETTERS: Final = 8
"""Of a template's own words: with fewer, other texts would be taken for it."""
VALUE_AFTER: Final = re.compile(r"(.+\.) \((.*)\)", re.DOTALL)
"""What is wrong, and the value that was given."""


def shown(text: str) -> str:
    """``text`` as a page shows it: a sentence rendered anew, any other text translated where it is known.

    >>> from planner.engine.sentences import say
    >>> shown(say("Raise {field} to {value:,} {unit}.", field=FieldName("ttft_ms"), value=1500, unit="ms"))
    'Raise “TTFT limit” to 1,500 ms.'
    """
    match text:
        case Sentence():
            return _Localized().vformat(gettext(text.template), (), text.values)
        case FieldName():
            return words.field_label(text)
        case Code():
            return words.choice(str(text))
    return _read_again(text, get_language() or "en") if text else ""


def kept(text: str) -> str:
    """``text`` of a stored result as a page shows it: in English too, its codes by their names.

    >>> kept("Replicas of 2 GPUs (H200 SXM, fp8); exact speed.")
    'Replicas of 2 GPUs (H200 SXM, FP8); exact speed.'
    """
    again = shown(text)
    if isinstance(text, Sentence):
        # Nothing was lost on the way.
        return again
    return _from_template(text, get_language() or "en") if again == text else again


@lru_cache(maxsize=4096)
def _read_again(text: str, language: str) -> str:
    """A text that was kept without its template: found among those known, and said in the page's language."""
    translated = gettext(text)
    if translated != text or language == "en" or " " not in text:
        return translated
    return _from_template(text, language)


def _from_template(text: str, language: str) -> str:
    if len(text) > LONGEST:
        return text
    for pattern, template in _templates():
        if found := pattern.fullmatch(text):
            values = {name: _part(part, language) for name, part in found.groupdict().items()}
            return without_formats(gettext(template)).format_map(values)
    if (found := VALUE_AFTER.fullmatch(text)) and (known := _read_again(found[1], language)) != found[1]:
        return f"{known} ({found[2]})"
    return text


def _part(text: str, language: str) -> str:
    """A value inside such a text: a number, words, or choices by their codes."""
    if WRITTEN_NUMBER.fullmatch(text):
        return numbers.localized(text)
    again = _read_again(text, language)
    return ", ".join(words.choice(code) for code in text.split(", ")) if again == text else again


@lru_cache(maxsize=1)
def _templates() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The engine's sentences with values in them, those with the most words first; too few words are no sign."""
    with CATALOG.open("rb") as file:
        known = {message.id for message in read_mo(file) if isinstance(message.id, str) and "{" in message.id}
    letters = {template: len(re.sub(r"\{[^}]*\}|[^A-Za-z]", "", template)) for template in known}
    return tuple(
        (pattern_of(template), template)
        for template in sorted(known, key=lambda each: (-letters[each], each))
        if letters[template] >= FEWEST_LETTERS and _has_names(template)
    )


def _has_names(template: str) -> bool:
    return all(name is None or name.isidentifier() for _text, name, _spec, _conversion in Formatter().parse(template))


class _Localized(Formatter):
    """``str.format`` with the language's separators in numbers and the page's words for the rest."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # A translation that names no such value shows the name: a page is better than an error.
        return kwargs.get(str(key), f"{{{key}}}")

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, FieldName):
            return f"“{shown(value)}”"
        if isinstance(value, Sentence | Code | Noun):
            return shown(value)
        text: str = format(value, format_spec)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
            return numbers.localized(text)
        return text
