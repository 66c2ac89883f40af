"""A plan's option and a scenario as a fleet to simulate, and what happens to it while it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from planner.engine.answers import InferenceOption
from planner.engine.errors import FieldError, InvalidQuestion
from planner.engine.sentences import Code, FieldName, say
from planner.engine.simulate.autoscaling import SHARES
from planner.engine.simulate.lifecycle import (
    ColdStart,
    Failures,
    PoolLife,
    RollingUpgrade,
    SpotInterruptions,
)
from planner.engine.simulate.planned_scaling import planned_scaling
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.records import MAX_PREFERRED
from planner.engine.simulate.setup import BatchedReplica, ContinuousReplica, Fleet, Pool
from planner.engine.units import GB
from planner.engine.workload import InferenceQuestion

MOST_PLACES: Final = 100_000
"""Replicas that one run may have, those to come included."""
MOST_PHASES: Final = 1 << 25
"""A replica counts its sequences by their place in the last KV block: 8 bytes for each token of a block."""
TRANSFER_GB_S: Final = 25.0
"""From a prefill to a decode replica, where neither plan nor scenario says otherwise."""
TIMES: Final = ("batch_ms", "item_ms", "token_us")
"""What says how long a batch of whole requests takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFleet:
    """What runs, what happens to it, and what it is billed by."""

    fleet: Fleet
    lives: tuple[PoolLife, ...]
    nodes_per_unit: tuple[float, ...]
    """By pool, nodes rented together: several where a replica spans them, part of one where pools share nodes."""

    @property
    def replicas(self) -> int:
        """Running at the start, all pools."""
        return sum(pool.replicas for pool in self.fleet.pools)


