"""How far off the engine is on measured cases: parity charts and errors by what the cases have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from catalog.accuracy_file import GROUPINGS, AccuracyCase, AccuracySet
from frontend import numbers, words
from frontend.answers.shown import Cell, Chart, Column, Part
from frontend.figures import canvas, scatter

SET_NAMES: dict[str, str | Promise] = {
    "inference": gettext_lazy("Inference"),
    "training": gettext_lazy("Training"),
    "memory": gettext_lazy("Memory"),
}
QUANTITIES: dict[str, tuple[str | Promise, str | Promise]] = {
    "output_tok_s_per_gpu": (gettext_lazy("Throughput"), gettext_lazy("tokens/s/GPU")),
    "tpot_ms": ("TPOT", "ms"),
    "ttft_ms": ("TTFT", "ms"),
    "step_s": (gettext_lazy("Step time"), "s"),
    "memory_gib": (gettext_lazy("Memory a GPU"), "GiB"),
    "weights_gib": (gettext_lazy("Weights a GPU"), "GiB"),
    "kv_pool_gib": (gettext_lazy("KV pool a GPU"), "GiB"),
    "kv_tokens": (gettext_lazy("KV tokens an engine"), gettext_lazy("tokens")),
}
GROUPING_NAMES: dict[str, str | Promise] = {
    "source": gettext_lazy("Source"),
    "gpu": "GPU",
    "precision": gettext_lazy("Precision"),
    "model_kind": gettext_lazy("Kind of model"),
    "software": gettext_lazy("Engine or framework"),
}
MODEL_KINDS: dict[str, str | Promise] = {
    "dense": gettext_lazy("Dense"),
    "moe": gettext_lazy("Mixture of experts"),
    "mla": gettext_lazy("Latent attention (MLA)"),
    "mla_sparse": gettext_lazy("Sparse latent attention"),
    "hybrid": gettext_lazy("Hybrid, linear attention"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Absolute relative errors of one quantity over some cases."""

    cases: int
    median: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Errors by one property of the cases: a table."""

    id: str
    title: str
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyShown:
    """Everything the page shows of one set."""

    sentence: str
    legend: tuple[Part, ...]
    """Of all charts together."""
    charts: tuple[Chart, ...]
    columns: tuple[Column, ...]
    breakdowns: tuple[Breakdown, ...]


def errors_of(cases: Sequence[AccuracyCase], quantity: str) -> Errors | None:
    """Median and 90th percentile over the cases that measured ``quantity``; None where none did."""
    found = [abs(case.pairs[quantity][1] / case.pairs[quantity][0] - 1) for case in cases if quantity in case.pairs]
    if not found:
        return None
    median, p90 = np.percentile(found, [50, 90])
    return Errors(cases=len(found), median=float(median), p90=float(p90))


def present_accuracy(found: AccuracySet) -> AccuracyShown:
    """A parity chart a quantity, then errors by source, GPU, precision, kind of model and engine."""
    return AccuracyShown(
        sentence=_sentence(found),
        legend=tuple(
            Part(key=kind, label=kind, value="", share="", swatch=f"symbol-{n}")
            for n, kind in enumerate(_kinds(found), start=1)
        ),
        charts=tuple(_chart(found, quantity) for quantity in found.quantities),
        columns=_columns(found),
        breakdowns=tuple(_breakdown(found, name) for name in GROUPINGS),
    )


def _sentence(found: AccuracySet) -> str:
    known = ((name, errors_of(found.cases, name)) for name in found.quantities)
    return "; ".join(
        _("%(quantity)s is off by %(median)s at the median and %(p90)s at the 90th percentile")
        % {
            "quantity": QUANTITIES[name][0],
            "median": _error(errors.median),
            "p90": _error(errors.p90),
        }
        for name, errors in known
        if errors
    )


def _error(value: float) -> str:
    return numbers.percent(value, 2 if value < 0.01 else 1)


def _chart(found: AccuracySet, quantity: str) -> Chart:
    name, unit = QUANTITIES[quantity]
    cases = [case for case in found.cases if quantity in case.pairs]
    errors = errors_of(found.cases, quantity)
    count = ngettext("%(n)s measured case", "%(n)s measured cases", len(cases)) % {"n": numbers.fixed(len(cases))}
    median = _error(errors.median) if errors else numbers.NOTHING
    return Chart(
        id=f"parity-{quantity.replace('_', '-')}",
        title=_("%(quantity)s: off by %(median)s at the median of %(count)s")
        % {"quantity": name, "median": median, "count": count},
        figure=scatter.parity(
            [_point(case, quantity) for case in cases],
            canvas.Axis(title=_("Measured, %(unit)s, log scale") % {"unit": unit}, tick=_tick),
            canvas.Axis(title=_("Predicted, %(unit)s, log scale") % {"unit": unit}, tick=_tick),
            _kinds(found),
        ),
    )


def _kinds(found: AccuracySet) -> list[str]:
    """The kinds of model among the cases, the commonest first: the same colour in every chart."""
    return [kind for kind, _count in Counter(map(_kind, found.cases)).most_common()]


def _tick(value: float) -> str:
    return numbers.rounded(value) if value < 1000 else numbers.compact_money(value)


def _point(case: AccuracyCase, quantity: str) -> scatter.Point:
    measured, predicted = case.pairs[quantity]
    unit = QUANTITIES[quantity][1]
    change = f"{predicted / measured - 1:+.1%}"
    values = _("measured %(measured)s, predicted %(predicted)s %(unit)s (%(change)s)") % {
        "measured": numbers.rounded(measured, 4),
        "predicted": numbers.rounded(predicted, 4),
        "unit": unit,
        "change": change,
    }
    text = f"<b>{case.model}</b>, {case.labels['precision']}<br>{case.setup}<br>{values}<br>{case.labels['source']}"
    return scatter.Point(id="", group=_kind(case), label="", x=measured, y=predicted, hover=text)


def _kind(case: AccuracyCase) -> str:
    """The kind of model, in words."""
    return str(MODEL_KINDS.get(case.labels["model_kind"], case.labels["model_kind"] or _("Not read")))


def _columns(found: AccuracySet) -> tuple[Column, ...]:
    columns: list[Column] = []
    for quantity in found.quantities:
        name = str(QUANTITIES[quantity][0])
        columns += [
            Column(key=f"{quantity}-cases", label=_("%(quantity)s, cases") % {"quantity": name}),
            Column(key=f"{quantity}-median", label=_("median")),
            Column(key=f"{quantity}-p90", label="p90"),
        ]
    return tuple(columns)


def _breakdown(found: AccuracySet, grouping: str) -> Breakdown:
    members: dict[str, list[AccuracyCase]] = {}
    for case in found.cases:
        members.setdefault(case.labels[grouping], []).append(case)
    ranked = sorted(members.items(), key=lambda item: (-len(item[1]), item[0]))
    return Breakdown(
        id=grouping.replace("_", "-"),
        title=str(GROUPING_NAMES[grouping]),
        rows=tuple((_name(grouping, label), _cells(cases, found.quantities)) for label, cases in ranked),
    )


def _name(grouping: str, label: str) -> str:
    if not label:
        return _("Not stated")
    named: Mapping[str, str | Promise] = MODEL_KINDS if grouping == "model_kind" else {}
    if grouping == "software":
        return words.choice(label)
    return str(named.get(label, label))


def _cells(cases: Sequence[AccuracyCase], quantities: Sequence[str]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for quantity in quantities:
        errors = errors_of(cases, quantity)
        if errors is None:
            cells += [Cell(text=numbers.NOTHING, sort="")] * 3
            continue
        cells += [
            Cell(text=numbers.fixed(errors.cases), sort=str(errors.cases)),
            Cell(text=_error(errors.median), sort=str(errors.median)),
            Cell(text=_error(errors.p90), sort=str(errors.p90)),
        ]
    return tuple(cells)
