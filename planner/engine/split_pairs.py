"""Which layouts prefill for which in split pools: each for itself, and the best of its node at prefilling for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.engine.inference_evaluate import Evaluated
from planner.engine.serving_cycle import LEAST_CHUNK_TOKENS, ServingLoad
from planner.engine.sizing import Demand, load_of
from planner.engine.split_pools import FloatArray, IntArray
from planner.engine.workload import InferenceQuestion


def prompt_s(evaluated: Evaluated, load: ServingLoad) -> tuple[FloatArray, FloatArray]:
    """Seconds an attention rank spends on a prompt: one on each rank, and where prompts fill the token budget.

    Ranks that share attention's work by requests prefill their own prompts side by side.
    """
    c, prompt = evaluated.coefficients, load.prompt_tokens
    budget = np.maximum(evaluated.limits.max_num_batched_tokens, LEAST_CHUNK_TOKENS)
    attended = load.input_tokens * load.prefix_cache_hit + prompt / 2.0

    def each(together: Any) -> FloatArray:
        chunk = np.minimum(together * prompt, budget)
        seconds = c.iteration_s(0.0, 0.0, chunk, chunk * attended)
        return np.asarray(prompt / chunk * seconds, dtype=np.float64) + np.zeros(len(evaluated.candidates))

    ranks = np.asarray(c.step.attention_ranks, dtype=np.float64)
    return ranks * each(ranks), ranks * each(np.maximum(budget / prompt, ranks))


def pool_pairs(evaluated: Evaluated, question: InferenceQuestion, demand: Demand) -> tuple[IntArray, IntArray]:
    """(decode row, prefill row): a layout with itself, and with the best at prefilling on its kind of node."""
    alone, batched = prompt_s(evaluated, load_of(question, demand, 1.0))
    candidates = evaluated.candidates
    parts = [candidates.shape, candidates.weight_format]
    if candidates.token_budget is not None:
        parts.append(candidates.token_budget)
    _, group = np.unique(np.array(parts), axis=1, return_inverse=True)
    late = np.zeros(len(candidates)) if question.ttft_ms is None else alone * 1e3 > question.ttft_ms
    ranks = np.asarray(evaluated.coefficients.step.attention_ranks, dtype=np.float64)
    order = np.lexsort((batched / ranks * evaluated.gpus_per_replica, late, group))
    _, first = np.unique(group[order], return_index=True)
    best = order[first][group]
    own = np.arange(len(candidates))
    other = own[best != own]
    return np.concatenate([own, other]), np.concatenate([own, best[best != own]])
