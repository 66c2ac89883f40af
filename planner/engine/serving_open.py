"""Open loops: requests that come when they come, served by one replica in steady state.

An iteration takes T = t(N) / (1 - u) on average: ``u = rate x p`` of all time goes to prompts, ``p`` each. Little's
law, N = rate x D, fixes the decoding batch, by accelerated iteration. What a request sees is not that average:

    decode  D = ((O - 1) t(1 + N + x) + e p) / (1 - u)
    first   one's own prompt and iteration + what is left of the iteration under way + the one fixed already + the queue

A prompt holds up everything that decodes, so prompts that came meanwhile follow it and decode along: to a request
that has just been prefilled the others look bunched, ``e`` more prompts and ``x`` more sequences than an average moment
shows (arrivals that cause arrivals: Hawkes, 1971, each prompt ``u`` others). Where the next iteration is put together
while one runs (asynchronous scheduling), a request that comes waits for that one too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import crowding
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, Cycle, ServingLoad, chunk_room, cycle
from planner.engine.serving_decoding import answers_are_short, busy_share, decoding_batch, settled
from planner.engine.serving_prompts import Prompts, prompts_of
from planner.engine.serving_queue import PromptQueue, prompt_queue
from planner.engine.serving_shared import Company, Iterations, beside_one
from planner.engine.serving_short import at_work
from planner.engine.serving_spread import FirstTokens

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop:
    """How one replica of every candidate serves an open loop; seconds, arrays of length ``n``."""

    decode_s: FloatArray
    """From first token to last."""
    own_s: FloatArray
    """To the first token where nobody else waits: one's prompt, and the iterations before it can begin."""
    wait_s: FloatArray
    """Behind other prompts, on average."""
    first: FirstTokens
    """How all of that scatters."""
    decoding: FloatArray
    """Sequences decoding, on average over time."""
    iteration_s: FloatArray
    """One decode iteration of the average batch."""
    prompt_s: FloatArray
    """What one prompt adds to the iterations that carry it."""
    batch_s: FloatArray
    """How far a standard deviation of the batch moves an iteration, prompts included."""
    lump_s: FloatArray
    """The same as if prompts came singly and by chance, with the variance that they have bunched."""


def open_loop(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, rate: FloatArray) -> OpenLoop:
    """The steady state at ``rate`` requests a second a replica; beyond the admitted places it stays as it is there."""
    whole = load.prompt_tokens <= chunk_room(c, limits, 0.0) / c.step.attention_ranks
    # Where nothing is decoded and nobody waits, the next iteration begins with whoever came meanwhile.
    ahead = (load.decode_tokens > 0.0) | ((c.step.attention_ranks > 1.0) & ~whole)
    c = replace(c, lookahead=np.where(ahead, c.lookahead, 0.0))
    batch = decoding_batch(c, load, limits, rate)
    decoding = batch.sequences
    decodes = load.decode_tokens / c.tokens_per_step
    # Where the replica rests at times, those that find it at work find more at once.
    ended = batch.chain.ended(decodes, c.lookahead)
    working = np.where(whole, batch.chain.at_work(ended, c.lookahead), 1.0)
    under_way = decoding / working
    spread = np.maximum(batch.spread / working - under_way**2 * (1.0 - working), 0.0)
    prompts, chain, _ = settled(c, load, limits, rate, under_way, batch.chain, spread)
    queue = prompt_queue(prompts, rate, chain.iteration_s, (load.arrival_cv**2, load.length_cv**2))
    s = prompts.sharing
    busy = busy_share(prompts, queue, chain)
    follows = s * chain.follows + (1.0 - s) * busy
    iteration = chain.iteration_s
    mean = iteration / (1.0 - busy)
    each = busy / np.maximum(rate, 1e-12)
    present = 1.0 - np.exp(-(decoding + rate * (each + prompts.chunks * iteration)))
    present = np.where(answers_are_short(c, load), at_work(decoding + rate * prompts.chunks * iteration, busy), present)
    found = chain.found(decodes, c.lookahead)
    present = s * found.at_work + (1.0 - s) * present
    # Several prompts an iteration: what is left of it is longer by those it holds, and they come along.
    lumps = chain.variance_s2 / chain.mean_s
    mean = s * chain.mean_s + (1.0 - s) * mean
    # Gaps that scatter more come in bursts: those of one burst come along, and ride in the iteration before.
    near = rate * (mean + lumps) / 2.0
    burst, longer_s, sooner_s = _burst(load, rate, near, each, iteration + each)
    others = np.maximum(rate * present * (mean + s * lumps) + 2.0 * burst, 0.0)
    by_chance = present * chain.met_mean
    nobody = (1.0 - present) + present * np.maximum(chain.met_none, 1e-300) ** (others / np.maximum(by_chance, 1e-12))
    more = others / np.maximum(by_chance, 1e-12)
    company = beside_one(nobody, others).split(present * chain.met, more * chain.arriving, prompts.passed, 1)
    met = prompts_of(c, load, limits, under_way, company, iteration, prompts.passed)
    between = found.followed * (iteration + found.next_carries * found.next_longer_s)
    before = s * (present * (mean + longer_s) / 2.0 + c.lookahead * (between + sooner_s))
    # One that finds it at rest decodes beside nobody.
    tokens = np.minimum(load.prompt_tokens, chunk_room(c, limits, decoding) / c.step.attention_ranks)
    batches = np.stack([0.0 * under_way, under_way])
    alone = c.carrying(1.0)
    resting, working_s = alone.iteration_s(
        batches, batches * load.mean_context, tokens, tokens * load.prompt_tokens / 2.0
    )
    own = s * (met.one_s + iteration + (1.0 - present) * (resting - working_s))
    if queue is not None:
        before = before + (1.0 - s) * _before_alone(c, prompts, queue, present, iteration, mean)
        own = own + (1.0 - s) * queue.service_s
    later, _ = met.left_over(present * chain.met, more * chain.arriving, iteration)
    wait = s * (present * lumps / 2.0 + met.within_mean_s - met.one_s) + later
    if queue is not None:
        wait = wait + (1.0 - s) * queue.wait_s
    stages = c.step.pipeline
    fill = (stages - 1.0) * (s * met.part_s + (1.0 - s) * prompts.pass_s)
    return OpenLoop(
        decode_s=batch.seconds,
        own_s=own + fill + before + c.request_s,
        wait_s=wait,
        first=FirstTokens(
            rate=rate,
            prompts=met,
            queue=queue,
            iteration_s=iteration,
            mean_s=mean,
            present=present,
            chain=chain,
            found=found,
            lookahead=c.lookahead,
            stages=stages,
            variation=load.arrival_cv**2,
        ),
        decoding=decoding,
        iteration_s=iteration,
        prompt_s=each,
        batch_s=np.sqrt(decoding) * _slope(c, load, decoding) / (1.0 - follows) ** 2,
        lump_s=s * _lump_s(chain, rate) + (1.0 - s) * each / (1.0 - busy),
    )


