"""How an option's bill divides into input and output tokens: by the GPU time that each takes.

    input share = u / w        u  share of the time that prompts add to iterations, w  share in which iterations run

An iteration that carries prompts beside decodes is the prompts' as far as they make it longer; all else that runs is
the answers'. Idle time is divided like the rest. The simulator counts the same seconds, iteration by iteration. Where
prompts have a pool of their own, that pool's bill is theirs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner.engine.columns import taken
from planner.engine.inference_ranking import Sized, nodes_needed
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad
from planner.engine.serving_open import open_loop
from planner.engine.sizing import Demand, load_of
from planner.engine.workload import InferenceQuestion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def input_shares(
    question: InferenceQuestion, demand: Demand, sized: Sized, rows: IntArray, gpu_count: FloatArray
) -> FloatArray:
    """Of the bill, what input tokens bear, by row: at the mean load, spares taking their part of it.

    ``gpu_count`` are the GPUs of one node.
    """
    if question.answers_at_once:
        return np.ones(len(rows))
    c, limits = taken(sized.evaluated.coefficients, rows), taken(sized.evaluated.limits, rows)
    if demand.clients or demand.is_offline or question.batching != "continuous":
        one = taken(sized.cycle, rows)
        running = np.maximum(sized.sizing.estimate.running[rows], 1.0)
        shares = running * np.asarray(one.prompt_s) / np.asarray(one.cycle_s)
    else:
        mean = replace(demand, peak_requests_s=demand.mean_requests_s)
        shares = _open_shares(c, load_of(question, mean, sized.replicas[rows].astype(np.float64)), limits)
    pools = sized.prefill.take(rows)
    split = np.where(pools.replicas > 0, _pool_shares(sized, rows, gpu_count), np.clip(shares, 0.0, 1.0))
    return np.asarray(split, dtype=np.float64)


def _pool_shares(sized: Sized, rows: IntArray, gpu_count: FloatArray) -> FloatArray:
    """The prefill pool's part of the nodes: its own, or where pools share nodes, as much as of the GPUs used."""
    pools = sized.prefill.take(rows)
    gpus_each = np.maximum(pools.gpus_per_replica, 1)
    own = nodes_needed(gpu_count, gpus_each, pools.replicas)
    others = nodes_needed(gpu_count, sized.evaluated.gpus_per_replica[rows], sized.replicas[rows])
    shared = pools.replicas * gpus_each / sized.gpus_used[rows]
    nodes = sized.nodes[rows]
    return np.asarray(np.where(own + others <= nodes, own / nodes, shared), dtype=np.float64)


def _open_shares(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits) -> FloatArray:
    """Of the time in which iterations run, what prompts add to it, where requests come when they come."""
    rate = load.requests_s + np.zeros_like(c.request_s)
    found = open_loop(c, load, limits, rate)
    nobody = np.zeros_like(rate)
    # Where nobody decodes, all of an iteration is there for its prompt.
    alone = np.exp(-found.decoding) * np.asarray(c.iteration_s(nobody, nobody))
    added = rate * (found.prompt_s + alone)
    # Nothing runs where nobody decodes and no prompt is being computed.
    runs = -np.expm1(-(found.decoding + rate * (found.prompt_s + found.iteration_s)))
    shares: FloatArray = added / np.maximum(runs, added)
    return shares
