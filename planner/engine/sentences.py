"""Sentences with numbers in them, as English text that still knows its template and its values.

The engine speaks English and knows no languages. A ``Sentence`` is that English text, so JSON, files and
comparisons see a plain ``str``; a page renders the same template in its reader's language.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self

WRITTEN_NUMBER: Final = re.compile(r"[-+]?[\d,]+(\.\d+)?(e[+-]\d+)?%?", re.ASCII)
"""A number as ``str.format`` writes it."""
_FORMAT: Final = re.compile(r"\{(\w+)(?::[^{}]*)?\}", re.ASCII)


class Sentence(str):
    """A text made of ``template`` and ``values``; equal to, and written as, the English text."""

    __slots__ = ("template", "values")

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, values: Mapping[str, object]) -> Self:
        self = super().__new__(cls, template.format(**values) if values else template)
        self.template = template
        self.values = values
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.template, self.values)


class FieldName(str):
    """A question's own name of a field: the API's word; pages show the field's label."""

    __slots__ = ()


class Code(str):
    """A choice's code; pages show its name."""

    __slots__ = ()


class Noun(str):
    """A word or two that stand inside a sentence: pages translate them."""

    __slots__ = ()


def noun(text: str) -> Noun | Sentence:
    """``text`` to stand inside a sentence: a word or two, or a sentence that keeps its own template."""
    return text if isinstance(text, Sentence) else Noun(text)


def say(template: str, /, **values: object) -> Sentence:
    """The sentence of ``template``, a literal in ``str.format`` syntax so that translators find it.

    >>> text = say("The fastest takes {days:,.1f} days.", days=1234.5)
    >>> text, text.template, text == "The fastest takes 1,234.5 days."
    ('The fastest takes 1,234.5 days.', 'The fastest takes {days:,.1f} days.', True)
    """
    return Sentence(template, values)


def joined(texts: Iterable[str], separator: str = " ") -> Sentence:
    """Several sentences as one, each still translatable.

    >>> joined([say("One."), say("Two {n}.", n=2)])
    'One. Two 2.'
    """
    values = {f"part{n}": text for n, text in enumerate(texts)}
    return Sentence(separator.join(f"{{{name}}}" for name in values), values)


def pattern_of(template: str) -> re.Pattern[str]:
    """What a template with values put in looks like, each value a group of its name: for sentences read from a file.

    >>> pattern_of("{n:,} days, {n:,} nights: {what}").fullmatch("3 days, 3 nights: a trip").groupdict()
    {'n': '3', 'what': 'a trip'}
    """
    parts: list[str] = []
    seen: set[str] = set()
    for text, name, _spec, _conversion in string.Formatter().parse(template):
        parts.append(re.escape(text))
        if name:
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>.+?)")
            seen.add(name)
    return re.compile("".join(parts))


def without_formats(template: str) -> str:
    """A template for values that are written already.

    >>> without_formats("{days:,.1f} days")
    '{days} days'
    """
    return _FORMAT.sub(r"{\1}", template)
