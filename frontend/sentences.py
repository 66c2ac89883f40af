"""The engine's sentences in the page's language: its template translated, its values as people read them.

A number keeps the format its template asks for, with the language's separators; a field is called by its label,
a choice by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from string import Formatter
from typing import Any

from django.utils.translation import gettext

from frontend import numbers, words
from planner.engine.sentences import Code, FieldName, Noun, Sentence


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
    return gettext(text) if text else ""


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