def planned_fleet(
    option: InferenceOption,
    kind: ContinuousReplica | BatchedReplica,
    question: InferenceQuestion,
    settings: SimulationQuestion,
    *,
    kv_bytes_per_token: float,
    prefill: ContinuousReplica | None = None,
) -> PlannedFleet:
    """The option's replicas (``kind``) behind one gateway, as ``settings`` would have them.

    ``prefill`` is a replica of its prefill pool, where it has one; else such a pool has replicas like the others.
    """
    check_settings(settings)
    check_sizes(settings, option.layout.replicas)
    is_split = bool(settings.prefill_replicas) and isinstance(kind, ContinuousReplica)
    alone = _unit(int(kind.gpus), option.cluster.gpus_per_node)
    own, fed = rented_units(option) if is_split else (alone, alone)
    per_unit = own.replicas
    replicas = settings.replicas or option.layout.replicas
    spare = settings.spare_nodes * per_unit if _can_lose_nodes(settings) else 0
    # What replaces those that are unavailable starts in their places, once they have drained.
    surge = settings.max_surge if settings.upgrade_at_s is not None else 0
    pool = Pool(
        kind=kind,
        replicas=replicas,
        max_replicas=_most(settings, replicas) + spare + surge,
        policy=settings.policy,  # type: ignore[arg-type]
        load_cap=settings.load_cap,
        max_outstanding=settings.max_outstanding,
        hold_s=settings.queue_timeout_s,
        max_held=settings.max_waiting,
        replicas_per_unit=per_unit,
        unit_gpus=option.cluster.gpus_per_node * own.nodes,
    )
    pools = [pool]
    if isinstance(kind, ContinuousReplica) and is_split:
        first = replace(pool, replicas_per_unit=fed.replicas, unit_gpus=option.cluster.gpus_per_node * fed.nodes)
        pools = [
            _prefill_pool(first, prefill or kind, settings, kv_bytes_per_token),
            replace(pool, kind=replace(kind, role="decode")),
        ]
    life = pool_life(settings, replicas, weights_gib=option.memory.parts_gib.get("weights", 0.0) * kind.gpus)
    return PlannedFleet(
        fleet=Fleet(
            pools=pools,
            max_retries=settings.max_retries,
            client_timeout_s=settings.client_timeout_s,
            slo_ttft_s=None if question.ttft_ms is None else question.ttft_ms / 1e3,
            slo_tpot_s=None if question.tpot_ms is None else question.tpot_ms / 1e3,
            seed=settings.seed,
        ),
        lives=(life,) * len(pools),
        nodes_per_unit=tuple(pool.gpus_per_unit / option.cluster.gpus_per_node for pool in pools),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What is rented together for a pool."""

    replicas: int
    nodes: float


def rented_units(option: InferenceOption) -> tuple[Unit, Unit]:
    """What a replica of the option is rented in, and one of its prefill pool (the same where it has none).

    Whole nodes; where the plan has both pools share nodes, each pool's unit bears its GPUs' part of them.
    """
    cluster, layout, pool = option.cluster, option.layout, option.prefill_pool
    own = _unit(layout.gpus_per_replica, cluster.gpus_per_node)
    if pool is None:
        return own, own
    fed = _unit(pool.layout.gpus_per_replica, cluster.gpus_per_node)
    counts = math.ceil(layout.replicas / own.replicas), math.ceil(pool.layout.replicas / fed.replicas)
    if counts[0] * own.nodes + counts[1] * fed.nodes <= cluster.nodes:
        return own, fed
    share = pool.gpus / cluster.gpus_used
    return (
        replace(own, nodes=cluster.nodes * (1.0 - share) / counts[0]),
        replace(fed, nodes=cluster.nodes * share / counts[1]),
    )


def _unit(gpus: int, gpus_per_node: float) -> Unit:
    return Unit(replicas=max(1, int(gpus_per_node // gpus)), nodes=max(1, math.ceil(gpus / gpus_per_node)))


def pool_life(settings: SimulationQuestion, replicas: int, *, weights_gib: float) -> PoolLife:
    """What the scenario does to a pool of ``replicas`` at the start, which read ``weights_gib`` of weights each."""
    hours = settings.node_failure_hours
    interruptions = settings.spot_interruptions_per_hour
    return PoolLife(
        start=ColdStart(
            provision_s=settings.provision_s,
            image_gib=settings.image_gib,
            image_gib_s=settings.image_gib_s,
            weights_gib=weights_gib,
            weights_gib_s=settings.weights_gib_s,
            warm_up_s=settings.warm_up_s,
        ),
        grace_s=settings.grace_s,
        autoscaler=planned_scaling(settings, replicas),
        failures=None
        if hours is None
        else Failures(mean_hours=hours, repair_s=settings.repair_s, detect_s=settings.detect_s),
        spot=None
        if interruptions is None
        else SpotInterruptions(per_unit_hour=interruptions, notice_s=settings.spot_notice_s),
        upgrade=None
        if settings.upgrade_at_s is None
        else RollingUpgrade(
            at_s=settings.upgrade_at_s, max_surge=settings.max_surge, max_unavailable=settings.max_unavailable
        ),
    )


def check_settings(settings: SimulationQuestion, *, searched: bool = False) -> None:
    """Raise ``InvalidQuestion`` where single settings are fine but don't go together.

    Where the autoscaler's target is ``searched`` the stated one is not used.
    """
    errors = [] if searched else _target_faults(settings)
    if settings.min_replicas == 0 and settings.autoscaler == "hpa":
        errors.append(
            _fault("min_replicas", 0, say("An HPA doesn't scale to zero."), say("1 or more, or autoscaler keda"))
        )
    if settings.max_replicas is not None and settings.max_replicas < settings.min_replicas:
        allowed = say("{fewest} or more", fewest=settings.min_replicas)
        errors.append(_fault("max_replicas", settings.max_replicas, say("Below the fewest."), allowed))
    if settings.upgrade_at_s is not None and settings.max_surge + settings.max_unavailable == 0:
        message = say("An upgrade without surge and with nothing unavailable can't begin.")
        errors.append(_fault("max_surge", 0, message, say("1 or more, or max_unavailable 1 or more")))
    if settings.batching != "continuous" and all(getattr(settings, name) is None for name in TIMES):
        message = say("How long a batch takes isn't known: an LLM's take no fixed time.")
        allowed = say("the times of the model that is served so, or batching continuous")
        errors.append(_fault("batch_ms", settings.batch_ms, message, allowed))
    if settings.batching != "continuous" and settings.prefill_replicas:
        message = say("Batches of whole requests have no prefill to split off.")
        errors.append(_fault("prefill_replicas", settings.prefill_replicas, message, say("0, or batching continuous")))
    errors += [
        _fault(
            "preferred_batches",
            size,
            say("Not a batch size."),
            say("whole numbers from 1 to {most:,}", most=settings.max_batch),
        )
        for size in settings.preferred_batches
        if not _is_size(size, settings.max_batch)
    ]
    if len(settings.preferred_batches) > MAX_PREFERRED:
        many = len(settings.preferred_batches)
        errors.append(_fault("preferred_batches", many, say("Too many."), say("up to {most:,}", most=MAX_PREFERRED)))
    if errors:
        raise InvalidQuestion(errors)


def _target_faults(settings: SimulationQuestion) -> list[FieldError]:
    """The fault of a share as a target that it never reaches: the fleet would shrink under any load."""
    if settings.autoscaler == "none" or settings.scaling_metric not in SHARES or settings.scaling_target <= 1:
        return []
    message = say("{metric} is a share and never passes 1.", metric=Code(settings.scaling_metric))
    allowed = say("more than 0 to 1, such as 0.7")
    return [_fault("scaling_target", settings.scaling_target, message, allowed)]


def _is_size(text: str, most: int) -> bool:
    """Whether it is a whole number from 1 to ``most``, in digits that are no more than its own."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 1 <= int(text) <= most


def places_of(settings: SimulationQuestion, planned: int) -> int:
    """Replicas that a fleet may have at once, of an option with ``planned`` of them."""
    return _most(settings, settings.replicas or planned) + settings.prefill_replicas


def check_sizes(settings: SimulationQuestion, planned: int) -> None:
    """Raise ``InvalidQuestion`` where a fleet that starts with the plan's ``planned`` replicas can't be as asked."""
    replicas = settings.replicas or planned
    errors = []
    if settings.autoscaler != "none" and settings.max_replicas is None and settings.min_replicas > 2 * replicas:
        message = say("More than twice what runs at the start.")
        allowed = say("up to {most:,}, or state {field}", most=2 * replicas, field=FieldName("max_replicas"))
        errors.append(_fault("min_replicas", settings.min_replicas, message, allowed))
    places = places_of(settings, planned)
    most = min(MOST_PLACES, MOST_PHASES // settings.block_tokens)
    if places > most:
        field = "replicas"
        if settings.autoscaler != "none" and (settings.max_replicas or 0) > replicas:
            field = "max_replicas"
        if settings.prefill_replicas > places / 2:
            field = "prefill_replicas"
        message = say("{places:,} replicas in all are more than a run may have.", places=places)
        errors.append(_fault(field, getattr(settings, field), message, say("up to {most:,} in all", most=most)))
    if errors:
        raise InvalidQuestion(errors)


def check_batching(question: InferenceQuestion, settings: SimulationQuestion) -> list[FieldError]:
    """The fault of a question whose batches are drained whole: the simulated engine has iterations.

    A scenario that gives such batches times of its own is another model's, and may be simulated.
    """
    if question.batching == "continuous" or settings.batching != "continuous":
        return []
    message = say("Batches that are drained before the next can't be simulated.")
    return [_fault("batching", question.batching, message, "continuous")]


def _fault(field: str, value: object, message: str, allowed: str) -> FieldError:
    return FieldError(field=field, value=value, message=message, allowed=allowed, code="conflict")


def _can_lose_nodes(settings: SimulationQuestion) -> bool:
    return settings.node_failure_hours is not None or settings.spot_interruptions_per_hour is not None


def _most(settings: SimulationQuestion, replicas: int) -> int:
    if settings.autoscaler == "none":
        return replicas
    return max(replicas, settings.max_replicas or 2 * replicas)


def _prefill_pool(like: Pool, kind: ContinuousReplica, settings: SimulationQuestion, kv_bytes: float) -> Pool:
    """A pool of replicas that prefill for the one after it; KV moves at the scenario's rate."""
    rate_gb_s = settings.transfer_gb_s or TRANSFER_GB_S
    return replace(
        like,
        kind=replace(kind, role="prefill", transfer_s_per_token=kv_bytes / (rate_gb_s * GB)),
        replicas=settings.prefill_replicas,
        max_replicas=settings.prefill_replicas + like.places - like.replicas,
        decode_pool=1,
    )
