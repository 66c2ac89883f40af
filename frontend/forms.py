"""The question as a form: every field comes from the engine's own field specs, none is written twice.

A form is plain values for the templates: what a field is called, what it holds, what is wrong with it.
Reading and checking stay in ``planner.engine.workload``.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers, words
from frontend.form_parts import MANY_CHOICES, Choice, FormField, QuestionForm, Section
from frontend.query import default_text, traffic_way
from frontend.sentences import shown
from frontend.typed_numbers import NUMBER_KINDS, short_number
from planner.engine.errors import FieldError
from planner.engine.field_spec import FieldSpec, specs

SECTION_ORDER = ("model", "traffic", "precision", "layout", "run", "where", "buy", "advanced")
FOLDED = ("precision", "layout", "run", "where", "buy", "advanced")
TERMS = {
    "ttft_ms": "ttft",
    "tpot_ms": "tpot",
    "slo_percentile": "percentile",
    "peak_factor": "peak-factor",
    "kv_format": "kv-cache",
    "weight_formats": "weight-format",
    "tensor_parallel": "parallelism",
    "pipeline_parallel": "parallelism",
    "expert_parallel": "parallelism",
    "context_parallel": "parallelism",
    "concurrency": "closed-loop",
    "prefix_cache_hit": "prefix-cache",
    "max_num_batched_tokens": "chunked-prefill",
    "goodput": "goodput",
    "sharding": "sharding",
    "gpu_hours_per_interruption": "failures",
    "checkpoint_minutes": "failures",
    "spare_nodes": "failures",
    "pipeline_schedule": "schedule",
    "offload": "offload",
    "packing": "packing",
    "method": "methods",
    "global_batch_tokens": "critical-batch",
    "recompute": "recompute",
    "headroom": "headroom",
}
"""Fields whose help leads to a glossary entry."""


def build_form(
    question_type: type,
    given: Mapping[str, str],
    *,
    errors: Sequence[FieldError] = (),
    listed: Mapping[str, Sequence[tuple[str, str]]],
    page: Mapping[str, str],
) -> QuestionForm:
    """The form of a question: ``given`` as typed, ``listed`` the catalog's choices by field name."""
    faults = {error.field: error for error in reversed(errors)}
    fields = [
        (spec.section, form_field(name, spec, default, given, faults.get(name), listed.get(name, ())))
        for name, (spec, default) in specs(question_type).items()
    ]
    sections = [
        _section(key, tuple(field for section, field in fields if section == key), question_type.__name__)
        for key in SECTION_ORDER
    ]
    return QuestionForm(
        sections=tuple(section for section in sections if section.fields),
        errors=tuple(errors),
        traffic_way=traffic_way(given, page),
    )


def error_text(error: FieldError) -> str:
    """What is wrong, in the page's language, naming the value.

    >>> error_text(FieldError(field="headroom", value="2", message="Out of range.", allowed="0 to 0.9"))
    'Out of range: 2.'
    """
    message = shown(error.message)
    value = (
        default_text(error.value) if isinstance(error.value, float) else "" if error.value is None else str(error.value)
    )
    if error.code == "unknown_field":
        value = error.field.rpartition(".")[2]
    if value and value not in message and len(value) <= 60:
        return _("%(message)s: %(value)s.") % {"message": message.rstrip("."), "value": value}
    return message


def allowed_text(error: FieldError) -> str:
    """What would do, in the page's language."""
    allowed = shown(error.allowed).removeprefix("One of: ")
    if error.code in ("unknown_name", "unknown_field"):
        wrong = error.field if error.code == "unknown_field" else str(error.value)
        allowed = _nearest(wrong, allowed.split(", "))
    return _("Allowed: %(allowed)s") % {"allowed": allowed} if allowed else ""


def _nearest(given: str, names: Sequence[str]) -> str:
    """A few names out of many: those most like what was given, for a list of all is beside the field."""
    if len(names) <= MANY_CHOICES:
        return ", ".join(names)
    near = [name for each in given.split(", ") for name in difflib.get_close_matches(each, names, n=3, cutoff=0.6)]
    few = list(dict.fromkeys(near)) or names[:3]
    return _("%(names)s or another of %(n)s in the list") % {"names": ", ".join(few), "n": numbers.fixed(len(names))}


