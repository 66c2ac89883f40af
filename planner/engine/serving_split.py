"""Prefill and decode on replicas of their own: steady state of a split (disaggregated) deployment.

Prompts queue for one of ``prefill_replicas``, their KV cache moves over the network, and decoding runs
undisturbed on ``decode_replicas`` (DistServe, arXiv 2401.09670; Splitwise, arXiv 2311.18677):

    R = p + wait + bytes / rate        D = (O - 1) t(N)        X = min(clients / (R + D), prefill_replicas / p)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import many_server_wait
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import LEAST_CHUNK_TOKENS, AdmissionLimits, ServingLoad
from planner.engine.step_time import step_time

FloatArray = NDArray[np.float64]

ROUNDS: Final = 20
MOST_BUSY: Final = 0.98
"""Share of its time a prefill replica works when prompts always wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPools:
    """How a deployment is split; numbers or arrays of length ``n``."""

    prefill_replicas: Any
    decode_replicas: Any
    transfer_bytes: Any
    """KV cache of one prompt."""
    transfer_bytes_s: Any
    """From one prefill replica to a decode replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitEstimate:
    """Speed of the whole deployment: means, arrays of length ``n``."""

    ttft_s: FloatArray
    tpot_s: FloatArray
    requests_s: FloatArray
    output_tok_s: FloatArray
    decoding: FloatArray
    """Sequences on one decode replica."""
    prefill_utilization: FloatArray


def prompt_prefill_s(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, together: Any = 1.0) -> Any:
    """What one of ``together`` prompts, prefilled in one go in chunks of the token budget, takes of a replica."""
    prompt = load.prompt_tokens
    chunk = np.minimum(together * prompt, np.maximum(limits.max_num_batched_tokens, LEAST_CHUNK_TOKENS))
    attended = load.input_tokens * load.prefix_cache_hit + prompt / 2.0
    return prompt / chunk * step_time(c.carrying(together).step, 0.0, 0.0, chunk, chunk * attended)


def split_state(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, pools: SplitPools) -> SplitEstimate:
    """Steady state of ``load`` (closed: ``concurrency`` clients; open: ``requests_s``) on split pools.

    ``limits`` are one decode replica's. Where all clients start together and send ``requests`` in all, the
    first wave queues for its prefill.
    """
    alone = prompt_prefill_s(c, load, limits)
    sharing = np.maximum(limits.max_num_batched_tokens / load.prompt_tokens, 1.0)
    batched = prompt_prefill_s(c, load, limits, sharing)
    prefill = alone
    transfer = pools.transfer_bytes / pools.transfer_bytes_s
    top = MOST_BUSY * pools.prefill_replicas / batched
    one = step_time(c.step, 1.0, load.mean_context, 0.0, 0.0)
    idle = alone + transfer + load.decode_tokens * one
    rate = np.minimum(load.requests_s if load.kind == "open" else load.concurrency / idle, top)
    others = 1.0 if load.kind == "open" else 1.0 - 1.0 / np.maximum(load.concurrency, 1.0)
    decode, decoding, wait = idle * 0.0, np.ones_like(top), np.zeros_like(top)
    for _ in range(ROUNDS):
        decoding = np.clip(rate * decode / pools.decode_replicas, 1.0, limits.sequences)
        decode = load.decode_tokens * step_time(c.step, decoding, decoding * load.mean_context, 0.0, 0.0)
        # The longer the queue, the more prompts share a step.
        busy = np.minimum(rate * batched / pools.prefill_replicas, 1.0)
        prefill = alone + (batched - alone) * busy
        load_of_pool = np.minimum(rate * prefill / pools.prefill_replicas, MOST_BUSY)
        wait = others * many_server_wait(load_of_pool, prefill, pools.prefill_replicas, 1.0, 0.0)
        wanted = load.requests_s if load.kind == "open" else load.concurrency / (prefill + wait + transfer + decode)
        rate = 0.5 * (rate + np.minimum(wanted, top))
    served = np.minimum(rate, decoding * pools.decode_replicas / np.maximum(decode, 1e-12))
    queued = wait if load.kind == "open" else np.maximum(load.concurrency / served - prefill - transfer - decode, 0.0)
    return SplitEstimate(
        ttft_s=prefill + transfer + c.request_s + _first_wave(load, pools, batched, queued),
        tpot_s=decode / np.maximum(load.decode_tokens, 1.0),
        requests_s=served,
        output_tok_s=served * load.output_tokens,
        decoding=decoding,
        prefill_utilization=served * prefill / pools.prefill_replicas,
    )


def _first_wave(load: ServingLoad, pools: SplitPools, batched: Any, queued: Any) -> Any:
    """Mean wait, with the share of requests that all start at once and queue behind each other."""
    if load.kind == "open" or load.requests is None:
        return queued
    share = np.minimum(load.concurrency / np.maximum(load.requests, 1.0), 1.0)
    behind = (load.concurrency / pools.prefill_replicas - 1.0) / 2.0 * batched
    return (1.0 - share) * queued + share * np.maximum(behind, queued)
