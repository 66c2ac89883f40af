"""What a reader should know of a simulation beside its figures, in sentences that pages can translate."""

from __future__ import annotations

from typing import Final

from planner.engine.answers import InferenceOption
from planner.engine.sentences import Code, Noun, Sentence, say
from planner.engine.simulate.planned_fleet import PlannedFleet
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.results import Outcome
from planner.engine.simulate.setup import MOST_AT_ONCE, BatchedReplica, ClosedLoop
from planner.services.generated_traffic import MOST_REQUESTS

EVEN: Final = ("least_outstanding", "power_of_two", "least_kv")
"""Policies that look at loads."""


def hardware_note(option: InferenceOption) -> Sentence:
    """What a replica runs on."""
    gpus = option.layout.gpus_per_replica
    values: dict[str, object] = {
        "gpus": gpus,
        "accelerator": option.cluster.accelerator_name,
        "weights": Code(option.weight_format),
        "confidence": Noun(option.confidence.kind),
    }
    if gpus == 1:
        return say("Replicas of {gpus} GPU ({accelerator}, {weights}); {confidence} speed.", **values)
    return say("Replicas of {gpus} GPUs ({accelerator}, {weights}); {confidence} speed.", **values)


def cut_notes(loop: ClosedLoop | None, settings: SimulationQuestion, outcome: Outcome) -> list[Sentence]:
    """Where a run was cut short."""
    notes = []
    if loop is not None and outcome.requests >= MOST_REQUESTS:
        notes.append(say("It ends with the last of {requests:,} requests.", requests=MOST_REQUESTS))
    if settings.max_waiting is None and outcome.left["queue_full"]:
        notes.append(say("Beyond {requests:,} requests at once, further ones are turned away.", requests=MOST_AT_ONCE))
    return notes


def fleet_notes(planned: PlannedFleet) -> list[Sentence]:
    """What a replica holds, or takes at once; and of split pools, who does what."""
    pools = planned.fleet.pools
    kind = pools[-1].kind
    if isinstance(kind, BatchedReplica):
        return [
            say(
                "Batches of up to {requests:,} requests, timed as the scenario says: not the plan's model.",
                requests=kind.max_batch,
            )
        ]
    notes = [
        say(
            "KV cache: {blocks:,} blocks of {tokens} tokens a replica.",
            blocks=kind.kv_blocks,
            tokens=kind.block_tokens,
        )
    ]
    if kind.role == "decode":
        told = say(
            "Replicas that prefill: {prefill:,}; that decode: {decode:,}. The first token counts when the prompt's KV "
            "has reached the replica that decodes and it has a place there.",
            prefill=pools[0].replicas,
            decode=pools[-1].replicas,
        )
        notes.append(told)
    return notes


def start_notes(planned: PlannedFleet) -> list[Sentence]:
    """How long what comes later takes to serve, where anything may come later."""
    life = planned.lives[0]
    if not (life.autoscaler or life.failures or life.spot or life.upgrade):
        return []
    return [
        say(
            "A replica serves {cold:,.0f} s after it is asked for on a new node, {restart:,.0f} s on one that has the "
            "image.",
            cold=life.start.cold_s,
            restart=life.start.restart_s,
        )
    ]


def spot_notes(option: InferenceOption, settings: SimulationQuestion) -> list[Sentence]:
    """That nodes which may be taken back never are."""
    if option.cluster.purchase_option != "spot" or settings.spot_interruptions_per_hour is not None:
        return []
    return [say("Nodes are bought as spot, but none is taken back: the scenario doesn't say how often.")]


def transfer_notes(planned: PlannedFleet, settings: SimulationQuestion) -> list[Sentence]:
    """That a rate between pools is stated and there are none for it to be between."""
    apart = any(pool.decode_pool is not None for pool in planned.fleet.pools)
    if apart or settings.transfer_gb_s is None:
        return []
    return [say("A KV transfer is stated, but no KV cache moves: replicas process prompts and answer.")]


def gateway_notes(loop: ClosedLoop | None, planned: PlannedFleet, *, is_job: bool = False) -> list[Sentence]:
    """Where the gateway spreads requests otherwise than the plan reckons with.

    Of a job the plan reckons with the same, and of split pools with one queue for all that prefill.
    """
    pool = planned.fleet.pools[0]
    if is_job or loop is not None or pool.places == 1 or pool.decode_pool is not None:
        return []
    if pool.policy == "round_robin":
        return [
            say(
                "The gateway takes replicas in turn, the plan gives each its share by chance: first tokens and answers "
                "come sooner here as a rule."
            )
        ]
    if pool.policy not in EVEN:
        return []
    return [
        say(
            "The gateway chooses by load ({policy}), the plan gives each replica its share by chance: first tokens and "
            "answers come sooner here as a rule, later where many answers of one length end together.",
            policy=Code(pool.policy),
        )
    ]
