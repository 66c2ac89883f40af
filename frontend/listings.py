"""The catalog's tables as shown: accelerators, instance types, offers, models, serving engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from catalog.engine_profiles import EngineProfile, engine_profiles
from catalog.models import ModelArchitecture
from catalog.selectors import catalog_snapshot, is_stale, list_accelerators, search_models
from frontend import numbers, words
from frontend.answers.shown import Cell, Column
from frontend.presets import worked_example
from frontend.query import canonical_query
from planner.engine.arch_spec import arch_from_spec
from planner.engine.hardware import Accelerator, InstanceType, Offer
from planner.engine.param_count import count_parameters
from planner.engine.units import GB, TERA, bytes_to_gib
from planner.engine.workload import InferenceQuestion

MOST_MODELS = 1000
PEAKS = ("bf16", "fp8", "fp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row: a heading, then values."""

    title: str
    subtitle: str
    link: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table: which rows there are, and how each is shown."""

    columns: tuple[Column, ...]
    items: Sequence[Any]
    line: Callable[[Any], Line]


def listing(section: str, chosen: Mapping[str, str], today: date) -> Listing:
    """The table of a section, filtered by what was chosen."""
    match section:
        case "instances":
            return _instances(chosen)
        case "offers":
            return _offers(chosen, today)
        case "models":
            return _models(chosen)
        case "engines":
            return _engines(chosen)
        case _:
            return _accelerators(chosen)


def _matches(text: str, *fields: str) -> bool:
    held = " ".join(fields).casefold()
    return all(word in held for word in text.casefold().split())


def _cell(value: float | None, text: str = "") -> Cell:
    if value is None:
        return Cell(text=numbers.NOTHING, sort="")
    return Cell(text=text or numbers.rounded(value, 4), sort=str(value))


def _words_cell(text: str) -> Cell:
    return Cell(text=text or numbers.NOTHING, sort=text)


def _region_cell(item: Offer) -> Cell:
    """A region and its country; a star is what a seller that names none has."""
    country = words.country(item.country)
    if "*" in item.region:
        return _words_cell(country or _("not stated"))
    return Cell(text=item.region, sort=item.region, sub=country)


def _accelerators(chosen: Mapping[str, str]) -> Listing:
    columns = (
        Column(key="name", label=_("Accelerator"), is_text=True),
        Column(key="memory", label=_("Memory, GiB"), help=_("As the driver shows it")),
        Column(key="bandwidth", label=_("Bandwidth, TB/s")),
        *(
            Column(key=peak, label=_("%(format)s, TFLOP/s") % {"format": peak.upper()}, help=_("Dense"))
            for peak in PEAKS
        ),
        Column(key="link", label=_("Link, GB/s"), help=_("One direction, all links")),
        Column(key="domain", label=_("Linked GPUs")),
        Column(key="power", label=_("Power, W")),
        Column(key="as_of", label=_("As of")),
    )
    items = [item for item in list_accelerators() if _matches(chosen["q"], item.name, item.vendor, item.generation)]
    return Listing(columns=columns, items=items, line=_accelerator_line)


def _accelerator_line(item: Accelerator) -> Line:
    peaks = (item.peak_flops.get(peak) for peak in PEAKS)
    return Line(
        title=item.name,
        subtitle=f"{item.vendor} {item.generation} · {item.form_factor}",
        link=f"{reverse('catalog-section', args=['offers'])}?accelerator={item.key}",
        cells=(
            _cell(bytes_to_gib(item.memory_bytes)),
            _cell(item.memory_bandwidth_bytes_s / TERA),
            *(_cell(None if peak is None else peak / TERA) for peak in peaks),
            _cell(item.link_bytes_s / GB) if item.link_bytes_s else _words_cell(""),
            _cell(item.scaleup_domain_gpus),
            _cell(item.tdp_w),
            Cell(text=item.as_of.isoformat(), sort=item.as_of.isoformat(), note=item.source, badge="fresh"),
        ),
    )


def _instances(chosen: Mapping[str, str]) -> Listing:
    snapshot = catalog_snapshot()
    columns = (
        Column(key="name", label=_("Instance type"), is_text=True),
        Column(key="gpus", label=_("GPUs")),
        Column(key="vcpus", label=_("vCPUs")),
        Column(key="ram", label=_("RAM, GiB")),
        Column(key="link", label=_("In the node")),
        Column(key="fabric", label=_("Between nodes")),
        Column(key="network", label=_("Network, Gbit/s"), help=_("One direction")),
    )
    items = [
        item
        for item in snapshot.instance_types.values()
        if (not chosen["accelerator"] or item.accelerator_key == chosen["accelerator"])
        and (not chosen["provider"] or item.provider == chosen["provider"])
        and _matches(chosen["q"], item.name, item.provider, snapshot.accelerators[item.accelerator_key].name)
    ]

    def line(item: InstanceType) -> Line:
        network = None if item.network_bytes_s is None else item.network_bytes_s * 8 / GB
        query = f"accelerator={item.accelerator_key}&provider={item.provider}"
        return Line(
            title=item.name,
            subtitle=f"{words.provider(item.provider)} · {snapshot.accelerators[item.accelerator_key].name}",
            link=f"{reverse('catalog-section', args=['offers'])}?{query}",
            cells=(
                _cell(item.gpu_count),
                _cell(item.vcpus),
                _cell(None if item.ram_bytes is None else bytes_to_gib(item.ram_bytes)),
                _words_cell(words.plain(item.intra_node_link)),
                _words_cell(item.fabric_name or words.plain(item.fabric)),
                _cell(network),
            ),
        )

    return Listing(columns=columns, items=sorted(items, key=lambda item: (item.provider, item.name)), line=line)


def _offers(chosen: Mapping[str, str], today: date) -> Listing:
    snapshot = catalog_snapshot()
    columns = (
        Column(key="name", label=_("Offer"), is_text=True),
        Column(key="region", label=_("Region")),
        Column(key="option", label=_("Bought")),
        Column(key="gpus", label=_("GPUs")),
        Column(key="gpu_hour", label=_("$/GPU·h"), help=_("USD per GPU and hour")),
        Column(key="node_hour", label=_("$/node·h"), help=_("USD per node and hour")),
        Column(key="age", label=_("Price read"), help=_("How long ago the price was read")),
    )
    items = [
        item
        for item in snapshot.offers
        if (not chosen["accelerator"] or item.accelerator_key == chosen["accelerator"])
        and (not chosen["provider"] or item.provider == chosen["provider"])
        and (not chosen["country"] or item.country == chosen["country"])
        and (not chosen["purchase_option"] or item.purchase_option == chosen["purchase_option"])
        and _matches(chosen["q"], item.instance_type, item.provider, item.region)
    ]
    items.sort(key=lambda item: float(item.price_usd_per_node_hour) / item.gpu_count)

    def line(item: Offer) -> Line:
        age = (today - item.as_of).days
        per_gpu = float(item.price_usd_per_node_hour) / item.gpu_count
        flags = "".join(f" · {words.plain(flag)}" for flag in item.flags)
        return Line(
            title=snapshot.accelerators[item.accelerator_key].name,
            subtitle=f"{words.provider(item.provider)} · {item.instance_type}",
            link="",
            cells=(
                _region_cell(item),
                _words_cell(words.choice(item.purchase_option)),
                _cell(item.gpu_count),
                Cell(text=numbers.fixed(per_gpu, 2), sort=str(per_gpu)),
                Cell(text=numbers.fixed(item.price_usd_per_node_hour, 2), sort=str(item.price_usd_per_node_hour)),
                Cell(
                    text=ngettext("%(n)s day", "%(n)s days", age) % {"n": numbers.fixed(age)},
                    sort=str(age),
                    note=f"{item.as_of.isoformat()}: {item.source}{flags}",
                    badge="old" if is_stale(item, today) or item.flags else "fresh",
                ),
            ),
        )

    return Listing(columns=columns, items=items, line=line)


def _models(chosen: Mapping[str, str]) -> Listing:
    columns = (
        Column(key="name", label=_("Model"), is_text=True),
        Column(key="params", label=_("Parameters")),
        Column(key="active", label=_("Active"), help=_("Parameters that one token uses")),
        Column(key="layers", label=_("Layers")),
        Column(key="context", label=_("Longest context")),
        Column(key="format", label=_("Native format")),
        Column(key="release", label=_("Release")),
        Column(key="license", label=_("Licence")),
    )
    return Listing(columns=columns, items=search_models(chosen["q"], limit=MOST_MODELS), line=_model_line)


def _model_line(row: ModelArchitecture) -> Line:
    arch = arch_from_spec(row.spec)
    counts = count_parameters(arch)
    question = canonical_query({**worked_example("inference"), "model": row.name}, InferenceQuestion)
    return Line(
        title=row.name,
        subtitle=row.hf_id,
        link=f"{reverse('plan-inference')}?{question}",
        cells=(
            _cell(counts.total, numbers.compact(counts.total)),
            _cell(counts.active, numbers.compact(counts.active)),
            _cell(arch.layers),
            _cell(arch.max_context or None, numbers.fixed(arch.max_context)),
            _words_cell(words.choice(arch.native_format)),
            _words_cell(row.release),
            _words_cell(row.license),
        ),
    )


SHARE_CONSTANTS = ("weight_bandwidth", "kv_bandwidth", "gemm_compute", "attention_compute")


def _engines(chosen: Mapping[str, str]) -> Listing:
    columns = (
        Column(key="name", label=_("Engine"), is_text=True),
        Column(key="cases", label=_("Measured cases"), help=_("That its constants were fitted on")),
        Column(key="weights", label=_("Weights, %"), help=_("Share of memory bandwidth reached")),
        Column(key="kv", label=_("KV cache, %"), help=_("Share of memory bandwidth reached")),
        Column(key="gemm", label=_("Matrices, %"), help=_("Share of peak FLOP/s reached")),
        Column(key="attention", label=_("Attention, %"), help=_("Share of peak FLOP/s reached")),
        Column(key="layer", label=_("A layer, µs"), help=_("Launches and small kernels")),
        Column(key="step", label=_("A step, ms"), help=_("Scheduler, sampling and host")),
        Column(key="request", label=_("A request, ms"), help=_("Before its first token")),
        Column(key="memory", label=_("Memory fitted on")),
    )
    items = [
        item for item in engine_profiles() if _matches(chosen["q"], item.engine, item.era, words.choice(item.engine))
    ]
    return Listing(columns=columns, items=items, line=_engine_line)


def _engine_line(item: EngineProfile) -> Line:
    constants = item.constants
    sources = " · ".join(item.sources) or _("no measured case")
    return Line(
        title=words.choice(item.engine),
        subtitle=_("%(era)s, constants of %(engine)s")
        % {"era": item.era or _("no date stated"), "engine": words.choice(item.taken_from)},
        link="",
        cells=(
            Cell(text=numbers.fixed(item.cases), sort=str(item.cases), note=sources, badge="fresh"),
            *(_cell(100 * constants[name]) for name in SHARE_CONSTANTS),
            _cell(constants["layer_s"] * 1e6),
            _cell(constants["step_s"] * 1e3),
            _cell(constants["request_s"] * 1e3),
            Cell(text=_("source"), sort=item.memory, note=item.memory, badge="fresh")
            if item.memory
            else _words_cell(""),
        ),
    )
