"""Recipes: what a method and an optimizer keep and move for each parameter, and FLOPs by convention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, Literal

import numpy as np

from planner.engine.training.candidates import Num, TrainingRecipe
from planner.engine.training.profile import FrameworkProfile
from planner.engine.training.work import ModelWork

OPTIMIZER_BYTES: Final = {
    "adamw_fp32": 12.0,
    "adamw_bf16": 4.0,
    "adamw_8bit": 6.0,
    "adamw_8bit_no_master": 2.0,
    "sgd_momentum": 8.0,
    "muon": 8.0,
}
"""Bytes a parameter beside 16-bit weights and gradients: an fp32 master (4) and fp32 moments (4 each;
AdamW two, SGD and Muon one), 8-bit moments (1 each), or 16-bit moments and no master (2 each).
ZeRO (arXiv 1910.02054) table 1; 8-bit Adam (arXiv 2110.02861)."""
MASTER_BYTES: Final = 4.0
WITHOUT_MASTER: Final = frozenset({"adamw_bf16", "adamw_8bit_no_master"})
QLORA_BASE_BYTES: Final = 4.127 / 8
"""NF4 with double quantization: 4.127 bits a parameter (arXiv 2305.14314)."""
LOW_PRECISION: Final = frozenset({"fp8", "mxfp8", "nvfp4"})
PEAK_FORMAT: Final = {"bf16": "bf16", "fp16": "fp16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
"""Whose dense peak a recipe's matrix multiplications run against."""
FROZEN_METHODS: Final = frozenset({"lora", "qlora"})

GRADIENT_BYTES: Final = {"none": 2.0, "8bit": 1.0, "1bit": 2.0 / 16.0}
"""Bytes of one gradient as data-parallel ranks exchange it: 16 bit, 8 bit, or signs with error feedback
(1-bit Adam, arXiv 2102.02888)."""
MUON_STEPS: Final = 5
"""Newton-Schulz iterations of one update, each at most 6 x the shorter side FLOPs a parameter (Jordan, 2024)."""
NATURAL_IMBALANCE: Final = 1.3
"""Tokens of the busiest expert rank over the mean where experts are balanced by an auxiliary loss (handbook 4.5)."""

