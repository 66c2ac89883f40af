"""What comes on top of a model's plain step: drafts and their verification, adapters, experts out of balance.

Plain questions don't pass here: their coefficients stay those that were fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from planner.engine.collectives import pcie_bytes_s
from planner.engine.lora import Adapters, adapter_bytes_per_gpu, adapter_params
from planner.engine.model_arch import ModelArch
from planner.engine.quantization import expert_layer_bytes, resolve_format
from planner.engine.serving_calibration import ServingProfiles
from planner.engine.serving_candidates import ServingCandidates
from planner.engine.serving_coefficients import ServingCoefficients, build_coefficients
from planner.engine.serving_work import token_work
from planner.engine.speculation import Speculation, draft_arch, draft_weight_bytes, speculate
from planner.engine.step_time import TERMS, StepCoefficients, step_terms, step_time
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]

DEFAULT_LORA_SLOTS: Final = 8
"""Adapters kept on the GPU where the question doesn't say, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegimeCoefficients(ServingCoefficients):
    """Serving coefficients with drafts, adapters or both."""

    speculation: Speculation | None = None
    adapters: Adapters | None = None

    @property
    def tokens_per_step(self) -> float:
        return 1.0 if self.speculation is None else self.speculation.tokens_per_step

    @property
    def step_tokens(self) -> float:
        return 1.0 if self.speculation is None else self.speculation.draft_tokens + 1.0

    def carrying(self, prompts: Any, scatter_tokens: Any = 0.0) -> Self:
        plain = ServingCoefficients.carrying(self, prompts, scatter_tokens)
        if self.speculation is None:
            return plain
        return replace(plain, speculation=self.speculation.spread(plain.step))

    def iteration_s(self, decoding: Any, context_tokens: Any, prefill_tokens: Any = 0.0, pairs: Any = 0.0) -> Any:
        if self.speculation is None:
            seconds = step_time(self.step, decoding, context_tokens, prefill_tokens, pairs)
        else:
            seconds = self.speculation.iteration_s(decoding, context_tokens, prefill_tokens, pairs)
        if self.adapters is not None:
            seconds = seconds + self.adapters.iteration_s(decoding)
        return seconds

    def iteration_terms(self, decoding: Any, context_tokens: Any) -> dict[str, Any]:
        if self.speculation is None:
            named = dict(zip(TERMS, step_terms(self.step, decoding, context_tokens, 0.0, 0.0), strict=True))
        else:
            parts, drafting = self.speculation.parts(decoding, context_tokens, 0.0, 0.0)
            named = {**dict(zip(TERMS, parts, strict=True)), "draft": drafting}
        if self.adapters is not None:
            named["adapters"] = self.adapters.iteration_s(decoding)
        return named


def asks_for_more(question: InferenceQuestion) -> bool:
    """Whether anything of this module is asked for."""
    return question.speculation != "none" or question.lora_adapters > 0 or question.expert_imbalance > 1.0


def question_draft(question: InferenceQuestion, arch: ModelArch, given: ModelArch | None) -> ModelArch | None:
    """What drafts for this question; None where nothing does, or nothing that takes memory or time."""
    if question.speculation in ("none", "ngram"):
        return None
    return draft_arch(question.speculation, arch, given)


def regime_coefficients(
    arch: ModelArch,
    draft: ModelArch | None,
    candidates: ServingCandidates,
    question: InferenceQuestion,
    profiles: ServingProfiles,
) -> ServingCoefficients:
    """Coefficients of every candidate under the question's regimes."""
    plain = build_coefficients(arch, candidates, profiles)
    if not asks_for_more(question):
        return plain
    step = _imbalanced(plain.step, candidates, question.expert_imbalance)
    adapters = None
    if question.lora_adapters:
        step, adapters = _adapted(arch, step, candidates, question, profiles)
    speculation = None
    if question.speculation != "none":
        speculation = speculate(
            question.speculation,
            arch,
            draft,
            step,
            candidates,
            profiles,
            draft_tokens=float(question.draft_tokens),
            acceptance=question.draft_acceptance,
        )
    columns = {f.name: getattr(plain, f.name) for f in fields(ServingCoefficients)} | {"step": step}
    if question.lora_adapters:
        columns["request_s"] = plain.request_s + _swap_s(arch, candidates, question)
    return RegimeCoefficients(**columns, speculation=speculation, adapters=adapters)


