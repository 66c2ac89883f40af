"""Speculative decoding: a draft proposes some tokens, the model verifies them all in one iteration.

    tokens a step   E = (1 - a^(g + 1)) / (1 - a)       a: acceptance of a token, g: tokens drafted
    iteration       t = verify(N (g + 1) tokens) + g x draft(N tokens)

Verifying costs hardly more than decoding while weights are streamed for few tokens, and (g + 1) times as much
once the batch is bound by arithmetic: the gain fades with the batch by the same step time as everything else.
Sources: Leviathan et al. (arXiv 2211.17192); EAGLE (arXiv 2401.15077); multi-token prediction (DeepSeek-V3,
arXiv 2412.19437).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner.engine.parallelism import valid_tensor_parallel
from planner.engine.serving_calibration import ServingProfiles
from planner.engine.serving_candidates import ServingCandidates
from planner.engine.serving_coefficients import build_coefficients
from planner.engine.serving_work import TokenWork, token_work
from planner.engine.step_time import StepCoefficients, step_terms, step_time
from planner.engine.weight_sharding import weight_bytes_per_gpu

FloatArray = NDArray[np.float64]

OWN_LAYER: Final = ("mtp", "eagle")
"""Drafts that are one layer on the model's own hidden states, with its embedding and head."""
HEAD_WIDTH_RATIO: Final = 4
"""MLP width of a draft layer over the hidden size, where the model has no dense MLP to copy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """How candidates speculate: numbers, or arrays over candidates."""

    verify: StepCoefficients
    """The model's own step, sampling each verified token."""
    draft: StepCoefficients | None
    """One drafting step; None costs nothing (a look-up in the prompt)."""
    draft_tokens: float
    acceptance: float

    @property
    def tokens_per_step(self) -> float:
        return tokens_per_step(self.acceptance, self.draft_tokens)

    def parts(self, decoding: Any, context: Any, prefill: Any, pairs: Any) -> tuple[tuple[Any, ...], Any]:
        """Seconds of one iteration: the verification's terms, and all drafting."""
        launched = np.minimum(prefill, 1.0)
        verify = self.verify._replace(prefill_launch_s=self.verify.prefill_launch_s * launched)
        terms = step_terms(verify, decoding, context, prefill, pairs, decoding * self.draft_tokens)
        if self.draft is None:
            return terms, 0.0 * terms[0]
        once = step_time(self.draft, decoding, context, 0.0, 0.0)
        alone = isinstance(prefill, float) and prefill == 0.0
        with_prompt = once if alone else step_time(self.draft, decoding, context, prefill, pairs)
        return terms, (self.draft_tokens - 1.0) * once + with_prompt

    def spread(self, step: StepCoefficients) -> Speculation:
        """With the prompts of an iteration on as many attention ranks as ``step`` has them."""

        def on_ranks(own: StepCoefficients) -> StepCoefficients:
            return own._replace(prompt_ranks=step.prompt_ranks, graph_scatter_tokens=step.graph_scatter_tokens)

        return replace(self, verify=on_ranks(self.verify), draft=None if self.draft is None else on_ranks(self.draft))

    def iteration_s(self, decoding: Any, context: Any, prefill: Any, pairs: Any) -> Any:
        """Seconds of one iteration that verifies and drafts for ``decoding`` sequences, beside ``prefill`` tokens."""
        terms, drafting = self.parts(decoding, context, prefill, pairs)
        return sum(terms) + drafting


def tokens_per_step(acceptance: float, draft_tokens: float) -> float:
    """Tokens one verification yields on average, its own included.

    >>> round(tokens_per_step(0.8, 4), 4), tokens_per_step(1.0, 4)
    (3.3616, 5.0)
    """
    if acceptance >= 1.0:
        return draft_tokens + 1.0
    return float((1.0 - acceptance ** (draft_tokens + 1.0)) / (1.0 - acceptance))


def low_batch_speed_up(acceptance: float, draft_tokens: float, draft_cost: float) -> float:
    """Speed-up while verifying costs one decode step: ``E / (g c + 1)``, ``c`` one draft over one decode step.

    >>> round(low_batch_speed_up(0.8, 4, 0.05), 2)
    2.8
    """
    return tokens_per_step(acceptance, draft_tokens) / (draft_tokens * draft_cost + 1.0)


