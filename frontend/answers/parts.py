"""Pieces of an answer that inference and training share: clusters, prices, bands, memory, the working."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import numbers, words
from frontend.answers.shown import Cell, Column, Part, RejectedGroup, RejectedLine, WayOut, WorkingGroup, WorkingLine
from frontend.figures.canvas import SERIES
from frontend.query import canonical_query
from frontend.sentences import shown
from planner.engine.answers import (
    Advice,
    Cluster,
    Confidence,
    GpuMemory,
    InferenceOption,
    Layout,
    ModelSummary,
    Price,
    Rejection,
    Term,
    TrainingOption,
)
from planner.engine.price_book import PRICE_BOOK_FLAGS

PART_COLORS = 7
"""Swatch classes that the style sheet has; figures use the same order."""
FREE_COLOR = "#dfe2e3"
NOT_SUMS = ("distribution", "admission", "speculation", "split")
"""Groups of the working whose terms stand side by side."""
SHOWN_REJECTIONS = 8
"""Subjects listed of each reason."""
Option = TypeVar("Option", InferenceOption, TrainingOption)


def cluster_name(cluster: Cluster) -> str:
    """e.g. ``3 nodes of 4x H200 SXM at Nebius, eu-north1``."""
    shape = f"{numbers.count(cluster.gpus_per_node)}× {accelerator(cluster)}"
    nodes = ngettext("%(n)s node of %(shape)s", "%(n)s nodes of %(shape)s", cluster.nodes) % {
        "n": numbers.fixed(cluster.nodes),
        "shape": shape,
    }
    return _("%(nodes)s at %(place)s") % {"nodes": nodes, "place": place(cluster)}


def place(cluster: Cluster) -> str:
    """Provider and region; where the seller states no region, the country, or that none is stated."""
    return place_of(cluster.provider, cluster.region, cluster.country)


def place_of(provider: str, region: str, country: str = "") -> str:
    """A star in a region's code is what sellers have that name none."""
    if "*" in region or not region:
        region = words.country(country) or _("region not stated")
    return f"{words.provider(provider)}, {region}"


def short_name(cluster: Cluster) -> str:
    """e.g. ``12x H200 SXM``; remarks in brackets are left to the full name."""
    return f"{numbers.count(cluster.gpus_billed)}× {accelerator(cluster)}"


def accelerator(cluster: Cluster) -> str:
    return without_remark(cluster.accelerator_name)


def without_remark(name: str) -> str:
    """A name up to its remark in brackets.

    >>> without_remark("B200 SXM (HGX) 180GB")
    'B200 SXM 180GB'
    """
    return " ".join(re.sub(r"\([^)]*\)", " ", name).split())


def layout_text(layout: Layout) -> str:
    """The degrees that are not 1, e.g. ``TP2 · PP2``; one GPU a copy says so."""
    degrees = (("TP", layout.tensor), ("PP", layout.pipeline), ("EP", layout.expert), ("CP", layout.context))
    text = " · ".join(f"{name}{degree}" for name, degree in degrees if degree > 1)
    return text or _("1 GPU a copy")


def pools_text(option: InferenceOption) -> str:
    """The option's layout, and that of the replicas that only prefill where pools are split."""
    if option.prefill_pool is None:
        return layout_text(option.layout)
    return _("%(decode)s · prefill %(n)s× %(prefill)s") % {
        "decode": layout_text(option.layout),
        "n": numbers.fixed(option.prefill_pool.layout.replicas),
        "prefill": layout_text(option.prefill_pool.layout),
    }


def confidence_text(confidence: Confidence) -> str:
    """e.g. ``estimate ±9 %, calibrated: 34 measured cases``; without a band where none is known."""
    kind = str(words.CONFIDENCE[confidence.kind])
    if not math.isfinite(confidence.high):
        return _("%(kind)s: %(basis)s") % {"kind": kind, "basis": shown(confidence.basis)}
    return _("estimate %(band)s, %(kind)s: %(basis)s") % {
        "band": numbers.band(confidence.low, confidence.high),
        "kind": kind,
        "basis": shown(confidence.basis),
    }


def spread(value_ms: float, confidence: Confidence) -> str:
    """The band of a time, e.g. ``546 ms to 694 ms``; empty where none is known."""
    if confidence.low == confidence.high or not math.isfinite(confidence.high):
        return ""
    low, high = numbers.duration(value_ms * confidence.low), numbers.duration(value_ms * confidence.high)
    return _("%(low)s to %(high)s") % {"low": low, "high": high}


def price_read(price: Price) -> str:
    """When the price was read, as a part of a sentence."""
    return ngettext("price read %(n)s day ago", "price read %(n)s days ago", price.age_days) % {
        "n": numbers.fixed(price.age_days)
    }


