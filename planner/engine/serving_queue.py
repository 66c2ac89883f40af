"""Prompts in chunks of their own: one after the other on a replica, or side by side on its attention ranks.

A prompt in ``K`` chunks begins two iterations after the one in which it came (one where the next isn't fixed
ahead), and meets in its iterations those that came in any of ``2 K - 1`` around that one. Of these only the later ones
are its own, with prompts in them for sure:

    d = t(N) + E a(1 + Poisson(M))          M = rate (d* + 2 (1 - 1/K) d* + (K - 1) (K - 2) / K d)

``a(j)`` is what an iteration takes longer with ``j`` of them, ``d*`` an iteration as a random moment meets it. On one
rank a prompt that follows another fills what the other leaves of its last iteration, so a queue takes ``p / c`` full
iterations for each, and ``K`` only for the first (Welch, 1964). Requests that come in bursts (Ca above 1) meet others
as often as rho^(1/Ca), and up to (Ca^2 - 1) / 2 of their burst are before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import side_by_side_wait
from planner.engine.serving_prompts import Prompts
from planner.engine.serving_runs import Runs, runs_of

FloatArray = NDArray[np.float64]

MOST_BUSY: Final = 0.98
"""Share of time that prompts take where they always wait."""
SETTLING: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptQueue:
    """Prompts with iterations to themselves, in steady state; seconds, arrays over candidates."""

    service_s: Any
    """From the first iteration of a prompt's own to the end of its last, where nobody is before it."""
    wait_s: Any
    """How much later its last ends on average where others are."""
    some: Any
    """Share of time that at least one is under way."""
    met: Any
    """How often a request finds one under way: more often than by chance where requests come in bursts."""
    full: Any
    """Share of time that as many are as go on at a time."""
    own_s: Any
    """One of a prompt's own iterations."""
    beside: Any
    """Others in a prompt's own iterations, on average."""
    added_share: Any
    """Share of time that prompts add to iterations."""
    runs: Runs
    """Iterations with prompts, where several go on at a time,"""
    longer_s: Any
    """and what they take longer."""
    arriving_s: Any
    """Requests a second, where only one prompt goes on at a time; 0 where several do."""

    def just_before(self, idle: Any, start_s: Any) -> Any:
        """How often one finds another that came while nothing was under way, and hasn't begun (``start_s``)."""
        return idle * -np.expm1(-self.arriving_s * start_s)

    def services(self, iteration_s: Any, prompts: Prompts) -> list[tuple[Any, Any]]:
        """How often a prompt is served alone, beside one other or beside more, and for how long."""
        one, (two, most) = prompts.alone_s / prompts.chunks, prompts.crowd_s
        nobody = np.exp(-self.beside)
        other = self.beside * nobody
        more = np.maximum(1.0 - nobody - other, 1e-12)
        further = (self.beside - other) / more - 1.0
        crowd = two + (most - two) * np.clip(further / np.maximum(prompts.ranks - 2.0, 1.0), 0.0, 1.0)
        return [
            (share, prompts.chunks * (iteration_s + added))
            for share, added in ((nobody, one), (other, two), (more, crowd))
        ]


def prompt_queue(
    prompts: Prompts, rate: FloatArray, iteration_s: FloatArray, variation: tuple[Any, Any] = (1.0, 0.0)
) -> PromptQueue | None:
    """The queue at ``rate`` requests a second beside decode iterations of ``iteration_s``; none where all share theirs.

    ``variation`` are the squared coefficients of variation of gaps and of prompt lengths.
    """
    if not (prompts.sharing < 1.0).any():
        return None
    chunks, several = prompts.chunks, prompts.ranks > 1.0
    beside = np.zeros_like(rate)
    for _ in range(SETTLING if several.any() else 1):
        own = iteration_s + _with_company(prompts, beside)
        each = iteration_s + _carrying(prompts, beside)
        serving = np.minimum(rate * chunks * own / prompts.ranks, MOST_BUSY)
        full = serving ** (np.sqrt(2.0 * (prompts.ranks + 1.0)) - 1.0)
        runs = runs_of(rate, iteration_s, each, chunks, prompts.lookahead, full)
        met = runs.share * own + (1.0 - runs.share) * iteration_s
        near = met + 2.0 * (1.0 - 1.0 / chunks) * met + (chunks - 1.0) * (chunks - 2.0) / chunks * own
        beside = np.where(several, rate * near, 0.0)
    service = chunks * own
    wait, some = _one_after_the_other(prompts, rate, iteration_s, service)
    side_by_side = side_by_side_wait(serving, service, prompts.ranks, *variation)
    wait = np.where(several, side_by_side, wait * (variation[0] + variation[1]))
    some = np.where(several, runs.share, some)
    scatter = np.sqrt(np.maximum(variation[0], 1e-6))
    bursts = np.maximum(variation[0] - 1.0, 0.0) / 2.0 * (serving ** (1.0 / scatter) - serving) / (1.0 - serving)
    return PromptQueue(
        service_s=service,
        wait_s=wait + bursts * service / prompts.ranks,
        some=some,
        met=np.where(several, some, some ** (1.0 / scatter)),
        full=np.minimum(full, some),
        own_s=own,
        beside=beside,
        added_share=some * (1.0 - iteration_s / np.where(several, each, own)),
        runs=runs,
        longer_s=each - iteration_s,
        arriving_s=np.where(several, 0.0, rate),
    )


def _one_after_the_other(prompts: Prompts, rate: FloatArray, iteration_s: Any, alone_s: Any) -> tuple[Any, Any]:
    """How much later one's last iteration ends on average behind others, and the share of time that prompts take."""
    filled = iteration_s + prompts.full_s
    next_s = np.minimum(filled / prompts.fitting, alone_s)
    load = np.minimum(rate * next_s, MOST_BUSY)
    left = 1.0 - load + rate * alone_s
    busy = rate * alone_s / left
    wait = rate * next_s**2 / (2.0 * (1.0 - load)) + rate * (alone_s**2 - next_s**2) / (2.0 * left)
    # One that waited needs fewer iterations of its own, half of one more than it fills.
    own = np.minimum(next_s + filled / 2.0, alone_s)
    return np.maximum(wait + busy * (own - alone_s), 0.0), np.minimum(busy, MOST_BUSY)


def _with_company(prompts: Prompts, beside: Any) -> Any:
    """What one iteration takes longer with a prompt's chunk and those of as many others, on average, by chance."""
    one, (two, most) = prompts.alone_s / prompts.chunks, prompts.crowd_s
    nobody = np.exp(-beside)
    further = np.where(nobody < 1.0, beside / np.maximum(1.0 - nobody, 1e-12) - 1.0, 0.0)
    beyond = np.clip(further / np.maximum(prompts.ranks - 2.0, 1.0), 0.0, 1.0)
    return nobody * one + (1.0 - nobody) * (two + (most - two) * beyond)


def _carrying(prompts: Prompts, beside: Any) -> Any:
    """The same of any iteration that carries prompts: those with many are met by more of them."""
    one, (two, most) = prompts.alone_s / prompts.chunks, prompts.crowd_s
    nobody = np.exp(-beside)
    some = np.maximum(-np.expm1(-beside), 1e-12)
    single = np.where(beside > 0.0, beside * nobody / some, 1.0)
    several = beside * some / np.maximum(some - beside * nobody, 1e-12)
    beyond = np.clip((several - 2.0) / np.maximum(prompts.ranks - 2.0, 1.0), 0.0, 1.0)
    return single * one + (1.0 - single) * (two + (most - two) * beyond)
