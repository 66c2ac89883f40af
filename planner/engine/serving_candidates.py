"""Candidates of one model as arrays, and the step coefficients that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.engine.collectives import LINK_CLASSES, Topology, all_reduce, all_to_all, point_to_point
from planner.engine.hardware import Accelerator
from planner.engine.model_arch import AttentionGroup, ModelArch
from planner.engine.param_count import attention_params, ffn_params
from planner.engine.quantization import weight_bytes
from planner.engine.roofline import half_precision_flops, peak_flops_table
from planner.engine.serving_calibration import Keys, ServingProfiles, resolve_constants
from planner.engine.step_time import TERMS, StepCoefficients, step_terms, step_time

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

KV_ELEMENT_BYTES = {"bf16": 2.0, "fp16": 2.0, "auto": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5625, "nvfp4": 0.5625}
ACTIVATION_BYTES = 2.0
ALL_COVERED = -50.0
"""log of the share of experts that one token misses, where every token visits them all."""
MODES = ("server", "offline", "static", "eager")
"""How an engine runs: answering clients, draining a queue, fixed batches, or without captured graphs."""


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
    """(engine, era): e.g. ``("vllm", "2026H1")``; era from ``engine_era``, empty where unknown."""
    engine: IntArray
    tp: FloatArray
    pp: FloatArray
    ep: FloatArray
    topology: Topology
    mode: IntArray | None = None
    """Index into ``MODES``; None means answering clients throughout."""

    @property
    def size(self) -> int:
        return len(self.accelerator)

    @property
    def gpus_per_replica(self) -> FloatArray:
        return self.pp * np.maximum(self.tp, self.ep)

    @property
    def attention_ranks(self) -> FloatArray:
        return np.maximum(self.ep / self.tp, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCoefficients:
    """What the serving model needs of each candidate: its iteration, and what requests cost besides."""

    step: StepCoefficients
    request_s: FloatArray
    """Front end and scheduling of one request before its first token."""
    cohort: FloatArray
    """How far prompts that fit one token budget are prefilled together: 0 never, 1 always."""
    backlog: FloatArray
    """Prompts waiting before one's own, for every other resident."""
    lookahead: FloatArray
    """Iterations chosen before the one under way has ended: 1 with asynchronous scheduling, else 0."""
    drain: FloatArray
    """Time that draining a queue takes over what its iterations add up to (ramp, tail, gaps)."""

    @property
    def tokens_per_step(self) -> float:
        """Tokens a decoding sequence gains in one iteration."""
        return 1.0

    @property
    def step_tokens(self) -> float:
        """Tokens of the token budget that a decoding sequence takes in one iteration."""
        return 1.0

    def iteration_s(self, decoding: Any, context_tokens: Any, prefill_tokens: Any = 0.0, pairs: Any = 0.0) -> Any:
        """Seconds of one iteration (``step_time``), with whatever comes on top of the plain step."""
        return step_time(self.step, decoding, context_tokens, prefill_tokens, pairs)

    def iteration_terms(self, decoding: Any, context_tokens: Any) -> dict[str, Any]:
        """Seconds of each part of a decode iteration, by name; the parts sum to it."""
        parts = step_terms(self.step, decoding, context_tokens, 0.0, 0.0)
        return dict(zip(TERMS, parts, strict=True))


def engine_era(date: str) -> str:
    """The half-year of an ISO date (or year-month); empty where it isn't known.

    >>> engine_era("2026-04-22"), engine_era("2025")
    ('2026H1', '')
    """
    if len(date) < 7:
        return ""
    return f"{date[:4]}H{1 if int(date[5:7]) <= 6 else 2}"


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


