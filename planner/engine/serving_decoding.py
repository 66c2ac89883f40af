"""The decoding batch of an open loop: Little's law, N = rate x D, solved together with what iterations carry.

    decode  D = L t + what follows one's own prompt        L decode iterations of t = t(N) / (1 - u)

``u`` is the share of time that prompts take. A prompt holds up everything that decodes, so prompts that came meanwhile
follow it and decode along: a request that has just been prefilled finds the others bunched. Of a chain of iterations
with ``f`` carried on to a later one and prompts that scatter ``v`` times as chance does, it sees

    v (1 + f - f^2) / (1 - f) - 1

sequences more than an average moment (arrivals that cause arrivals: Hawkes, 1971).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import crowding
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad
from planner.engine.serving_prompts import Prompts, passed_graphs, prompts_of
from planner.engine.serving_queue import PromptQueue, prompt_queue
from planner.engine.serving_runs import Runs, runs_of
from planner.engine.serving_shared import Iterations
from planner.engine.serving_short import SHORT, held_up_after

FloatArray = NDArray[np.float64]

FARTHEST: Final = (1.0, 5.0, 30.0, 100.0, 0.0)
"""How far each round may extrapolate, in its last steps: where iterations change their kind between few and many
sequences there are two solutions, and a long first jump would land on the upper one."""
SETTLED: Final = 1e-4
"""Of the sequences decoding, what the last two rounds may differ by where no more are needed."""
MOST_GAIN: Final = 0.8
"""Of sequences that come because others decode, of those: larger batches take longer, and more come meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """Arrays over candidates."""

    sequences: FloatArray
    """Decoding on average over time."""
    seconds: FloatArray
    """From a request's first token to its last."""
    spread: FloatArray
    """Variance of the sequences decoding."""
    chain: Iterations
    """As those that decode find them."""


def decoding_batch(c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, rate: FloatArray) -> Decoding:
    """The steady state at ``rate`` requests a second.

    Time grows with N, so plain iteration creeps up to the solution ever slower towards saturation: every second
    step is extrapolated (Aitken), at first not far.
    """
    places = limits.sequences + np.zeros_like(rate)
    found = _Rounds.begun(c, load, limits, rate)
    sequences = np.zeros_like(rate)
    for farthest in FARTHEST:
        first = np.minimum(rate * found.decode_s(sequences), places)
        second = np.minimum(rate * found.decode_s(first), places)
        if np.all(np.abs(second - first) <= SETTLED * second):
            sequences = second
            break
        bend = second - 2.0 * first + sequences
        with np.errstate(divide="ignore", invalid="ignore"):
            jump = sequences - (first - sequences) ** 2 / bend
        reach = np.minimum(second + farthest * (second - first), places)
        low, high = np.minimum(first, second), np.where(second >= first, reach, np.maximum(first, second))
        # Steps that still grow say nothing about where they end.
        told = np.isfinite(jump) & ((bend < 0.0) | (second < first))
        sequences = np.where(told, np.clip(jump, low, high), second)
    seconds = found.decode_s(sequences)
    sequences = np.minimum(rate * seconds, places)
    spread = sequences / ((1.0 - found.follows) ** 2 * (1.0 - found.gain))
    return Decoding(sequences=sequences, seconds=seconds, spread=spread, chain=found.chain)


