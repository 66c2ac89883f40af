"""An option of a plan as the fleet that a simulation runs: its replicas, and a prefill pool in its own layout."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from catalog.profiles import serving_profiles
from planner.engine.answers import InferenceOption
from planner.engine.errors import InvalidQuestion
from planner.engine.hardware import CatalogSnapshot
from planner.engine.model_summary import summarize
from planner.engine.simulate.planned_fleet import TRANSFER_GB_S, PlannedFleet, check_batching, planned_fleet
from planner.engine.simulate.planned_replica import Lengths, planned_replica
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.setup import BatchedReplica
from planner.engine.units import GB
from planner.engine.workload import InferenceQuestion
from planner.services.planning import memory_profile_of, resolve_draft, resolve_model


def fleet_of(
    question: InferenceQuestion,
    option: InferenceOption,
    catalog: CatalogSnapshot,
    settings: SimulationQuestion,
    *,
    lengths: Lengths,
    hash_tokens: int | None,
    own_prefixes: bool,
) -> PlannedFleet:
    """The option's cluster as a fleet to simulate; prompts find a cached share of their own with ``own_prefixes``."""
    if faults := check_batching(question, settings):
        raise InvalidQuestion(faults)
    arch = resolve_model(question)
    kv_bytes = summarize(arch).kv_bytes_per_token
    settings = split_settings(option, settings, kv_bytes * question.input_tokens)
    replica = partial(
        planned_replica,
        option,
        arch,
        question,
        settings,
        catalog,
        serving_profiles(),
        memory_profile_of(question),
        lengths=lengths,
        hash_tokens=hash_tokens,
        draft=resolve_draft(question),
        own_prefixes=own_prefixes,
    )
    kind, prefill = replica(), None
    if option.prefill_pool is not None:
        prefill = replica(layout=option.prefill_pool.layout)
    return planned_fleet(
        option,
        kind,
        question,
        settings,
        kv_bytes_per_token=kv_bytes,
        prefill=None if isinstance(prefill, BatchedReplica) else prefill,
    )


def split_settings(option: InferenceOption, settings: SimulationQuestion, prompt_bytes: float) -> SimulationQuestion:
    """The scenario with all that runs where prefill has a pool: the scenario's own, else the option's.

    Batches of whole requests have none.
    """
    pool = option.prefill_pool
    if settings.batching != "continuous" or (pool is None and not settings.prefill_replicas):
        return settings
    replicas, rate_gb_s = settings.prefill_replicas, settings.transfer_gb_s
    if pool is not None:
        replicas = replicas or pool.layout.replicas
        planned_gb_s = prompt_bytes / max(pool.kv_transfer_ms / 1e3, 1e-9) / GB
        rate_gb_s = rate_gb_s or float(min(max(planned_gb_s, 0.01), 10_000.0))
    return replace(settings, prefill_replicas=replicas, transfer_gb_s=rate_gb_s or TRANSFER_GB_S)
