"""The time of one engine iteration: the one formula behind the closed form, the simulator and the search.

An iteration decodes one token for each of ``decode_sequences`` and advances ``prefill_tokens`` of prompts.
All its constants are seconds (a stream of bytes over a bandwidth, a FLOP count over a rate), held in
``StepCoefficients``: arrays over candidates, or scalars, which compiled callers pass as the same tuple.
Plain arithmetic only, so that the same source runs on numpy arrays and on compiled scalars.

    t = gemm + experts + decode attention + prefill attention + collectives + launch + layers + step + sequences

    gemm      (w^4 + (x (m + tile))^4)^(1/4): weights streamed once, or FLOPs, whichever is longer
    experts   the same with the covered share 1 - (1 - k/E)^m of the expert weights
    attention KV bytes of every running sequence; FLOPs of every prefilled token (and of every running sequence, where
              a kernel that holds prompts too gives each a tile of queries to itself)
    launch    an iteration that no captured graph holds (large prompts, or any in eager mode) is launched kernel
              by kernel from the host, ahead of the GPU: the longer lasts, so launch is what work doesn't hide
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

NO_GRAPHS = -1.0
TERMS = (
    "gemm",
    "experts",
    "attention_decode",
    "attention_prefill",
    "collectives",
    "layers",
    "prefill_launch",
    "step",
    "sequences",
)


class StepCoefficients(NamedTuple):
    """Seconds per unit of work of one candidate, or arrays of them over candidates."""

    pipeline: Any
    """Pipeline stages: so many micro-batches share the running sequences; one of them carries the prompts."""
    attention_ranks: Any
    """Attention data-parallel ranks: each runs its share of the sequences."""
    prompt_ranks: Any
    """Those of them that an iteration's prompt tokens spread over: a prompt stays on one, and the others wait."""
    dense_weights_s: Any
    """Stream every non-expert weight of one rank once."""
    dense_token_s: Any
    """Non-expert FLOPs of one token on one rank."""
    head_token_s: Any
    """Output-head FLOPs of one sampled token on one rank."""
    dense_tile_tokens: Any
    """Tokens a GEMM pays for beyond those it has (tiles and waves)."""
    expert_weights_s: Any
    """Stream every routed expert of one rank once."""
    expert_token_s: Any
    """Routed-expert FLOPs of one token on one rank."""
    expert_tile_tokens: Any
    """Extra tokens' worth of work once all experts are touched (grouped-GEMM padding)."""
    expert_miss_log: Any
    """log(1 - top_k / experts); 0 without experts."""
    context_token_s: Any
    """Read one context token of KV in every full-attention layer."""
    window_token_s: Any
    """The same for layers that look at no more than ``window_tokens``."""
    window_tokens: Any
    mixed_context_token_s: Any
    """More of a context token in an iteration that holds prompts, where the kernel for both decodes slower."""
    mixed_window_token_s: Any
    state_s: Any
    """Read and write one sequence's recurrent state."""
    pair_s: Any
    """Attend one prefilled token to one earlier token, full-attention layers."""
    window_pair_s: Any
    collective_s: Any
    """Latency of all collectives of one iteration."""
    collective_token_s: Any
    """Bytes of all collectives for one token."""
    layers_s: Any
    """Kernel launches and small kernels of every layer."""
    prefill_launch_s: Any
    """Least time of an iteration that no captured graph holds: the host's launches."""
    graph_tokens: Any
    """Tokens of a rank's largest captured graph that can hold prompt tokens; 0 where prompts always run without one,
    ``NO_GRAPHS`` where decoding does too."""
    graph_scatter_tokens: Any
    """Width over which ``graph_tokens`` is passed: 0 for one iteration, else how far iterations of a mean scatter."""
    step_s: Any
    """Scheduler, sampling and host work of one iteration."""
    sequence_s: Any
    """Host and sampling work for one running sequence of an attention rank: each rank has a scheduler of its own."""