@dataclass(slots=True, kw_only=True)
class _Rounds:
    """Rounds of the fixed point: each begins with what the one before found."""

    c: ServingCoefficients
    load: ServingLoad
    limits: AdmissionLimits
    rate: FloatArray
    chain: Iterations
    """As one that decodes finds them."""
    sharing: Any
    bunched: Any
    """Sequences beyond the average that one which decodes sees,"""
    meet: Any
    """and how much of its answer they share."""
    usual_s: Any
    """To decode an answer in average iterations."""
    follows: Any
    gain: Any

    @classmethod
    def begun(cls, c: ServingCoefficients, load: ServingLoad, limits: AdmissionLimits, rate: FloatArray) -> Self:
        zero = np.zeros_like(rate)
        chain = Iterations.without_prompts(rate, c.iteration_s(1.0 + zero, load.mean_context + zero))
        return cls(
            c=c, load=load, limits=limits, rate=rate, chain=chain,
            sharing=zero + 1.0, bunched=zero, meet=zero + 1.0, usual_s=zero + np.inf, follows=zero, gain=zero,
        )  # fmt: skip

    def decode_s(self, sequences: FloatArray) -> FloatArray:
        """From first token to last beside ``sequences``."""
        c, load, rate = self.c, self.load, self.rate
        decodes = load.decode_tokens / c.tokens_per_step
        prompts, slope = self._met(sequences)
        chain, s = self.chain, prompts.sharing
        iteration = chain.iteration_s
        queue = prompt_queue(prompts, rate, iteration)
        busy = busy_share(prompts, queue, chain)
        follows = s * chain.follows + (1.0 - s) * busy
        mean = iteration / (1.0 - busy)
        runs = runs_of(rate, iteration, chain.some_s, np.ones_like(rate), c.lookahead)
        after = s * _following_shared(prompts, chain, rate, follows, runs)
        if queue is not None:
            after = after + (1.0 - s) * _following(prompts, queue, mean, busy)
        short = answers_are_short(c, load)
        if np.any(short):
            after = np.where(short, held_up_after(prompts, queue, rate, decodes, chain, busy, c.lookahead, runs), after)
        bunched = _bunched(prompts, chain, busy, follows, decodes, c.lookahead)
        if load.arrival_cv != 1.0:
            # Those of one's own burst decode along, or follow and hold up one's decodes.
            along, later = _burst(load, rate, chain, decodes * mean)
            bunched = bunched + along / (1.0 - follows)
            after = after + later * busy / np.maximum(rate, 1e-12) / (1.0 - follows)
        self.sharing, self.bunched, self.follows, self.usual_s = s, bunched, follows, decodes * mean
        self.meet = np.clip(1.0 - 2.0 / ((1.0 - follows) * np.maximum(decodes, 1.0)), 0.0, 1.0)
        self.gain = np.clip(rate * decodes * slope / (1.0 - follows), 0.0, MOST_GAIN)
        longest = np.maximum(self.usual_s + after, decodes * iteration)
        seconds: FloatArray = np.where(decodes > 0, longest, 0.0 * mean)
        return seconds

    def _met(self, sequences: FloatArray) -> tuple[Prompts, Any]:
        """What prompts add beside what one that decodes meets, and what one sequence more adds; the chain with it.

        Those that are there only because one's own prompt held all up are met for less of a short answer.
        """
        usual = np.minimum(sequences, self.rate * self.usual_s)
        longer = (sequences - usual) * (1.0 - self.sharing * (1.0 - self.meet))
        others = usual + longer + self.bunched * self.meet
        one = np.where(self.load.decode_tokens > 0.0, 1.0, 0.0)
        met = np.minimum(one + others, self.limits.sequences)
        spread = others / ((1.0 - self.follows) * (1.0 - self.gain))
        # Iterations with prompts follow others with some, whose requests decode along: those without hold fewer.
        carried = np.where(self.c.step.attention_ranks > 1.0, self.sharing, 1.0) * self.chain.company.mean
        fewer = self.follows / (1.0 - self.follows) * carried * self.meet
        prompts, self.chain, slope = settled(
            self.c, self.load, self.limits, self.rate, met, self.chain, spread, 1.0, fewer
        )
        return prompts, slope


def settled(
    c: ServingCoefficients,
    load: ServingLoad,
    limits: AdmissionLimits,
    rate: FloatArray,
    sequences: FloatArray,
    chain: Iterations,
    spread: Any = 0.0,
    least: float = 0.0,
    fewer: Any = 0.0,
) -> tuple[Prompts, Iterations, Any]:
    """What prompts add where ``sequences`` decode, and the chain of iterations that carry them, once around.

    Iterations without prompts hold ``fewer`` of them than others.
    """
    iteration, slope = _iteration(c, load, sequences, spread, least)
    iteration = iteration - slope * np.minimum(fewer, sequences - least)
    passed = passed_graphs(c, load, sequences / c.step.pipeline, spread)
    company = chain.next_company(load.decode_tokens / c.tokens_per_step, c.lookahead, passed)
    prompts = prompts_of(c, load, limits, sequences, company, iteration, passed)
    return prompts, Iterations.of(rate, prompts.company, iteration + prompts.added_s), slope


def busy_share(prompts: Prompts, queue: PromptQueue | None, chain: Iterations) -> FloatArray:
    """Share of time that prompts take."""
    busy: FloatArray = prompts.sharing * (1.0 - chain.iteration_s / chain.always_mean_s)
    if queue is not None:
        busy = busy + (1.0 - prompts.sharing) * queue.added_share
    return busy


