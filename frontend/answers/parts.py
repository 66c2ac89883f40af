"""Pieces of an answer that inference and training share: clusters, prices, bands, memory, ways out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from frontend import answer_words, numbers, words
from frontend.answers.shown import Part, WayOut
from frontend.figures.canvas import SERIES
from frontend.query import canonical_query, default_text
from frontend.sentences import kept, shown
from planner.engine.advice import Advice
from planner.engine.answers import Cluster, Confidence, GpuMemory, InferenceOption, Layout, ModelSummary, Price
from planner.engine.training_answers import TrainingOption

PART_COLORS = 7
"""Swatch classes that the style sheet has; figures use the same order."""
FREE_COLOR = "#dfe2e3"
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
    kind = str(answer_words.CONFIDENCE[confidence.kind])
    if not math.isfinite(confidence.high):
        return _("%(kind)s: %(basis)s") % {"kind": kind, "basis": kept(confidence.basis)}
    return _("estimate %(band)s, %(kind)s: %(basis)s") % {
        "band": numbers.band(confidence.low, confidence.high),
        "kind": kind,
        "basis": kept(confidence.basis),
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


def tokens_price(option: InferenceOption) -> str:
    """What a million tokens cost; no price of output where the only output token comes with the prefill."""
    prices = {
        "input": numbers.money(option.usd_per_million_input),
        "output": numbers.money(option.usd_per_million_output),
    }
    if not option.usd_per_million_output:
        return _("%(input)s per million input tokens; output: not applicable") % prices
    return _("%(input)s per million input, %(output)s per million output tokens") % prices


def memory_parts(memory: GpuMemory) -> tuple[Part, ...]:
    """The parts of one GPU's memory in GiB, free last."""
    parts = [(key, value) for key, value in memory.parts_gib.items() if value > 0]
    taken = [
        Part(
            key=key,
            label=answer_words.memory_part(key),
            value=_("%(n)s GiB") % {"n": numbers.rounded(value)},
            share=numbers.percent(value / memory.capacity_gib),
            swatch=f"part-{n % PART_COLORS + 1}",
        )
        for n, (key, value) in enumerate(parts)
    ]
    free = Part(
        key="free",
        label=answer_words.memory_part("free"),
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
            # Without a value a field is left open: there is something to do only where it holds something now.
            query=canonical_query({**given, **changes}, question_type)
            if any(text or given.get(name) for name, text in changes.items())
            else "",
        )
        for item in advice
        if not item.is_warning
        for changes in [{name: default_text(value) for name, value in item.changes.items()}]
    )


def in_flight(option: InferenceOption) -> str:
    """How full the KV cache is, and how many requests are served at a time."""
    speed = option.speed
    return _("KV cache %(kv)s full · %(now)s of %(most)s requests in flight") % {
        "kv": numbers.percent(speed.kv_cache_used),
        "now": numbers.rounded(speed.concurrency),
        "most": numbers.rounded(speed.max_concurrency),
    }


def kv_pool(option: InferenceOption) -> str:
    """How sure the KV pool's size is, and with it all that fits."""
    confidence = option.memory_confidence
    return _("KV pool %(band)s, %(kind)s: %(basis)s") % {
        "band": numbers.band(confidence.low, confidence.high),
        "kind": str(answer_words.CONFIDENCE[confidence.kind]),
        "basis": kept(confidence.basis),
    }
