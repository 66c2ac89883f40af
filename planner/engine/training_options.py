"""Ranked rows as the answer's options: what is rented, the layout, how fast, how full, how dear, how sure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from planner.engine.answers import Cluster, Confidence, GpuMemory, Layout
from planner.engine.confidence import confidence_beyond, confidence_of
from planner.engine.cost import CENT, HOURS_STEP, price_of, quantize, usd_per_million_tokens
from planner.engine.offers import OfferTable
from planner.engine.rented_cluster import rented_cluster
from planner.engine.sentences import say
from planner.engine.training.candidates import RECOMPUTE, SHARDING
from planner.engine.training.goodput import Reliability, interruptions_per_day, interval_s
from planner.engine.training.profile import TrainingProfiles
from planner.engine.training.search_types import BestLayouts
from planner.engine.training_answers import TrainingOption, TrainingSpeed
from planner.engine.training_clusters import Clusters
from planner.engine.training_limits import storage_usd_per_hour
from planner.engine.training_question import TrainingQuestion
from planner.engine.training_ranking import TrainingRanking
from planner.engine.training_run import Run, reliability_of
from planner.engine.training_working import step_limit, working
from planner.engine.units import GIB

FloatArray = NDArray[np.float64]

MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "gathered", "overhead")


def build_options(
    ranking: TrainingRanking,
    best: BestLayouts,
    clusters: Clusters,
    table: OfferTable,
    run: Run,
    question: TrainingQuestion,
    profiles: TrainingProfiles,
    today: date,
) -> tuple[TrainingOption, ...]:
    """The listed rows of ``ranking`` as options, cheapest first."""
    return tuple(
        _option(ranking, best, clusters, table, run, question, profiles, today, row) for row in ranking.listed.tolist()
    )


def _option(
    ranking: TrainingRanking,
    best: BestLayouts,
    clusters: Clusters,
    table: OfferTable,
    run: Run,
    question: TrainingQuestion,
    profiles: TrainingProfiles,
    today: date,
    row: int,
) -> TrainingOption:
    place = int(ranking.best[row])
    nodes = int(ranking.nodes[row])
    size = clusters.sizes[int(best.cluster[place])]
    offer_row = int(ranking.offer[row])
    price = price_of(table.offers[offer_row], nodes + question.spare_nodes, today)
    hours = quantize(Decimal(repr(float(ranking.hours[row]))), HOURS_STEP)
    stored_usd_per_hour = Decimal(repr(storage_usd_per_hour(question, run.stored_gib)))
    usd_storage = quantize(stored_usd_per_hour * hours, CENT)
    usd_total = quantize(price.usd_per_hour * hours, CENT) + usd_storage
    cluster = rented_cluster(table, offer_row, nodes=nodes, gpus_used=size.gpus, spare_nodes=question.spare_nodes)
    reliability = reliability_of(run, is_spot=cluster.purchase_option == "spot")
    layout = layout_of(best, place)
    sharding = sharding_name(best, place)
    recompute = recompute_name(best, place)
    hardware = clusters.hardware[size.node]
    speed = _speed(
        best, place, run, question, cluster, hours, hardware.peak_flops_16bit, float(ranking.useful[row]), reliability
    )
    memory = _memory(best, place)
    return TrainingOption(
        id=":".join(
            (
                table.offers[offer_row].id,
                f"n{nodes}",
                f"tp{layout.tensor}-pp{layout.pipeline}-cp{layout.context}-ep{layout.expert}-dp{layout.replicas}",
            )
        ),
        cluster=cluster,
        layout=layout,
        sharding=sharding,
        recompute=recompute,
        micro_batch=int(_at(best.candidates.micro_batch, place)),
        grad_accumulation=_micro_batches(best, place),
        global_batch_tokens=int(best.global_batch[place]) * question.sequence_length,
        price=price,
        usd_total=usd_total,
        usd_storage=usd_storage,
        usd_per_million_tokens=usd_per_million_tokens(
            price.usd_per_hour + stored_usd_per_hour, speed.tokens_per_s * run.token_share * speed.goodput
        ),
        speed=speed,
        memory=memory,
        limit=step_limit(best, place, recompute, memory),
        working=tuple(
            working(
                best,
                place,
                run,
                question,
                speed,
                cluster,
                hours,
                price,
                usd_total - usd_storage,
                usd_storage,
                reliability,
            )
        ),
        spare_nodes=question.spare_nodes,
        virtual_stages=int(_at(best.candidates.virtual, place)),
        confidence=_confidence(profiles, hardware.context.attributes(), run),
        on_pareto_front=bool(ranking.pareto[row]),
    )


def _confidence(profiles: TrainingProfiles, attributes: Mapping[str, str], run: Run) -> Confidence:
    """The band of the nearest cases; the widest of all where the model's structure is a guess."""
    if not run.arch.unknown_type:
        return confidence_of(profiles.bands, attributes)
    return confidence_beyond(profiles.bands, attributes, [say("model_type {kind}", kind=run.arch.unknown_type)])


