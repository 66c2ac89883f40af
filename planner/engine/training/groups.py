"""Communication groups of a layout: who talks to whom, and at what rate.

Ranks are ordered tensor, context, data, pipeline (fastest first), as training frameworks place them:
a group's members are ``stride`` ranks apart. A group that fits the scale-up domain uses its links; a
larger one is bound by its members' network ports, all of a node's members together.
"""

from __future__ import annotations

import numpy as np

from planner.engine.training.candidates import Num, TrainingCandidates, TrainingRecipe
from planner.engine.training.constants import StepConstants
from planner.engine.training.work import ModelWork


def group_rate(cand: TrainingCandidates, constants: StepConstants, size: Num, stride: Num) -> tuple[Num, Num]:
    """(bytes per second, latency of one hop) of a ring over ``size`` ranks, ``stride`` apart."""
    inside = np.minimum(np.maximum(cand.link_domain_gpus / stride, 1.0), size)
    fits = np.greater_equal(inside, size)
    # Cards on PCIe: 2 reach 20 GB/s, 4 reach 5, 8 reach 1.4 (L40S, NCCL all-reduce): the square of the group.
    shared = np.where(np.equal(cand.link_is_shared, 1.0), (2.0 / np.maximum(inside, 2.0)) ** 2, 1.0)
    link = constants.link_efficiency * cand.link_bytes_s * shared
    domains = np.maximum(1.0, size / inside)
    congestion = 1.0 + constants.network_congestion * np.log2(domains)
    network = np.minimum(link, constants.network_efficiency * cand.network_bytes_s * inside / congestion)
    return np.where(fits, link, network), np.where(fits, constants.link_latency_s, constants.network_latency_s)


def all_gather_s(cand: TrainingCandidates, constants: StepConstants, full_bytes: Num, size: Num, stride: Num) -> Num:
    """Seconds of a ring all-gather (or reduce-scatter) whose gathered size is ``full_bytes`` a rank.

    The message goes in buckets; each bucket passes every rank, so latency grows with ranks x buckets.
    """
    rate, latency = group_rate(cand, constants, size, stride)
    buckets = np.maximum(1.0, full_bytes / constants.bucket_bytes)
    return (size - 1.0) * (full_bytes / size / rate + buckets * latency)


def data_group(cand: TrainingCandidates) -> tuple[Num, Num]:
    """(size, stride) of the group that shares a dense weight: data and context ranks together."""
    return cand.data * cand.context, cand.tensor


def expert_group(cand: TrainingCandidates) -> tuple[Num, Num]:
    """(size, members in one scale-up domain) of the expert-parallel group; its ranks are neighbours."""
    return cand.expert, np.minimum(np.maximum(cand.link_domain_gpus, 1.0), cand.expert)


def expert_data_group(cand: TrainingCandidates) -> tuple[Num, Num]:
    """(size, stride) of the group that shares an expert's weight."""
    per_stage = cand.gpus / cand.pipeline
    ranks = cand.expert * cand.expert_tensor
    return np.maximum(1.0, per_stage / ranks), ranks


def local_params(work: ModelWork, recipe: TrainingRecipe, cand: TrainingCandidates) -> tuple[Num, Num]:
    """Trained (dense, routed-expert) parameters of one rank before sharding over data ranks."""
    matrices = np.where(np.greater(cand.pipeline, 1.0), 1.0, 2.0 - work.tied)
    dense = work.params_dense / (cand.tensor * cand.pipeline) + matrices * work.params_embedding / cand.tensor
    experts = work.params_experts / (cand.expert * cand.expert_tensor * cand.pipeline)
    adapters = recipe.adapter_params / (cand.tensor * cand.pipeline)
    frozen = np.equal(recipe.frozen_base, 1.0)
    return np.where(frozen, adapters, dense), np.where(frozen, 0.0, experts)
