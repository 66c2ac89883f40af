"""One training run as the engine takes it: model, recipe, layout, hardware, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.engine.hardware import Accelerator
from planner.engine.model_arch import ModelArch
from planner.engine.training.candidates import RECOMPUTE, SHARDING, TrainingCandidates, TrainingRecipe
from planner.engine.training.memory import training_memory
from planner.engine.training.profile import Context, TrainingProfiles, memory_constants
from planner.engine.training.recipe import FROZEN_METHODS, PEAK_FORMAT, RecipeSpec, recipe, stack_recipes
from planner.engine.training.work import ModelWork, model_work, stack_work

RACK_SCALE_DOMAIN = 16
"""A scale-up domain larger than this spans several nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase:
    """A run's inputs, read and completed; ``assumptions`` says what was filled in."""

    arch: ModelArch
    accelerator: Accelerator
    memory_bytes: float
    power_share: float
    """Power limit over the accelerator's nominal."""
    gpus_per_node: float
    link_domain_gpus: float
    network_bytes_s: float
    framework: str
    year: float
    precision: str
    method: str
    optimizer: str
    sequence_length: int
    document_tokens: float
    global_batch: float
    micro_batch: float
    gpus: float
    tensor: float
    pipeline: float
    virtual: float
    context: float
    expert: float
    expert_tensor: float
    data: float
    sharding: str
    shard_group: float
    recompute: str
    """none, selective, full; auto: the least that fits."""
    sequence_parallel: bool | None
    flash_attention: bool | None
    chunked_loss: bool
    natural_routing: bool
    mtp_modules: int
    recompute_modules: str
    """Module names that selective recomputation repeats, joined by +; blank: the framework's usual."""
    fused: bool
    async_tensor: bool
    dropout: bool
    grad_bytes: float | None
    lora_rank: int
    offload: str
    """What the host keeps: none, optimizer, states."""
    memory_measure: str
    assumptions: tuple[str, ...] = ()


def context_of(case: TrainingCase, profiles: TrainingProfiles) -> Context:
    """What the constants of this case depend on."""
    return Context(
        framework=case.framework,
        family=profiles.frameworks[case.framework].family,
        generation=case.accelerator.generation,
        precision="bf16" if case.precision == "fp16" else case.precision,
        kind="moe" if any(group.kind == "moe" for group in case.arch.ffn) else "dense",
        measure=case.memory_measure,
        year=case.year,
        trains_adapters=is_frozen(case),
        fusion="fused" if case.fused else "eager",
        async_tensor="yes" if case.async_tensor else "no",
        messages="bucketed" if profiles.frameworks[case.framework].buckets_messages else "single",
        accelerator=case.accelerator.key,
        architecture=profiles.architectures.get(case.accelerator.generation, case.accelerator.generation),
    )


SMALL_MODULE_SHARE = {"core_attn": 0.08, "layernorm": 0.03, "moe_act": 0.03, "mla_up_proj": 0.05}
"""Share of a forward pass that these modules take; MLPs and experts follow from their FLOPs."""


def module_share(modules: str, work: ModelWork) -> float | None:
    """Share of a forward pass that recomputing ``modules`` repeats; None where none are named."""
    if not modules:
        return None
    names = modules.split("+")
    matrices = float(np.asarray(work.dense_nk + work.active_expert_nk))
    experts = float(np.asarray(work.active_expert_nk)) / matrices
    mlp = float(np.asarray(work.ffn_width * work.hidden)) / matrices
    shares = {**SMALL_MODULE_SHARE, "mlp": min(1.0, mlp), "moe": min(1.0, experts + mlp)}
    return min(1.0, sum(shares.get(name, 0.0) for name in names))


def case_recipe(case: TrainingCase, work: ModelWork, profiles: TrainingProfiles) -> TrainingRecipe:
    """The case's recipe as numbers."""
    spec = RecipeSpec(
        method=case.method,
        precision=case.precision,
        optimizer=case.optimizer,
        sequence_length=case.sequence_length,
        global_batch=case.global_batch,
        lora_rank=case.lora_rank,
        document_tokens=case.document_tokens,
        year=case.year,
        chunked_loss=case.chunked_loss,
        dropout=case.dropout,
        eager=not case.fused,
        natural_routing=case.natural_routing,
        mtp_modules=case.mtp_modules,
        recompute_share=module_share(case.recompute_modules, work),
        sequence_parallel=case.sequence_parallel,
        flash_attention=case.flash_attention,
        grad_bytes=case.grad_bytes,
        offload=case.offload,
    )
    return recipe(spec, work, profiles.frameworks[case.framework])


