"""What a replica's KV cache admits, in the engine's own words, so that a start-up log can be matched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.engine.advice import Advice
from planner.engine.answers import Admission, Confidence, ConfidenceClass, InferenceOption
from planner.engine.kv_cache import logged_tokens, max_concurrency
from planner.engine.memory import ServingMemoryProfile
from planner.engine.model_arch import ModelArch
from planner.engine.sentences import say
from planner.engine.units import GIB
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

REFUSES_TO_START = ("vllm",)
"""Engines that raise an error at their start where the pool holds no request of the longest length; others cut it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLog:
    """The model as its cache is cut (a draft's layers included), and the engine's allocator."""

    arch: ModelArch
    profile: ServingMemoryProfile

    def start_warnings(self, question: InferenceQuestion, option: InferenceOption | None) -> tuple[Advice, ...]:
        """What to start the option's engine with, where it would not start as asked or with the whole context."""
        if option is None:
            return ()
        return (*self._share_warning(question, option), *self._length_warning(question, option))

    def _share_warning(self, question: InferenceQuestion, option: InferenceOption) -> tuple[Advice, ...]:
        """The memory share that leaves room for what comes on top, where the one asked leaves none."""
        beside = sum(term.value for term in option.working if (term.group, term.name) == ("memory", "unbudgeted"))
        seen = option.memory.capacity_gib - option.memory.parts_gib.get("driver", 0.0)
        share = floor((1.0 - beside / seen) * 100) / 100
        if share >= question.memory_utilization:
            return ()
        said = say(
            "Start the engine of the recommended option with a memory share of {share:g}: {beside:.1f} GiB of a GPU "
            "come on top of it, and {asked:g} leaves no room for them.",
            share=share,
            beside=beside,
            asked=question.memory_utilization,
        )
        return (Advice(field="memory_utilization", suggestion=said, value=share, is_warning=True),)

    def _length_warning(self, question: InferenceQuestion, option: InferenceOption) -> tuple[Advice, ...]:
        if question.max_model_len is not None or question.engine not in REFUSES_TO_START:
            return ()
        admitted = option.admission
        if admitted.concurrency_at_max_model_len >= 1.0:
            return ()
        fits = self._longest_held(question, option, option.memory.parts_gib["kv_cache"] * GIB)
        said = say(
            "Start the engine of the recommended option with a longest request (max_model_len) of up to {fits:,} "
            "tokens: its KV cache holds none of the model's {longest:,}, and without a smaller limit it refuses to "
            "run.",
            fits=fits,
            longest=admitted.max_model_len,
        )
        return (Advice(field="max_model_len", suggestion=said, value=fits, is_warning=True),)

    def _longest_held(self, question: InferenceQuestion, option: InferenceOption, pool_bytes: float) -> int:
        """Tokens of the longest request that the pool holds: halved until known to a block."""
        low, high = 0, self.arch.max_context
        step = max(self.profile.allocator.block_tokens, 1)
        while high - low > step:
            middle = (low + high) // 2
            held = max_concurrency(
                self.arch,
                question.kv_format,
                option.layout.tensor,
                option.layout.pipeline,
                pool_bytes,
                np.array([float(middle)]),
                max_num_batched_tokens=option.max_num_batched_tokens,
                allocator=self.profile.allocator,
            )
            low, high = (middle, high) if held[0] >= 1.0 else (low, middle)
        return max(low // step * step, question.input_tokens + question.output_tokens)

    def admissions(
        self,
        question: InferenceQuestion,
        tensor: IntArray,
        pipeline: IntArray,
        pool_bytes: FloatArray,
        token_budget: ArrayLike,
    ) -> list[Admission]:
        """What one GPU's pool holds at the asked lengths, and at the longest the engine is started for: of each."""
        tokens = question.input_tokens + question.output_tokens
        longest = question.max_model_len or self.arch.max_context or tokens
        pool = (self.arch, question.kv_format, tensor, pipeline, pool_bytes)
        allocator, confidence = self.profile.allocator, self.admission_confidence()
        at_asked, at_longest = (
            max_concurrency(*pool, length, max_num_batched_tokens=token_budget, allocator=allocator).tolist()
            for length in (tokens, longest)
        )
        line = logged_tokens(
            *pool,
            max_model_len=longest,
            max_num_batched_tokens=token_budget,
            by_concurrency=self.profile.logs_concurrency_tokens,
            allocator=allocator,
        )
        return [
            Admission(
                request_tokens=tokens,
                concurrency=asked,
                max_model_len=longest,
                concurrency_at_max_model_len=held,
                kv_cache_tokens=int(logged),
                log_lines=_log_lines(question.engine, int(logged), longest, held),
                confidence=confidence,
            )
            for asked, held, logged in zip(at_asked, at_longest, line.tolist(), strict=True)
        ]

    def admission_confidence(self) -> Confidence:
        """Exact for a known model in the paged allocator that logs were reproduced with to the block."""
        if self.profile.pool.own and self.profile.allocator.grouped and not self.arch.unknown_type:
            basis = say("the engine's allocator, block by block, for a pool of this size")
            return Confidence(kind="exact", low=1.0, high=1.0, basis=basis, cases=self.profile.pool.logs)
        return replace(self.pool_confidence(), kind="extrapolated")

    def pool_confidence(self) -> Confidence:
        """How far the KV pool's size is to be trusted: start-up logs with their own group held out."""
        errors = self.profile.pool
        known = errors.own and not self.arch.unknown_type
        basis = say("{logs} start-up logs, each without its own group in the fit", logs=errors.logs)
        if not errors.own:
            basis = say("{basis}; of another engine", basis=basis)
        if self.arch.unknown_type:
            basis = say("{nearest}; not measured: {reasons}", nearest=basis, reasons=self.arch.unknown_type)
        kind: ConfidenceClass = "calibrated" if known else "extrapolated"
        return Confidence(kind=kind, low=errors.low, high=errors.high, basis=basis, cases=errors.logs)


def _log_lines(engine: str, tokens: int, longest: int, concurrency: float) -> tuple[str, ...]:
    """As the engine prints them; empty where its words aren't known.

    >>> _log_lines("vllm", 226_240, 4096, 55.234)[1]
    'Maximum concurrency for 4,096 tokens per request: 55.23x'
    """
    if engine == "vllm":
        return (
            f"GPU KV cache size: {tokens:,} tokens",
            f"Maximum concurrency for {longest:,} tokens per request: {concurrency:.2f}x",
        )
    if engine == "sglang":
        return (f"max_total_num_tokens={tokens}",)
    return ()
