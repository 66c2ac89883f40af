"""Filters for numbers and figures; rounding and units come from ``frontend.numbers``."""

from __future__ import annotations

import json
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from frontend import numbers

register = template.Library()
ESCAPES = str.maketrans({"<": "\\u003C", ">": "\\u003E", "&": "\\u0026"})


@register.filter
def compact(value: float | None) -> str:
    """Large counts with T, B, M."""
    return numbers.compact(value)


@register.filter
def figure_json(figure: dict[str, Any], name: str) -> SafeString:
    """A figure as inert JSON in the page, six significant digits: what a screen can show.

    Django's own ``json_script`` does the same without rounding; a figure is mostly floats.
    """
    text = json.dumps(_short(figure), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Safe: every character that could end the script element is written as an escape, as json_script does.
    return format_html(
        '<script id="figure-{}" type="application/json">{}</script>', name, mark_safe(text.translate(ESCAPES))
    )


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