def _at(column: float | FloatArray, place: int) -> float:
    values = np.asarray(column, dtype=np.float64)
    return float(values[place] if values.ndim else values)


def _name(codes: dict[str, float], code: float) -> str:
    return next(name for name, value in codes.items() if value == code)


def recompute_name(best: BestLayouts, place: int) -> str:
    """none, selective or full."""
    return _name(RECOMPUTE, _at(best.candidates.recompute, place))


def sharding_name(best: BestLayouts, place: int) -> str:
    """none, zero1, zero2, zero3, or hsdp where a shard group is smaller than the ranks that could share."""
    name = _name(SHARDING, _at(best.candidates.sharding, place))
    ranks = _at(best.candidates.data, place) * _at(best.candidates.context, place)
    return "hsdp" if name == "zero3" and _at(best.candidates.shard_group, place) < ranks else name


def _micro_batches(best: BestLayouts, place: int) -> int:
    return round(
        float(best.global_batch[place]) / (_at(best.candidates.data, place) * _at(best.candidates.micro_batch, place))
    )


def layout_of(best: BestLayouts, place: int) -> Layout:
    """How the model is spread."""
    return Layout(
        tensor=int(_at(best.candidates.tensor, place)),
        pipeline=int(_at(best.candidates.pipeline, place)),
        expert=int(_at(best.candidates.expert, place)),
        context=int(_at(best.candidates.context, place)),
        replicas=int(_at(best.candidates.data, place)),
    )


def _speed(
    best: BestLayouts,
    place: int,
    run: Run,
    question: TrainingQuestion,
    cluster: Cluster,
    hours: Decimal,
    peak_16bit: float,
    useful: float,
    reliability: Reliability,
) -> TrainingSpeed:
    gpus, nodes = cluster.gpus_used, float(cluster.nodes)
    step_s = float(best.step.total[place])
    rate = float(best.tokens_per_s[place])
    flops = rate / gpus * run.flops_per_token
    batch_tokens = float(best.global_batch[place]) * question.sequence_length
    return TrainingSpeed(
        step_s=step_s,
        steps=int(np.ceil(run.tokens / (run.token_share * batch_tokens))),
        tokens_per_s=rate,
        tokens_per_s_per_gpu=rate / gpus,
        tflops_per_gpu=flops / 1e12,
        mfu=flops / peak_16bit,
        mfu_convention=say("model FLOPs with causal attention, without recomputation, over the dense 16-bit peak"),
        days=float(hours) / 24.0,
        gpu_hours=float(hours) * gpus,
        goodput=useful,
        interruptions_per_day=float(interruptions_per_day(gpus, reliability, nodes)),
        checkpoint_interval_s=float(interval_s(gpus, reliability, nodes)),
    )


def _memory(best: BestLayouts, place: int) -> GpuMemory:
    capacity = _at(best.candidates.memory_bytes, place) / GIB
    parts = {name: float(getattr(best.memory, name)[place]) / GIB for name in MEMORY_PARTS}
    return GpuMemory(capacity_gib=capacity, parts_gib=parts, free_gib=capacity - sum(parts.values()))
