"""The working of one inference option: every term of its sums, in words and numbers.

Terms of a group sum to the group's total: the iteration's parts to its time, the memory parts to the
GPU's capacity, TTFT's parts to its mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from planner.engine.answers import Admission, OfflineJob, Term
from planner.engine.inference_ranking import Sized
from planner.engine.memory_working import admission_terms, memory_terms
from planner.engine.sentences import Noun, say
from planner.engine.sizing import Demand
from planner.engine.units import GB, HOURS_PER_MONTH, SECONDS_PER_HOUR
from planner.engine.workload import InferenceQuestion

STEP_FORMULAS: Final = {
    "gemm": say(
        "weights of one rank / (measured share x memory bandwidth), or FLOPs / (measured share x peak): the longer"
    ),
    "experts": say("covered experts 1 - (1 - k/E)^tokens of the expert weights, or their FLOPs: the longer"),
    "attention_decode": say("KV bytes of all running sequences / (measured share x memory bandwidth)"),
    "attention_prefill": say("FLOPs of prompt tokens over their context / (measured share x peak)"),
    "collectives": say("all-reduces of every layer: latency + message bytes / link rate; stage hand-over"),
    "layers": say("launches and small kernels x layers"),
    "prefill_launch": say("extra of an iteration that carries prompt tokens"),
    "step": say("scheduler, sampling and host work of one iteration"),
    "sequences": say("host and sampling work of each running sequence"),
    "draft": say("drafted tokens x one drafting step of the running sequences"),
    "adapters": say("adapters of the batch, A (1 - (1 - 1/A)^N), read once"),
}


STATISTICS: Final = {
    "mean": say("over all requests"),
    "p50": say("half of the requests wait no longer"),
    "p90": say("9 of 10 requests wait no longer"),
    "p95": say("19 of 20 requests wait no longer"),
    "p99": say("99 of 100 requests wait no longer"),
}


def working(
    sized: Sized,
    row: int,
    question: InferenceQuestion,
    demand: Demand,
    usd_per_hour: float,
    admission: Admission,
    job: OfflineJob | None,
) -> Iterator[Term]:
    """Every term of one accepted candidate."""
    yield from _demand_terms(sized, row, question, demand)
    yield from memory_terms(sized, row, question)
    yield from admission_terms(question, admission)
    yield from _split_terms(sized, row, demand)
    estimate = sized.sizing.estimate
    for name, seconds in estimate.terms.items():
        value = float(seconds[row]) * 1e3
        if value:
            yield Term(group="step_time", name=name, value=value, unit="ms", formula=STEP_FORMULAS[name])
    yield from _ttft_terms(sized, row, question, demand)
    yield from _tpot_terms(sized, row, question)
    yield from _speculation_terms(sized, row, question)
    yield from _distribution_terms(sized, row, question)
    yield from _job_terms(job)
    if job is not None:
        return
    nodes = int(sized.nodes[row])
    yield Term(
        group="cost",
        name="month",
        value=usd_per_hour * HOURS_PER_MONTH,
        unit="USD",
        formula=say(
            "{nodes} nodes x {usd:,.4f} USD/h x {hours} h", nodes=nodes, usd=usd_per_hour / nodes, hours=HOURS_PER_MONTH
        ),
    )


def _peak_formula(question: InferenceQuestion, demand: Demand) -> str:
    if demand.is_offline:
        return say(
            "{requests:,} requests / {hours:g} h", requests=question.offline_requests, hours=question.offline_hours
        )
    return say(
        "{mean:.4g} req/s mean x peak factor {factor:g}", mean=demand.mean_requests_s, factor=question.peak_factor
    )


def _demand_terms(sized: Sized, row: int, question: InferenceQuestion, demand: Demand) -> Iterator[Term]:
    active = int(sized.sizing.replicas[row])
    if demand.clients:
        yield Term(
            group="demand",
            name="clients a replica",
            value=demand.clients / active,
            unit="clients",
            formula=say("{clients:,} clients / {replicas} replicas", clients=demand.clients, replicas=active),
        )
    else:
        yield Term(
            group="demand",
            name="peak",
            value=demand.peak_requests_s,
            unit="req/s",
            formula=_peak_formula(question, demand),
        )
        yield Term(
            group="demand",
            name="peak of a replica",
            value=demand.peak_requests_s / active,
            unit="req/s",
            formula=say("{peak:.4g} req/s / {replicas} replicas", peak=demand.peak_requests_s, replicas=active),
        )
    by_capacity = int(sized.sizing.capacity_replicas[row])
    reason = "capacity and headroom" if active == by_capacity else "the latency limits"
    yield Term(
        group="demand",
        name="replicas",
        value=float(sized.replicas[row]),
        unit="replicas",
        formula=say(
            "{replicas} for {reason} (headroom {headroom:g}) + {spare} spare",
            replicas=active,
            reason=Noun(reason),
            headroom=question.headroom,
            spare=question.spare_replicas,
        ),
    )


def _job_terms(job: OfflineJob | None) -> Iterator[Term]:
    if job is None:
        return
    rate = job.requests / (job.hours * SECONDS_PER_HOUR)
    yield Term(
        group="job",
        name="job_hours",
        value=job.hours,
        unit="h",
        formula=say("{requests:,} requests / {rate:.4g} req/s of all replicas", requests=job.requests, rate=rate),
    )
    yield Term(
        group="job", name="job_cost", value=float(job.usd), unit="USD", formula=say("hours of the job x price an hour")
    )


def _split_terms(sized: Sized, row: int, demand: Demand) -> Iterator[Term]:
    pools = sized.prefill
    replicas, gpus = int(pools.replicas[row]), int(pools.replicas[row] * pools.gpus_per_replica[row])
    if not replicas:
        return
    active = int(sized.sizing.replicas[row])
    rate = float(sized.sizing.estimate.requests_s[row]) * active
    # Of the replica: ranks that prefill side by side share its time.
    prompt_ms = float(pools.utilization[row]) * replicas / rate * 1e3
    by_capacity = int(pools.capacity_replicas[row]) == replicas
    yield Term(
        group="split",
        name="prefill_replicas",
        value=float(replicas),
        unit="replicas",
        formula=say(
            "{rate:.4g} req/s x {prompt:.1f} ms a prompt = {busy:.2f} replicas; {reason}",
            rate=rate,
            prompt=prompt_ms,
            busy=rate * prompt_ms / 1e3,
            reason=Noun("capacity and headroom" if by_capacity else "the latency limits"),
        ),
    )
    decode_gpus = int(sized.gpus_used[row]) - gpus
    yield Term(
        group="split",
        name="pool_ratio",
        value=gpus / decode_gpus,
        unit="",
        formula=say("{prefill} GPUs prefill, {decode} decode", prefill=gpus, decode=decode_gpus),
    )
    seconds, held = float(pools.transfer_s[row]), float(pools.transfer_bytes[row])
    yield Term(
        group="split",
        name="kv_transfer",
        value=seconds * 1e3,
        unit="ms",
        formula=say(
            "{held:.3g} GB of one prompt's KV a GPU / {rate:.4g} GB/s", held=held / GB, rate=held / GB / seconds
        ),
    )


def _tpot_terms(sized: Sized, row: int, question: InferenceQuestion) -> Iterator[Term]:
    """What an output token waits for, where its iterations take others' prompts along."""
    if question.answers_at_once or question.batching != "continuous" or question.speculation != "none":
        return
    if int(sized.prefill.replicas[row]) or int(sized.evaluated.candidates.pipeline[row]) > 1:
        return
    estimate = sized.sizing.estimate
    own_ms = sum(float(seconds[row]) for seconds in estimate.terms.values()) * 1e3
    between_ms = float(estimate.tpot_s["mean"][row]) * 1e3 - own_ms
    if between_ms <= 0:
        return
    yield Term(group="tpot", name="own_iteration", value=own_ms, unit="ms", formula=say("one iteration, as above"))
    yield Term(
        group="tpot",
        name="prompts_between",
        value=between_ms,
        unit="ms",
        formula=say("others' prompts that the iterations of an answer take along"),
    )