def step_terms(
    c: StepCoefficients,
    decode_sequences: Any,
    decode_context_tokens: Any,
    prefill_tokens: Any,
    prefill_pairs: Any,
    drafted_tokens: Any = 0.0,
) -> tuple[Any, ...]:
    """Seconds of each part of one iteration, in the order of ``TERMS``; the parts sum to its time.

    ``decode_context_tokens`` is the sum of the running sequences' context lengths and ``prefill_pairs``
    the sum over prompt tokens of the tokens each attends to, both over the whole replica. ``drafted_tokens`` are
    verified beside the decode tokens, on the ranks of their sequences.
    """
    stages = 1.0 / c.pipeline
    share = stages / c.attention_ranks
    sequences = decode_sequences * share
    prompt = prefill_tokens / c.prompt_ranks + drafted_tokens / c.attention_ranks
    prefill_tokens = prefill_tokens + drafted_tokens
    # Prompt tokens ride in one of the micro-batches, which passes every stage: each is held up a p-th of that.
    dense_work = c.dense_token_s * (sequences + c.dense_tile_tokens) + c.head_token_s * sequences
    gemm = _longer(c.dense_weights_s, dense_work)
    gemm_more = _longer(c.dense_weights_s, dense_work + c.dense_token_s * prompt) - gemm
    experts = _experts(c, decode_sequences * stages)
    experts_more = _experts(c, decode_sequences * stages + prefill_tokens) - experts
    windowed = np.minimum(decode_context_tokens, decode_sequences * c.window_tokens)
    mixed = np.minimum(prefill_tokens, 1.0)
    context_s = decode_context_tokens * (c.context_token_s + mixed * c.mixed_context_token_s)
    window_s = windowed * (c.window_token_s + mixed * c.mixed_window_token_s)
    decode = (context_s + window_s) * share + sequences * c.state_s
    window_pairs = np.minimum(prefill_pairs, prefill_tokens * c.window_tokens)
    prefill = (prefill_pairs * c.pair_s + window_pairs * c.window_pair_s) / c.prompt_ranks
    collectives = c.collective_s + c.collective_token_s * sequences
    collectives_more = c.collective_token_s * prompt
    busy = gemm + gemm_more + experts + experts_more + decode + prefill + collectives + collectives_more
    eager = np.maximum(-c.graph_tokens, 0.0)
    tokens = sequences + prompt
    over = (tokens - c.graph_tokens + 0.5 * c.graph_scatter_tokens) / np.maximum(c.graph_scatter_tokens, 1.0)
    uncaptured = np.minimum(np.maximum(over, 0.0), 1.0) * np.minimum(prefill_tokens + eager, 1.0)
    launch = uncaptured * (_longer(busy, c.prefill_launch_s) - busy) * np.maximum(stages, eager)
    gemm, experts = gemm + stages * gemm_more, experts + stages * experts_more
    prefill, collectives = stages * prefill, collectives + stages * collectives_more
    per_sequence = c.sequence_s * decode_sequences / c.attention_ranks
    layers, step = c.layers_s + 0.0 * gemm, c.step_s + 0.0 * gemm
    return (gemm, experts, decode, prefill, collectives, layers, launch, step, per_sequence)


def step_time(
    c: StepCoefficients,
    decode_sequences: Any,
    decode_context_tokens: Any,
    prefill_tokens: Any,
    prefill_pairs: Any,
    drafted_tokens: Any = 0.0,
) -> Any:
    """Seconds of one iteration: the sum of ``step_terms``.

    >>> zero = StepCoefficients(*[0.0] * len(StepCoefficients._fields))
    >>> one = zero._replace(pipeline=1.0, attention_ranks=1.0, prompt_ranks=1.0)
    >>> c = one._replace(dense_weights_s=0.006, context_token_s=4e-8, step_s=4e-4)
    >>> float(round(step_time(c, 1.0, 8192.0, 0.0, 0.0), 6))
    0.006728
    """
    terms = step_terms(c, decode_sequences, decode_context_tokens, prefill_tokens, prefill_pairs, drafted_tokens)
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def decode_time(c: StepCoefficients, decode_sequences: FloatArray, decode_context_tokens: FloatArray) -> FloatArray:
    """``step_time`` without prompts, over arrays: only what then counts is evaluated."""
    stages = 1.0 / c.pipeline
    share = stages / c.attention_ranks
    sequences = decode_sequences * share
    dense_work = c.dense_token_s * (sequences + c.dense_tile_tokens) + c.head_token_s * sequences
    busy = _longer(c.dense_weights_s, dense_work)
    if np.asarray(c.expert_weights_s).any():
        busy = busy + _experts(c, decode_sequences * stages)
    attention = decode_context_tokens * c.context_token_s
    if np.asarray(c.window_token_s).any():
        attention = attention + np.minimum(decode_context_tokens, decode_sequences * c.window_tokens) * c.window_token_s
    busy = busy + attention * share + sequences * (c.state_s + c.collective_token_s) + c.collective_s
    eager = np.asarray(c.graph_tokens) < 0.0
    if eager.any():
        busy = np.where(eager, _longer(busy, c.prefill_launch_s), busy)
    seconds: FloatArray = busy + c.layers_s + c.step_s + c.sequence_s * decode_sequences / c.attention_ranks
    return seconds


def _experts(c: Any, tokens: Any) -> Any:
    """Routed experts for so many tokens."""
    covered = 1.0 - np.exp(c.expert_miss_log * tokens)
    work = c.expert_token_s * (tokens + c.expert_tile_tokens * covered)
    return _longer(c.expert_weights_s * covered, work)


def _longer(a: Any, b: Any) -> Any:
    """A smooth maximum, the 4-norm: memory and compute overlap, except near the ridge."""
    a2, b2 = a * a, b * b
    return np.sqrt(np.sqrt(a2 * a2 + b2 * b2))
