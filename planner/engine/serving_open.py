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

from planner.engine.queueing import many_server_wait
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad, chunk_room, pipeline_fill

FloatArray = NDArray[np.float64]

ROUNDS: Final = 6
MOST_BUSY: Final = 0.98
"""Share of time that prompts take where they always wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop:
    """How one replica of every candidate serves an open loop; seconds, arrays of length ``n``."""

    decode_s: FloatArray
    """From first token to last."""
    own_s: FloatArray
    """To the first token where nobody else waits: one's prompt, and the iterations before it can begin."""
    wait_s: FloatArray
    """Behind other prompts, on average."""
    waits: FloatArray
    """Share of requests that meet other prompts."""
    decoding: FloatArray
    """Sequences decoding, on average over time."""
    iteration_s: FloatArray
    """One decode iteration of the average batch."""
    prompt_s: FloatArray
    """What one prompt adds to the iterations that carry it."""
    lump_s: FloatArray
    """The same as if prompts came singly and by chance, with the variance that they have bunched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prompts:
    """What a prompt adds to the iterations that carry it, seconds."""

    shared_s: Any
    """Each of several that share one iteration."""
    alone_s: Any
    """In chunks of its own."""
    sharing: Any
    """1 where two prompts fit the token budget, 0 where hardly one does."""
    chunks: Any
    side_by_side: Any
    """Prompts in chunks of their own that go on at a time, each on its attention rank."""
    ranks: Any

    @property
    def each_s(self) -> Any:
        return self.sharing * self.shared_s + (1.0 - self.sharing) * self.alone_s / self.side_by_side

    def queue(self, rate: FloatArray, iteration: Any, variation: tuple[Any, Any]) -> tuple[Any, Any, Any]:
        """For prompts with iterations to themselves: service and wait, seconds, and how busy their ranks are."""
        service = self.alone_s + self.chunks * iteration
        serving = np.minimum(rate * service / self.ranks, MOST_BUSY)
        return service, many_server_wait(serving, service, self.ranks, *variation), serving


def open_loop(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, rate: FloatArray) -> OpenLoop:
    """The steady state at ``rate`` requests a second a replica; beyond the admitted places it stays as it is there."""
    decoding, decode_s, together = _decoding(c, load, limits, rate)
    load_now = _prompts(c, load, limits, decoding, together)
    iteration = _iteration(c, load, decoding, decoding / (1.0 - _busy(rate, load_now)))
    busy = _busy(rate, load_now)
    mean = iteration / (1.0 - busy)
    present = 1.0 - np.exp(-(decoding + rate * (load_now.each_s + load_now.chunks * iteration)))
    variation = load.arrival_cv**2 + load.length_cv**2
    # Several prompts an iteration: what is left of it is longer by those it holds, and they come along.
    lumps = load_now.each_s * busy / (1.0 - busy**2) * variation
    others = rate * (present * mean + lumps)
    met = _prompts(c, load, limits, decoding, 1.0 + others)
    # One at a time: a server with a queue, and an iteration to wait for where it only decodes.
    _, queue, serving = load_now.queue(rate, iteration, (load.arrival_cv**2, load.length_cv**2))
    fixed = np.maximum(present - serving * (load_now.chunks - 1.0) / load_now.chunks, 0.0)
    s = load_now.sharing
    alone = np.maximum(present - serving, 0.0) * iteration / 2.0 + c.lookahead * fixed * mean
    before = s * (0.5 + c.lookahead) * present * mean + (1.0 - s) * alone
    own = s * met.shared_s + (1.0 - s) * load_now.alone_s
    stages = pipeline_fill(c, load, limits, decoding)
    return OpenLoop(
        decode_s=decode_s,
        own_s=own * stages + (s + (1.0 - s) * load_now.chunks) * iteration + before + c.request_s,
        wait_s=s * (lumps / 2.0 + others * met.shared_s) + (1.0 - s) * queue,
        waits=s * (1.0 - (1.0 - busy) * np.exp(-others)) + (1.0 - s) * serving,
        decoding=decoding,
        iteration_s=iteration,
        prompt_s=load_now.each_s,
        lump_s=load_now.each_s * np.sqrt(together) / (1.0 - busy),
    )


def _busy(rate: FloatArray, prompts: _Prompts) -> FloatArray:
    busy: FloatArray = np.minimum(rate * prompts.each_s, MOST_BUSY)
    return busy


def _decoding(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, rate: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sequences decoding by Little's law, how long each does, and prompts that share an iteration.

    Time grows with N, so plain iteration creeps up to the solution ever slower towards saturation: every second
    step is extrapolated (Aitken).
    """
    places = limits.sequences + np.zeros_like(rate)
    decodes = load.decode_tokens / c.tokens_per_step
    together = np.ones_like(rate)
    bunched = np.zeros_like(rate)

    def decode(sequences: FloatArray) -> FloatArray:
        nonlocal together, bunched
        prompts = _prompts(c, load, limits, sequences + 1.0, together)
        busy = _busy(rate, prompts)
        spread = sequences / (1.0 - busy) ** 2
        iteration = _iteration(c, load, np.minimum(1.0 + sequences + bunched, places), spread)
        mean = iteration / (1.0 - busy)
        after = busy * _held_up(rate, prompts, iteration, mean, busy) / (1.0 - busy)
        meet = np.clip(1.0 - 2.0 / ((1.0 - busy) * np.maximum(decodes, 1.0)), 0.0, 1.0)
        followers = busy * (1.0 + busy**2) / (1.0 - busy)
        bunched = ((2.0 - busy) * followers + prompts.sharing * busy**2) * meet
        # Iterations that hold prompts last longer, so more come during them than during others.
        arriving = rate * (mean + prompts.each_s * busy / (1.0 - busy**2))
        together = np.maximum(arriving / -np.expm1(-np.maximum(arriving, 1e-9)), 1.0)
        seconds: FloatArray = np.where(decodes > 0, decodes * mean + after, 0.0 * mean)
        return seconds

    sequences = np.zeros_like(rate)
    for _ in range(ROUNDS):
        first = np.minimum(rate * decode(sequences), places)
        second = np.minimum(rate * decode(first), places)
        bend = second - 2.0 * first + sequences
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = sequences - (first - sequences) ** 2 / bend
        low, high = np.minimum(first, second), np.where(second >= first, places, np.maximum(first, second))
        sequences = np.where(np.isfinite(jump), np.clip(jump, low, high), second)
    seconds = decode(sequences)
    return np.minimum(rate * seconds, places), seconds, together


