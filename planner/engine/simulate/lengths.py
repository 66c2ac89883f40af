"""How long prompts and answers are: fixed, lognormal, or drawn from pairs that were seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lognormal:
    """Tokens of one side: lognormal, cut to a range."""

    median: float
    sigma: float
    """Of the logarithm; 0 is fixed."""
    low: int = 1
    high: int = 1_000_000

    def draw(self, count: int, random: np.random.Generator) -> Ints:
        """``count`` lengths, whole tokens."""
        tokens = self.median * np.exp(self.sigma * random.standard_normal(count))
        return np.clip(np.rint(tokens), self.low, self.high).astype(np.int64)

    @property
    def mean(self) -> float:
        """Without the cut.

        >>> round(Lognormal(median=700, sigma=0.9).mean)
        1050
        """
        return self.median * math.exp(self.sigma**2 / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class LognormalLengths:
    """Prompt and answer drawn independently."""

    input_tokens: Lognormal
    output_tokens: Lognormal

    def draw(self, count: int, random: np.random.Generator) -> tuple[Ints, Ints]:
        """``count`` pairs."""
        return self.input_tokens.draw(count, random), self.output_tokens.draw(count, random)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmpiricalLengths:
    """Pairs drawn, with replacement, from those seen: their correlation stays."""

    input_tokens: Ints
    output_tokens: Ints

    def draw(self, count: int, random: np.random.Generator) -> tuple[Ints, Ints]:
        """``count`` pairs."""
        rows = random.integers(0, len(self.input_tokens), count)
        return self.input_tokens[rows], self.output_tokens[rows]


Lengths = LognormalLengths | EmpiricalLengths


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPrefixes:
    """Prompts that begin with one of ``count`` common texts (system prompts, tenants), Zipf-popular."""

    count: int
    tokens: int
    zipf: float = 1.0
    """Popularity falls as 1 / rank^zipf."""

    def draw(self, count: int, random: np.random.Generator) -> Ints:
        """The prefix of each of ``count`` requests."""
        weights = np.arange(1, self.count + 1, dtype=np.float64) ** -self.zipf
        return random.choice(self.count, count, p=weights / weights.sum())