def _burst(
    load: ServingLoad, rate: FloatArray, near: FloatArray, each: FloatArray, carrying_s: FloatArray
) -> tuple[Any, Any, Any]:
    """More than by chance, of a burst: who comes before and after one within half an iteration (``near``), and how much
    longer the iteration is then that one finds, and the one after it; requests and seconds.
    """
    if load.arrival_cv == 1.0:
        return 0.0, 0.0, 0.0
    lasting = rate * carrying_s

    def around(half: FloatArray) -> tuple[Any, Any, Any]:
        together, before = crowding(half, load.arrival_cv), crowding(3.0 * half, load.arrival_cv)
        return together, before - together, crowding(3.0 * half + lasting, load.arrival_cv) - before

    _, _, found = around(near)
    together, between, found = around(np.maximum(near + rate * each * found / 2.0, 0.0))
    return together, found * each, between * each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Saturation:
    """One replica of every candidate with all places taken: the same at any load, so a search needs it once."""

    cycle: Cycle
    requests_s: FloatArray


def saturation_of(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits) -> Saturation:
    """Continuous batches with every place taken; of ``load``, its rate or clients don't matter."""
    places = limits.sequences
    full = cycle(c, load, limits, places)
    rate = places / full.cycle_s
    return Saturation(cycle=full, requests_s=saturated_rate(c, load, limits, rate) if load.kind == "open" else rate)


def saturated_rate(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, in_chunks: FloatArray
) -> FloatArray:
    """Requests a second where every place is taken: an iteration admits as many as the ones before have ended.

    Answers of clients that wait for each other end together, and their next prompts share few iterations (``cycle``);
    others' end at any time, and hardly an iteration is without a prompt. ``in_chunks`` is what it is where prompts come
    in chunks of their own.
    """
    places = limits.sequences + np.zeros_like(c.request_s)
    decodes = load.decode_tokens / c.tokens_per_step
    each = places / (decodes + 1.0 + c.lookahead)
    decoding, context = each * decodes, each * decodes * load.mean_context
    prompts = prompts_of(c, load, limits, decoding, Company.by_chance(each))
    rate = each / (c.iteration_s(decoding, context) + prompts.shared_s * each)
    # No more than full iterations hold.
    room = chunk_room(c, limits, decoding)
    fitting = room / load.prompt_tokens
    attended = load.input_tokens * load.prefix_cache_hit + load.prompt_tokens / 2.0
    full = c.carrying(np.maximum(fitting, 1.0)).iteration_s(decoding, context, room, room * attended)
    several = np.where(c.step.attention_ranks > 1.0, prompts.sharing >= 1.0, fitting >= 2.0)
    found: FloatArray = np.where(several, np.minimum(rate, fitting / full), in_chunks)
    return found


def _slope(c: ServingCoefficients, load: ServingLoad, decoding: FloatArray) -> FloatArray:
    """What one sequence more adds to a decode iteration."""
    context = load.mean_context
    more = decoding + 1.0
    slope: FloatArray = c.iteration_s(more, more * context) - c.iteration_s(decoding, decoding * context)
    return slope


def _before_alone(
    c: ServingCoefficients, prompts: Prompts, queue: PromptQueue, present: Any, iteration: Any, mean: Any
) -> Any:
    """Until a prompt's own first iteration where nobody is before it: what is left of the one under way, and the one
    that is fixed already."""
    idle = np.maximum(present - queue.met, 0.0)
    joined, last = queue.some - queue.full, 1.0 / prompts.chunks
    soon = queue.full * np.minimum(prompts.ranks * last, 1.0)
    # Behind the last chunk of another comes any iteration, behind the others one like theirs.
    following = joined * ((1.0 - last) * queue.own_s + last * mean) + (idle + soon) * mean
    start = iteration / 2.0 + c.lookahead * mean
    behind = queue.just_before(idle, start) * np.maximum(queue.service_s - start / 2.0, 0.0)
    return idle * iteration / 2.0 + joined * queue.own_s / 2.0 + c.lookahead * following + behind


def _lump_s(chain: Iterations, rate: FloatArray) -> FloatArray:
    follows = chain.follows
    lump: FloatArray = np.sqrt(
        chain.variance_s2 / np.maximum(rate * chain.mean_s, 1e-12) * (1.0 + follows) / (1.0 - follows)
    )
    return lump