def price_age(price: Price) -> Cell:
    """How old a price is, as a badge; where it was read and what is doubtful about it as its note."""
    text = ngettext("%(n)s day", "%(n)s days", price.age_days) % {"n": numbers.fixed(price.age_days)}
    note = _("Read on %(date)s: %(source)s") % {"date": price.as_of.isoformat(), "source": price.source}
    if price.flags:
        note += " · " + ", ".join(words.flag(flag) for flag in price.flags)
    own = [flag for flag in price.flags if flag in PRICE_BOOK_FLAGS]
    doubtful = price.is_stale or len(own) < len(price.flags)
    return Cell(
        text=text,
        sub=words.flag(own[0]) if own else "",
        sort=str(price.age_days),
        note=note,
        badge="old" if doubtful else "fresh",
    )


def money_cell(value: Decimal, places: int = 2, second: Decimal | None = None) -> Cell:
    """A sum in USD, and a second one under it."""
    if second is None:
        return Cell(text=numbers.fixed(value, places), sort=str(value), exact=f"{value:f} USD")
    return Cell(
        text=numbers.fixed(value, places),
        sort=str(value),
        exact=f"{value:f} · {second:f} USD",
        sub=numbers.fixed(second, 2),
        sub_sort=str(second),
    )


def not_applicable(why: str) -> Cell:
    """A figure that has no meaning here: said, not shown as zero."""
    return Cell(text=numbers.NOTHING, sort="", exact=why)


def price_column() -> Column:
    """A GPU's price and its node's: never one alone."""
    return Column(
        key="gpu_hour",
        label=_("$/GPU·h"),
        help=_("USD per GPU and hour"),
        second=_("$/node·h"),
        second_help=_("USD per node and hour"),
    )


def trust_columns(second: str = "", second_help: str = "") -> tuple[Column, ...]:
    """What says how far to trust a row: GPUs paid for (and a second figure of them), the price's age, the band."""
    return (
        Column(key="gpus", label=_("GPUs"), help=_("GPUs used / billed"), second=second, second_help=second_help),
        Column(key="age", label=_("Price read"), help=_("How long ago the price was read")),
        Column(key="band", label=_("Band"), help=_("90 of 100 measured cases lie within it")),
    )


def band_cell(confidence: Confidence) -> Cell:
    return Cell(
        text=numbers.band(confidence.low, confidence.high),
        sort=str(round(confidence.high - confidence.low, 4)),
        exact=confidence_text(confidence),
        sub=str(words.CONFIDENCE[confidence.kind]),
    )


def tokens_price(option: InferenceOption) -> str:
    """What a million tokens cost; no price of output where the only output token comes with the prefill."""
    prices = {
        "input": numbers.money(option.usd_per_million_input),
        "output": numbers.money(option.usd_per_million_output),
    }
    if not option.usd_per_million_output:
        return _("%(input)s per million input tokens; output: not applicable") % prices
    return _("%(input)s per million input, %(output)s per million output tokens") % prices


def gpus_cell(cluster: Cluster) -> Cell:
    used, billed = numbers.fixed(cluster.gpus_used), numbers.count(cluster.gpus_billed)
    return Cell(
        # One number where all that is billed is used: two are worth the width only where they differ.
        text=used if cluster.gpus_used == cluster.gpus_billed else f"{used} / {billed}",
        sort=str(cluster.gpus_billed),
        exact=_("%(used)s GPUs used of %(billed)s billed") % {"used": used, "billed": billed},
    )


def working_groups(terms: Sequence[Term]) -> tuple[WorkingGroup, ...]:
    """Terms by group in their order; a share of the group where its units agree."""
    groups: dict[str, list[Term]] = {}
    for term in terms:
        groups.setdefault(term.group, []).append(term)
    return tuple(_working_group(name, members) for name, members in groups.items())


def _working_group(name: str, terms: Sequence[Term]) -> WorkingGroup:
    total = sum(term.value for term in terms)
    is_sum = (
        name not in NOT_SUMS
        and len({term.unit for term in terms}) == 1
        and len(terms) > 1
        and min(term.value for term in terms) >= 0
    )
    is_sum = is_sum and total > 0
    return WorkingGroup(
        title=words.group(name),
        lines=tuple(
            WorkingLine(
                name=words.term(term.name),
                value=_with_unit(term.value, term.unit),
                exact=term.value,
                formula=shown(term.formula),
                share=term.value / total if is_sum else None,
            )
            for term in terms
        ),
        total=_with_unit(total, terms[0].unit) if is_sum else "",
    )


def _with_unit(value: float, unit: str) -> str:
    return f"{numbers.rounded(value, 4)} {_(unit) if unit else ''}".strip()


