"""Candidates of one model as arrays, and the step coefficients that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.engine.collectives import LINK_CLASSES, Topology
from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.roofline import half_precision_flops
from planner.engine.serving_calibration import BUILDS, EXPERT_LAYOUTS, Keys
from planner.engine.units import TERA

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MODES = ("server", "offline", "static", "eager")
"""How an engine runs: answering clients, draining a queue, fixed batches, or without captured graphs."""
POWER = ("ample", "tight", "unknown")
AMPLE_W_PER_TFLOPS = 2.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCandidates:
    """``n`` ways to serve one model: every array has length ``n``; tables hold what the indices mean.

    One replica has ``pp x max(tp, ep)`` GPUs; ``ep`` above ``tp`` means data-parallel attention over
    ``ep / tp`` groups of ``tp`` ranks.
    """

    accelerators: tuple[Accelerator, ...]
    accelerator: IntArray
    weight_formats: tuple[str, ...]
    weight_format: IntArray
    kv_formats: tuple[str, ...]
    kv_format: IntArray
    engines: tuple[tuple[str, str], ...]
    """(engine, era): e.g. ``("vllm", "2026Q1")``; era from ``engine_era``, empty where unknown."""
    engine: IntArray
    development: BoolArray | bool = False
    """Whether the engine is a build between releases."""
    tp: FloatArray
    pp: FloatArray
    ep: FloatArray
    topology: Topology
    mode: IntArray | None = None
    """Index into ``MODES``; None means answering clients throughout."""
    max_num_seqs: FloatArray | float = np.inf
    """Batch limit of one attention rank."""

    @property
    def size(self) -> int:
        return len(self.accelerator)

    @property
    def gpus_per_replica(self) -> FloatArray:
        return self.pp * np.maximum(self.tp, self.ep)

    @property
    def attention_ranks(self) -> FloatArray:
        return np.maximum(self.ep / self.tp, 1.0)


def engine_era(date: str) -> str:
    """The quarter of an ISO date (or year-month); empty where it isn't known.

    >>> engine_era("2026-04-22"), engine_era("2025")
    ('2026Q2', '')
    """
    if len(date) < 7:
        return ""
    return f"{date[:4]}Q{(int(date[5:7]) + 2) // 3}"


def model_kind(arch: ModelArch) -> str:
    """What the measured efficiencies differ by: dense, moe, mla, mla_sparse or hybrid.

    ``mla`` is latent attention, ``mla_sparse`` with an indexer, ``hybrid`` has linear-attention layers.
    """
    kinds = {group.kind for group in arch.attention}
    if "linear" in kinds:
        return "hybrid"
    if "mla" in kinds:
        return "mla_sparse" if any(group.sparse_top_k for group in arch.attention) else "mla"
    return "moe" if any(group.kind == "moe" for group in arch.ffn) else "dense"


def chip_key(accelerator: Accelerator) -> str:
    return f"{accelerator.generation} {accelerator.compute_capability}".strip()


def power_class(accelerator: Accelerator) -> str:
    """Whether the board's power lets tensor cores hold their peak: cards whose peak is halved come close to it.

    Large multiplications reach 93 % of the peak on cards with 2.7 W a TFLOP/s and 60 % on those of the same
    chip with 1 W (kernel timings and replays of 2026).
    """
    peak = half_precision_flops(accelerator)
    if not accelerator.tdp_w or not peak > 0:
        return "unknown"
    return "ample" if accelerator.tdp_w / peak * TERA > AMPLE_W_PER_TFLOPS else "tight"


def candidate_keys(arch: ModelArch, candidates: ServingCandidates) -> Keys:
    """The calibration attributes of each candidate."""
    chips = sorted({chip_key(a) for a in candidates.accelerators})
    forms = sorted({a.form_factor for a in candidates.accelerators})
    engines = sorted({engine for engine, _ in candidates.engines})
    eras = sorted({era for _, era in candidates.engines})
    ranks = np.maximum(candidates.tp, candidates.ep).astype(np.int64)
    sizes, tp_code = np.unique(ranks, return_inverse=True)
    cards = sorted({a.key for a in candidates.accelerators})
    by_accelerator = np.array(
        [
            (chips.index(chip_key(a)), forms.index(a.form_factor), cards.index(a.key), POWER.index(power_class(a)))
            for a in candidates.accelerators
        ]
    )
    by_engine = np.array([(engines.index(engine), eras.index(era)) for engine, era in candidates.engines])
    mode = np.zeros(candidates.size, dtype=np.int64) if candidates.mode is None else candidates.mode
    return Keys(
        codes={
            "engine": by_engine[candidates.engine, 0],
            "era": by_engine[candidates.engine, 1],
            "build": np.where(candidates.development, BUILDS.index("development"), BUILDS.index("release"))
            * np.ones(candidates.size, dtype=np.int64),
            "chip": by_accelerator[candidates.accelerator, 0],
            "form": by_accelerator[candidates.accelerator, 1],
            "card": by_accelerator[candidates.accelerator, 2],
            "power": by_accelerator[candidates.accelerator, 3],
            "format": candidates.weight_format,
            "kind": np.zeros(candidates.size, dtype=np.int64),
            "tp": tp_code,
            "link": np.where(ranks > 1, candidates.topology.link_class, LINK_CLASSES.index("none")),
            "mode": mode,
            "experts": _expert_layout(arch, candidates),
        },
        vocabularies={
            "engine": engines,
            "era": eras,
            "build": BUILDS,
            "chip": chips,
            "form": forms,
            "card": cards,
            "power": POWER,
            "format": [_format_class(arch, name) for name in candidates.weight_formats],
            "kind": [model_kind(arch)],
            "tp": [str(size) for size in sizes.tolist()],
            "link": LINK_CLASSES,
            "mode": MODES,
            "experts": EXPERT_LAYOUTS,
        },
    )


def _expert_layout(arch: ModelArch, candidates: ServingCandidates) -> IntArray:
    """Index into ``EXPERT_LAYOUTS``."""
    if not any(group.kind == "moe" for group in arch.ffn):
        return np.zeros(candidates.size, dtype=np.int64)
    return np.where(candidates.ep > 1, EXPERT_LAYOUTS.index("whole"), EXPERT_LAYOUTS.index("sliced"))


def _format_class(arch: ModelArch, name: str) -> str:
    name = arch.native_format if name == "auto" else name
    return {"fp16": "bf16", "gptq_int4": "awq_int4", "int4_g32": "awq_int4"}.get(name, name)


def topology_of(link: str, link_bytes_s: float, domain_gpus: int, network_bytes_s: float, size: int) -> Topology:
    """The same topology for ``size`` candidates."""
    return Topology(
        link_class=np.full(size, LINK_CLASSES.index(link)),
        link_bytes_s=np.full(size, link_bytes_s),
        domain_gpus=np.full(size, domain_gpus),
        network_bytes_s=np.full(size, network_bytes_s),
    )