def _imbalanced(step: StepCoefficients, candidates: ServingCandidates, imbalance: float) -> StepCoefficients:
    """The busiest expert rank has ``imbalance`` times the mean work, and everyone waits for it."""
    spread = candidates.ep > 1
    exchanged = spread & (candidates.attention_ranks > 1)
    return step._replace(
        expert_token_s=step.expert_token_s * np.where(spread, imbalance, 1.0),
        collective_token_s=step.collective_token_s * np.where(exchanged, imbalance, 1.0),
    )


def _adapted(
    arch: ModelArch,
    step: StepCoefficients,
    candidates: ServingCandidates,
    question: InferenceQuestion,
    profiles: ServingProfiles,
) -> tuple[StepCoefficients, Adapters]:
    """Adapters' FLOPs go with the dense ones of a token, their launches with those of a layer."""
    flops_share = 2.0 * adapter_params(arch, question.lora_rank) / token_work(arch).dense_flops
    bandwidth = np.array([a.memory_bandwidth_bytes_s for a in candidates.accelerators])[candidates.accelerator]
    one = adapter_bytes_per_gpu(arch, question.lora_rank, candidates.tp, np.ones_like(candidates.pp))
    adapters = Adapters(
        count=float(question.lora_adapters), read_s=one / (profiles.base["weight_bandwidth"] * bandwidth)
    )
    launches = arch.layers * profiles.lora.kernels_per_layer * profiles.lora.kernel_s
    return (
        step._replace(
            dense_token_s=step.dense_token_s * (1.0 + flops_share),
            layers_s=step.layers_s + launches,
        ),
        adapters,
    )


def _swap_s(arch: ModelArch, candidates: ServingCandidates, question: InferenceQuestion) -> FloatArray:
    """Mean wait for an adapter that has no slot: read from the host over PCIe, as often as one is missing."""
    missing = max(0.0, 1.0 - lora_slots(question) / question.lora_adapters)
    slot = np.array([pcie_bytes_s(a.pcie_gen) for a in candidates.accelerators])[candidates.accelerator]
    one = adapter_bytes_per_gpu(arch, question.lora_rank, candidates.tp, candidates.pp)
    return np.asarray(missing * one / slot, dtype=np.float64)


def resident_bytes(
    arch: ModelArch,
    draft: ModelArch | None,
    question: InferenceQuestion,
    weight_format: str,
    tp: FloatArray,
    pp: FloatArray,
    ep: FloatArray,
) -> FloatArray:
    """Bytes on one rank beside the model's weights: the draft, adapter slots, copies of experts."""
    total = np.zeros_like(tp)
    if draft is not None:
        total = total + draft_weight_bytes(question.speculation, draft, weight_format, tp, ep)
    if question.lora_adapters:
        total = total + lora_slots(question) * adapter_bytes_per_gpu(arch, question.lora_rank, tp, pp)
    if question.redundant_experts:
        total = total + _copies_bytes(arch, weight_format, question.redundant_experts, tp, pp, ep)
    return np.asarray(total)


def lora_slots(question: InferenceQuestion) -> int:
    """Adapters kept on the GPU."""
    return question.lora_slots or min(question.lora_adapters, DEFAULT_LORA_SLOTS)


def _copies_bytes(
    arch: ModelArch, weight_format: str, copies: int, tp: FloatArray, pp: FloatArray, ep: FloatArray
) -> FloatArray:
    """Further copies of experts (one set for each layer), spread over the expert ranks; none without such ranks."""
    found = resolve_format(arch, weight_format)
    groups: Sequence[tuple[int, Any]] = [(i, group) for i, group in enumerate(arch.ffn) if group.kind == "moe"]
    one = sum(expert_layer_bytes(arch, found, i) / group.experts * group.layers for i, group in groups)
    return np.where(ep > 1, copies * one / np.maximum(tp, ep) / pp, 0.0)
