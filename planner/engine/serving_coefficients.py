"""Step coefficients of candidates: what the hardware's peaks allow, over the shares of them that engines reach.

``step_work`` holds the part that follows from model, hardware and layout alone, so that a fit evaluates many
sets of constants on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from planner.engine.collectives import all_reduce, all_to_all, point_to_point
from planner.engine.model_arch import ModelArch
from planner.engine.quantization import resolve_format, weight_bytes
from planner.engine.roofline import half_precision_flops, peak_flops_table
from planner.engine.serving_calibration import ServingProfiles, resolve_constants
from planner.engine.serving_candidates import MODES, ServingCandidates, candidate_keys
from planner.engine.serving_work import KV_ELEMENT_BYTES, TokenWork, kv_reads, token_work
from planner.engine.step_time import NO_GRAPHS, TERMS, StepCoefficients, decode_time, step_terms, step_time

FloatArray = NDArray[np.float64]

ACTIVATION_BYTES = 2.0
ALL_COVERED = -50.0
"""log of the share of experts that one token misses, where every token visits them all."""


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
        if isinstance(prefill_tokens, float) and prefill_tokens == 0.0:
            return decode_time(self.step, decoding, context_tokens)
        return step_time(self.step, decoding, context_tokens, prefill_tokens, pairs)

    def iteration_terms(self, decoding: Any, context_tokens: Any) -> dict[str, Any]:
        """Seconds of each part of a decode iteration, by name; the parts sum to it."""
        parts = step_terms(self.step, decoding, context_tokens, 0.0, 0.0)
        return dict(zip(TERMS, parts, strict=True))

    def carrying(self, prompts: Any, scatter_tokens: Any = 0.0) -> Self:
        """The coefficients of iterations with so many prompts: each sits on one attention rank, the others wait.

        ``scatter_tokens`` is how far iterations of that mean differ in tokens.
        """
        ranks = np.minimum(np.maximum(prompts, 1.0), self.step.attention_ranks)
        scatter = scatter_tokens / ranks + 0.0 * ranks
        return replace(self, step=self.step._replace(prompt_ranks=ranks, graph_scatter_tokens=scatter))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """Seconds of each part of an iteration at the datasheet's peaks: arrays over candidates."""

    pipeline: FloatArray
    attention_ranks: FloatArray
    dense_weights_s: FloatArray
    dense_token_s: FloatArray
    head_token_s: FloatArray
    expert_weights_s: FloatArray
    expert_token_s: FloatArray
    tile_share: FloatArray
    """One over the share of its experts that a token visits."""
    expert_miss_log: FloatArray
    context_read_s: FloatArray
    context_compute_s: FloatArray
    window_read_s: FloatArray
    window_tokens: FloatArray
    mixed_tile_s: FloatArray
    """A tile of queries over one context token, where decoding beside prompts takes one for each sequence."""
    mixed_window_tile_s: FloatArray
    state_read_s: FloatArray
    pair_s: FloatArray
    window_pair_s: FloatArray
    collective_s: FloatArray
    collective_token_s: FloatArray
    link_token_s: FloatArray
    """The bytes of all collectives of one token over the link: however good its collectives, no engine is faster."""
    layers: FloatArray
    expert_layers: FloatArray
    graph_tokens: FloatArray
    lookahead: FloatArray


def build_coefficients(
    arch: ModelArch, candidates: ServingCandidates, profiles: ServingProfiles
) -> ServingCoefficients:
    """Coefficients of every candidate: datasheet rates x the profiles' measured shares.

    Arrays of length ``n``; NaN where an accelerator has no path for a weight format.
    """
    constants = resolve_constants(profiles, candidate_keys(arch, candidates))
    return coefficients_from(step_work(arch, candidates, profiles), constants)