def _speculation_terms(sized: Sized, row: int, question: InferenceQuestion) -> Iterator[Term]:
    if question.speculation == "none":
        return
    tokens = sized.evaluated.coefficients.tokens_per_step
    iteration_s = float(np.asarray(sized.cycle.iteration_s)[row])
    yield Term(
        group="speculation",
        name="tokens_per_step",
        value=tokens,
        unit="tokens",
        formula=say(
            "(1 - {acceptance:g}^{verified}) / (1 - {acceptance:g})",
            acceptance=question.draft_acceptance,
            verified=question.draft_tokens + 1,
        ),
    )
    yield Term(
        group="speculation",
        name="step_per_token",
        value=iteration_s / tokens * 1e3,
        unit="ms",
        formula=say("one iteration of {step:.2f} ms, verified and drafted / tokens a step", step=iteration_s * 1e3),
    )


def _distribution_terms(sized: Sized, row: int, question: InferenceQuestion) -> Iterator[Term]:
    estimate = sized.sizing.estimate
    quantities = {"TTFT": estimate.ttft_s} | ({} if question.answers_at_once else {"TPOT": estimate.tpot_s})
    for quantity, statistics in quantities.items():
        for name, seconds in statistics.items():
            value = float(seconds[row]) * 1e3
            yield Term(
                group="distribution", name=f"{quantity} {name}", value=value, unit="ms", formula=STATISTICS[name]
            )


def _ttft_terms(sized: Sized, row: int, question: InferenceQuestion, demand: Demand) -> Iterator[Term]:
    rest = float(sized.sizing.estimate.ttft_s["mean"][row])
    uncached = question.input_tokens * (1 - demand.cached_share)
    if sized.prefill.replicas[row]:
        way = (("kv_transfer", sized.prefill.transfer_s, say("the prompt's KV sent to the replica that decodes")),)
    else:
        shared = say("the iteration that carries it also decodes the running sequences")
        way = (("iteration", sized.cycle.iteration_s, shared),)
    for name, column, formula in (
        (
            "prefill",
            sized.cycle.prompt_s * sized.cycle.fill,
            say("{tokens:,.0f} prompt tokens through every stage", tokens=uncached),
        ),
        *way,
        ("front_end", sized.evaluated.coefficients.request_s, say("reading, scheduling and answering one request")),
    ):
        seconds = min(float(np.asarray(column)[row]), rest)
        rest -= seconds
        yield Term(group="ttft", name=name, value=seconds * 1e3, unit="ms", formula=formula)
    yield Term(group="ttft", name="waiting", value=rest * 1e3, unit="ms", formula=say("behind other requests' prompts"))
