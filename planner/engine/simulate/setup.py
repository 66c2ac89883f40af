"""What is simulated: kinds of replicas, pools of them, and the gateway's rules. Plain values.

Times are seconds, lengths tokens. ``None`` means no limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Final, Literal

import numpy as np

from planner.engine.simulate.codes import BATCHED, CONTINUOUS, DECODE, NONE, POLICIES, PREFILL, WHOLE
from planner.engine.simulate.records import MAX_FALLBACKS, MAX_PREFERRED
from planner.engine.step_time import StepCoefficients

Policy = Literal["round_robin", "least_outstanding", "power_of_two", "least_kv", "prefix_aware", "session_affinity"]
Role = Literal["whole", "prefill", "decode"]
ROLES: Final = {"whole": WHOLE, "prefill": PREFILL, "decode": DECODE}
UNLIMITED: Final = 2**62
MOST_AT_ONCE: Final = 2**22
"""Some 700 bytes each: 3 GB."""
IDLE_STEP: Final = StepCoefficients(*[0.0] * len(StepCoefficients._fields))._replace(
    pipeline=1.0, attention_ranks=1.0, prompt_ranks=1.0
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuousReplica:
    """An LLM engine: iteration-level batching over paged KV."""

    coefficients: StepCoefficients
    """Scalars, of one replica."""
    kv_blocks: int
    block_tokens: int = 16
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    max_context_tokens: int | None = None
    """Longer requests are refused."""
    lookahead: bool = True
    """The next batch is chosen while the current one runs (asynchronous scheduling)."""
    chunked_prefill: bool = True
    """False: whole prompts, in iterations of their own, before any decode."""
    reserve_prompt: bool = True
    """Admit a request only when its whole prompt fits the free blocks; False: when its first chunk does."""
    request_s: float = 0.0
    """Added to every request outside the engine's steps: tokenizing, HTTP, streaming."""
    prefix_cache: bool = False
    hash_tokens: int | None = None
    """Tokens one hash covers; the block where not given. A multiple of ``block_tokens``."""
    found_tokens: int = 0
    """Of every prompt whose cached start no other request shares: a client's own, found and held by it alone."""
    draft_tokens: int = 0
    """Speculative decoding: tokens proposed each step; 0 is off."""
    acceptance: float = 0.0
    """Probability that a proposed token is kept, given that those before it were."""
    draft_share: float = 0.0
    """One drafting step's time as a share of a decode step's."""
    role: Role = "whole"
    transfer_s: float = 0.0
    """Prefill role: latency of sending a prompt's KV on."""
    transfer_s_per_token: float = 0.0
    gpus: float = 1.0
    max_waiting: int | None = None
    """Requests in the replica's queue beyond which it refuses."""
    queue_timeout_s: float | None = None

    def record(self) -> dict[str, Any]:
        """The compiled side's fields."""
        return {
            "mode": CONTINUOUS,
            "role": ROLES[self.role],
            "block_tokens": self.block_tokens,
            "blocks": self.kv_blocks,
            "max_seqs": min(self.max_num_seqs, self.max_num_batched_tokens),
            "max_tokens": self.max_num_batched_tokens,
            "max_context": _limit(self.max_context_tokens),
            "rank_spread": rank_spread(float(self.coefficients.attention_ranks)),
            "lookahead": self.lookahead,
            "chunked": self.chunked_prefill,
            "reserve_prompt": self.reserve_prompt,
            "prefix_cache": self.prefix_cache,
            "unit_tokens": self.hash_tokens or self.block_tokens,
            "found_tokens": self.found_tokens,
            "draft_tokens": self.draft_tokens,
            "acceptance": self.acceptance,
            "draft_share": self.draft_share,
            "transfer_s": self.transfer_s,
            "transfer_token_s": self.transfer_s_per_token,
            "request_s": self.request_s,
            "max_waiting": _limit(self.max_waiting),
            "queue_timeout_s": _seconds(self.queue_timeout_s),
            "gpus": self.gpus,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchedReplica:
    """A server of whole requests in batches, as Triton's dynamic batcher: t(b) = batch + item b + token n."""

    batch_s: float = 0.0
    item_s: float = 0.0
    token_s: float = 0.0
    max_batch: int = 1
    preferred_batches: tuple[int, ...] = ()
    max_queue_delay_s: float = 0.0
    instances: int = 1
    padded: bool = False
    """Every request of a batch costs as many tokens as its longest."""
    request_s: float = 0.0
    gpus: float = 1.0
    max_waiting: int | None = None
    queue_timeout_s: float | None = None

    coefficients: StepCoefficients = field(default=IDLE_STEP, init=False)

    def record(self) -> dict[str, Any]:
        """The compiled side's fields."""
        sizes = sorted(size for size in self.preferred_batches if size < self.max_batch)[-MAX_PREFERRED:]
        return {
            "mode": BATCHED,
            "block_tokens": 1,
            "unit_tokens": 1,
            "instances": self.instances,
            "max_batch": self.max_batch,
            "preferred": (*sizes, *[0] * (MAX_PREFERRED - len(sizes))),
            "max_delay_s": self.max_queue_delay_s,
            "batch_s": self.batch_s,
            "item_s": self.item_s,
            "token_s": self.token_s,
            "padded": self.padded,
            "request_s": self.request_s,
            "max_waiting": _limit(self.max_waiting),
            "queue_timeout_s": _seconds(self.queue_timeout_s),
            "gpus": self.gpus,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Replicas of one kind behind one gateway rule."""

    kind: ContinuousReplica | BatchedReplica
    replicas: int
    """Running at the start."""
    max_replicas: int | None = None
    """That an autoscaler may have; ``replicas`` where not given."""
    policy: Policy = "least_outstanding"
    load_cap: float = 1.5
    """Prefix-aware: a replica busier than this many times the mean is passed over."""
    max_outstanding: int | None = None
    """Requests the gateway sends to one replica at a time; more wait at the gateway."""
    spill_outstanding: int | None = None
    """Once every replica has this many requests out, requests go to a fallback pool."""
    fallback: tuple[int, ...] = ()
    """Pools to try when this one takes nothing, by number."""
    decode_pool: int | None = None
    """For prefill replicas: the pool that decodes."""
    hold_s: float | None = None
    """How long the gateway keeps a request that no replica takes."""
    max_held: int | None = None
    """Requests that wait at the gateway beyond which it refuses."""
    replicas_per_unit: int = 1
    """Replicas that share what is rented (a node): it is billed while any of them is."""
    unit_gpus: float | None = None
    """GPUs of what is rented; those of its replicas where not given."""

    @property
    def places(self) -> int:
        """Replicas it may come to have."""
        return max(self.replicas, self.max_replicas or 0)

    @property
    def gpus_per_unit(self) -> float:
        """GPUs billed together."""
        return self.kind.gpus * self.replicas_per_unit if self.unit_gpus is None else self.unit_gpus

    def record(self) -> dict[str, Any]:
        """The compiled side's fields."""
        chain = self.fallback[:MAX_FALLBACKS]
        return {
            "policy": POLICIES.index(self.policy),
            "decode_pool": NONE if self.decode_pool is None else self.decode_pool,
            "load_cap": self.load_cap,
            "max_outstanding": self.max_outstanding or 0,
            "spill": self.spill_outstanding or 0,
            "fallback": (*chain, *[NONE] * (MAX_FALLBACKS - len(chain))),
            "hold_s": _seconds(self.hold_s),
            "max_held": _limit(self.max_held),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """A fixed number of clients, each sending its next request when it has the answer to its last.

    All begin at once, or each after a first pause where they pause. Who is turned away, or gives up, sends its next
    request as long after that as a refused one would be sent again.
    """

    clients: int
    think_s: float = 0.0
    """Mean pause between answer and next request, exponential."""
    until_s: float | None = None
    """No request is sent from then on; None: as many as the traffic has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Everything that serves, and the rules for what goes wrong."""

    pools: Sequence[Pool]
    distance_s: Sequence[Sequence[float]] | None = None
    """Round trip added when a request of pool i is served by pool j."""
    max_retries: int = 3
    """Times a request is sent again after its replica was lost or refused it."""
    retry_s: float = 0.1
    """Before the first of them, to another replica where there is one; it doubles each time, up to 64 x."""
    client_timeout_s: float | None = None
    """Clients give up this long after they asked."""
    most_at_once: int = MOST_AT_ONCE
    """Requests anywhere in the fleet or waiting for it; who comes then is turned away."""
    loop: ClosedLoop | None = None
    """Where clients wait for their answers; None where requests come as they come."""
    slo_ttft_s: float | None = None
    slo_tpot_s: float | None = None
    seed: int = 0


def rank_spread(ranks: float) -> float:
    """Expected excess of the fullest of ``ranks`` loads over their mean, in standard deviations (Blom, 1958).

    >>> rank_spread(1.0), round(rank_spread(2.0), 2), round(rank_spread(8.0), 2)
    (0.0, 0.59, 1.43)
    """
    return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1.0 else 0.0


def _limit(value: int | None) -> int:
    return UNLIMITED if value is None else value


def _seconds(value: float | None) -> float:
    return math.inf if value is None else value


def distances(fleet: Fleet) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds between pools as a square array.

    >>> distances(Fleet(pools=()))
    array([], shape=(0, 0), dtype=float64)
    """
    count = len(fleet.pools)
    if fleet.distance_s is None:
        return np.zeros((count, count))
    return np.asarray(fleet.distance_s, dtype=np.float64).reshape(count, count)