def _bunched(prompts: Prompts, chain: Iterations, busy: Any, follows: Any, decodes: Any, lookahead: Any) -> Any:
    """Sequences that one which decodes sees beyond the average: those that came near it, and met the same delays."""
    at_work = chain.at_work(chain.ended(decodes, lookahead), lookahead)
    scatter = 1.0 + at_work * chain.rate * chain.variance_s2 / chain.mean_s
    grouped = scatter * (1.0 + follows - follows**2) / (1.0 - follows) - 1.0
    singly = (2.0 - busy) * busy * (1.0 + busy**2) / (1.0 - busy)
    return prompts.sharing * grouped + (1.0 - prompts.sharing) * singly


def _burst(load: ServingLoad, rate: FloatArray, chain: Iterations, decode_s: Any) -> tuple[Any, Any]:
    """Of requests around one's own, how many more than by chance decode beside it, and begin to while it does."""
    together = crowding(rate * chain.mean_s / 2.0, load.arrival_cv)
    during = crowding(rate * decode_s, load.arrival_cv)
    later = np.maximum(during - together, 0.0) if load.arrival_cv > 1.0 else during - together
    return 2.0 * crowding(rate * decode_s / 3.0, load.arrival_cv), later


def answers_are_short(c: ServingCoefficients, load: ServingLoad) -> Any:
    """Where answers end before what their prompt holds up has passed."""
    return load.decode_tokens / c.tokens_per_step < SHORT


def _following_shared(
    prompts: Prompts, chain: Iterations, rate: FloatArray, follows: FloatArray, runs: Runs
) -> FloatArray:
    """How much longer the iterations last that follow one's own, all together, than as many others.

    Where they last as long with several prompts as with one, they come in runs.
    """
    some, nobody, further = np.maximum(1.0 - chain.met_none, 1e-12), chain.met_none, prompts.further_s
    first = prompts.one_s - further
    usual = first * (1.0 - chain.no_arrival) + further * rate * chain.mean_s
    arriving = rate * (chain.iteration_s + prompts.one_s)
    more = further * rate * chain.met_mean
    carries = 1.0 - np.exp(-arriving) * (nobody + some * np.exp(-more / some))
    own = first * carries + further * (arriving + more)
    by_token = (own - usual) / (1.0 - follows)
    same = runs.following * (chain.some_s - chain.iteration_s)
    after: FloatArray = by_token + prompts.alike * (same - by_token)
    return after


def _following(prompts: Prompts, queue: PromptQueue, mean: Any, busy: FloatArray) -> Any:
    """The same of prompts in chunks: as long as one waits and is served, less what gathers, and what is left half done,
    at the end of any iteration; and those that come meanwhile.
    """
    left = 2.0 * mean + (prompts.chunks - 1.0) / 2.0 * mean
    left = left + queue.some * mean / queue.own_s * (queue.wait_s + queue.service_s / 2.0)
    follow = np.maximum(queue.wait_s + queue.service_s - left, 0.0)
    return np.where(prompts.ranks > 1.0, queue.runs.following * queue.longer_s, busy * follow / (1.0 - busy))


def _iteration(
    c: ServingCoefficients, load: ServingLoad, sequences: FloatArray, spread: Any, least: float
) -> tuple[FloatArray, Any]:
    """A decode iteration, averaged over batches of variance ``spread``, and what one sequence more adds to it.

    Linear in the batch but for experts, whose coverage flattens: two batches a standard deviation apart then stand
    for all. The second is asked for only there, and 0 elsewhere.
    """
    context = load.mean_context
    if not np.any(c.step.expert_weights_s):
        iteration: FloatArray = c.iteration_s(sequences, sequences * context)
        return iteration, 0.0
    beyond = np.maximum(sequences - least, 1e-3)
    off = np.sqrt(np.maximum(spread, 1e-6))
    # As far above as below the mean; or none and more, where they scatter more than they are.
    wide = off > beyond
    often = np.where(wide, beyond**2 / (beyond**2 + spread), 0.5)
    down, up = np.where(wide, beyond, off), np.where(wide, spread / beyond, off)
    both = np.stack([sequences - down, sequences + up])
    few, many = c.iteration_s(both, both * context)
    return few + often * (many - few), (many - few) / (down + up)
