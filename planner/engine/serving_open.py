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
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad, pipeline_fill
from planner.engine.serving_prompts import MOST_BUSY, PromptQueue, Prompts, prompts_of
from planner.engine.serving_short import SHORT, at_work, held_up_after
from planner.engine.serving_spread import FirstTokens

FloatArray = NDArray[np.float64]

FARTHEST: Final = (1.0, 3.0, 10.0, 30.0, 100.0, 0.0)
"""How far each round may extrapolate, in its last steps: where iterations change their kind between few and many
sequences there are two solutions, and a long first jump would land on the upper one."""
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
    decoding, decode_s, arriving = _decoding(c, load, limits, rate)
    together, single = _company(arriving)
    prompts = prompts_of(c, load, limits, decoding, together, single)
    queue = _queue(c, load, prompts, rate, decoding, (load.arrival_cv**2, load.length_cv**2))
    busy = _busy(rate, prompts, queue)
    iteration = _iteration(c, load, decoding, decoding / (1.0 - busy))
    mean = iteration / (1.0 - busy)
    s = prompts.sharing
    each = busy / np.maximum(rate, 1e-12)
    present = 1.0 - np.exp(-(decoding + rate * (each + prompts.chunks * iteration)))
    present = np.where(_short(c, load), at_work(decoding + rate * prompts.chunks * iteration, busy), present)
    # Several prompts an iteration: what is left of it is longer by those it holds, and they come along.
    lumps = each * busy / (1.0 - busy**2) * (load.arrival_cv**2 + load.length_cv**2)
    others = rate * (present * mean + lumps)
    # Gaps that scatter more come in bursts: those of one burst come along, and ride in the iteration before.
    burst = BURST_ITERATIONS * (load.arrival_cv**2 - 1.0) * -np.expm1(-rate * present * mean)
    others = np.maximum(others + burst, 0.0)
    met = prompts_of(c, load, limits, decoding, 1.0 + others, np.exp(-others))
    before = s * ((0.5 + c.lookahead) * present * mean + c.lookahead * burst * each)
    own = s * (met.shared_s + iteration)
    if queue is not None:
        before = before + (1.0 - s) * _before_alone(c, prompts, queue, present, iteration, mean)
        own = own + (1.0 - s) * queue.service_s
    wait = s * (lumps / 2.0 + others * met.shared_s)
    if queue is not None:
        wait = wait + (1.0 - s) * queue.wait_s
    stages = pipeline_fill(c, load, limits, decoding)
    fill = (stages - 1.0) * (s * met.shared_s + (1.0 - s) * prompts.alone_s)
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
            lookahead=c.lookahead,
            stages=stages,
            variation=load.arrival_cv**2,
        ),
        decoding=decoding,
        iteration_s=iteration,
        prompt_s=each,
        batch_s=np.sqrt(decoding) * _slope(c, load, decoding) / (1.0 - busy) ** 2,
        lump_s=each * np.sqrt(together) / (1.0 - busy),
    )


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


