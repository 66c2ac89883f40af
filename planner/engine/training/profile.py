"""Framework profiles: measured constants by framework, accelerator generation, precision and date.

A constant is ``prior x exp(sum of effects)``: an effect of each attribute (or pair) that the fit
found reason for, shrunk towards zero, and a slope by software date. What a context has no effect for
falls back to the wider one, so an unseen framework or generation still has a value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from planner.engine.confidence import ResidualBands
from planner.engine.training.constants import MemoryConstants, StepConstants

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkProfile:
    """How a training framework works, as facts; its speeds are in the constants."""

    key: str
    family: str
    """Frameworks that work alike share their effects: megatron, fsdp, jax, ddp."""
    label: str
    master_weights_sharded: bool
    """Weights are kept in fp32 and cast when gathered (FSDP, JAX) instead of 16 bit beside a master."""
    grad_bytes: float
    """A parameter, where weights are 16 bit."""
    persistent_grads: bool
    sequence_parallel: bool
    loss_parallel: bool
    low_precision_frozen_base: bool
    """A frozen base is kept only in the matrix-multiplication format (8 or 4 bit)."""
    compiled: bool
    """Kernels are compiled or hand-fused unless a run says otherwise."""
    compiled_adapters: bool
    """The same of adapters on a frozen base."""
    keep_gathered: bool
    gather_for_stages: bool
    buckets_messages: bool
    """Gathers weights in large overlapped buckets rather than tensor by tensor after the optimizer."""
    default_sharding: str
    default_recompute: str
    """What it does where nothing is said: none, selective, full."""
    vendors: tuple[str, ...]
    """Makers of the accelerators it runs on."""
    pipelines: bool
    """Offers pipeline parallelism."""
    interleaves: bool
    """Offers the interleaved pipeline schedule."""
    flash_attention_since: float
    """Year from which attention is fused."""
    micro_batches_are_stages: bool
    """Splits a rank's batch into as many micro-batches as stages, where no micro-batch is given."""
    shardings: tuple[str, ...]
    """What it can shard over data-parallel ranks: none, zero1, zero2, zero3, hsdp."""
    pipeline_shardings: tuple[str, ...]
    """The same under pipeline stages."""
    tensor: bool
    """Offers tensor parallelism."""
    context: bool
    """Offers context parallelism."""
    experts: bool
    """Offers expert parallelism."""
    zero_bubble: bool
    """Offers a zero-bubble pipeline schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a constant may depend on."""

    framework: str
    family: str
    generation: str
    precision: str
    kind: str
    """dense or moe."""
    measure: str
    """How memory is measured: allocated, reserved, device."""
    year: float
    """Software date."""
    fusion: str = "fused"
    """fused (compiled or hand-fused kernels) or eager."""
    async_tensor: str = "no"
    """yes where tensor-parallel communication is pipelined with its matrix multiplication."""

    trains_adapters: bool = False
    """LoRA and QLoRA: measured apart, so their error bands are apart."""
    messages: str = "bucketed"
    """bucketed, or single: weights sent tensor by tensor."""
    accelerator: str = ""
    """Key of the catalog: measured peaks of plain multiplications are of one accelerator."""
    architecture: str = ""
    """Generations whose kernels are the same share one."""

    def release(self, year_range: tuple[float, float]) -> str:
        """Quarter of the software date, kept within the measured years."""
        year = min(max(self.year, year_range[0]), year_range[1])
        return f"{int(year)}Q{int((year % 1) * 4) + 1}"

    def attributes(self) -> dict[str, str]:
        """What error bands go by."""
        kind = f"{self.kind}, adapters" if self.trains_adapters else self.kind
        return {"chip": self.generation, "engine": self.framework, "kind": kind, "format": self.precision}

    def label(self, attributes: Sequence[str], year_range: tuple[float, float]) -> str:
        """Values of ``attributes`` joined by ``|``: the key of an effect."""
        return "|".join(self._attribute(name, year_range) for name in attributes)

    def _attribute(self, name: str, year_range: tuple[float, float]) -> str:
        if name == "release":
            return self.release(year_range)
        if name == "moe_release":
            # Dense kernels barely move from release to release; expert kernels do.
            return self.release(year_range) if self.kind == "moe" else "dense"
        return str(getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Log-effects of one attribute, or of a combination."""

    attributes: tuple[str, ...]
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantLaw:
    """One constant as a function of its context."""

    prior: float
    log_shift: float
    fixed: tuple[Effect, ...]
    """Log-effects that are known, not fitted: measured peaks of plain matrix multiplications."""
    effects: tuple[Effect, ...]
    per_year: tuple[Effect, ...]
    """Log-effects of one year of software."""
    cap: float
    """Of what is fitted: the best plain multiplication bounds every mix of them."""

    def value(self, context: Context, reference_year: float, year_range: tuple[float, float]) -> float:
        """The constant in ``context``."""
        log = self.log_shift
        for effect in self.effects:
            log += effect.values.get(context.label(effect.attributes, year_range), 0.0)
        years = min(max(context.year, year_range[0]), year_range[1]) - reference_year
        for effect in self.per_year:
            log += years * effect.values.get(context.label(effect.attributes, year_range), 0.0)
        known = sum(effect.values.get(context.label(effect.attributes, year_range), 0.0) for effect in self.fixed)
        return min(self.cap, self.prior * math.exp(log)) * math.exp(known)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingProfiles:
    """All that calibration found, with the frameworks it is about."""

    frameworks: Mapping[str, FrameworkProfile]
    question_frameworks: Mapping[str, str]
    """The question's choice -> framework key."""
    step: Mapping[str, ConstantLaw]
    memory: Mapping[str, ConstantLaw]
    reference_year: float
    year_range: tuple[float, float]
    finetune_document_tokens: float
    architectures: Mapping[str, str]
    """Generation -> the architecture whose kernels it runs; one that is not listed is its own."""
    reference_watts_per_tflop: Mapping[str, float]
    """By generation: nominal power over 16-bit peak of the cards the constants were fitted on."""
    bands: ResidualBands
    """Of seconds a step, from held-out residuals."""
    fitted_on: str


def step_constants(profiles: TrainingProfiles, contexts: Sequence[Context]) -> StepConstants:
    """Constants of step time: one entry a context, or one number where all contexts share it."""
    distinct, index = _distinct(contexts)
    return StepConstants(
        **{f.name: _column(profiles, profiles.step[f.name], distinct, index) for f in fields(StepConstants)}
    )


def memory_constants(profiles: TrainingProfiles, contexts: Sequence[Context]) -> MemoryConstants:
    """As ``step_constants``, of memory."""
    distinct, index = _distinct(contexts)
    return MemoryConstants(
        **{f.name: _column(profiles, profiles.memory[f.name], distinct, index) for f in fields(MemoryConstants)}
    )


def _distinct(contexts: Sequence[Context]) -> tuple[list[Context], NDArray[np.int64]]:
    """The different contexts, and which of them each is: many share one."""
    place = {context: number for number, context in enumerate(dict.fromkeys(contexts))}
    return list(place), np.array([place[context] for context in contexts], dtype=np.int64)


def _column(
    profiles: TrainingProfiles, law: ConstantLaw, contexts: Sequence[Context], index: NDArray[np.int64]
) -> float | FloatArray:
    values = [law.value(context, profiles.reference_year, profiles.year_range) for context in contexts]
    return values[0] if len(set(values)) == 1 else np.array(values)[index]


def take_step(constants: StepConstants, index: NDArray[np.int64]) -> StepConstants:
    """Constants of the contexts that ``index`` points at, one entry a candidate."""
    return StepConstants(**{f.name: _take(getattr(constants, f.name), index) for f in fields(StepConstants)})


def take_memory(constants: MemoryConstants, index: NDArray[np.int64]) -> MemoryConstants:
    """As ``take_step``, for memory."""
    return MemoryConstants(**{f.name: _take(getattr(constants, f.name), index) for f in fields(MemoryConstants)})


def _take(value: float | FloatArray, index: NDArray[np.int64]) -> float | FloatArray:
    return value[index] if isinstance(value, np.ndarray) else value
