"""Models, layouts and constants that the training tests share."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner.engine.training.candidates import RECOMPUTE, SHARDING, TrainingCandidates, TrainingRecipe
from planner.engine.training.constants import MemoryConstants, StepConstants

GIB = 2**30


def decoder(
    name: str, layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocab: int, **more: Any
) -> ModelArch:
    gated = more.pop("gated", True)
    attention = AttentionGroup(kind="full", layers=layers, n_q=heads, n_kv=kv_heads, head_dim=hidden // heads)
    mlp = FfnGroup(kind="dense", layers=layers, intermediate=ffn, gated=gated)
    return ModelArch(name=name, hidden=hidden, layers=layers, vocab=vocab, attention=(attention,), ffn=(mlp,), **more)


LLAMA_8B = decoder("8B", 32, 4096, 32, 8, 14336, 128256)
LLAMA_70B = decoder("70B", 80, 8192, 64, 8, 28672, 128256)
GPT3 = decoder("GPT-3", 96, 12288, 96, 96, 49152, 51200, gated=False, tied_embeddings=True)
MOE_30B = ModelArch(
    name="30B-A3B",
    hidden=2048,
    layers=48,
    vocab=151936,
    attention=(AttentionGroup(kind="full", layers=48, n_q=32, n_kv=4, head_dim=128),),
    ffn=(FfnGroup(kind="moe", layers=48, intermediate=768, experts=128, top_k=8),),
)


def recipe(**changes: Any) -> TrainingRecipe:
    values: dict[str, Any] = {
        "sequence_length": 8192.0,
        "document_tokens": 1e12,
        "global_batch": 128.0,
        "frozen_base": 0.0,
        "adapter_params": 0.0,
        "low_precision": 0.0,
        "weight_bytes": 2.0,
        "base_weight_bytes": 2.0,
        "grad_bytes": 2.0,
        "optimizer_bytes": 12.0,
        "persistent_grads": 1.0,
        "base_is_shardable": 1.0,
        "dropout": 0.0,
        "grad_comm_bytes": 2.0,
        "param_comm_bytes": 2.0,
        "flash_attention": 1.0,
        "sequence_parallel": 1.0,
        "chunked_loss": 0.0,
        "loss_parallel": 1.0,
        "keep_gathered": 0.0,
        "gather_for_stages": 0.0,
        "eager": 0.0,
        "natural_routing": 0.0,
        "mtp_modules": 0.0,
        "recompute_share": np.nan,
    }
    return TrainingRecipe(**(values | changes))


def layout(**changes: Any) -> TrainingCandidates:
    """An 8x H100 node's layout; ``sharding`` and ``recompute`` by name."""
    values: dict[str, Any] = {
        "gpus": 8.0,
        "tensor": 1.0,
        "pipeline": 1.0,
        "virtual": 1.0,
        "context": 1.0,
        "expert": 1.0,
        "expert_tensor": 1.0,
        "micro_batch": 1.0,
        "sharding": "none",
        "recompute": "none",
        "peak_flops": 989e12,
        "peak_flops_16bit": 989e12,
        "power_share": 1.0,
        "memory_bandwidth_bytes_s": 3.35e12,
        "memory_bytes": 85.52e9,
        "link_bytes_s": 450e9,
        "link_is_shared": 0.0,
        "link_domain_gpus": 8.0,
        "gpus_per_node": 8.0,
        "network_bytes_s": 50e9,
        **changes,
    }
    values["sharding"] = SHARDING[values["sharding"]]
    values["recompute"] = RECOMPUTE[values["recompute"]]
    values.setdefault("data", values["gpus"] / (values["tensor"] * values["pipeline"] * values["context"]))
    values.setdefault("shard_group", values["data"] * values["context"])
    return TrainingCandidates(**values)


def memory_constants(**changes: float) -> MemoryConstants:
    """Constants that leave the closed formulas as they are."""
    plain = {f.name: 1.0 for f in fields(MemoryConstants)}
    zero = dict.fromkeys(
        ("frozen_saving", "cast_weight_bytes", "unsharded_layers", "reserve_bytes", "fragmentation"), 0.0
    )
    return MemoryConstants(**(plain | zero | {"logits_bytes": 4.0} | changes))


def step_constants(**changes: float) -> StepConstants:
    """Plausible constants; communication is exposed in full."""
    values = {f.name: 1.0 for f in fields(StepConstants)} | {
        "gemm_efficiency": 0.7,
        "power_exponent": 0.5,
        "gemm_m0": 100.0,
        "gemm_n0": 80.0,
        "gemm_k0": 80.0,
        "expert_m0": 50.0,
        "expert_n0": 150.0,
        "attention_efficiency": 0.5,
        "attention_s0": 800.0,
        "attention_d0": 25.0,
        "score_traffic": 12.0,
        "layer_overhead_s": 4e-5,
        "moe_overhead_s": 2e-4,
        "expert_overhead_s": 2e-5,
        "step_overhead_s": 0.02,
        "selective_share": 0.2,
        "link_efficiency": 0.7,
        "link_latency_s": 8e-6,
        "network_efficiency": 0.7,
        "network_latency_s": 2e-5,
        "bucket_bytes": 2e8,
        "network_congestion": 0.03,
        "data_overlap": 0.5,
        "exposed_data": 0.2,
        "straggler": 0.003,
    }
    return StepConstants(**(values | changes))


def scalar(value: Any) -> float:
    return float(np.asarray(value))
