"""The working of one inference option: every term of its sums, in words and numbers.

Terms of a group sum to the group's total: the iteration's parts to its time, the memory parts to the
GPU's capacity, TTFT's parts to its mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from planner.engine.answers import Term
from planner.engine.inference_ranking import Sized
from planner.engine.sizing import Demand
from planner.engine.units import GIB, HOURS_PER_MONTH
from planner.engine.workload import InferenceQuestion

STEP_FORMULAS: Final = {
    "gemm": "weights of one rank / (measured share x memory bandwidth), or FLOPs / (measured share x peak): the longer",
    "experts": "covered experts 1 - (1 - k/E)^tokens of the expert weights, or their FLOPs: the longer",
    "attention_decode": "KV bytes of all running sequences / (measured share x memory bandwidth)",
    "attention_prefill": "FLOPs of prompt tokens over their context / (measured share x peak)",
    "collectives": "all-reduces of every layer: latency + message bytes / link rate; stage hand-over",
    "layers": "launches and small kernels x layers",
    "prefill_launch": "extra of an iteration that carries prompt tokens",
    "step": "scheduler, sampling and host work of one iteration",
    "sequences": "host and sampling work of each running sequence",
}


def working(sized: Sized, row: int, question: InferenceQuestion, demand: Demand, usd_per_hour: float) -> Iterator[Term]:
    """Every term of one accepted candidate."""
    yield from _demand_terms(sized, row, question, demand)
    yield from _memory_terms(sized, row, question)
    estimate = sized.sizing.estimate
    for name, seconds in estimate.terms.items():
        value = float(seconds[row]) * 1e3
        if value:
            yield Term(group="step_time", name=name, value=value, unit="ms", formula=STEP_FORMULAS[name])
    yield from _ttft_terms(sized, row, question)
    nodes = int(sized.nodes[row])
    yield Term(
        group="cost",
        name="month",
        value=usd_per_hour * HOURS_PER_MONTH,
        unit="USD",
        formula=f"{nodes} nodes x {usd_per_hour / nodes:,.4f} USD/h x {HOURS_PER_MONTH} h",
    )


def _demand_terms(sized: Sized, row: int, question: InferenceQuestion, demand: Demand) -> Iterator[Term]:
    active = int(sized.sizing.replicas[row])
    if demand.clients:
        yield Term(
            group="demand",
            name="clients a replica",
            value=demand.clients / active,
            unit="clients",
            formula=f"{demand.clients:,} clients / {active} replicas",
        )
    else:
        yield Term(
            group="demand",
            name="peak",
            value=demand.peak_requests_s,
            unit="req/s",
            formula=f"{demand.mean_requests_s:.4g} req/s mean x peak factor {question.peak_factor:g}",
        )
        yield Term(
            group="demand",
            name="peak of a replica",
            value=demand.peak_requests_s / active,
            unit="req/s",
            formula=f"{demand.peak_requests_s:.4g} req/s / {active} replicas",
        )
    by_capacity = int(sized.sizing.capacity_replicas[row])
    reason = "capacity and headroom" if active == by_capacity else "the latency limits"
    yield Term(
        group="demand",
        name="replicas",
        value=float(sized.replicas[row]),
        unit="replicas",
        formula=f"{active} for {reason} (headroom {question.headroom:g}) + {question.spare_replicas} spare",
    )


def _memory_terms(sized: Sized, row: int, question: InferenceQuestion) -> Iterator[Term]:
    memory = sized.evaluated.memory
    candidates = sized.evaluated.candidates
    weight_format = candidates.weight_formats[candidates.weight_format[row]]
    split = f"TP{candidates.tensor[row]} x PP{candidates.pipeline[row]} x EP{candidates.expert[row]}"
    for name, column, formula in (
        ("weights", memory.weights, f"every tensor in {weight_format} or its recipe's 16 bit, split over {split}"),
        ("activation_peak", memory.activation_peak, f"at {question.max_num_batched_tokens:,} batched tokens"),
        ("non_torch", memory.non_torch, "context, communication and library workspaces"),
        ("cuda_graphs", memory.cuda_graphs, "captured graphs the engine budgets for"),
        ("kv_pool", memory.kv_pool, f"{question.memory_utilization:g} x capacity - the parts above"),
        ("unbudgeted", memory.unbudgeted, "comes on top of the engine's budget"),
    ):
        yield Term(group="memory", name=name, value=float(column[row]) / GIB, unit="GiB", formula=formula)


def _ttft_terms(sized: Sized, row: int, question: InferenceQuestion) -> Iterator[Term]:
    rest = float(sized.sizing.estimate.ttft_s["mean"][row])
    uncached = question.input_tokens * (1 - question.prefix_cache_hit)
    for name, column, formula in (
        ("prefill", sized.cycle.prompt_s * sized.cycle.fill, f"{uncached:,.0f} prompt tokens through every stage"),
        ("iteration", sized.cycle.iteration_s, "the iteration that carries it also decodes the running sequences"),
        ("front_end", sized.evaluated.coefficients.request_s, "reading, scheduling and answering one request"),
    ):
        seconds = min(float(np.asarray(column)[row]), rest)
        rest -= seconds
        yield Term(group="ttft", name=name, value=seconds * 1e3, unit="ms", formula=formula)
    yield Term(group="ttft", name="waiting", value=rest * 1e3, unit="ms", formula="behind other requests' prompts")