def draft_arch(kind: str, arch: ModelArch, given: ModelArch | None) -> ModelArch | None:
    """What drafts: the model given, one layer of ``arch``'s own kind (mtp), a dense one (eagle), or nothing.

    A layer on the model's hidden states projects two of them to one (2 h x h) and shares embedding and head.
    """
    if kind not in OWN_LAYER:
        return given
    joint = 2 * arch.hidden**2
    attention = _one_layer(arch, kind)
    return ModelArch(
        name=f"{arch.name} {kind}",
        hidden=arch.hidden,
        layers=1,
        vocab=arch.vocab,
        attention=(attention,),
        ffn=(_one_mlp(arch, kind),),
        norms_per_layer=arch.norms_per_layer,
        extra_params=joint,
        native_format=arch.native_format if kind == "mtp" else "bf16",
        quantized_modules=arch.quantized_modules if kind == "mtp" else "",
    )


def _one_layer(arch: ModelArch, kind: str) -> AttentionGroup:
    """The last kind of attention that keeps a whole context: drafts have no window and no state."""
    whole = [group for group in arch.attention if group.kind in ("full", "mla")]
    found = whole[-1] if whole else next(group for group in arch.attention if group.kind != "none")
    if kind == "mtp" or found.kind == "full":
        return replace(found, layers=1)
    return AttentionGroup(kind="full", layers=1, n_q=found.n_q, n_kv=found.n_q, head_dim=found.nope_dim or 128)


def _one_mlp(arch: ModelArch, kind: str) -> FfnGroup:
    if kind == "mtp":
        return replace(arch.ffn[-1], layers=1, leading=False)
    dense = [group.intermediate for group in arch.ffn if group.kind == "dense"]
    return FfnGroup(kind="dense", layers=1, intermediate=max(dense, default=HEAD_WIDTH_RATIO * arch.hidden))


def cache_arch(arch: ModelArch, draft: ModelArch | None) -> ModelArch:
    """``arch`` with the layers of its draft: what the KV pool is cut for."""
    if draft is None:
        return arch
    return replace(arch, layers=arch.layers + draft.layers, attention=(*arch.attention, *draft.attention))


def draft_weight_bytes(kind: str, draft: ModelArch | None, weight_format: str, tp: Any, ep: Any) -> FloatArray:
    """Bytes of the draft on one rank of the last stage; a layer of the model's own shares embedding and head."""
    if draft is None:
        return np.zeros(np.shape(tp))
    alone = replace(draft, vocab=0) if kind in OWN_LAYER else draft
    name = weight_format if kind == "mtp" else "auto"
    groups = ep if kind == "mtp" else np.ones_like(tp)
    return weight_bytes_per_gpu(alone, name, _draft_ranks(draft, tp), np.ones_like(tp), groups)


def _draft_ranks(draft: ModelArch, tp: Any) -> FloatArray:
    """Ranks a draft is split over: the model's, or 1 where its heads don't divide."""
    sizes = valid_tensor_parallel(draft, int(np.max(tp, initial=1.0)))
    return np.where(np.isin(tp, sizes), tp, 1.0)


def speculate(
    kind: str,
    arch: ModelArch,
    draft: ModelArch | None,
    step: StepCoefficients,
    candidates: ServingCandidates,
    profiles: ServingProfiles,
    *,
    draft_tokens: float,
    acceptance: float,
) -> Speculation:
    """Verification and drafting of every candidate, from the same operators as its own step."""
    work = token_work(arch)
    verified = draft_tokens + 1.0
    verify = step._replace(
        head_token_s=step.head_token_s * verified,
        context_token_s=np.maximum(step.context_token_s, verified * step.pair_s * _query_ratio(work)),
    )
    drafting = None if draft is None else _draft_step(kind, draft, candidates, profiles)
    return Speculation(verify=verify, draft=drafting, draft_tokens=draft_tokens, acceptance=acceptance)


def _query_ratio(work: TokenWork) -> float:
    """FLOPs of a decoding query over those of a prefilled one, a context token: latents are attended absorbed."""
    return max(work.context_flops / work.pair_flops, 1.0) if work.pair_flops else 1.0


def _draft_step(
    kind: str, draft: ModelArch, candidates: ServingCandidates, profiles: ServingProfiles
) -> StepCoefficients:
    """One drafting step: no scheduler and no host in between, all of it on the last stage."""
    ones = np.ones_like(candidates.tp)
    formats = candidates.weight_formats if kind == "mtp" else tuple("auto" for _ in candidates.weight_formats)
    there = replace(
        candidates,
        weight_formats=formats,
        tp=_draft_ranks(draft, candidates.tp),
        pp=ones,
        ep=candidates.ep if kind == "mtp" else ones,
    )
    built = build_coefficients(draft, there, profiles).step
    nothing = np.zeros_like(candidates.tp)
    return built._replace(
        attention_ranks=candidates.attention_ranks, prefill_launch_s=nothing, step_s=nothing, sequence_s=nothing
    )