def candidate_keys(arch: ModelArch, candidates: ServingCandidates) -> Keys:
    """The calibration attributes of each candidate."""
    chips = sorted({chip_key(a) for a in candidates.accelerators})
    forms = sorted({a.form_factor for a in candidates.accelerators})
    engines = sorted({engine for engine, _ in candidates.engines})
    eras = sorted({era for _, era in candidates.engines})
    ranks = np.maximum(candidates.tp, candidates.ep).astype(np.int64)
    sizes, tp_code = np.unique(ranks, return_inverse=True)
    by_accelerator = np.array([(chips.index(chip_key(a)), forms.index(a.form_factor)) for a in candidates.accelerators])
    by_engine = np.array([(engines.index(engine), eras.index(era)) for engine, era in candidates.engines])
    mode = np.zeros(candidates.size, dtype=np.int64) if candidates.mode is None else candidates.mode
    return Keys(
        codes={
            "engine": by_engine[candidates.engine, 0],
            "era": by_engine[candidates.engine, 1],
            "chip": by_accelerator[candidates.accelerator, 0],
            "form": by_accelerator[candidates.accelerator, 1],
            "format": candidates.weight_format,
            "kind": np.zeros(candidates.size, dtype=np.int64),
            "tp": tp_code,
            "link": np.where(ranks > 1, candidates.topology.link_class, LINK_CLASSES.index("none")),
            "mode": mode,
        },
        vocabularies={
            "engine": engines,
            "era": eras,
            "chip": chips,
            "form": forms,
            "format": [_format_class(arch, name) for name in candidates.weight_formats],
            "kind": [model_kind(arch)],
            "tp": [str(size) for size in sizes.tolist()],
            "link": LINK_CLASSES,
            "mode": MODES,
        },
    )


def _format_class(arch: ModelArch, name: str) -> str:
    name = arch.native_format if name == "auto" else name
    return {"fp16": "bf16", "gptq_int4": "awq_int4", "int4_g32": "awq_int4"}.get(name, name)


def build_coefficients(
    arch: ModelArch, candidates: ServingCandidates, profiles: ServingProfiles
) -> ServingCoefficients:
    """Coefficients of every candidate: datasheet rates x the profiles' measured shares.

    Arrays of length ``n``; NaN where an accelerator has no path for a weight format.
    """
    constants = resolve_constants(profiles, candidate_keys(arch, candidates))
    return coefficients_from(arch, candidates, profiles, constants)


def coefficients_from(
    arch: ModelArch, candidates: ServingCandidates, profiles: ServingProfiles, constants: dict[str, FloatArray]
) -> ServingCoefficients:
    """Coefficients with the given value of every constant (arrays of length ``n``)."""
    tp, ranks = candidates.tp, np.maximum(candidates.tp, candidates.ep)
    bandwidth = np.array([a.memory_bandwidth_bytes_s for a in candidates.accelerators])[candidates.accelerator]
    half_peak = np.array([half_precision_flops(a) for a in candidates.accelerators])[candidates.accelerator]
    peaks = peak_flops_table(arch, candidates.accelerators, candidates.weight_formats)
    peak = peaks[candidates.accelerator, candidates.weight_format]
    parts = [weight_bytes(arch, name) for name in candidates.weight_formats]
    experts_bytes = np.array([part.experts for part in parts])[candidates.weight_format]
    once = np.array(
        [p.attention + p.ffn_dense + p.shared_experts + p.other + (p.lm_head or p.embedding) for p in parts]
    )
    dense_bytes = once[candidates.weight_format]
    work = token_work(arch)
    weight_rate = constants["weight_bandwidth"] * bandwidth
    gemm_rate = constants["gemm_compute"] * peak
    expert_rate = constants["expert_compute"] * peak
    kv = kv_reads(arch, candidates)
    kv_rate = constants["kv_bandwidth"] * bandwidth
    attention_rate = constants["attention_compute"] * half_peak
    collective_s, collective_token_s = _collectives(arch, candidates, profiles, constants)
    active_share = work.top_k / work.experts if work.experts else 0.0
    step = StepCoefficients(
        pipeline=candidates.pp,
        attention_ranks=candidates.attention_ranks,
        dense_weights_s=dense_bytes / tp / weight_rate,
        dense_token_s=work.dense_flops / tp / gemm_rate,
        head_token_s=work.head_flops / tp / gemm_rate,
        dense_tile_tokens=constants["gemm_tile_tokens"],
        expert_weights_s=experts_bytes / ranks / (constants["expert_bandwidth"] * bandwidth),
        expert_token_s=work.expert_flops / ranks / expert_rate,
        expert_tile_tokens=constants["expert_tile_tokens"] / (active_share or 1.0),
        expert_miss_log=constants["expert_coverage"] * (np.log1p(-active_share) if active_share < 1 else ALL_COVERED),
        context_token_s=np.maximum(kv.full_bytes / kv_rate, work.context_flops / tp / attention_rate),
        window_token_s=kv.window_bytes / kv_rate,
        window_tokens=np.full(candidates.size, kv.window_tokens),
        state_s=kv.state_bytes / kv_rate,
        pair_s=work.pair_flops / tp / attention_rate,
        window_pair_s=work.window_pair_flops / tp / attention_rate,
        collective_s=collective_s,
        collective_token_s=collective_token_s,
        layers_s=constants["layer_s"] * arch.layers + constants["expert_layer_s"] * work.expert_layers,
        prefill_launch_s=constants["prefill_launch_s"] * arch.layers,
        step_s=constants["step_s"],
        sequence_s=constants["sequence_s"],
    )
    return ServingCoefficients(
        step=step,
        request_s=constants["request_s"],
        cohort=constants["cohort"],
        backlog=constants["backlog"],
        lookahead=lookahead(candidates, profiles),
        drain=constants["drain"],
    )


