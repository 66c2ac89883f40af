"""Models, accelerators and candidates for the serving tests."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from planner.engine.collectives import LINK_CLASSES, Topology
from planner.engine.hardware import Accelerator
from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner.engine.serving_candidates import ServingCandidates

LLAMA_8B = ModelArch(
    name="llama-8b",
    hidden=4096,
    layers=32,
    vocab=128256,
    attention=(AttentionGroup(kind="full", layers=32, n_q=32, n_kv=8, head_dim=128),),
    ffn=(FfnGroup(kind="dense", layers=32, intermediate=14336),),
)
QWEN_30B_A3B = ModelArch(
    name="qwen3-30b-a3b",
    hidden=2048,
    layers=48,
    vocab=151936,
    attention=(AttentionGroup(kind="full", layers=48, n_q=32, n_kv=4, head_dim=128, qk_norm=True),),
    ffn=(FfnGroup(kind="moe", layers=48, intermediate=768, experts=128, top_k=8),),
)


def accelerator(**changes: Any) -> Accelerator:
    values: dict[str, Any] = {
        "key": "hopper",
        "name": "Hopper",
        "vendor": "NVIDIA",
        "generation": "Hopper",
        "form_factor": "SXM",
        "memory_bytes": 85_520_809_984,
        "memory_bandwidth_bytes_s": 3.35e12,
        "peak_flops": {"bf16": 989e12, "fp16": 989e12, "fp8": 1979e12},
        "link": "NVLink4",
        "link_bytes_s": 450e9,
        "scaleup_domain_gpus": 8,
        "pcie_gen": 5,
        "sm_count": 132,
        "tdp_w": 700.0,
        "compute_capability": "9.0",
        "confidence": "high",
        "source": "test",
        "as_of": date(2026, 1, 1),
    }
    return Accelerator(**(values | changes))


def candidates(
    tp: Sequence[int] = (1,),
    *,
    pp: int = 1,
    ep: int = 1,
    accelerators: Sequence[Accelerator] | None = None,
    weight_format: str = "bf16",
    kv_format: str = "bf16",
    link: str = "nvlink",
) -> ServingCandidates:
    n = len(tp)
    accelerators = accelerators or (accelerator(),) * n
    link_bytes_s = {"nvlink": 450e9, "pcie": 32e9}[link]
    return ServingCandidates(
        accelerators=tuple(accelerators),
        accelerator=np.arange(n),
        weight_formats=(weight_format,),
        weight_format=np.zeros(n, dtype=np.int64),
        kv_formats=(kv_format,),
        kv_format=np.zeros(n, dtype=np.int64),
        engines=(("vllm", "2026Q1"),),
        engine=np.zeros(n, dtype=np.int64),
        tp=np.asarray(tp, dtype=np.float64),
        pp=np.full(n, float(pp)),
        ep=np.full(n, float(ep)),
        topology=Topology(
            link_class=np.full(n, LINK_CLASSES.index(link)),
            link_bytes_s=np.full(n, link_bytes_s),
            domain_gpus=np.full(n, 8),
            network_bytes_s=np.full(n, 50e9),
        ),
    )
