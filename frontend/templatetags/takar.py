"""Filters for numbers and figures; rounding and units come from ``frontend.numbers``."""

from __future__ import annotations

import json
import re
from typing import Any

from django import template
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString, mark_safe

from frontend import numbers, words
from frontend.answers.shown import Cell
from frontend.sentences import shown

register = template.Library()
NOTE = (
    '<button type="button" class="tag tag-button {badge}" popovertarget="note-{place}">{text}</button>'
    '<div id="note-{place}" class="source" popover>{note}</div>'
)
UNITS = re.compile(r"(?<=\d) (%|GiB|ms|s\b|M\b)")
ESCAPES = str.maketrans({"<": "\\u003C", ">": "\\u003E", "&": "\\u0026"})


@register.filter
def compact(value: float | None) -> str:
    """Large counts with T, B, M."""
    return numbers.compact(value)


@register.filter
def catalog_words(version: str) -> str:
    """A catalog's version, without the inner name of a price book."""
    return words.catalog_version(version)


@register.filter
def said(text: str) -> str:
    """A service's sentence in the page's language."""
    return shown(text)


@register.filter
def tight(text: str) -> str:
    """A sentence whose percent signs and units stay with their numbers at the end of a line."""
    return UNITS.sub("\N{NO-BREAK SPACE}\\1", text)


@register.filter
def figure_json(figure: dict[str, Any], name: str) -> SafeString:
    """A figure as inert JSON in the page, six significant digits: what a screen can show; marks of the page's language.

    Django's own ``json_script`` does the same without rounding; a figure is mostly floats.
    """
    figure = figure | {"layout": figure["layout"] | {"separators": numbers.separators()}}
    text = json.dumps(_short(figure), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Safe: every character that could end the script element is written as an escape, as json_script does.
    return format_html(
        '<script id="figure-{}" type="application/json">{}</script>', name, mark_safe(text.translate(ESCAPES))
    )


@register.simple_tag
def cell(shown: Cell, place: int) -> SafeString:
    """One table cell; its note, if it has one, opens from its badge. In code, because a page has hundreds."""
    text = conditional_escape(shown.text)
    if shown.note:
        text = format_html(NOTE, badge=shown.badge, place=place, text=text, note=shown.note)
    elif shown.badge:
        text = format_html('<span class="tag {}">{}</span>', shown.badge, text)
    if shown.sub:
        text = format_html("{}<small>{}</small>", text, shown.sub)
    if shown.sub_sort:
        return format_html(
            '<td data-sort="{}" data-second="{}" title="{}">{}</td>', shown.sort, shown.sub_sort, shown.exact, text
        )
    return format_html('<td data-sort="{}" title="{}">{}</td>', shown.sort, shown.exact, text)


def _short(value: Any) -> Any:
    match value:
        case float():
            return float(f"{value:.6g}")
        case dict():
            return {key: _short(item) for key, item in value.items()}
        case list() | tuple():
            return [_short(item) for item in value]
        case _:
            return value
