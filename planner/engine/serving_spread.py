"""How latencies of an open loop scatter; first tokens as a mixture of the few things that one iteration can be.

A request comes in an iteration with no prompt, one or several, met as often as it is long; waits for what is left of
it (uniform) and, where the next is fixed already, for that one too; and shares its own with those that came meanwhile:

    state i    p'(m) = sum over i of p(i) Poisson(m; rate t(i))      prompts that came in one iteration ride in a later
    TTFT       U(0, t(i)) + t(j) + t(1 + n)                          i by p(i) t(i), j by p(j), n by Poisson(rate t(i))

Prompts with iterations to themselves wait for those before them instead: what is left of one, and as many whole ones as
give the mean wait (geometric); or go on beside others that came about when they did. Only the shape is taken from here:
the mean is ``serving_open``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import exponential_quantile
from planner.engine.serving_prompts import Prompts
from planner.engine.serving_queue import PromptQueue
from planner.engine.serving_shared import Found, Iterations

FloatArray = NDArray[np.float64]

HALVINGS: Final = 8
CLOSE: Final = 0.05
"""Prompts by which few and many differ where they are hardly two points."""
BEFORE: Final = (0, 1, 2, 3, 5, 9, 17)
"""Prompts before one's own that are told apart, in steps."""
BATCH_SEEN: Final = 2.0 / 3.0
MOST_SKEW: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """Uniform parts: (parts, candidates); and what is known of all together, seconds."""

    weight: FloatArray
    start: FloatArray
    """In widths."""
    per_s: FloatArray
    """One over the width."""
    mean_s: FloatArray
    least_s: FloatArray
    most_s: FloatArray

    @classmethod
    def of(cls, weight: FloatArray, base: FloatArray, width: FloatArray) -> Self:
        """From where the parts begin, and how wide they are."""
        per_s = 1.0 / np.maximum(width, 1e-9)
        return cls(
            weight=weight,
            start=base * per_s,
            per_s=per_s,
            mean_s=np.sum(weight * (base + width / 2.0), axis=0),
            least_s=np.min(base, axis=0),
            most_s=np.max(base + width, axis=0),
        )

    def quantile_s(self, quantile: float) -> FloatArray:
        """By bisection of the distribution."""
        low, high = self.least_s, self.most_s
        under, over = np.zeros_like(low), np.ones_like(low)
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            passed = middle * self.per_s
            passed -= self.start
            np.clip(passed, 0.0, 1.0, out=passed)
            share = np.einsum("ij,ij->j", self.weight, passed)
            less = share < quantile
            low, high = np.where(less, middle, low), np.where(less, high, middle)
            under, over = np.where(less, share, under), np.where(less, over, share)
        # The distribution is a polygon, or jumps, between the last two points.
        along = np.clip((quantile - under) / np.maximum(over - under, 1e-12), 0.0, 1.0)
        found: FloatArray = low + (high - low) * along
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstTokens:
    """What the time to a first token is made of, in an open loop's steady state; seconds."""

    rate: FloatArray
    prompts: Prompts
    queue: PromptQueue | None
    iteration_s: FloatArray
    """A decode iteration."""
    mean_s: FloatArray
    """An iteration, prompts included."""
    present: FloatArray
    """How often a request finds the engine at work."""
    chain: Iterations
    """With the prompts that they carry."""
    found: Found
    lookahead: Any
    stages: Any
    """Times that a prompt's work passes, one pipeline stage after the other."""
    variation: Any
    """Squared CV of the gaps between arrivals: 1 by chance. Queues hold it already."""

    def quantile_s(self, quantile: float) -> FloatArray:
        """How far a quantile lies above the mean (or below it: negative)."""
        mixture = self._mixture
        bursts = self.prompts.sharing * (self.variation - 1.0) + 1.0
        above = (mixture.quantile_s(quantile) - mixture.mean_s) * bursts
        found: FloatArray = np.maximum(above, mixture.least_s - mixture.mean_s)
        return found

    @cached_property
    def _mixture(self) -> Mixture:
        return Mixture.of(*self._parts())

    def _parts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights, starts and widths of the uniform parts: (parts, candidates)."""
        s, zero = self.prompts.sharing, np.zeros_like(self.rate)
        parts = [(s * (1.0 - self.present), self._own(1.0), 0.0)]
        if self.queue is not None:
            parts += [((1.0 - s) * weight, base, width) for weight, base, width in self._queueing(self.queue)]
        singly = [np.array([zero + part[column] for part in parts]) for column in range(3)]
        weights, bases, widths = (
            np.concatenate(both) for both in zip(singly, self._sharing(s * self.present), strict=True)
        )
        return weights, bases, widths

    def _sharing(self, often: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Prompts that share iterations: under way when one comes, one's own company, the iteration between."""
        none, one, few, many = self.chain.chance
        chance = np.stack([none, one, few + many])
        several = self.chain.company.several(self.chain.length_s[2:])
        length = np.stack([*self.chain.length_s[:2], several])
        met = chance * length
        met = met / np.sum(met, axis=0)
        arriving = self.rate * length
        nobody = np.exp(-arriving)
        somebody = arriving * nobody
        more = np.maximum(1.0 - nobody - somebody, 1e-12)
        several = 1.0 + np.maximum((arriving - somebody) / more, 2.0)
        company = np.stack([nobody, somebody, more], axis=1)
        own = self._own(np.stack([np.ones_like(several), np.full_like(several, 2.0), several], axis=1))
        # Between: nothing where all ends with the iteration under way, else one with prompts or without.
        found, iteration = self.found, self.iteration_s
        followed = np.minimum(found.followed / np.maximum(found.at_work, 1e-12), 1.0)
        between = [1.0 - followed, followed * (1.0 - found.next_carries), followed * found.next_carries]
        lasting = self.lookahead * np.stack([0.0 * iteration, iteration, iteration + found.next_longer_s])
        weight = often * met[:, None, None] * company[:, :, None] * np.stack(between)[None, None]
        base = own[:, :, None] + lasting[None, None]
        width = np.broadcast_to(length[:, None, None], weight.shape)
        flat = (int(np.prod(weight.shape[:-1])), len(self.rate))
        return weight.reshape(flat), base.reshape(flat), width.reshape(flat)

    def _added(self, prompts: Any) -> Any:
        """What an iteration takes longer with so many prompts: lines through one, few and many."""
        company, (one, few, many) = self.prompts.company, self.prompts.added_s[1:]
        apart = company.many - company.few
        further = self.prompts.further_s
        beyond = np.where(apart > CLOSE, (many - few) / np.maximum(apart, CLOSE), further)
        within = one + (few - one) / np.maximum(company.few - 1.0, 1.0) * (prompts - 1.0)
        return np.where(prompts <= company.few, within, few + np.maximum(beyond, 0.0) * (prompts - company.few))

    def _own(self, prompts: Any) -> Any:
        """One's own iteration with so many prompts; the next stages pass one's own part of it once more each."""
        added = self._added(prompts)
        return self.iteration_s + added + (self.stages - 1.0) * added / prompts

    def _queueing(self, queue: PromptQueue) -> list[tuple[Any, Any, Any]]:
        prompts, last = self.prompts, 1.0 / self.prompts.chunks
        several = prompts.ranks > 1.0
        idle = np.maximum(self.present - queue.met, 0.0)
        joined = np.where(several, queue.some - queue.full, 0.0)
        behind = np.where(several, queue.full, queue.met)
        alone = np.maximum(1.0 - idle - joined - behind, 0.0)
        start = self.iteration_s / 2.0 + self.lookahead * self.mean_s
        second = queue.just_before(idle, start)
        idle = idle - second
        following = (1.0 - last) * queue.own_s + last * self.mean_s
        parts = []
        for share, seconds in queue.services(self.iteration_s, prompts):
            own = seconds + (self.stages - 1.0) * prompts.pass_s
            parts += [
                (share * alone, own, 0.0),
                (share * idle, own + self.lookahead * self.mean_s, self.iteration_s),
                (share * joined, own + self.lookahead * following, queue.own_s),
            ]
        own = queue.service_s + (self.stages - 1.0) * prompts.pass_s
        # Left of the service under way, and whole ones before one's own.
        unit = np.where(
            several, np.minimum(queue.service_s, 2.0 * queue.wait_s / np.maximum(queue.full, 1e-9)), queue.service_s
        )
        whole = np.maximum(queue.wait_s / np.maximum(behind, 1e-9) - unit / 2.0, 0.0) / np.maximum(unit, 1e-12)
        again = whole / (1.0 + whole)
        for low, high in pairwise(BEFORE):
            parts.append((behind * (again**low - again**high), own + low * unit, (high - low) * unit))
        parts.append((behind * again ** BEFORE[-1], own + BEFORE[-1] * unit, 2.0 * (whole + 0.5) * unit))
        parts.append((second, own + queue.service_s, start))
        return parts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimesToFirstToken:
    """The time to a first token with its wait for a place; seconds."""

    own_s: FloatArray
    wait_s: FloatArray
    """All of it, on average; infinite where an open loop never settles."""
    behind_s: FloatArray
    """In steady state: behind other prompts,"""
    admission_s: FloatArray
    """and for a place,"""
    full: FloatArray
    """which one waits for as often as all are taken."""
    shortened: FloatArray
    """The wait over that of the steady state: less in a run that ends."""
    first: FirstTokens

    def at(self, quantile: float) -> FloatArray:
        """The quantile of every candidate."""
        tail = self.behind_s + exponential_quantile(self.admission_s, self.full, quantile)
        scatter = self.first.quantile_s(quantile)
        return self.own_s + np.where(np.isinf(self.wait_s), self.wait_s, tail * self.shortened + scatter)


def token_times(
    mean: FloatArray,
    decodes: FloatArray,
    rate: FloatArray,
    lump_s: FloatArray,
    batch_s: FloatArray,
    quantiles: Mapping[str, float],
) -> dict[str, FloatArray]:
    """TPOT by statistic, ``quantiles`` as those of a normal distribution; seconds.

    The prompts that interrupt an answer are a Poisson count of ``lump_s`` each, and the batch changes meanwhile by
    ``batch_s``: an answer sees the mean of one whose memory is as long as itself, two thirds of its variance. Few
    interruptions scatter askew (Cornish and Fisher, 1938).
    """
    interruptions, each = np.maximum(rate * mean * decodes, 1e-12), lump_s / decodes
    variance = interruptions * each**2 + BATCH_SEEN * batch_s**2
    deviation = np.sqrt(np.maximum(variance, 1e-30))
    skew = np.minimum(interruptions * (each / deviation) ** 3, MOST_SKEW)
    deviation = np.minimum(deviation, mean)
    found = {name: mean + deviation * (z + skew * (z**2 - 1.0) / 6.0) for name, z in quantiles.items()}
    return {"mean": mean, **found}
