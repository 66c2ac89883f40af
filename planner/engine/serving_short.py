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

from planner.engine.serving_prompts import Prompts
from planner.engine.serving_queue import MOST_BUSY, PromptQueue
from planner.engine.serving_runs import FOLLOWED, Runs
from planner.engine.serving_shared import Iterations

FloatArray = NDArray[np.float64]

SHORT: Final = 64.0
"""Decodes of an answer up to which its own iterations are told from the average ones."""


def held_up_after(
    prompts: Prompts,
    queue: PromptQueue | None,
    rate: FloatArray,
    decodes: Any,
    chain: Iterations,
    busy: FloatArray,
    lookahead: Any,
    runs: Runs,
) -> Any:
    """How much longer the decodes of a short answer last than as many average iterations, seconds: array over rows."""
    s, iteration = prompts.sharing, chain.iteration_s
    mean = iteration / (1.0 - busy)
    together = _shared(prompts, rate, decodes, chain, mean, lookahead)
    later = runs.later_following(decodes)
    together = s * (together + prompts.alike * later * (chain.some_s - iteration))
    if queue is None:
        return together
    followed = np.minimum(decodes, FOLLOWED)
    alone = _behind(prompts, queue, rate, followed, iteration, lookahead) - followed * (mean - iteration)
    if np.any(prompts.ranks > 1.0):
        alone = np.where(prompts.ranks > 1.0, queue.runs.soon_following(decodes) * queue.longer_s, alone)
    return together + (1.0 - s) * alone


def _shared(prompts: Prompts, rate: FloatArray, decodes: Any, chain: Iterations, mean: Any, lookahead: Any) -> Any:
    iteration, found = chain.iteration_s, chain.found(decodes, lookahead)
    others = found.at_work * chain.met_mean
    # How often one's own iteration and the one before it carry prompts, and what they then take longer.
    own, before = prompts.carried(others, 1), [(found.next_carries, found.next_longer_s)]
    if prompts.passed is not None:
        none, one, few, many = chain.chance
        told, some = np.isfinite(prompts.passed[-1]), np.maximum(1.0 - none, 1e-12)
        (fit, fit_s), (over, over_s) = prompts.parts(one / some, (few + many) / some, chain.company.often)
        carries, longer = before[0]
        before = [
            (carries * np.where(told, fit, 1.0), np.where(told, fit_s, longer)),
            (carries * np.where(told, over, 0.0), over_s),
        ]
    exists = np.where(lookahead > 0.0, found.followed, 1.0)
    usual, after = mean - iteration, 0.0 * iteration
    for step in range(1, FOLLOWED + 1):
        last = [
            tuple(np.where(lookahead > 0.0, *part) for part in zip(*each, strict=True))
            for each in zip(before, own, strict=True)
        ]
        none = 1.0 - sum(often for often, _ in last)
        carrying, seconds = [0.0 * iteration for _ in own], [0.0 * iteration for _ in own]
        for often, longer in [(none, 0.0), *last]:
            for kind, (some, some_s) in enumerate(prompts.carried(rate * (iteration + longer))):
                carrying[kind] = carrying[kind] + exists * often * some
                seconds[kind] = seconds[kind] + exists * often * some * some_s
        after = after + np.clip(decodes + 1.0 - step, 0.0, 1.0) * (sum(seconds) - usual)
        found_s = zip(carrying, seconds, strict=True)
        before, own = own, [(often, longer / np.maximum(often, 1e-12)) for often, longer in found_s]
        exists = np.ones_like(exists)
    return after + prompts.left_over(found.at_work * chain.met, chain.arriving, iteration)[1]


def at_work(decoding: Any, busy: FloatArray) -> Any:
    """How often a request finds anything under way: prompts one after the other, decodes by chance."""
    return 1.0 - np.exp(-decoding) * (1.0 - busy)