def stack_cases(
    cases: Sequence[TrainingCase], profiles: TrainingProfiles
) -> tuple[ModelWork, TrainingRecipe, TrainingCandidates]:
    """Cases as arrays, one entry a case: ready for one call of the engine."""
    works = {case.arch: model_work(case.arch) for case in cases}
    recipes = [case_recipe(case, works[case.arch], profiles) for case in cases]
    return (
        stack_work([works[case.arch] for case in cases]),
        stack_recipes(recipes),
        stack_candidates(cases, [RECOMPUTE.get(case.recompute, 0.0) for case in cases]),
    )


def stack_candidates(cases: Sequence[TrainingCase], recompute: Sequence[float]) -> TrainingCandidates:
    """Layouts and hardware of the cases, with the given recomputation codes."""

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([float(getattr(case, name)) for case in cases])

    return TrainingCandidates(
        gpus=column("gpus"),
        tensor=column("tensor"),
        pipeline=column("pipeline"),
        virtual=column("virtual"),
        context=column("context"),
        expert=column("expert"),
        expert_tensor=column("expert_tensor"),
        data=column("data"),
        micro_batch=column("micro_batch"),
        sharding=np.array([SHARDING[case.sharding] for case in cases]),
        shard_group=column("shard_group"),
        recompute=np.array(recompute, dtype=np.float64),
        peak_flops=np.array([peak_flops(case) for case in cases]),
        peak_flops_16bit=np.array([sixteen_bit_peak(case.accelerator) for case in cases]),
        power_share=column("power_share"),
        memory_bandwidth_bytes_s=np.array([case.accelerator.memory_bandwidth_bytes_s for case in cases]),
        memory_bytes=column("memory_bytes"),
        link_bytes_s=np.array([case.accelerator.link_bytes_s or PCIE_BYTES_S for case in cases]),
        link_is_shared=np.array([float(not case.accelerator.link_bytes_s) for case in cases]),
        link_domain_gpus=column("link_domain_gpus"),
        gpus_per_node=np.array(
            [
                case.link_domain_gpus if case.link_domain_gpus > RACK_SCALE_DOMAIN else case.gpus_per_node
                for case in cases
            ]
        ),
        network_bytes_s=column("network_bytes_s"),
    )


PCIE_BYTES_S = 25e9
"""One direction of PCIe 4 x16 as NCCL reaches it, where there is no scale-up link."""


def sixteen_bit_peak(accelerator: Accelerator) -> float:
    """Dense bf16 FLOP/s, or fp16 where there is no bf16 path."""
    peaks = accelerator.peak_flops
    return peaks.get("bf16") or peaks["fp16"]


def peak_flops(case: TrainingCase) -> float:
    """Dense peak of the case's matrix-multiplication format; 16 bit where the accelerator has no such path."""
    return case.accelerator.peak_flops.get(PEAK_FORMAT[case.precision]) or sixteen_bit_peak(case.accelerator)


def is_frozen(case: TrainingCase) -> bool:
    """Whether the base model is frozen (LoRA, QLoRA)."""
    return case.method in FROZEN_METHODS


FIT_SHARE = 0.96
"""Of memory: what the allocator can be brought to use."""


def resolve_recompute(cases: Sequence[TrainingCase], profiles: TrainingProfiles) -> list[TrainingCase]:
    """Cases with ``auto`` replaced by the least recomputation whose memory fits (full where none does)."""
    unknown = [index for index, case in enumerate(cases) if case.recompute == "auto"]
    if not unknown:
        return list(cases)
    asked = [replace(cases[index], memory_measure="allocated") for index in unknown]
    work, recipes, _ = stack_cases(asked, profiles)
    constants = memory_constants(profiles, [context_of(case, profiles) for case in asked])
    choice = np.full(len(asked), "full", dtype="<U9")
    for name in ("selective", "none"):
        cand = stack_candidates(asked, [RECOMPUTE[name]] * len(asked))
        fits = training_memory(work, recipes, cand, constants).total <= FIT_SHARE * np.asarray(cand.memory_bytes)
        choice = np.where(fits, name, choice)
    resolved = list(cases)
    for index, name in zip(unknown, choice, strict=True):
        resolved[index] = replace(cases[index], recompute=str(name))
    return resolved