def lookahead(candidates: ServingCandidates, profiles: ServingProfiles) -> FloatArray:
    """1 for engines that choose the next batch while one runs (from a date on), else 0; unknown dates count as new."""
    ahead = []
    for engine, era in candidates.engines:
        settings = profiles.engines.get(engine)
        since = "" if settings is None else settings.schedules_ahead_since
        ahead.append(float(bool(since) and (not era or era >= since)))
    return np.array(ahead)[candidates.engine]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenWork:
    """FLOPs of the whole model, one token."""

    dense_flops: float
    head_flops: float
    expert_flops: float
    """Of the ``top_k`` experts it visits."""
    experts: float
    top_k: float
    expert_layers: int
    context_flops: float
    """One context token attended while decoding, where that exceeds reading it (latent attention)."""
    pair_flops: float
    """One (prompt token, earlier token) pair, full-attention layers."""
    window_pair_flops: float


def token_work(arch: ModelArch) -> TokenWork:
    """FLOPs of one token: two a multiply-accumulate, attention apart."""
    dense = sum(attention_params(arch, group).total * group.layers for group in arch.attention)
    expert = experts = top_k = 0.0
    expert_layers = 0
    for group in arch.ffn:
        params = ffn_params(arch, group)
        dense += (params.dense + params.shared + params.router + params.extra) * group.layers
        if group.kind == "moe":
            expert += params.expert * group.top_k * group.layers
            experts, top_k = max(experts, group.experts), max(top_k, group.top_k)
            expert_layers += group.layers
    pairs = [(group, _pair_flops(group) * group.layers) for group in arch.attention]
    return TokenWork(
        dense_flops=2.0 * dense,
        head_flops=2.0 * arch.vocab * arch.hidden,
        expert_flops=2.0 * expert,
        experts=experts,
        top_k=top_k,
        expert_layers=expert_layers,
        context_flops=sum(
            2.0 * g.n_q * (2 * g.kv_lora_rank + g.rope_dim) * g.layers
            for g in arch.attention
            if g.kind == "mla" and not g.sparse_top_k
        ),
        pair_flops=sum(flops for group, flops in pairs if not _window(group)),
        window_pair_flops=sum(flops for group, flops in pairs if _window(group)),
    )


def _window(group: AttentionGroup) -> int:
    """Tokens a query looks at, at most; 0 means all."""
    return group.window or group.sparse_top_k