def form_field(
    name: str,
    spec: FieldSpec,
    default: Any,
    given: Mapping[str, str],
    fault: FieldError | None,
    listed: Sequence[tuple[str, str]],
) -> FormField:
    """One field as shown: its spec, what was given, what is wrong with it."""
    text = default_text(default)
    value = given.get(name, text)
    if spec.kind in NUMBER_KINDS:
        text, value = short_number(text), short_number(value)
    return FormField(
        name=name,
        kind=spec.kind,
        label=_(spec.label),
        unit=_(spec.unit) if spec.unit else "",
        help=_(spec.help),
        value=value,
        default=text,
        placeholder=_placeholder(name, spec, default),
        choices=_choices(spec, value, listed),
        error=error_text(fault) if fault else "",
        allowed=allowed_text(fault) if fault else "",
        term=TERMS.get(name, ""),
        required=spec.required,
        options=tuple(listed) if spec.kind == "text" else (),
    )


def _choices(spec: FieldSpec, value: str, listed: Sequence[tuple[str, str]]) -> tuple[Choice, ...]:
    if spec.kind not in ("choice", "choices"):
        return ()
    chosen = set(value.split(","))
    pairs = list(listed) or [(code, words.choice(code)) for code in spec.choices]
    known = {code for code, _label in pairs}
    # A value the catalog does not list stays in the form, so that the person sees what to correct.
    pairs += [(code, code) for code in sorted(chosen - known) if code and spec.kind == "choices" and not spec.choices]
    return tuple(Choice(value=code, label=label, is_chosen=code in chosen) for code, label in pairs)


def _placeholder(name: str, spec: FieldSpec, default: Any) -> str:
    if default is not None or spec.kind not in ("number", "integer"):
        return ""
    if name.endswith("_parallel") or name in ("micro_batch", "gpus", "nodes"):
        return _("search")
    if name.startswith("budget") or name in ("ttft_ms", "tpot_ms", "max_price_age_days", "finish_days"):
        return _("no limit")
    if name in ("tokens", "global_batch_tokens"):
        return _("automatic")
    if name == "checkpoint_minutes":
        return _("the best")
    return ""


def _section(key: str, fields: tuple[FormField, ...], question_name: str) -> Section:
    return Section(
        key=key,
        title=_title(key, question_name),
        fields=fields,
        summary=_summary(key, fields),
        is_folded=key in FOLDED,
        is_open=any(field.error for field in fields),
    )


def _title(key: str, question_name: str) -> str:
    is_training = question_name == "TrainingQuestion"
    titles = {
        "model": _("What do you train?") if is_training else _("What do you serve?"),
        "traffic": _("By when, for how much, on what?") if is_training else _("How much, how fast?"),
        "precision": _("Recipe") if is_training else _("Precision and engine"),
        "layout": _("Strategy and layout"),
        "run": _("Failures, checkpoints, storage"),
        "where": _("Where"),
        "buy": _("How to buy"),
        "advanced": _("Advanced"),
    }
    return titles[key]


def _summary(key: str, fields: tuple[FormField, ...]) -> str:
    changed = [field for field in fields if not field.is_default]
    if key in ("advanced", "run"):
        if not changed:
            return _("defaults")
        return ngettext("%(n)d changed", "%(n)d changed", len(changed)) % {"n": len(changed)}
    always = {"engine", "framework", "precision", "purchase_options"}
    shown = [_short(field) for field in fields if field.name in always or field in changed]
    if key == "where" and not shown:
        return _("anywhere")
    return " · ".join(text for text in shown if text) or _("defaults")


def _short(field: FormField) -> str:
    """One field in a few characters, for a folded section's summary line."""
    if field.kind in ("choice", "choices"):
        chosen = [choice.label for choice in field.choices if choice.is_chosen]
        return ", ".join(chosen[:3]) + (f" +{len(chosen) - 3}" if len(chosen) > 3 else "")
    if field.name.endswith("_parallel"):
        return f"{field.name[0].upper()}P{field.value}"
    try:
        value = numbers.compact(float(field.value))
    except ValueError:
        value = field.value[:20]
    return f"{field.label} {value} {field.unit}".strip()
