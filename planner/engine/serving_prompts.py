"""Prompts on a replica in an open loop: several in one iteration, or each in chunks of its own.

Chunks of up to ``c`` prompts go on side by side, one on each attention rank. A prompt in ``K`` chunks begins two
iterations after the one in which it came (one where the next isn't fixed ahead), and meets in its iterations those that
came in any of ``2 K - 1`` around that one. Of these only the later ones are its own, with prompts in them for sure:

    d = t(N) + E a(1 + Poisson(M))          M = rate (d* + 2 (1 - 1/K) d* + (K - 1) (K - 2) / K d)

``a(j)`` is what an iteration takes longer with ``j`` of them, ``d*`` an iteration as a random moment meets it. Requests
that come in bursts (Ca above 1) meet others as often as rho^(1/Ca), and up to (Ca^2 - 1) / 2 of their burst are before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import many_server_wait
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad, chunk_room
from planner.engine.serving_runs import Runs, runs_of
from planner.engine.serving_shared import Company

FloatArray = NDArray[np.float64]

MOST_BUSY: Final = 0.98
"""Share of time that prompts take where they always wait."""
SETTLING: Final = 4
MOST_TOGETHER: Final = 7
"""Prompts that share an iteration up to which it is counted who is left over."""
HALF_WIDTH: Final = 2.0 * 3.0**0.5 * 0.6
"""Of a uniform spread with the variance that is left in each half of a normal one, over its standard deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptQueue:
    """Prompts with iterations to themselves, in steady state; seconds."""

    service_s: Any
    """From the first iteration of a prompt's own to the end of its last."""
    wait_s: Any
    """For an attention rank."""
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

    def services(self, iteration: Any, prompts: Prompts) -> list[tuple[Any, Any]]:
        """How often a prompt is served alone, beside one other or beside more, and for how long."""
        one, (two, most) = prompts.alone_s / prompts.chunks, prompts.crowd_s
        nobody = np.exp(-self.beside)
        other = self.beside * nobody
        more = np.maximum(1.0 - nobody - other, 1e-12)
        further = (self.beside - other) / more - 1.0
        crowd = two + (most - two) * np.clip(further / np.maximum(prompts.ranks - 2.0, 1.0), 0.0, 1.0)
        return [
            (share, prompts.chunks * (iteration + added))
            for share, added in ((nobody, one), (other, two), (more, crowd))
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What a prompt adds to the iterations that carry it, seconds."""

    company: Company
    """How many share an iteration."""
    added_s: FloatArray
    """What an iteration takes longer that carries none, one, few or many: (4, n)."""
    within_s: FloatArray
    """Of that, the iteration that they share: where more come than fit, what is left of one goes on in the next."""
    rest: Any
    """Of the first prompt that doesn't fit, what is left over,"""
    rest_s: Any
    """and what the next iteration takes longer with it."""
    alone_s: Any
    """In chunks of its own, nobody else's beside them."""
    full_s: Any
    """What an iteration takes longer that prompts fill, one after the other."""
    pass_s: Any
    """The longest of these chunks: it passes all pipeline stages, one after the other."""
    crowd_s: Any
    """Of two and of all that go on side by side: what one iteration takes longer."""
    sharing: Any
    """1 where two prompts fit the token budget, 0 where hardly one does."""
    fitting: Any
    """Prompts that fit the budget which decodes leave."""
    chunks: Any
    ranks: Any
    """Prompts in chunks of their own that go on at a time."""
    lookahead: Any
    """1 where the next iteration is fixed while one runs, else 0."""

    @property
    def one_s(self) -> Any:
        return self.added_s[1]

    @property
    def several(self) -> Any:
        """Prompts that share an iteration, where it isn't one alone."""
        return (self.company.few + self.company.many) / 2.0

    @property
    def several_s(self) -> Any:
        """All of these."""
        return (self.added_s[2] + self.added_s[3]) / 2.0

    @property
    def shared_s(self) -> Any:
        """Each of those that share one iteration, on average."""
        one, some = self.company.one, 1.0 - self.company.none
        together = one * self.one_s + (some - one) * self.several_s
        return np.where(some > 0.0, together / np.maximum(self.company.mean, 1e-300), self.one_s)

    @property
    def within_mean_s(self) -> Any:
        """What an iteration takes longer that they share."""
        one, some = self.company.one, 1.0 - self.company.none
        return one * self.within_s[1] + (some - one) * (self.within_s[2] + self.within_s[3]) / 2.0

    @property
    def part_s(self) -> Any:
        """One's part of what an iteration takes longer that surely carries one."""
        one, company = self.company.one, self.company
        return one * self.one_s + (1.0 - one) * (self.within_s[2] / company.few + self.within_s[3] / company.many) / 2.0

    @property
    def further_s(self) -> Any:
        """Each of several beyond the first."""
        several_s = self.several_s
        further = (several_s - self.one_s) / np.maximum(self.several - 1.0, 0.1)
        return np.minimum(np.maximum(further, 0.0), several_s)

    @property
    def alike(self) -> Any:
        """1 where iterations last as long with several as with one, 0 where each adds as much."""
        return np.clip(1.0 - self.further_s / np.maximum(self.one_s, 1e-12), 0.0, 1.0)

    def left_over(self, chance: Any, arriving: Any, iteration_s: Any) -> tuple[Any, Any]:
        """Where more come in one iteration than fit the next: how much later one's first token is on average, and how
        much longer one's decodes last where others are left over; seconds. ``chance`` of the iterations let so many
        others come on average.
        """
        later = after = 0.0 * self.fitting
        if not np.any((self.fitting < MOST_TOGETHER) & (self.sharing > 0.0)):
            return later, after
        share = chance * np.exp(-arriving)
        for count in range(1, MOST_TOGETHER + 1):
            share = share * arriving / count
            left = np.clip(count + 1.0 - self.fitting, 0.0, None)
            often, late = share.sum(axis=0), np.ceil(left) / (count + 1.0)
            seconds = left_over_s(left, self.rest, self.rest_s, self.one_s)
            later = later + often * late * (seconds + iteration_s)
            after = after + often * (1.0 - late) * seconds
        return self.sharing * later, self.sharing * after

    def carried(self, prompts: Any) -> Any:
        """What an iteration takes longer with as many prompts on average, by chance: a line through one and several."""
        some = -np.expm1(-np.maximum(prompts, 1e-12))
        return some * self.one_s + self.further_s * (prompts - some)

    def queue(self, rate: FloatArray, iteration: Any, variation: tuple[Any, Any]) -> PromptQueue:
        """The steady state at ``rate`` with decode iterations of ``iteration``, at these variations."""
        chunks, several = self.chunks, self.ranks > 1.0
        beside = np.zeros_like(rate)
        for _ in range(SETTLING):
            own = iteration + self._with_company(beside)
            # Of the time that prompts are in service, as many are counted at once as are side by side.
            alone = np.where(beside > 0.0, -np.expm1(-beside) / np.maximum(beside, 1e-12), 1.0)
            some = np.minimum(rate * chunks * own * alone, MOST_BUSY)
            serving = np.minimum(rate * chunks * own / self.ranks, MOST_BUSY)
            full = serving ** (np.sqrt(2.0 * (self.ranks + 1.0)) - 1.0)
            each = iteration + self._carrying(beside)
            runs = runs_of(rate, iteration, each, chunks, self.lookahead, full)
            some = np.where(several, runs.share, some)
            met = some * own + (1.0 - some) * iteration
            near = met + 2.0 * (1.0 - 1.0 / chunks) * met + (chunks - 1.0) * (chunks - 2.0) / chunks * own
            beside = np.where(several, rate * near, 0.0)
        wait = many_server_wait(serving, chunks * own, self.ranks, *variation)
        packed_wait, packed_some = self._packed(rate, iteration, chunks * own)
        wait = np.where(several, wait, packed_wait * (variation[0] + variation[1]))
        some = np.where(several, some, packed_some)
        scatter = np.sqrt(np.maximum(variation[0], 1e-6))
        bursts = np.maximum(variation[0] - 1.0, 0.0) / 2.0 * (serving ** (1.0 / scatter) - serving) / (1.0 - serving)
        return PromptQueue(
            service_s=chunks * own,
            wait_s=wait + bursts * chunks * own / self.ranks,
            some=some,
            met=np.where(several, some, some ** (1.0 / scatter)),
            full=np.minimum(full, some),
            own_s=own,
            beside=beside,
            arriving_s=np.where(several, 0.0, rate),
            added_share=some * (1.0 - iteration / np.where(several, each, own)),
            runs=runs,
            longer_s=each - iteration,
        )

    def _packed(self, rate: FloatArray, iteration: Any, alone_s: Any) -> tuple[Any, Any]:
        """How long prompts wait behind each other, and share of time that they take: one that follows another fills
        the rest of its last iteration (a queue whose first service is longer: Welch, 1964)."""
        filled = iteration + self.full_s
        next_s = np.minimum(filled / self.fitting, alone_s)
        first, load = rate * alone_s, np.minimum(rate * next_s, MOST_BUSY)
        idle = (1.0 - load) / (1.0 - load + first)
        wait = rate * next_s**2 / (2.0 * (1.0 - load)) + rate * (alone_s**2 - next_s**2) / (2.0 * (1.0 - load + first))
        own = np.minimum(next_s + filled / 2.0, alone_s) - alone_s
        return np.maximum(wait + (1.0 - idle) * own, 0.0), np.minimum(1.0 - idle, MOST_BUSY)

    def _with_company(self, beside: Any) -> Any:
        """What one iteration takes longer with a prompt's chunk and those of as many others, on average, by chance."""
        one, (two, most) = self.alone_s / self.chunks, self.crowd_s
        nobody = np.exp(-beside)
        further = np.where(nobody < 1.0, beside / np.maximum(1.0 - nobody, 1e-12) - 1.0, 0.0)
        beyond = np.clip(further / np.maximum(self.ranks - 2.0, 1.0), 0.0, 1.0)
        return nobody * one + (1.0 - nobody) * (two + (most - two) * beyond)

    def _carrying(self, beside: Any) -> Any:
        """The same of any iteration that carries prompts: those with many are met by more of them."""
        one, (two, most) = self.alone_s / self.chunks, self.crowd_s
        nobody = np.exp(-beside)
        some = np.maximum(-np.expm1(-beside), 1e-12)
        single = np.where(beside > 0.0, beside * nobody / some, 1.0)
        several = beside * some / np.maximum(some - beside * nobody, 1e-12)
        beyond = np.clip((several - 2.0) / np.maximum(self.ranks - 2.0, 1.0), 0.0, 1.0)
        return single * one + (1.0 - single) * (two + (most - two) * beyond)


def prompts_of(
    c: ServingCoefficients,
    load: ServingLoad,
    limits: AdmissionLimits,
    decoding: FloatArray,
    company: Company,
) -> Prompts:
    """What prompts add to iterations that decode ``decoding`` sequences, in such ``company``.

    Several points, as what an iteration takes longer isn't linear in its tokens.
    """
    prompt, context = load.prompt_tokens, load.mean_context
    attended = load.input_tokens * load.prefix_cache_hit + prompt / 2.0
    ranks = c.step.attention_ranks
    room = chunk_room(c, limits, decoding)
    # A prompt sits on one attention rank, whose budget is its share of the replica's.
    own_room = room / ranks
    base = c.iteration_s(decoding, decoding * context)

    def added(of: ServingCoefficients, tokens: Any, each: Any = attended) -> Any:
        return of.iteration_s(decoding, decoding * context, tokens, tokens * each) - base

    sharing = np.where(ranks > 1.0, np.where(prompt <= own_room, 1.0, 0.0), np.clip(room / prompt - 1.0, 0.0, 1.0))
    longest = np.minimum(own_room, prompt)
    # One, and few and many at once, each as wide as what is left of the spread on its side.
    width, zero = HALF_WIDTH * prompt * (company.many - company.few) / 2.0, 0.0 * longest
    together = c.carrying(np.array([zero + 1.0, company.few, company.many]), np.array([zero, width, width]))
    several = np.array([company.few, company.many])
    most = room * together.step.prompt_ranks[1:] / ranks
    at_once = np.minimum(several * prompt, np.maximum(most, prompt))
    found = added(together, np.array([longest, *at_once]))
    alone, within = found[0], found[1:]
    one = alone * prompt / longest
    chunks = np.ceil(prompt / own_room)
    crowd, passes, full = (alone, alone), alone, alone
    if (sharing < 1.0).any():
        full = added(c.carrying(1.0), own_room)
    if (prompt > own_room).any():
        lone = c.carrying(1.0)
        whole = np.maximum(np.floor(prompt / own_room), 1.0)
        rest = np.maximum(prompt - whole * own_room, 0.0)
        last = np.where(rest > 0.0, added(lone, rest), 0.0)
        if np.any(ranks > 1.0):
            crowd = _crowds(c, ranks, prompt / chunks, longest, rest, chunks, added)
        alone = whole * alone + last
        if np.any(c.step.pipeline > 1.0):
            cached = load.input_tokens * load.prefix_cache_hit
            last_whole = added(lone, longest, cached + (whole - 0.5) * own_room)
            passes = np.maximum(last_whole, added(lone, rest, cached + whole * own_room + rest / 2.0))
    fitting = room / prompt
    rest, rest_s = 0.0 * one + 1.0, one
    if ((fitting < MOST_TOGETHER) & (fitting >= 1.0)).any():
        rest = 1.0 - (fitting - np.floor(fitting))
        rest_s = added(c.carrying(1.0), rest * prompt)
    spread = within * several * prompt / at_once
    over = left_over_s(several - at_once / prompt, rest, rest_s, one)
    return Prompts(
        company=company,
        added_s=np.array([zero, one, *np.where(ranks > 1.0, spread, within + over)]),
        within_s=np.array([zero, one, *np.where(ranks > 1.0, spread, within)]),
        rest=rest,
        rest_s=rest_s,
        alone_s=alone,
        full_s=full,
        crowd_s=crowd,
        pass_s=passes,
        sharing=sharing,
        fitting=fitting,
        chunks=chunks,
        ranks=ranks,
        lookahead=c.lookahead,
    )


def left_over_s(prompts: Any, rest: Any, rest_s: Any, one_s: Any) -> Any:
    """What later iterations take longer with so many prompts, the first of them in part."""
    begun = np.minimum(np.maximum(prompts / rest, 0.0), 1.0)
    return begun * rest_s + np.maximum(prompts - rest, 0.0) * one_s


def _crowds(
    c: ServingCoefficients, ranks: Any, mean: Any, longest: Any, rest: Any, chunks: Any, added: Any
) -> tuple[Any, Any]:
    """What an iteration takes longer with chunks of two prompts, and of as many as there are ranks: all wait for the
    longest of them, which is a prompt's remainder only where every one is at its end."""
    found = []
    for beside in (np.minimum(2.0, ranks), ranks):
        remainders = np.where(rest > 0.0, chunks**-beside, 0.0)
        length = longest + (rest - longest) * remainders
        tokens = np.maximum(beside * mean, length)
        found.append(added(c.carrying(tokens / length), tokens))
    return found[0], found[1]