def _pair_flops(group: AttentionGroup) -> float:
    if group.kind == "mla":
        return 2.0 * group.n_q * (group.nope_dim + group.rope_dim + (group.v_head_dim or group.nope_dim))
    if group.kind in ("full", "sliding"):
        return 2.0 * group.n_q * (group.head_dim + (group.v_head_dim or group.head_dim))
    return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KvReads:
    """Bytes one rank reads while decoding, of all its layers: arrays over candidates."""

    full_bytes: FloatArray
    """One context token, layers that read the whole context."""
    window_bytes: FloatArray
    window_tokens: float
    state_bytes: FloatArray
    """One sequence's recurrent state, read and written."""


def kv_reads(arch: ModelArch, candidates: ServingCandidates) -> KvReads:
    """What one rank reads of the KV cache while decoding: heads split over ``tp``, latents replicated."""
    element = np.array([KV_ELEMENT_BYTES[name] for name in candidates.kv_formats])[candidates.kv_format]
    full = np.zeros(candidates.size)
    windowed = np.zeros(candidates.size)
    state = np.zeros(candidates.size)
    window = 0.0
    for group in arch.attention:
        if group.kind == "linear":
            state += 2.0 * group.layers * (group.state_elems * 4.0) / candidates.tp
            continue
        if group.kind == "none":
            continue
        per_token = _kv_elements(group, candidates.tp) * group.layers * element
        index = group.index_elems * group.layers * element
        full += index + 0.0 * per_token
        if _window(group):
            windowed += per_token
            window = max(window, float(_window(group)))
        else:
            full += per_token
    return KvReads(full_bytes=full, window_bytes=windowed, window_tokens=window, state_bytes=state)


def _kv_elements(group: AttentionGroup, tp: FloatArray) -> FloatArray:
    if group.kind == "mla":
        return np.full_like(tp, group.kv_lora_rank + group.rope_dim)
    heads = np.maximum(group.n_kv / tp, 1.0)
    return heads * (group.head_dim + (group.v_head_dim or group.head_dim))


def _collectives(
    arch: ModelArch, candidates: ServingCandidates, profiles: ServingProfiles, constants: dict[str, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Latency of one iteration's collectives, and seconds for each of a rank's tokens."""
    laws, topology = profiles.collectives, candidates.topology
    token_bytes = ACTIVATION_BYTES * arch.hidden
    reduce_s, reduce_byte_s = all_reduce(laws, topology, candidates.tp)
    ranks = np.maximum(candidates.tp, candidates.ep)
    exchange_s, exchange_byte_s = all_to_all(laws, topology, ranks)
    hop_s, hop_byte_s = point_to_point(laws, topology, ranks, candidates.pp)
    work = token_work(arch)
    exchanges = np.where(candidates.attention_ranks > 1, work.expert_layers, 0)
    copies = np.minimum(work.top_k, ranks)
    latency = 2.0 * arch.layers * reduce_s + 2.0 * exchanges * exchange_s + hop_s
    token_s = 2.0 * arch.layers * token_bytes * reduce_byte_s + token_bytes * hop_byte_s
    token_s = token_s + exchanges * copies * 1.5 * token_bytes * exchange_byte_s
    # However good its collectives, an engine moves no byte faster than the link.
    floor_s = 2.0 * arch.layers * token_bytes * np.where(candidates.tp > 1, 1.0 / topology.link_bytes_s, 0.0)
    token_s = np.maximum(token_s / constants["collective_bandwidth"], np.minimum(floor_s, token_s))
    return latency * constants["collective_latency"], token_s


def topology_of(link: str, link_bytes_s: float, domain_gpus: int, network_bytes_s: float, size: int) -> Topology:
    """The same topology for ``size`` candidates."""
    return Topology(
        link_class=np.full(size, LINK_CLASSES.index(link)),
        link_bytes_s=np.full(size, link_bytes_s),
        domain_gpus=np.full(size, domain_gpus),
        network_bytes_s=np.full(size, network_bytes_s),
    )
