"""What was asked, in words: fields with their values as people read them, and a plan's option by its id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django.utils.translation import gettext as _

from frontend import numbers, words
from frontend.answers.parts import place_of
from frontend.listed import listed_choices
from frontend.query import default_text
from planner.engine.field_spec import FieldSpec, read_value, specs
from planner.engine.simulate.autoscaling import UNITS

MOST_PLACES = 30
"""Before or after the point, of a number that is written out; others stay as they were typed."""
MOST_LISTED = 8
"""Numbers of a list that are written out."""
AS_TYPED = ("seed",)
"""Numbers that count nothing: no separators in them."""
OPTION = re.compile(
    r"(?P<provider>[^/:]+)/(?P<node>.+)/(?P<region>[^/:]*)/(?P<purchase>\w+):"
    r"(?P<layout>[a-z0-9-]+):(?P<weights>\w+)",
    re.ASCII,
)
COUNTRY = re.compile(r"([a-z]{2})-\*", re.ASCII)
"""In the place of a region: the seller states the country alone."""
DEGREE = re.compile(r"(tp|pp|ep)(\d+)", re.ASCII)


def stated(input_type: type, given: Mapping[str, Any], *, but_defaults: bool = False) -> str:
    """Fields that were given as ``label value unit``, apart by dots; a pasted config is left out.

    >>> from planner.engine.workload import InferenceQuestion
    >>> stated(InferenceQuestion, {"model": "Llama 3.1 8B", "ttft_ms": "2000", "headroom": 0.2})
    'Model Llama 3.1 8B · Headroom 0.2 share · TTFT limit 2,000 ms'
    """
    known = specs(input_type)
    shown = (
        f"{_(spec.label)} {value_with_unit(name, spec, given[name], given)}"
        for name, (spec, default) in known.items()
        if name in given and spec.kind != "config" and name != "option" and given[name] not in ("", None)
        if not (but_defaults and given[name] == default)
    )
    return " · ".join(shown)


def value_words(name: str, spec: FieldSpec, value: Any) -> str:
    """One field's value: a number with the language's separators, a choice by its name."""
    text = default_text(tuple(value) if isinstance(value, list) else value)
    if spec.kind in ("number", "integer", "decimal") and name not in AS_TYPED:
        try:
            value = Decimal(text)
        except InvalidOperation:
            return text
        # Written out, an exponent of ten digits would be as many zeros.
        return numbers.localized(f"{value:,f}") if abs(value.adjusted()) <= MOST_PLACES else text
    if spec.kind == "numbers":
        return _list_words(read_value(name, spec, value))
    if spec.kind == "flag":
        return _("yes") if value else _("no")
    if spec.kind in ("choice", "choices"):
        names = dict(listed_choices().get(name, ()))
        return ", ".join(names.get(code) or words.choice(code) for code in text.split(","))
    return text


def _list_words(values: Any) -> str:
    """A short list's numbers; how many a long one has, and from which to which."""
    if not isinstance(values, tuple) or len(values) <= MOST_LISTED:
        return "; ".join(numbers.localized(f"{each:,.10g}") for each in values) if isinstance(values, tuple) else ""
    return _("%(n)s values from %(low)s to %(high)s,") % {
        "n": numbers.fixed(len(values)),
        "low": numbers.localized(f"{min(values):,.10g}"),
        "high": numbers.localized(f"{max(values):,.10g}"),
    }


def option_words(option_id: str) -> str:
    """An option's id in words: node, place, purchase, layout, format; one that reads otherwise as it is.

    >>> option_words("of an older release")
    'of an older release'
    """
    found = OPTION.fullmatch(option_id)
    if found is None:
        return option_id
    only_country = COUNTRY.fullmatch(found["region"])
    place = place_of(found["provider"], found["region"], only_country[1].upper() if only_country else "")
    own, _prefill, apart = found["layout"].partition("-prefill-")
    layout = _degrees(own)
    if apart:
        layout = _("%(decode)s, prefill %(prefill)s") % {"decode": layout, "prefill": _degrees(apart)}
    node = _("%(nodes)s at %(place)s") % {"nodes": found["node"], "place": place}
    return " · ".join((node, words.choice(found["purchase"]), layout, words.choice(found["weights"])))


def _degrees(layout: str) -> str:
    """The degrees of a layout that are not 1.

    >>> _degrees("tp8-pp2-ep1-x3"), _degrees("tp1-pp1-ep1-x3")
    ('TP8 · PP2', '1 GPU a copy')
    """
    degrees = [(name.upper(), int(many)) for name, many in DEGREE.findall(layout)]
    return " · ".join(f"{name}{many}" for name, many in degrees if many > 1) or _("1 GPU a copy")


def value_with_unit(name: str, spec: FieldSpec, value: Any, given: Mapping[str, Any]) -> str:
    """One field's value, and its unit behind it; ``given`` are the fields beside it."""
    return with_unit(value_words(name, spec, value), unit_of(name, spec, given))


def unit_of(name: str, spec: FieldSpec, given: Mapping[str, Any]) -> str:
    """A field's unit; an autoscaler's target has that of its metric.

    >>> from planner.engine.simulate.question import SimulationQuestion
    >>> target = specs(SimulationQuestion)["scaling_target"][0]
    >>> unit_of("scaling_target", target, {"scaling_metric": "kv_use"}), unit_of("scaling_target", target, {})
    ('share', 'requests a replica')
    """
    if name == "scaling_target":
        return _(UNITS.get(str(given.get("scaling_metric") or "concurrency"), spec.unit))
    return _(spec.unit) if spec.unit else ""


def with_unit(text: str, unit: str) -> str:
    """A value in words with a unit; neither where nothing is known."""
    return f"{text} {unit}" if unit and text != numbers.NOTHING else text
