"""Open loops of short answers: what holds up one's own few iterations, not those of an average moment.

Prompts that came while one's own was prefilled (``d0``) ride two iterations later where the next is fixed already (one
later else), and hold up those that follow: of that chain an answer meets its start only. In the iterations between ride
those that came before one's own began, if anybody was at work then:

    d(j) = t(N) + E a(Poisson(rate d(j - 2)))      d(-1) = P(at work) t(N) / (1 - u)

Prompts in chunks of their own meet a run of ``K / (1 - u)`` iterations of others, if one came behind them while they
waited and were served, or else in their last iteration; of which ``n`` are met at most.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.serving_prompts import MOST_BUSY, PromptQueue, Prompts
from planner.engine.serving_shared import Iterations

FloatArray = NDArray[np.float64]

SHORT: Final = 64.0
"""Decodes of an answer up to which its own iterations are told from the average ones."""
FOLLOWED: Final = 16
"""Iterations after one's own that are looked at one by one: what differs there has died out by then."""


def held_up_after(
    prompts: Prompts,
    queue: PromptQueue | None,
    rate: FloatArray,
    decodes: Any,
    chain: Iterations,
    busy: FloatArray,
    lookahead: Any,
    following: Any,
) -> Any:
    """How much longer the decodes of a short answer last than as many average iterations, seconds: array over rows.

    ``following`` is how much longer prompts in chunks could gather before than they do in an average iteration: what
    long answers meet of them.
    """
    s, iteration = prompts.sharing, chain.iteration_s
    mean = iteration / (1.0 - busy)
    together = s * _shared(prompts, rate, decodes, chain, mean, lookahead)
    if queue is None:
        return together
    settled = busy * following / (1.0 - busy)
    alone = _behind(prompts, queue, rate, decodes, iteration, lookahead, settled) - decodes * (mean - iteration)
    if np.any(prompts.ranks > 1.0):
        alone = np.where(prompts.ranks > 1.0, _beside(queue, decodes, iteration, mean, settled), alone)
    return together + (1.0 - s) * alone


def _shared(prompts: Prompts, rate: FloatArray, decodes: Any, chain: Iterations, mean: Any, lookahead: Any) -> Any:
    iteration, found = chain.iteration_s, chain.found(decodes, lookahead)
    others = found.at_work * chain.met_mean
    # How often one's own iteration and the one before it carry prompts, and what they then take longer.
    own = (1.0 + 0.0 * iteration, prompts.one_s + prompts.further_s * others)
    before = (found.next_carries, found.next_longer_s)
    exists = np.where(lookahead > 0.0, found.followed, 1.0)
    usual, after = mean - iteration, 0.0 * iteration
    for step in range(1, FOLLOWED + 1):
        some, longer = (np.where(lookahead > 0.0, *each) for each in zip(before, own, strict=True))
        short, long = rate * iteration, rate * (iteration + longer)
        carries = -exists * ((1.0 - some) * np.expm1(-short) + some * np.expm1(-long))
        added = exists * ((1.0 - some) * prompts.carried(short) + some * prompts.carried(long))
        after = after + np.clip(decodes + 1.0 - step, 0.0, 1.0) * (added - usual)
        before, own = own, (carries, added / np.maximum(carries, 1e-12))
        exists = 1.0
    return after + prompts.left_over(found.at_work * chain.met, chain.arriving, iteration)[1]


def at_work(decoding: Any, busy: FloatArray) -> Any:
    """How often a request finds anything under way: prompts one after the other, decodes by chance."""
    return 1.0 - np.exp(-decoding) * (1.0 - busy)


def _behind(
    prompts: Prompts, queue: PromptQueue, rate: FloatArray, decodes: Any, iteration: Any, lookahead: Any, settled: Any
) -> Any:
    """Seconds that chunks of other prompts add to one's decodes, where each has iterations to itself."""
    chunks, own = prompts.chunks, queue.own_s
    added = own - iteration
    branching = np.minimum(rate * chunks * own, MOST_BUSY)
    run = chunks / (1.0 - branching)
    waited = queue.wait_s / np.maximum(queue.met, 1e-9)
    start = (0.5 + lookahead) * iteration
    until = (chunks - 1.0) * own + (1.0 - lookahead) * own
    nobody = np.exp(-rate * until) * ((1.0 - queue.met) * np.exp(-rate * start) + queue.met / (1.0 + rate * waited))
    coming = lookahead * rate * own
    behind = rate * (until + (1.0 - queue.met) * start + queue.wait_s)
    later = -np.expm1(-coming)
    rest = np.maximum(decodes - lookahead, 0.0)
    often = rate * iteration * run
    # As many in all as long answers meet.
    whole = run * (behind + coming) / (1.0 + often) * added
    share = np.clip(settled / np.maximum(whole, 1e-12), 0.0, 1.0)
    behind, coming = share * behind / (1.0 - nobody), share * coming
    met = (1.0 - nobody) * _of_run(run * (behind + coming), prompts, decodes)
    met = met + nobody * _of_run(run * coming / np.maximum(later, 1e-9), prompts, rest) * later
    fresh = rate * iteration * _of_run(run, prompts, rest / 2.0)
    fresh = np.maximum(rest - met, 0.0) * fresh / (1.0 + fresh)
    return added * np.minimum(met + fresh, decodes)


def _of_run(run: Any, prompts: Prompts, decodes: Any) -> Any:
    """Chunks of a run of ``run`` on average, one prompt's at least, that ``decodes`` meet; the first are full."""
    chunks = prompts.chunks
    first = np.minimum(decodes * chunks * np.minimum(prompts.fitting, 1.0), chunks)
    beyond = np.maximum(run - chunks, 1e-9)
    # Each comes while another is served, and is begun an iteration after it.
    passing = np.maximum(decodes - chunks, 0.0) * chunks / (chunks + 1.0)
    return first - beyond * np.expm1(-passing / beyond)


def _beside(queue: PromptQueue, decodes: Any, iteration: Any, mean: Any, settled: Any) -> Any:
    """What prompts that go on side by side add beyond average iterations: those beside one's own go on at first."""
    at_first = -np.expm1(-queue.beside) * (queue.own_s - iteration) - (mean - iteration)
    return settled * -np.expm1(-decodes * np.maximum(at_first, 0.0) / np.maximum(settled, 1e-12))
