"""How long prompts and answers are: fixed, lognormal, or as they were seen; together, or apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0
"""Multiples of it are spread evenly over the unit interval, however many are taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal:
    """Tokens of one side: lognormal, cut to a range."""

    median: float
    sigma: float
    """Of the logarithm; 0 is fixed."""
    low: int = 1
    high: int = 1_000_000

    def at(self, normal: Floats) -> Ints:
        """Lengths of as many standard normal deviates, whole tokens."""
        tokens = self.median * np.exp(self.sigma * normal)
        cut: Ints = np.clip(np.rint(tokens), self.low, self.high).astype(np.int64)
        return cut

    @property
    def mean(self) -> float:
        """Without the cut.

        >>> round(Lognormal(median=700, sigma=0.9).mean)
        1050
        """
        return self.median * math.exp(self.sigma**2 / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Tokens of one side, as they were seen: each of a list is as likely as the others."""

    tokens: tuple[int, ...]
    """In ascending order."""

    def at(self, normal: Floats) -> Ints:
        """Lengths of as many standard normal deviates: the longer, the greater the deviate.

        >>> Seen(tokens=(10, 20, 30)).at(np.array([-2.0, 0.0, 2.0])).tolist()
        [10, 20, 30]
        """
        return np.asarray(self.tokens, np.int64)[np.searchsorted(_edges(len(self.tokens)), normal)]

    @property
    def mean(self) -> float:
        """Of the list."""
        return sum(self.tokens) / len(self.tokens)


@lru_cache(maxsize=64)
def _edges(parts: int) -> Floats:
    """What cuts a standard normal distribution into so many equally likely parts."""
    return np.array([NormalDist().inv_cdf(part / parts) for part in range(1, parts)])


def shortened(tokens: Ints, most: int) -> tuple[int, ...]:
    """Lengths as a list of at most so many, each as likely as the others: means of equal shares, so the mean stays.

    >>> shortened(np.array([5, 1, 2, 3, 4, 300]), 3)
    (2, 4, 152)
    """
    ranked = np.sort(tokens)
    if len(ranked) <= most:
        return tuple(ranked.tolist())
    edges = np.rint(np.linspace(0, len(ranked), most + 1)).astype(np.int64)
    means = np.add.reduceat(ranked.astype(np.float64), edges[:-1]) / np.diff(edges)
    return tuple(np.rint(means).astype(np.int64).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Prompt and answer, drawn together."""

    input_tokens: Lognormal | Seen
    output_tokens: Lognormal | Seen
    correlation: float = 0.0
    """Of the normal deviates behind them (a Gaussian copula): long prompts with long answers, or with short ones."""

    def normals(self, count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """``count`` pairs of standard normal deviates: which of its lengths each side has."""
        first = random.standard_normal(count)
        second = random.standard_normal(count)
        if self.correlation:
            second = self.correlation * first + math.sqrt(1.0 - self.correlation**2) * second
        return first, second

    def draw(self, count: int, random: np.random.Generator) -> tuple[Ints, Ints]:
        """``count`` pairs of tokens."""
        first, second = self.normals(count, random)
        return self.input_tokens.at(first), self.output_tokens.at(second)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrefixes:
    """Prompts that begin with one of ``count`` common texts (system prompts, tenants, documents), Zipf-popular."""

    count: int
    tokens: int
    """Of each text, where ``seen`` lists none."""
    zipf: float = 1.0
    """Popularity falls as 1 / rank^zipf."""
    share: float = 1.0
    """Of the requests that begin with one; the others' prompts are all their own."""
    seen: tuple[int, ...] = ()
    """Lengths of texts, each as likely as the others."""
    with_input: float = 0.0
    """Correlation of beginning with one and the deviate of what is the prompt's own."""
    with_output: float = 0.0
    """The same of the answer's."""

    def draw(
        self, count: int, random: np.random.Generator, lengths: Lengths, normals: tuple[Floats, Floats]
    ) -> tuple[Ints, Ints]:
        """The text that each of ``count`` requests begins with (-1: none), and how many tokens of it.

        ``normals`` are the requests' deviates that ``lengths`` drew.
        """
        key = random.choice(self.count, count, p=self._popularity())
        if self.share < 1.0:
            key = np.where(self._begins(count, random, lengths.correlation, normals), key, -1)
        return key, np.where(key < 0, 0, self._lengths()[key])

    def _begins(
        self, count: int, random: np.random.Generator, between: float, normals: tuple[Floats, Floats]
    ) -> NDArray[np.bool_]:
        """Which requests begin with one: those whose own deviate, correlated with their lengths', is high enough."""
        if self.share == 0.0:
            return np.zeros(count, np.bool_)
        rest = 1.0 - min(between**2, 0.9999)
        by_input = (self.with_input - between * self.with_output) / rest
        by_output = (self.with_output - between * self.with_input) / rest
        told = by_input * self.with_input + by_output * self.with_output
        own = random.standard_normal(count)
        if told > 1.0:
            by_input, by_output, told = by_input / math.sqrt(told), by_output / math.sqrt(told), 1.0
        deviate = by_input * normals[0] + by_output * normals[1] + math.sqrt(1.0 - told) * own
        begins: NDArray[np.bool_] = deviate > NormalDist().inv_cdf(1.0 - self.share)
        return begins

    def _lengths(self) -> Ints:
        """Of each text: common ones and rare ones have all lengths alike."""
        if not self.seen:
            return np.full(self.count, self.tokens, np.int64)
        place = (np.arange(1, self.count + 1) * GOLDEN) % 1.0
        return np.asarray(self.seen, np.int64)[(place * len(self.seen)).astype(np.int64)]

    @property
    def mean(self) -> float:
        """Tokens that they add to a request's prompt."""
        return self.share * float(self._popularity() @ self._lengths())

    def _popularity(self) -> Floats:
        weights: Floats = np.arange(1, self.count + 1, dtype=np.float64) ** -self.zipf
        weights /= weights.sum()
        return weights