Convention = Literal["non_causal", "causal", "no_attention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeSpec:
    """A recipe in words; ``recipe`` turns it into numbers."""

    method: str = "pretrain"
    precision: str = "bf16"
    optimizer: str = "adamw_fp32"
    sequence_length: int
    global_batch: float
    lora_rank: int = 16
    document_tokens: float = 1e12
    year: float = 2026.5
    chunked_loss: bool = False
    dropout: bool = False
    eager: bool = False
    natural_routing: bool = False
    mtp_modules: int = 0
    recompute_share: float | None = None
    sequence_parallel: bool | None = None
    """None: as the framework does."""
    flash_attention: bool | None = None
    grad_bytes: float | None = None
    offload: str = "none"
    """What the host keeps: none, optimizer, states (weights and gradients too)."""
    gradient_compression: str = "none"
    """A ``GRADIENT_BYTES`` name."""


def recipe(spec: RecipeSpec, work: ModelWork, framework: FrameworkProfile) -> TrainingRecipe:
    """Numbers of a recipe in a framework: bytes a parameter, formats, switches."""
    frozen = spec.method in FROZEN_METHODS
    weights, grads, states = state_bytes(spec.optimizer, framework)
    flash = spec.year >= framework.flash_attention_since if spec.flash_attention is None else spec.flash_attention
    sequence = framework.sequence_parallel if spec.sequence_parallel is None else spec.sequence_parallel
    widths = work.column_k + work.column_n + work.row_k + work.row_n
    return TrainingRecipe(
        sequence_length=float(spec.sequence_length),
        document_tokens=spec.document_tokens,
        global_batch=spec.global_batch,
        frozen_base=float(frozen),
        adapter_params=spec.lora_rank * widths if frozen else 0.0,
        low_precision=float(spec.precision in LOW_PRECISION),
        weight_bytes=weights,
        base_weight_bytes=base_bytes(spec, framework),
        grad_bytes=grads if spec.grad_bytes is None else spec.grad_bytes,
        optimizer_bytes=states,
        grad_comm_bytes=GRADIENT_BYTES[spec.gradient_compression],
        param_comm_bytes=2.0,
        persistent_grads=float(framework.persistent_grads),
        base_is_shardable=float(spec.method != "qlora"),
        dropout=float(spec.dropout),
        flash_attention=float(flash),
        sequence_parallel=float(sequence),
        chunked_loss=float(spec.chunked_loss),
        loss_parallel=float(framework.loss_parallel),
        keep_gathered=float(framework.keep_gathered),
        gather_for_stages=float(framework.gather_for_stages),
        eager=float(spec.eager),
        natural_routing=float(spec.natural_routing),
        mtp_modules=float(spec.mtp_modules),
        recompute_share=np.nan if spec.recompute_share is None else spec.recompute_share,
        offload_optimizer=float(spec.offload != "none"),
        offload_weights=float(spec.offload == "states"),
        update_flops_per_param=6.0 * MUON_STEPS * float(work.hidden) if spec.optimizer == "muon" else 0.0,
        expert_imbalance=NATURAL_IMBALANCE if spec.natural_routing else 1.0,
    )


def is_eager(method: str, framework: FrameworkProfile) -> bool:
    """Whether norms, gates and rotations run as separate operations that keep their results, as the framework does."""
    return not (framework.compiled_adapters if method in FROZEN_METHODS else framework.compiled)


def base_bytes(spec: RecipeSpec, framework: FrameworkProfile) -> float:
    """Bytes a parameter of a frozen base: NF4 for QLoRA, 8 bit where the framework keeps no 16-bit copy."""
    if spec.method == "qlora":
        return QLORA_BASE_BYTES
    return 1.0 if framework.low_precision_frozen_base and spec.precision in LOW_PRECISION else 2.0


def stack_recipes(recipes: Sequence[TrainingRecipe]) -> TrainingRecipe:
    """Many recipes as one value whose fields are arrays, one entry each, in order."""
    return TrainingRecipe(
        **{f.name: np.array([getattr(r, f.name) for r in recipes], dtype=np.float64) for f in fields(TrainingRecipe)}
    )


def state_bytes(optimizer: str, framework: FrameworkProfile) -> tuple[float, float, float]:
    """(weights, gradients, optimizer) bytes a parameter.

    Frameworks that shard the fp32 master as their weights keep 4 + 4 + moments; the rest keep 16-bit
    weights beside the master. Without a master (16-bit states) both keep 2 + 2 + 4.
    """
    total = OPTIMIZER_BYTES[optimizer]
    if optimizer in WITHOUT_MASTER:
        return 2.0, 2.0, total
    if framework.master_weights_sharded:
        return MASTER_BYTES, MASTER_BYTES, total - MASTER_BYTES
    return 2.0, framework.grad_bytes, total


def model_flops_per_token(work: ModelWork, sequence_length: Num, convention: Convention = "causal") -> Num:
    """Training FLOPs of one token with all weights trained: three forward passes, no recomputation.

    ``causal`` counts the half of the attention scores that exist, ``non_causal`` all of them (most
    published MFU), ``no_attention`` none. A frozen base takes 2/3 of it: no weight gradients.

    >>> from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
    >>> from planner.engine.training.work import model_work
    >>> llama = ModelArch(name="8B", hidden=4096, layers=32, vocab=128256,
    ...     attention=(AttentionGroup(kind="full", layers=32, n_q=32, n_kv=8, head_dim=128),),
    ...     ffn=(FfnGroup(kind="dense", layers=32, intermediate=14336),))
    >>> [round(float(model_flops_per_token(model_work(llama), 8192, c)) / 1e9, 2) for c in ("causal", "non_causal")]
    [51.47, 57.91]
    """
    matrices = 2.0 * (work.dense_nk + work.active_expert_nk + work.params_embedding)
    window = np.minimum(work.window, sequence_length)
    attention = work.score_full * sequence_length + work.score_window * window
    share = {"causal": 0.5, "non_causal": 1.0, "no_attention": 0.0}[convention]
    return 3.0 * (matrices + share * attention)