def step_work(arch: ModelArch, candidates: ServingCandidates, profiles: ServingProfiles) -> StepWork:
    """The work of every candidate's iterations, at datasheet peaks."""
    tp, ranks, size = candidates.tp, np.maximum(candidates.tp, candidates.ep), candidates.size
    bandwidth = np.array([a.memory_bandwidth_bytes_s for a in candidates.accelerators])[candidates.accelerator]
    half_peak = np.array([half_precision_flops(a) for a in candidates.accelerators])[candidates.accelerator]
    peaks = peak_flops_table(arch, candidates.accelerators, candidates.weight_formats)
    peak = peaks[candidates.accelerator, candidates.weight_format]
    parts = [weight_bytes(arch, name) for name in candidates.weight_formats]
    experts_bytes = np.array([part.experts for part in parts])[candidates.weight_format]
    once = np.array(
        [p.attention + p.ffn_dense + p.shared_experts + p.other + (p.lm_head or p.embedding) for p in parts]
    )
    work = token_work(arch)
    element = np.array([KV_ELEMENT_BYTES[name] for name in candidates.kv_formats])[candidates.kv_format]
    kv = kv_reads(arch, tp, element)
    latency, token_s, link_s = _collectives(arch, candidates, profiles, work)
    tile = _mixed_tile_tokens(candidates, profiles) * (0.0 if work.packs_decodes else 1.0)
    active_share = work.top_k / work.experts if work.experts else 0.0
    miss_log = float(np.log1p(-active_share)) if active_share < 1 else ALL_COVERED
    return StepWork(
        pipeline=candidates.pp,
        attention_ranks=candidates.attention_ranks,
        dense_weights_s=(once[candidates.weight_format] + _written_out(arch, candidates, profiles)) / tp / bandwidth,
        dense_token_s=work.dense_flops / tp / peak,
        head_token_s=work.head_flops / tp / peak,
        expert_weights_s=experts_bytes / ranks / bandwidth,
        expert_token_s=work.expert_flops / ranks / peak,
        tile_share=np.full(size, 1.0 / (active_share or 1.0)),
        expert_miss_log=np.full(size, miss_log),
        context_read_s=kv.full_bytes / bandwidth,
        context_compute_s=work.context_flops / tp / half_peak,
        window_read_s=kv.window_bytes / bandwidth,
        window_tokens=np.full(size, kv.window_tokens),
        mixed_tile_s=tile * work.pair_flops / tp / half_peak,
        mixed_window_tile_s=tile * work.window_pair_flops / tp / half_peak,
        state_read_s=kv.state_bytes / bandwidth,
        pair_s=work.pair_flops / tp / half_peak,
        window_pair_s=work.window_pair_flops / tp / half_peak,
        collective_s=latency,
        collective_token_s=token_s,
        link_token_s=link_s,
        layers=np.full(size, float(arch.layers)),
        expert_layers=np.full(size, float(work.expert_layers)),
        graph_tokens=_graph_tokens(candidates, profiles),
        lookahead=lookahead(candidates, profiles),
    )


def coefficients_from(work: StepWork, constants: Mapping[str, FloatArray]) -> ServingCoefficients:
    """Coefficients with the given value of every constant (arrays of length ``n``)."""
    gemm, expert, attention = (constants[f"{name}_compute"] for name in ("gemm", "expert", "attention"))
    kv = constants["kv_bandwidth"]
    bytes_s = work.collective_token_s
    context_s = np.maximum(work.context_read_s / kv, work.context_compute_s / attention)
    window_s = work.window_read_s / kv
    step = StepCoefficients(
        pipeline=work.pipeline,
        attention_ranks=work.attention_ranks,
        prompt_ranks=work.attention_ranks,
        dense_weights_s=work.dense_weights_s / constants["weight_bandwidth"],
        dense_token_s=work.dense_token_s / gemm,
        head_token_s=work.head_token_s / gemm,
        dense_tile_tokens=constants["gemm_tile_tokens"],
        expert_weights_s=work.expert_weights_s / constants["expert_bandwidth"],
        expert_token_s=work.expert_token_s / expert,
        expert_tile_tokens=constants["expert_tile_tokens"] * work.tile_share,
        expert_miss_log=constants["expert_coverage"] * work.expert_miss_log,
        context_token_s=context_s,
        window_token_s=window_s,
        window_tokens=work.window_tokens,
        mixed_context_token_s=np.maximum(work.mixed_tile_s / attention - context_s, 0.0),
        mixed_window_token_s=np.maximum(work.mixed_window_tile_s / attention - window_s, 0.0),
        state_s=work.state_read_s / kv,
        pair_s=work.pair_s / attention,
        window_pair_s=work.window_pair_s / attention,
        collective_s=work.collective_s * constants["collective_latency"],
        collective_token_s=np.maximum(
            bytes_s / constants["collective_bandwidth"], np.minimum(work.link_token_s, bytes_s)
        ),
        layers_s=constants["layer_s"] * work.layers + constants["expert_layer_s"] * work.expert_layers,
        prefill_launch_s=constants["prefill_launch_s"] * work.layers,
        graph_tokens=work.graph_tokens,
        graph_scatter_tokens=0.0 * work.graph_tokens,
        step_s=constants["step_s"],
        sequence_s=constants["sequence_s"],
    )
    return ServingCoefficients(
        step=step,
        request_s=constants["request_s"],
        cohort=constants["cohort"],
        backlog=constants["backlog"],
        lookahead=work.lookahead,
        drain=constants["drain"],
    )


