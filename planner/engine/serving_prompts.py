"""What prompts add to the iterations of an open loop: several in one iteration, or each in chunks of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.queueing import normal_share
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_cycle import AdmissionLimits, ServingLoad, chunk_room
from planner.engine.serving_shared import MOST_COUNTED, Company

FloatArray = NDArray[np.float64]

MOST_TOGETHER: Final = 7
"""Prompts that share an iteration up to which it is counted who is left over."""
NEARLY: Final = 0.15
"""Of a prompt, beside one that fits the token budget whole: room for part of another, where answers are one token."""
SURELY: Final = 2.5
"""Standard deviations."""
HALF_WIDTH: Final = 2.0 * 3.0**0.5 * 0.6
"""Of a uniform spread with the variance that is left in each half of a normal one, over its standard deviation."""


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
    """1 where two prompts fit the token budget (one and part of another, where nothing is decoded), 0 where hardly one
    does."""
    fitting: Any
    """Prompts that fit the budget which decodes leave."""
    chunks: Any
    ranks: Any
    """Prompts in chunks of their own that go on at a time."""
    lookahead: Any
    """1 where the next iteration is fixed while one runs, else 0."""
    passed: FloatArray | None = None
    """How often so many prompts pass the largest captured graph (``Company.split``)."""

    @property
    def one_s(self) -> Any:
        return self.added_s[1]

    @property
    def several(self) -> Any:
        """Prompts that share an iteration, where it isn't one alone."""
        return self.company.several((self.company.few, self.company.many))

    @property
    def several_s(self) -> Any:
        """All of these."""
        return self.company.several(self.added_s[2:])

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
        return one * self.within_s[1] + (some - one) * self.company.several(self.within_s[2:])

    @property
    def part_s(self) -> Any:
        """One's part of what an iteration takes longer that surely carries one."""
        one, company = self.company.one, self.company
        whole = np.maximum(self.fitting, 1.0)
        few, many = np.minimum(company.few, whole), np.minimum(company.many, whole)
        each = company.several((self.within_s[2] / few, self.within_s[3] / many))
        return one * self.one_s + (1.0 - one) * each

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

    def carried(self, prompts: Any, own: int = 0) -> list[tuple[Any, Any]]:
        """How often an iteration carries any, and what it takes longer then, where as many as ``prompts`` come on
        average, by chance, and ``own`` for sure: a line through one and several; or, for captured graphs, first what
        fits them, and then what doesn't.
        """
        often = 1.0 + 0.0 * prompts if own else -np.expm1(-np.maximum(prompts, 1e-12))
        longer = self.one_s + self.further_s * ((prompts + own) / often - 1.0)
        if self.passed is None:
            return [(often, longer)]
        none, two = np.exp(-prompts), 2.0 + 0.0 * longer
        one = none if own else prompts * none
        company = Company(none * (1.0 - own), one, two, two)
        company = company.split(np.ones((1, 1)), prompts[None], self.passed, own)
        fit, over = self.parts(one, np.maximum(1.0 - company.none - one, 0.0), company.often)
        told = np.isfinite(self.passed[-1])
        return [
            (np.where(told, fit[0], often), np.where(told, fit[1], longer)),
            (np.where(told, over[0], 0.0), np.where(told, over[1], 0.0)),
        ]

    def parts(self, one: Any, several: Any, often: Any) -> list[tuple[Any, Any]]:
        """Shares of iterations with one and with several, ``often`` many: those with one or few, those with many, and
        what they take longer."""
        few, many = several * (1.0 - often), several * often
        fit = one + few
        return [(fit, (one * self.one_s + few * self.added_s[2]) / np.maximum(fit, 1e-300)), (many, self.added_s[3])]


def prompts_of(
    c: ServingCoefficients,
    load: ServingLoad,
    limits: AdmissionLimits,
    decoding: FloatArray,
    company: Company,
    iteration_s: Any = None,
    passed: FloatArray | None = None,
) -> Prompts:
    """What prompts add to iterations that decode ``decoding`` sequences, in such ``company``.

    Several points, as what an iteration takes longer isn't linear in its tokens. ``iteration_s`` is one without
    prompts, where batches scatter: with prompts all experts are read, however many sequences decode.
    """
    prompt, context = load.prompt_tokens, load.mean_context
    attended = load.input_tokens * load.prefix_cache_hit + prompt / 2.0
    ranks = c.step.attention_ranks
    room = chunk_room(c, limits, decoding)
    # A prompt sits on one attention rank, whose budget is its share of the replica's.
    own_room = room / ranks
    if iteration_s is not None and not np.any(c.step.expert_weights_s):
        base = iteration_s
    else:
        base = c.iteration_s(decoding, decoding * context)
        if iteration_s is not None:
            # Of the micro-batches one carries the prompts.
            base = base + (iteration_s - base) / c.step.pipeline

    def added(of: ServingCoefficients, tokens: Any, each: Any = attended) -> Any:
        return of.iteration_s(decoding, decoding * context, tokens, tokens * each) - base

    # Where nothing is decoded, whole prompts are all that iterations hold.
    surely = np.where(load.decode_tokens > 0.0, 1.0, NEARLY)
    sharing = np.clip((room / prompt - 1.0) / surely, 0.0, 1.0)
    sharing = np.where(ranks > 1.0, np.where(prompt <= own_room, 1.0, 0.0), sharing)
    longest = np.minimum(own_room, prompt)
    # One, and few and many at once, each as wide as what is left of the spread on its side.
    width, zero = HALF_WIDTH * prompt * company.around, 0.0 * longest
    # There are two of them at least.
    narrow = np.minimum(width, 2.0 * prompt * (company.few - 2.0))
    together = c.carrying(np.array([zero + 1.0, company.few, company.many]), np.array([zero, narrow, width]))
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
        passed=passed,
    )


def passed_graphs(c: ServingCoefficients, load: ServingLoad, sequences: Any, spread: Any) -> FloatArray | None:
    """How often so many prompts beside a batch of variance ``spread`` pass the largest captured graph.

    (``MOST_COUNTED`` + 1, n), NaN where no two fit one or as many as are counted do; None where that is everywhere.
    """
    graph, prompt = c.step.graph_tokens, load.prompt_tokens
    beyond = sequences - graph - 0.5
    scatter = np.sqrt(np.maximum(spread, 1.0))
    surely = beyond + MOST_COUNTED * prompt > SURELY * scatter
    told = (graph > 0.0) & (c.step.attention_ranks == 1.0) & (beyond + prompt < 0.0) & surely
    if not told.any():
        return None
    off = (beyond + np.arange(MOST_COUNTED + 1.0)[:, None] * prompt) / scatter
    return np.where(told, normal_share(off), np.nan)


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
