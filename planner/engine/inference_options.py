"""Ranked rows as the answer's options: what is rented, how fast, how full, how dear, how sure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import (
    Admission,
    Confidence,
    GpuMemory,
    InferenceOption,
    Layout,
    OfflineJob,
    PrefillPool,
    ServingSpeed,
    Term,
)
from planner.engine.capacity_within_limits import capacity_within_limits
from planner.engine.cost import CENT, HOURS_STEP, input_output_split, price_of, quantize, usd_per_million_tokens
from planner.engine.engine_log import EngineLog
from planner.engine.inference_evaluate import token_budget
from planner.engine.inference_ranking import Ranking, Sized
from planner.engine.inference_working import working
from planner.engine.offers import OfferTable
from planner.engine.rented_cluster import rented_cluster
from planner.engine.sizing import Demand
from planner.engine.token_prices import input_shares
from planner.engine.units import GIB, SECONDS_PER_HOUR
from planner.engine.workload import InferenceQuestion

IntArray = NDArray[np.int64]
ConfidenceOf = Callable[[str, int], Confidence]
"""Confidence of a quantity (output_tok_s, ttft, tpot) for a row of ``Sized``."""


def build_options(
    question: InferenceQuestion,
    demand: Demand,
    sized: Sized,
    ranking: Ranking,
    table: OfferTable,
    confidence_of: ConfidenceOf,
    log: EngineLog,
    today: date,
) -> tuple[InferenceOption, ...]:
    """The listed rows of ``ranking`` as options, cheapest first."""
    rows = np.unique(ranking.candidate[ranking.listed])
    capacity = _capacity(question, demand, sized, rows)
    admission = _admission(question, sized, log, rows)
    # A candidate's offers are all of one kind of node.
    first = np.unique(ranking.candidate[ranking.listed], return_index=True)[1]
    offers = ranking.offer[ranking.listed][first].tolist()
    gpu_count = np.array([table.offers[offer].gpu_count for offer in offers], dtype=np.float64)
    shares = dict(zip(rows.tolist(), input_shares(question, demand, sized, rows, gpu_count).tolist(), strict=True))
    return tuple(
        _option(question, demand, sized, ranking, table, confidence_of, log, today, row, capacity, admission, shares)
        for row in ranking.listed.tolist()
    )


def _admission(question: InferenceQuestion, sized: Sized, log: EngineLog, rows: IntArray) -> dict[int, Admission]:
    """What the KV pool of one GPU admits, by candidate."""
    candidates = sized.evaluated.candidates.take(rows)
    found = log.admissions(
        question,
        candidates.tensor,
        candidates.pipeline,
        sized.evaluated.memory.kv_pool[rows],
        token_budget(candidates, question),
    )
    return dict(zip(rows.tolist(), found, strict=True))


def _capacity(question: InferenceQuestion, demand: Demand, sized: Sized, rows: IntArray) -> dict[int, float]:
    """Requests a second within the limits, all replicas together, by candidate; split pools were sized with theirs."""
    within = capacity_within_limits(
        sized.evaluated.coefficients, sized.evaluated.limits, question, demand, sized.sizing, rows
    )
    split = sized.prefill.replicas[rows] > 0
    each = np.where(split, sized.sizing.estimate.capacity_requests_s[rows], within)
    return dict(zip(rows.tolist(), (each * sized.sizing.replicas[rows]).tolist(), strict=True))


def _option(
    question: InferenceQuestion,
    demand: Demand,
    sized: Sized,
    ranking: Ranking,
    table: OfferTable,
    confidence_of: ConfidenceOf,
    log: EngineLog,
    today: date,
    row: int,
    capacity: Mapping[int, float],
    admissions: Mapping[int, Admission],
    input_share: Mapping[int, float],
) -> InferenceOption:
    candidate = int(ranking.candidate[row])
    candidates = sized.evaluated.candidates
    price = price_of(table.offers[ranking.offer[row]], int(sized.nodes[candidate]), today)
    speed = _speed(question, sized, candidate, demand, capacity[candidate])
    input_usd, output_usd, tokens_usd = _per_million(
        question, demand, price.usd_per_hour, speed, input_share[candidate]
    )
    cluster = rented_cluster(
        table,
        int(ranking.offer[row]),
        nodes=int(sized.nodes[candidate]),
        gpus_used=int(sized.gpus_used[candidate]),
    )
    layout = Layout(
        tensor=int(candidates.tensor[candidate]),
        pipeline=int(candidates.pipeline[candidate]),
        expert=int(candidates.expert[candidate]),
        context=1,
        replicas=int(sized.replicas[candidate]),
    )
    weight_format = candidates.weight_formats[candidates.weight_format[candidate]]
    budgets, admission = candidates.token_budget, admissions[candidate]
    budget = question.max_num_batched_tokens if budgets is None else int(budgets[candidate])
    name = f"tp{layout.tensor}-pp{layout.pipeline}-ep{layout.expert}-x{layout.replicas}"
    if budgets is not None:
        name += f"-b{budget}"
    prefill = _prefill_pool(sized, candidate)
    job = _job(question, sized, candidate, price.usd_per_hour)
    if prefill is not None:
        side = prefill.layout
        name += f"-prefill-tp{side.tensor}-pp{side.pipeline}-ep{side.expert}-x{side.replicas}"
    terms = tuple(working(sized, candidate, question, demand, float(price.usd_per_hour), admission, job))
    throughput = confidence_of("output_tok_s", candidate)
    return InferenceOption(
        id=":".join(
            (
                table.offers[ranking.offer[row]].id,
                name,
                weight_format,
            )
        ),
        cluster=cluster,
        layout=layout,
        prefill_pool=prefill,
        weight_format=weight_format,
        kv_format="bf16" if question.kv_format == "auto" else question.kv_format,
        max_num_batched_tokens=budget,
        price=price,
        usd_per_million_input=input_usd,
        usd_per_million_output=output_usd,
        usd_per_million_tokens=tokens_usd,
        speed=speed,
        memory=_memory(sized, candidate),
        admission=admission,
        limit=_limit(sized, candidate, question),
        working=terms,
        confidence=throughput,
        ttft_confidence=_no_sooner(confidence_of("ttft", candidate), speed, terms, throughput),
        tpot_confidence=confidence_of("tpot", candidate),
        memory_confidence=log.pool_confidence(),
        job=job,
        on_pareto_front=bool(ranking.pareto[row]),
    )


def _no_sooner(
    confidence: Confidence, speed: ServingSpeed, terms: Sequence[Term], throughput: Confidence
) -> Confidence:
    """The band of TTFT, from where a prompt that waits for nobody is read and computed at the fastest measured pace."""
    own_ms = sum(term.value for term in terms if term.group == "ttft" and term.name in ("prefill", "front_end"))
    floor = own_ms / throughput.high / speed.ttft_ms["mean"]
    return replace(confidence, low=max(confidence.low, min(floor, 1.0)))


def _speed(question: InferenceQuestion, sized: Sized, row: int, demand: Demand, capacity: float) -> ServingSpeed:
    estimate = sized.sizing.estimate
    active = int(sized.sizing.replicas[row])
    places = float(np.asarray(sized.evaluated.limits.sequences, dtype=np.float64)[row])
    kv_places = float(np.asarray(sized.evaluated.limits.kv_sequences, dtype=np.float64)[row])
    output_tok_s = float(estimate.output_tok_s[row]) * active
    requests_s = float(estimate.requests_s[row]) * active
    gpus = active * int(sized.evaluated.gpus_per_replica[row])
    gpus += int(sized.prefill.replicas[row] * sized.prefill.gpus_per_replica[row])
    return ServingSpeed(
        ttft_ms={name: float(value[row]) * 1e3 for name, value in estimate.ttft_s.items()},
        tpot_ms={
            name: None if question.answers_at_once else float(value[row]) * 1e3
            for name, value in estimate.tpot_s.items()
        },
        output_tok_s=output_tok_s,
        output_tok_s_per_gpu=output_tok_s / gpus,
        peak_requests_s=requests_s if demand.clients else demand.peak_requests_s,
        capacity_requests_s=capacity,
        concurrency=float(estimate.running[row]) * active,
        max_concurrency=places * active,
        utilization=(requests_s if demand.clients else demand.peak_requests_s) / capacity,
        kv_cache_used=min(float(estimate.running[row]) / max(kv_places, 1.0), 1.0),
    )


def _per_million(
    question: InferenceQuestion,
    demand: Demand,
    usd_per_hour: Decimal,
    speed: ServingSpeed,
    input_share: float,
) -> tuple[Decimal, Decimal | None, Decimal]:
    """$/M input, output and all tokens at the mean load, of a job at its pace."""
    served_s = speed.capacity_requests_s if demand.is_offline else speed.peak_requests_s
    requests_s = served_s if demand.clients or demand.is_offline else demand.mean_requests_s
    total = usd_per_million_tokens(usd_per_hour, requests_s * (question.input_tokens + question.output_tokens))
    if question.answers_at_once:
        return usd_per_million_tokens(usd_per_hour, requests_s * question.input_tokens), None, total
    input_usd, output_usd = input_output_split(
        usd_per_hour,
        input_share,
        input_tokens_per_s=requests_s * question.input_tokens,
        output_tokens_per_s=requests_s * question.output_tokens,
    )
    return input_usd, output_usd, total


def _job(question: InferenceQuestion, sized: Sized, row: int, usd_per_hour: Decimal) -> OfflineJob | None:
    if question.offline_requests is None:
        return None
    rate = float(sized.sizing.estimate.requests_s[row]) * int(sized.sizing.replicas[row])
    exact = question.offline_requests / (rate * SECONDS_PER_HOUR)
    # Never nothing, however short it is.
    hours = max(quantize(Decimal(repr(exact)), HOURS_STEP), HOURS_STEP)
    return OfflineJob(requests=question.offline_requests, hours=float(hours), usd=quantize(usd_per_hour * hours, CENT))


def _prefill_pool(sized: Sized, row: int) -> PrefillPool | None:
    pools = sized.prefill
    replicas, gpus_each = int(pools.replicas[row]), int(pools.gpus_per_replica[row])
    if not replicas:
        return None
    gpus = replicas * gpus_each
    return PrefillPool(
        layout=Layout(
            tensor=int(pools.tensor[row]),
            pipeline=int(pools.pipeline[row]),
            expert=int(pools.expert[row]),
            context=1,
            replicas=replicas,
        ),
        gpus=gpus,
        gpus_per_decode_gpu=gpus / (int(sized.gpus_used[row]) - gpus),
        utilization=float(pools.utilization[row]),
        kv_transfer_gib=float(pools.transfer_bytes[row]) / GIB,
        kv_transfer_ms=float(pools.transfer_s[row]) * 1e3,
    )


def _memory(sized: Sized, row: int) -> GpuMemory:
    memory = sized.evaluated.memory
    parts = {
        "weights": memory.weights,
        "draft_and_adapters": memory.resident,
        "kv_cache": memory.kv_pool,
        "activations": memory.activation_peak,
        "runtime": memory.non_torch,
        "cuda_graphs": memory.cuda_graphs + memory.unbudgeted,
        "driver": memory.driver,
    }
    capacity = float(memory.capacity[row] + memory.driver[row]) / GIB
    parts_gib = {name: float(column[row]) / GIB for name, column in parts.items()}
    for absent in ("draft_and_adapters", "driver"):
        if not parts_gib[absent]:
            del parts_gib[absent]
    return GpuMemory(capacity_gib=capacity, parts_gib=parts_gib, free_gib=capacity - sum(parts_gib.values()))


def _limit(sized: Sized, row: int, question: InferenceQuestion) -> str:
    """The resource that binds: what would have to grow for fewer nodes to do."""
    sizing = sized.sizing
    if sizing.replicas[row] > sizing.capacity_replicas[row]:
        at = question.slo_percentile
        slack = {
            "ttft_slo": float(sizing.estimate.ttft_s[at][row]) * 1e3 / (question.ttft_ms or np.inf),
            "tpot_slo": float(sizing.estimate.tpot_s[at][row]) * 1e3 / (question.tpot_ms or np.inf),
        }
        return max(slack, key=lambda name: slack[name])
    if sized.prefill.replicas[row] > sized.prefill.capacity_replicas[row]:
        return "ttft_slo"
    if sizing.replicas[row] == 1 and sized.prefill.replicas[row] <= 1:
        return "one_replica"
    return sized.full_limit[row]
