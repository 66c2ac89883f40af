"""GPU memory of a serving engine: the budget identity, part by part, for arrays of layouts.

``utilization x capacity = weights + activation peak + non-torch + CUDA graphs + KV pool`` (vLLM's
profiler; other engines differ in which parts the budget covers). Constants arrive as a
``ServingMemoryProfile``: data with a source and a date, never code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.engine.kv_cache import DEFAULT_ALLOCATOR, Allocator
from planner.engine.model_arch import ModelArch
from planner.engine.quantization import resolve_format
from planner.engine.weight_sharding import NO_PADDING, ExpertPadding, weight_bytes_per_gpu

Floats = NDArray[np.float64]

ACTIVATION_BYTES = 2
"""Activations are 16 bit whatever the weights are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolErrors:
    """How KV pools of start-up logs compare with those predicted without them: logged over predicted."""

    logs: int
    low: float
    high: float
    own: bool
    """Of the engine itself; else of the one that has logs, at its extremes."""


NO_POOL_ERRORS = PoolErrors(logs=0, low=0.0, high=float("inf"), own=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemoryProfile:
    """What one engine, from one version on, takes beside weights and KV cache."""

    engine: str
    version: str
    """First version it holds for."""
    driver_reserved_bytes: float
    """Driver-visible minus framework-visible memory."""
    non_torch_bytes: float
    """Context, libraries and workspaces outside the allocator on a GPU that works alone."""
    non_torch_tensor_parallel_bytes: float
    """The same where tensor ranks communicate."""
    activation_bytes_per_logit: float
    """Peak of sampling: bytes x max_num_seqs x vocabulary."""
    activation_ffn_widths: float
    """Peak of a block: this many MLP intermediates ..."""
    activation_hidden_widths: float
    """... and this many hidden states a batched token."""
    expert_workspace: bool
    """Fused-expert workspaces stay allocated beside the peak."""
    encoder_activation_bytes: float
    """Added where the model has a vision or audio tower."""
    graph_bytes_per_layer: float
    """CUDA graphs as captured."""
    budgeted_graph_bytes_per_layer: float
    """CUDA graphs as estimated and taken from the budget; 0 where they come on top."""
    activation_in_budget: bool
    """False: the utilization covers weights and KV cache only."""
    logs_concurrency_tokens: bool
    """The token line is concurrency x max_model_len rather than blocks x block size."""
    allocator: Allocator = DEFAULT_ALLOCATOR
    pool: PoolErrors = NO_POOL_ERRORS
    expert_padding: Mapping[str, ExpertPadding] = field(default_factory=dict)
    """How the loader pads expert matrices, by weight format; a format that isn't there is not padded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Bytes on the fullest GPU, arrays over layouts.

    ``weights + resident + activation_peak + non_torch + cuda_graphs + kv_pool`` equal ``budget`` (parts that the
    engine does not budget are 0 there and in ``unbudgeted``). ``kv_pool`` is negative where the model
    does not fit, by how much it misses.
    """

    capacity: Floats
    """What the framework sees."""
    driver: Floats
    """Kept by the driver: with ``capacity`` all that the card has."""
    budget: Floats
    """utilization x capacity, or what comes on top leaves of the capacity, where that is less."""
    weights: Floats
    resident: Floats
    """Beside the model's weights: a draft model, adapter slots, copies of experts."""
    activation_peak: Floats
    non_torch: Floats
    cuda_graphs: Floats
    kv_pool: Floats
    unbudgeted: Floats
    """Activations or graphs that come on top of the budget; they always find room beside it."""
    fits: NDArray[np.bool_]
    """The KV pool is positive."""

    def is_lowered(self, utilization: float) -> NDArray[np.bool_]:
        """Where the budget is less than the share asked for, so that what comes on top finds room."""
        return np.asarray(self.budget < utilization * self.capacity)


def serving_memory(
    arch: ModelArch,
    *,
    profile: ServingMemoryProfile,
    weight_format: str,
    memory_bytes: ArrayLike,
    utilization: ArrayLike,
    tp: ArrayLike,
    pp: ArrayLike,
    ep: ArrayLike,
    max_num_batched_tokens: ArrayLike,
    max_num_seqs: ArrayLike,
    padding: ExpertPadding | None = None,
    resident_bytes: ArrayLike = 0.0,
) -> ServingMemory:
    """Split a GPU's memory for serving ``arch``, for arrays of hardware and layouts (broadcast together).

    ``memory_bytes`` is driver-visible. The KV pool is what the budget leaves:
    ``min(utilization x (memory - driver), memory - driver - on top) - weights - resident - activations - non-torch
    - graphs``. An engine that takes its share first and captures graphs after it dies of a share too large for both:
    it is planned with the largest that leaves them room.
    """
    given = (memory_bytes, utilization, tp, pp, ep, max_num_batched_tokens, max_num_seqs)
    arrays = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in given))
    memory, share, tp_, pp_, ep_, tokens, seqs = arrays
    capacity = memory - profile.driver_reserved_bytes
    if padding is None:
        padding = profile.expert_padding.get(resolve_format(arch, weight_format).name, NO_PADDING)
    weights = weight_bytes_per_gpu(arch, weight_format, tp_, pp_, ep_, padding=padding)
    activation = activation_peak_bytes(arch, profile, tp_, ep_, tokens, seqs)
    non_torch = np.where(tp_ > 1, profile.non_torch_tensor_parallel_bytes, profile.non_torch_bytes)
    layers = np.ceil(arch.layers / pp_)
    graphs = profile.budgeted_graph_bytes_per_layer * layers
    on_top = np.zeros_like(capacity) if graphs.any() else profile.graph_bytes_per_layer * layers
    if not profile.activation_in_budget:
        on_top = on_top + activation + non_torch
        activation, non_torch = np.zeros_like(capacity), np.zeros_like(capacity)
    budget = np.minimum(share * capacity, capacity - on_top)
    resident = np.asarray(resident_bytes, dtype=np.float64) + np.zeros_like(capacity)
    pool = budget - weights - resident - activation - non_torch - graphs
    return ServingMemory(
        capacity=capacity,
        driver=memory - capacity,
        budget=budget,
        weights=weights,
        resident=resident,
        activation_peak=activation,
        non_torch=non_torch,
        cuda_graphs=graphs,
        kv_pool=pool,
        unbudgeted=on_top,
        fits=pool > 0,
    )


