"""Sentences with numbers in them, as English text that still knows its template and its values.

The engine speaks English and knows no languages. A ``Sentence`` is that English text, so JSON, files and
comparisons see a plain ``str``; a page renders the same template in its reader's language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self


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