def rejected_groups(rejections: Sequence[Rejection]) -> tuple[RejectedGroup, ...]:
    """Reasons by what broke, the commonest first; of each the first few subjects with their numbers."""
    by_code: dict[str, list[Rejection]] = {}
    for rejection in rejections:
        by_code.setdefault(rejection.code, []).append(rejection)
    ranked = sorted(by_code.items(), key=lambda item: -_count(item[1]))
    return tuple(_rejected_group(code, members) for code, members in ranked)


def _count(rejections: Sequence[Rejection]) -> int:
    return sum(rejection.count for rejection in rejections)


def _rejected_group(code: str, members: Sequence[Rejection]) -> RejectedGroup:
    commonest: dict[str, Rejection] = {}
    for rejection in sorted(members, key=lambda rejection: -rejection.count):
        commonest.setdefault(rejection.subject, rejection)
    listed = list(commonest.values())[:SHOWN_REJECTIONS]
    return RejectedGroup(
        title=words.rejection(code),
        count=numbers.fixed(_count(members)),
        lines=tuple(
            RejectedLine(
                subject=shown(rejection.subject),
                reason=shown(rejection.reason),
                numbers=broke(rejection),
                count=numbers.fixed(_count([member for member in members if member.subject == rejection.subject])),
            )
            for rejection in listed
        ),
        more=len(commonest) - len(listed),
    )


def broke(rejection: Rejection) -> str:
    """The number that broke and its limit."""
    unit = f" {_(rejection.unit)}" if rejection.unit else ""
    if rejection.value is None and rejection.limit is None:
        return ""
    if rejection.limit is None:
        return numbers.rounded(rejection.value, 4) + unit
    if rejection.value is None:
        return _("limit %(limit)s") % {"limit": numbers.rounded(rejection.limit, 4) + unit}
    return _("%(value)s; limit %(limit)s") % {
        "value": numbers.rounded(rejection.value, 4) + unit,
        "limit": numbers.rounded(rejection.limit, 4) + unit,
    }


def memory_parts(memory: GpuMemory) -> tuple[Part, ...]:
    """The parts of one GPU's memory in GiB, free last."""
    parts = [(key, value) for key, value in memory.parts_gib.items() if value > 0]
    taken = [
        Part(
            key=key,
            label=words.memory_part(key),
            value=_("%(n)s GiB") % {"n": numbers.rounded(value)},
            share=numbers.percent(value / memory.capacity_gib),
            swatch=f"part-{n % PART_COLORS + 1}",
        )
        for n, (key, value) in enumerate(parts)
    ]
    free = Part(
        key="free",
        label=words.memory_part("free"),
        value=_("%(n)s GiB") % {"n": numbers.rounded(memory.free_gib)},
        share=numbers.percent(memory.free_gib / memory.capacity_gib),
        swatch="part-free",
    )
    return (*taken, free)


def part_colors(parts: Sequence[Part]) -> dict[str, str]:
    return {
        part.key: FREE_COLOR if part.swatch == "part-free" else SERIES[n % PART_COLORS] for n, part in enumerate(parts)
    }


def model_facts(model: ModelSummary) -> tuple[tuple[str, str], ...]:
    """The model as the engine understood it, for the reader to check."""
    params = numbers.compact(model.total_params)
    if model.active_params != model.total_params:
        params = _("%(total)s, %(active)s active") % {"total": params, "active": numbers.compact(model.active_params)}
    return (
        (_("Model"), model.name or model.hf_id),
        (_("Parameters"), params),
        (_("Layers"), numbers.fixed(model.layers)),
        (_("Attention"), shown(model.attention)),
        (_("Native format"), words.choice(model.native_format)),
        (_("KV cache a token"), _("%(n)s KiB at 16 bit") % {"n": numbers.rounded(model.kv_bytes_per_token / 1024)}),
        (
            _("Longest context"),
            _("%(n)s tokens") % {"n": numbers.fixed(model.max_context)} if model.max_context else _("not stated"),
        ),
    )


def chosen_option(options: Sequence[Option], wanted: str, recommended: str) -> Option | None:
    """The option asked for, else the recommended one, else the first."""
    by_id = {option.id: option for option in options}
    return by_id.get(wanted) or by_id.get(recommended) or (options[0] if options else None)


def warnings(advice: Sequence[Advice]) -> tuple[str, ...]:
    """What is to be read before any number."""
    return tuple(shown(item.suggestion) for item in advice if item.is_warning)


def remarks(advice: Sequence[Advice]) -> tuple[str, ...]:
    """Advice that is no warning."""
    return tuple(shown(item.suggestion) for item in advice if not item.is_warning)


def ways_out(advice: Sequence[Advice], given: Mapping[str, str], question_type: type) -> tuple[WayOut, ...]:
    """Advice with the link to the question it suggests; a remark that changes no field has none."""
    return tuple(
        WayOut(
            text=shown(item.suggestion),
            query=canonical_query({**given, item.field: item.value}, question_type)
            if item.field and item.value
            else "",
        )
        for item in advice
        if not item.is_warning
    )