def _behind(
    prompts: Prompts, queue: PromptQueue, rate: FloatArray, decodes: Any, iteration: Any, lookahead: Any
) -> Any:
    """Seconds that chunks of other prompts add to one's decodes, where each has iterations to itself.

    Step by step: the first chunk of another begins where the one before has had its last and somebody waits, or where
    somebody came in an iteration with none. Of those who wait behind a prompt in service, as in M/D/1 at departures.
    """
    chunks, own = prompts.chunks, queue.own_s
    late, own_last, quits = _rows(queue, chunks, rate, decodes, iteration, lookahead)
    last = chunks.astype(np.int64)
    # One that follows another fills the rest of its last iteration.
    packed = np.minimum(prompts.full_s / prompts.fitting / np.maximum(prompts.alone_s, 1e-12), 1.0)
    column, zero = np.arange(len(own)), 0.0 * own
    begun: list[tuple[Any, ...]] = []
    ends: tuple[Any, ...] = (zero,) * 4
    quit_before, quit_now, running, met = zero, own_last, zero, zero
    for step in range(1, FOLLOWED + 1):
        quiet = np.maximum(1.0 - running - quit_before, 0.0) if step > 1 else zero
        goes_on = [end * (1.0 - share) for end, share in zip(ends, quits, strict=True)]
        comes = quit_before * -np.expm1(-late) + quiet * -np.expm1(-rate * iteration)
        first = 1.0 - own_last if step == 1 else zero
        begun.append((first, goes_on[0] + goes_on[1], comes, goes_on[2] + goes_on[3]))
        begins = sum(begun[-1])
        added = comes + (begins - comes) * packed
        running = running - sum(ends) + begins
        left = np.clip(decodes + 1.0 - step, 0.0, None)
        met = met + added * np.minimum(left * np.minimum(prompts.fitting, 1.0), 1.0)
        before = np.maximum(step - last, 0)
        ends = tuple(np.where(step >= last, np.array(each)[before, column], 0.0) for each in zip(*begun, strict=True))
        quit_before, quit_now = quit_now, sum(end * share for end, share in zip(ends, quits, strict=True))
    return met * chunks * (own - iteration)


def _rows(
    queue: PromptQueue, chunks: Any, rate: FloatArray, decodes: Any, iteration: Any, lookahead: Any
) -> tuple[Any, Any, tuple[Any, ...]]:
    """How many come too late for the iteration after a last chunk, and how often nobody waits when one begins (fixed
    ahead, else ends): after one's own prompt; after one that waited behind it, and those after that; after one that
    came when nobody did, and those after that.
    """
    own = queue.own_s
    load = np.clip(rate * chunks * own, 1e-9, MOST_BUSY)
    each = load / chunks
    late = np.where(lookahead > 0.0, each, rate * iteration)
    start = (0.5 + lookahead) * iteration * -np.expm1(-rate * decodes * iteration)
    shift = np.where(lookahead > 0.0, each, 0.0)
    free = (1.0 - load) * np.exp(shift)
    found = np.maximum(1.0 - free, 1e-12)
    waited = np.clip(free * (np.expm1(load) - shift) / found, 1e-9, 1.0) * np.exp(-load)
    fresh = late / np.maximum(np.expm1(late), 1e-12) * np.exp(shift - load)
    # As many in a row as wait, and come while these are served.
    in_row = (load + load**2 / (2.0 * (1.0 - load)) - shift) / found / (1.0 - load)
    fresh_row = (late / np.maximum(-np.expm1(-late), 1e-12) - shift + rate * iteration) / (1.0 - load)
    own_last = np.clip(free * (1.0 - rate * start), 0.0, 1.0)
    return late, own_last, (waited, _further(waited, in_row), fresh, _further(fresh, fresh_row))


def _further(first: Any, in_row: Any) -> Any:
    """How often each later one is the last of a row, where the first is in ``first`` of the cases."""
    return np.clip((1.0 - first) / np.maximum(in_row - 1.0, 1e-12), 0.0, 1.0)