def activation_peak_bytes(
    arch: ModelArch, profile: ServingMemoryProfile, tp: Floats, ep: Floats, tokens: Floats, seqs: Floats
) -> Floats:
    """Peak of activations in the engine's profiling run.

    The larger of a block's (``tokens x (widths x f/tp + widths x hidden) x 2``) and sampling's
    (``seqs x vocabulary x bytes + tokens x hidden x 2``), plus expert workspaces
    ``tokens x top_k x (max(2 f_e/tp, h) + max(f_e/tp, h)) x 2``.
    """
    hidden = arch.hidden
    widest = max((group.intermediate for group in arch.ffn if group.kind == "dense"), default=0)
    widest = max(widest, max((group.shared_intermediate for group in arch.ffn), default=0))
    block = profile.activation_ffn_widths * widest / tp + profile.activation_hidden_widths * hidden
    forward = tokens * block * ACTIVATION_BYTES
    sampling = seqs * arch.vocab * profile.activation_bytes_per_logit + tokens * hidden * ACTIVATION_BYTES
    peak = np.maximum(forward, sampling)
    if arch.encoder_params:
        peak = peak + profile.encoder_activation_bytes
    if profile.expert_workspace:
        peak = peak + _expert_workspace_bytes(arch, tp, ep, tokens)
    return peak


def _expert_workspace_bytes(arch: ModelArch, tp: Floats, ep: Floats, tokens: Floats) -> Floats:
    """Intermediates of the fused-expert kernel: one of the up projections, one of the down projection."""
    workspace = np.zeros_like(tp)
    for group in arch.ffn:
        if group.kind != "moe":
            continue
        width = group.intermediate * ep / np.maximum(tp, ep)
        hidden = float(group.expert_hidden or arch.hidden)
        widths = np.maximum((2 if group.gated else 1) * width, hidden) + np.maximum(width, hidden)
        workspace = np.maximum(workspace, tokens * group.top_k * widths * ACTIVATION_BYTES)
    return workspace