def _held_up(rate: FloatArray, prompts: _Prompts, iteration: Any, mean: Any, busy: FloatArray) -> Any:
    """How much longer prompts could gather before a first token than before an average iteration, seconds.

    Those that share an iteration gather while one's own prompt takes; others as long as one waits and is served, less
    what gathers, and what is left half done, at the end of any iteration.
    """
    alone = np.zeros_like(busy)
    if np.any(prompts.sharing < 1.0):
        service, wait, _ = prompts.queue(rate, iteration, (1.0, 0.0))
        left = 2.0 * mean + (prompts.chunks - 1.0) / 2.0 * mean
        left = left + rate * mean * prompts.chunks * (wait + service / 2.0)
        alone = np.maximum(wait + service - left, 0.0)
    return prompts.sharing * prompts.alone_s * (1.0 + busy**2) + (1.0 - prompts.sharing) * alone


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


def _prompts(
    c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, decoding: FloatArray, together: Any
) -> _Prompts:
    prompt, context = load.prompt_tokens, load.mean_context
    attended = load.input_tokens * load.prefix_cache_hit + prompt / 2.0
    several, lone = c.carrying(together), c.carrying(1.0)
    room = chunk_room(c, limits, decoding)
    # A prompt sits on one attention rank, whose budget is its share of the replica's.
    ranks_room = room * several.step.prompt_ranks / c.step.attention_ranks
    own_room = room / c.step.attention_ranks
    base = c.iteration_s(decoding, decoding * context)

    def added(of: ServingCoefficients, tokens: Any) -> Any:
        return of.iteration_s(decoding, decoding * context, tokens, tokens * attended) - base

    sharing = np.clip(room / prompt - 1.0, 0.0, 1.0)
    many = np.minimum(together * prompt, np.maximum(ranks_room, prompt))
    shared = added(several, many) * prompt / many
    alone = added(lone, np.minimum(own_room, prompt))
    if np.any(prompt > own_room):
        whole = np.maximum(np.floor(prompt / own_room), 1.0)
        rest = prompt - whole * own_room
        alone = whole * alone + np.where(rest > 0.0, added(lone, np.maximum(rest, 0.0)), 0.0)
    return _Prompts(
        shared_s=shared,
        alone_s=alone,
        sharing=sharing,
        chunks=np.ceil(prompt / own_room),
        side_by_side=several.step.prompt_ranks,
        ranks=c.step.attention_ranks,
    )