def _busy(rate: FloatArray, prompts: Prompts, queue: PromptQueue | None) -> FloatArray:
    """Share of time that prompts take."""
    busy = prompts.sharing * rate * prompts.shared_s
    if queue is not None:
        busy = busy + (1.0 - prompts.sharing) * queue.added_share
    least: FloatArray = np.minimum(busy, MOST_BUSY)
    return least


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
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sequences decoding by Little's law, how long each does, and prompts that come during an iteration.

    Time grows with N, so plain iteration creeps up to the solution ever slower towards saturation: every second
    step is extrapolated (Aitken), at first not far.
    """
    places = limits.sequences + np.zeros_like(rate)
    decodes = load.decode_tokens / c.tokens_per_step
    short = _short(c, load)
    arriving = np.zeros_like(rate)
    bunched = np.zeros_like(rate)
    changed = np.zeros_like(rate)

    def decode(sequences: FloatArray) -> FloatArray:
        nonlocal arriving, bunched, changed
        met = np.minimum(1.0 + sequences + bunched, places)
        prompts = prompts_of(c, load, limits, met, *_company(arriving))
        queue = _queue(c, load, prompts, rate, met)
        busy = _busy(rate, prompts, queue)
        spread = sequences / (1.0 - busy) ** 2
        iteration = _iteration(c, load, np.minimum(1.0 + sequences + bunched, places), spread)
        mean = iteration / (1.0 - busy)
        after = busy * _held_up(c, rate, prompts, queue, mean, busy) / (1.0 - busy)
        if np.any(short):
            following = 0.0 * busy if queue is None else _following(c, rate, prompts, queue, mean)
            soon = held_up_after(prompts, queue, rate, decodes, iteration, busy, c.lookahead, following)
            after = np.where(short, soon, after)
        meet = np.clip(1.0 - 2.0 / ((1.0 - busy) * np.maximum(decodes, 1.0)), 0.0, 1.0)
        followers = busy * (1.0 + busy**2) / (1.0 - busy)
        bunched = ((2.0 - busy) * followers + prompts.sharing * busy**2) * meet
        # Iterations that hold prompts last longer, so more come during them than during others.
        coming = rate * mean + busy**2 / (1.0 - busy**2)
        # Where hardly anything decodes, prompts alone decide how long an iteration is: by turns too long and too short.
        change = coming - arriving
        arriving = arriving + np.where(short & (change * changed < 0.0), change / 2.0, change)
        changed = change
        seconds: FloatArray = np.where(decodes > 0, decodes * mean + after, 0.0 * mean)
        return seconds

    sequences = np.zeros_like(rate)
    for farthest in FARTHEST:
        first = np.minimum(rate * decode(sequences), places)
        second = np.minimum(rate * decode(first), places)
        bend = second - 2.0 * first + sequences
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = sequences - (first - sequences) ** 2 / bend
        reach = np.minimum(second + farthest * (second - first), places)
        low, high = np.minimum(first, second), np.where(second >= first, reach, np.maximum(first, second))
        sequences = np.where(np.isfinite(jump), np.clip(jump, low, high), second)
    seconds = decode(sequences)
    return np.minimum(rate * seconds, places), seconds, arriving


def _short(c: ServingCoefficients, load: ServingLoad) -> Any:
    """Where answers end before what their prompt holds up has passed."""
    return load.decode_tokens / c.tokens_per_step < SHORT


def _company(arriving: Any) -> tuple[Any, Any]:
    """Prompts in an iteration that has any, where ``arriving`` come in one by chance; how often it is one alone.

    >>> [round(float(value), 3) for value in _company(0.5)]
    [1.271, 0.771]
    """
    some = -np.expm1(-np.maximum(arriving, 1e-9))
    together = np.maximum(arriving / some, 1.0)
    return together, together * (1.0 - some)


def _held_up(
    c: ServingCoefficients, rate: FloatArray, prompts: Prompts, queue: PromptQueue | None, mean: Any, busy: FloatArray
) -> Any:
    """How much longer prompts could gather before a first token than before an average iteration, seconds.

    Those that share an iteration gather while one's own prompt takes.
    """
    alone = 0.0 * busy if queue is None else _following(c, rate, prompts, queue, mean)
    return prompts.sharing * prompts.alone_s * (1.0 + busy**2) + (1.0 - prompts.sharing) * alone


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


def _iteration(c: ServingCoefficients, load: ServingLoad, sequences: FloatArray, spread: FloatArray) -> FloatArray:
    """A decode iteration, averaged over batches of variance ``spread``.

    Linear in the batch but for experts, whose coverage flattens: two batches a standard deviation apart then stand
    for all.
    """
    context = load.mean_context
    if not np.any(c.step.expert_weights_s):
        iteration: FloatArray = c.iteration_s(sequences, sequences * context)
        return iteration
    off = np.minimum(np.sqrt(spread), sequences)
    few, many = sequences - off, sequences + off
    mean: FloatArray = 0.5 * (c.iteration_s(few, few * context) + c.iteration_s(many, many * context))
    return mean
