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

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad
from planner.engine.serving_prompts import MOST_BUSY, PromptQueue, Prompts, prompts_of
from planner.engine.serving_shared import Company, Iterations, beside_one
from planner.engine.serving_short import SHORT, at_work, held_up_after
from planner.engine.serving_spread import FirstTokens

FloatArray = NDArray[np.float64]

FARTHEST: Final = (1.0, 3.0, 10.0, 30.0, 100.0, 0.0)
"""How far each round may extrapolate, in its last steps: where iterations change their kind between few and many
sequences there are two solutions, and a long first jump would land on the upper one."""
SETTLED: Final = 1e-4
"""Of the sequences decoding, what the last two rounds may differ by where no more are needed."""
MOST_GAIN: Final = 0.8
"""Of sequences that come because others decode, of those: larger batches take longer, and more come meanwhile."""
BURST_ITERATIONS: Final = 2.5
"""Around one's own, in which the others of a burst come: simulations with gaps of CV 0.5 to 3, 2026-11-30."""


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
    decoding, decode_s, chain, spread = _decoding(c, load, limits, rate)
    prompts, chain, _ = _settled(c, load, limits, rate, decoding, chain, spread)
    queue = _queue(c, load, prompts, rate, decoding, (load.arrival_cv**2, load.length_cv**2))
    s = prompts.sharing
    busy = _busy(prompts, queue, chain, rate)
    follows = s * chain.follows + (1.0 - s) * busy
    iteration = chain.iteration_s
    mean = iteration / (1.0 - busy)
    each = busy / np.maximum(rate, 1e-12)
    present = 1.0 - np.exp(-(decoding + rate * (each + prompts.chunks * iteration)))
    present = np.where(_short(c, load), at_work(decoding + rate * prompts.chunks * iteration, busy), present)
    decodes = load.decode_tokens / c.tokens_per_step
    found = chain.found(decodes, c.lookahead)
    present = s * found.at_work + (1.0 - s) * present
    # Several prompts an iteration: what is left of it is longer by those it holds, and they come along.
    lumps = chain.variance_s2 / chain.mean_s * (load.arrival_cv**2 + load.length_cv**2)
    mean = s * chain.mean_s + (1.0 - s) * mean
    others = rate * present * (mean + s * lumps)
    # Gaps that scatter more come in bursts: those of one burst come along, and ride in the iteration before.
    burst = BURST_ITERATIONS * (load.arrival_cv**2 - 1.0) * -np.expm1(-rate * present * mean)
    others = np.maximum(others + burst, 0.0)
    by_chance = present * chain.met_mean
    nobody = (1.0 - present) + present * np.maximum(chain.met_none, 1e-300) ** (
        others / np.maximum(by_chance, 1e-12)
    )
    met = prompts_of(c, load, limits, decoding, beside_one(nobody, others))
    before = s * (present * mean / 2.0 + c.lookahead * (found.followed * (iteration + found.next_carries * found.next_longer_s) + burst * each))
    own = s * (met.one_s + iteration)
    if queue is not None:
        before = before + (1.0 - s) * _before_alone(c, prompts, queue, present, iteration, mean)
        own = own + (1.0 - s) * queue.service_s
    more = others / np.maximum(by_chance, 1e-12)
    later, _ = met.left_over(present * chain.met, more * chain.arriving, iteration)
    wait = s * (present * lumps / 2.0 + met.within_mean_s - met.one_s) + later
    if queue is not None:
        wait = wait + (1.0 - s) * queue.wait_s
    stages = c.step.pipeline
    fill = (stages - 1.0) * (s * met.part_s + (1.0 - s) * prompts.pass_s)
    return OpenLoop(
        decode_s=decode_s,
        own_s=own + fill + before + c.request_s,
        wait_s=wait,
        first=FirstTokens(
            rate=rate,
            prompts=prompts,
            queue=queue,
            iteration_s=iteration,
            mean_s=mean,
            present=present,
            chain=chain,
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


def saturated_rate(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits) -> FloatArray:
    """Requests a second where every place is taken: an iteration admits as many as the ones before have ended.

    Answers of clients that wait for each other end together, and their next prompts share few iterations (``cycle``);
    others' end at any time, and hardly an iteration is without a prompt. Infinite where prompts come in chunks.
    """
    places = limits.sequences + np.zeros_like(c.request_s)
    decodes = load.decode_tokens / c.tokens_per_step
    each = places / (decodes + 1.0 + c.lookahead)
    prompts = prompts_of(c, load, limits, each * decodes, Company.by_chance(each))
    mean = c.iteration_s(each * decodes, each * decodes * load.mean_context) + prompts.shared_s * each
    rate: FloatArray = np.where(prompts.sharing >= 1.0, each / mean, np.inf)
    return rate


def _slope(c: ServingCoefficients, load: ServingLoad, decoding: FloatArray) -> FloatArray:
    """What one sequence more adds to a decode iteration."""
    context = load.mean_context
    more = decoding + 1.0
    slope: FloatArray = c.iteration_s(more, more * context) - c.iteration_s(decoding, decoding * context)
    return slope


def _queue(
    c: ServingCoefficients,
    load: ServingLoad,
    prompts: Prompts,
    rate: FloatArray,
    decoding: FloatArray,
    variation: tuple[Any, Any] = (1.0, 0.0),
) -> PromptQueue | None:
    """The queue of prompts with iterations to themselves; none where all share theirs."""
    if not np.any(prompts.sharing < 1.0):
        return None
    return prompts.queue(rate, c.iteration_s(decoding, decoding * load.mean_context), variation)


def _busy(prompts: Prompts, queue: PromptQueue | None, chain: Iterations, rate: FloatArray) -> FloatArray:
    """Share of time that prompts take."""
    busy: FloatArray = prompts.sharing * (1.0 - chain.length_s[0] / chain.always_mean_s)
    if queue is not None:
        busy = busy + (1.0 - prompts.sharing) * queue.added_share
    return busy


def _lump_s(chain: Iterations, rate: FloatArray) -> FloatArray:
    follows = chain.follows
    lump: FloatArray = np.sqrt(
        chain.variance_s2 / np.maximum(rate * chain.mean_s, 1e-12) * (1.0 + follows) / (1.0 - follows)
    )
    return lump


def _settled(
    c: ServingCoefficients,
    load: ServingLoad,
    limits: AdmissionLimits,
    rate: FloatArray,
    sequences: FloatArray,
    chain: Iterations,
    spread: Any = 0.0,
) -> tuple[Prompts, Iterations, Any]:
    """What prompts add where ``sequences`` decode, and the chain of iterations that carry them, once around."""
    iteration, slope = _iteration(c, load, sequences, spread)
    company = chain.next_company(load.decode_tokens / c.tokens_per_step, c.lookahead)
    prompts = prompts_of(c, load, limits, sequences, company)
    return prompts, Iterations.of(rate, prompts.company, iteration + prompts.added_s), slope


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


def _decoding(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, rate: FloatArray
) -> tuple[FloatArray, FloatArray, Iterations, FloatArray]:
    """Sequences decoding by Little's law, how long each does, and what iterations then carry.

    Time grows with N, so plain iteration creeps up to the solution ever slower towards saturation: every second
    step is extrapolated (Aitken), at first not far.
    """
    places = limits.sequences + np.zeros_like(rate)
    decodes = load.decode_tokens / c.tokens_per_step
    short = _short(c, load)
    bunched = np.zeros_like(rate)
    follows = np.zeros_like(rate)
    gain = np.zeros_like(rate)
    chain = Iterations.without_prompts(rate, c.iteration_s(1.0 + bunched, load.mean_context + bunched))

    def decode(sequences: FloatArray) -> FloatArray:
        nonlocal chain, bunched, follows, gain
        met = np.minimum(1.0 + sequences + bunched, places)
        spread = sequences / ((1.0 - follows) ** 2 * (1.0 - gain))
        prompts, chain, slope = _settled(c, load, limits, rate, met, chain, spread)
        s, iteration = prompts.sharing, chain.length_s[0]
        queue = _queue(c, load, prompts, rate, met)
        busy = _busy(prompts, queue, chain, rate)
        follows = s * chain.follows + (1.0 - s) * busy
        gain = np.clip(rate * decodes * slope / (1.0 - follows), 0.0, MOST_GAIN)
        mean = iteration / (1.0 - busy)
        after = s * _following_shared(prompts, chain, rate, follows)
        if queue is not None:
            after = after + (1.0 - s) * busy * _following(c, rate, prompts, queue, mean) / (1.0 - busy)
        if np.any(short):
            following = 0.0 * busy if queue is None else _following(c, rate, prompts, queue, mean)
            soon = held_up_after(prompts, queue, rate, decodes, chain, busy, c.lookahead, following)
            after = np.where(short, soon, after)
        meet = np.clip(1.0 - 2.0 / ((1.0 - follows) * np.maximum(decodes, 1.0)), 0.0, 1.0)
        scatter = 1.0 + rate * chain.variance_s2 / chain.mean_s
        grouped = scatter * (1.0 + follows - follows**2) / (1.0 - follows) - 1.0
        singly = (2.0 - busy) * busy * (1.0 + busy**2) / (1.0 - busy)
        bunched = (s * grouped + (1.0 - s) * singly) * meet
        seconds: FloatArray = np.where(decodes > 0, decodes * mean + after, 0.0 * mean)
        return seconds

    sequences = np.zeros_like(rate)
    for farthest in FARTHEST:
        first = np.minimum(rate * decode(sequences), places)
        second = np.minimum(rate * decode(first), places)
        if np.all(np.abs(second - first) <= SETTLED * second):
            sequences = second
            break
        bend = second - 2.0 * first + sequences
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = sequences - (first - sequences) ** 2 / bend
        reach = np.minimum(second + farthest * (second - first), places)
        low, high = np.minimum(first, second), np.where(second >= first, reach, np.maximum(first, second))
        sequences = np.where(np.isfinite(jump), np.clip(jump, low, high), second)
    seconds = decode(sequences)
    sequences = np.minimum(rate * seconds, places)
    return sequences, seconds, chain, sequences / ((1.0 - follows) ** 2 * (1.0 - gain))


def _short(c: ServingCoefficients, load: ServingLoad) -> Any:
    """Where answers end before what their prompt holds up has passed."""
    return load.decode_tokens / c.tokens_per_step < SHORT


def _following_shared(prompts: Prompts, chain: Iterations, rate: FloatArray, follows: FloatArray) -> FloatArray:
    """How much longer the iterations last that follow one's own, all together, than as many others."""
    some, nobody, further = np.maximum(1.0 - chain.met_none, 1e-12), chain.met_none, prompts.further_s
    first = prompts.one_s - further
    usual = first * (1.0 - chain.no_arrival) + further * rate * chain.mean_s
    arriving = rate * (chain.iteration_s + prompts.one_s)
    more = further * rate * chain.met_mean
    carries = 1.0 - np.exp(-arriving) * (nobody + some * np.exp(-more / some))
    own = first * carries + further * (arriving + more)
    after: FloatArray = (own - usual) / (1.0 - follows)
    return after


def _following(c: ServingCoefficients, rate: FloatArray, prompts: Prompts, queue: PromptQueue, mean: Any) -> Any:
    """The same of prompts in chunks: as long as one waits and is served, less what gathers, and what is left half done,
    at the end of any iteration.
    """
    left = 2.0 * mean + (prompts.chunks - 1.0) / 2.0 * mean
    # Beyond what the ranks serve no more come in that time: the wait is that of ranks hardly ever idle.
    coming = np.minimum(rate, MOST_BUSY * prompts.ranks / queue.service_s)
    left = left + coming * mean * prompts.chunks * (queue.wait_s + queue.service_s / 2.0)
    follow = np.maximum(queue.wait_s + queue.service_s - left, 0.0)
    # Side by side, others are about as far as they came later: one more iteration where the next is fixed ahead.
    longer = np.maximum(queue.own_s - mean, 0.0)
    beside = (prompts.chunks + 1.0) / 2.0 + c.lookahead * (1.0 - 1.0 / prompts.chunks)
    return np.where(prompts.ranks > 1.0, beside * longer, follow)


def _iteration(
    c: ServingCoefficients, load: ServingLoad, sequences: FloatArray, spread: Any
) -> tuple[FloatArray, Any]:
    """A decode iteration, averaged over batches of variance ``spread``, and what one sequence more adds to it.

    Linear in the batch but for experts, whose coverage flattens: two batches a standard deviation apart then stand
    for all. The second is asked for only there, and 0 elsewhere.
    """
    context = load.mean_context
    if not np.any(c.step.expert_weights_s):
        iteration: FloatArray = c.iteration_s(sequences, sequences * context)
        return iteration, 0.0
    off = np.maximum(np.minimum(np.sqrt(spread), sequences), 1e-3)
    both = np.stack([sequences - off, sequences + off])
    few, many = c.iteration_s(both, both * context)
    return 0.5 * (few + many), (many - few) / (2.0 * off)