def _graph_tokens(candidates: ServingCandidates, profiles: ServingProfiles) -> FloatArray:
    """Tokens of a rank's largest captured graph that holds prompts, by engine and era; none where it runs eagerly."""
    sizes, batches = [], []
    for engine, era in candidates.engines:
        settings = profiles.engines.get(engine)
        known = settings is not None and (not era or era >= settings.prompt_graphs_since)
        captured = settings is None or not era or era >= settings.graphs_since
        tokens_held = settings.prompt_graph_tokens if settings is not None and known else 0.0
        sizes.append(tokens_held if captured else NO_GRAPHS)
        batches.append(settings.graph_batches if settings is not None else np.inf)
    reach = np.asarray(batches)[candidates.engine] * candidates.max_num_seqs
    tokens: FloatArray = np.minimum(np.asarray(sizes, dtype=np.float64)[candidates.engine], reach)
    if candidates.mode is not None:
        tokens = np.where(candidates.mode == MODES.index("eager"), NO_GRAPHS, tokens)
    return tokens


def _written_out(arch: ModelArch, candidates: ServingCandidates, profiles: ServingProfiles) -> FloatArray:
    """Bytes more that an iteration moves where quantized weights are first written out in 16 bit, then read again."""
    found = np.zeros((len(candidates.engines), len(candidates.weight_formats)))
    half = weight_bytes(arch, "bf16")
    for row, (engine, era) in enumerate(candidates.engines):
        settings = profiles.engines.get(engine)
        if settings is None or not era or era >= settings.unfused_before:
            continue
        for column, name in enumerate(candidates.weight_formats):
            if resolve_format(arch, name).name in settings.unfused_formats:
                found[row, column] = 2.0 * (half.attention + half.ffn_dense + half.shared_experts)
    return found[candidates.engine, candidates.weight_format]


def _mixed_tile_tokens(candidates: ServingCandidates, profiles: ServingProfiles) -> FloatArray:
    """Queries of the tile that decodes beside prompts have to themselves, by engine, era and chip; mostly 0."""
    tiles = np.zeros((len(candidates.engines), len(candidates.accelerators)))
    for row, (engine, era) in enumerate(candidates.engines):
        settings = profiles.engines.get(engine)
        if settings is None or (era and era < settings.mixed_tile_since):
            continue
        for column, accelerator in enumerate(candidates.accelerators):
            if accelerator.compute_capability.partition(".")[0] in settings.mixed_tile_capabilities:
                tiles[row, column] = settings.mixed_tile_tokens
    return tiles[candidates.engine, candidates.accelerator]


def lookahead(candidates: ServingCandidates, profiles: ServingProfiles) -> FloatArray:
    """1 for engines that choose the next batch while one runs (from a date on), else 0; unknown dates count as new."""
    ahead = []
    for engine, era in candidates.engines:
        settings = profiles.engines.get(engine)
        since = "" if settings is None else settings.schedules_ahead_since
        ahead.append(float(bool(since) and (not era or era >= since)))
    return np.array(ahead)[candidates.engine]


def _collectives(
    arch: ModelArch, candidates: ServingCandidates, profiles: ServingProfiles, work: TokenWork
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Latency of one iteration's collectives; seconds for each of a rank's tokens, as measured and by the link."""
    laws, topology = profiles.collectives, candidates.topology
    token_bytes = ACTIVATION_BYTES * arch.hidden
    reduce_s, reduce_byte_s = all_reduce(laws, topology, candidates.tp)
    ranks = np.maximum(candidates.tp, candidates.ep)
    exchange_s, exchange_byte_s = all_to_all(laws, topology, ranks)
    hop_s, hop_byte_s = point_to_point(laws, topology, ranks, candidates.pp)
    exchanges = np.where(candidates.attention_ranks > 1, work.expert_layers, 0)
    copies = np.minimum(work.top_k, ranks)
    reductions = arch.layers * (1.0 if arch.parallel_block else 2.0)
    latency = reductions * reduce_s + 2.0 * exchanges * exchange_s + hop_s
    token_s = reductions * token_bytes * reduce_byte_s + token_bytes * hop_byte_s
    token_s = token_s + exchanges * copies * 1.5 * token_bytes * exchange_byte_s
    link_s = reductions * token_bytes * np.where(candidates.tp > 1, 1.0 / topology.link_bytes_s, 0.0)
    return latency, token_s, link_s
