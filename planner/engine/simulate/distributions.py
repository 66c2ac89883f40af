"""Latencies as logarithmic histograms: means exact, quantiles to a bin's width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.engine.simulate.layout import FINE, FIRST_OCTAVE, Array

STATISTICS: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution:
    """A latency over all finished requests. The mean is exact; quantiles are known to 0.1 %."""

    count: int
    total: int
    """Sum, in whole ``unit_s``."""
    unit_s: float
    histogram: Array
    """Counts in logarithmic bins: ``FINE`` a power of two, linear inside."""

    @property
    def mean_s(self) -> float:
        """Over all; nan without requests."""
        return self.total * self.unit_s / self.count if self.count else math.nan

    def quantile_s(self, share: float) -> float:
        """The latency that ``share`` of requests stay within; nan without requests."""
        return quantile(self.histogram, share, FINE)


def quantile(histogram: Array, share: float, per_octave: int) -> float:
    """The value below which ``share`` of a logarithmic histogram lies, linear inside the bin.

    >>> from planner.engine.simulate.layout import OCTAVES
    >>> counts = np.zeros(OCTAVES * 4, np.int64)
    >>> counts[20 * 4] = 10
    >>> quantile(counts, 0.5, 4)
    1.125
    """
    total = int(histogram.sum())
    if total == 0:
        return math.nan
    cumulative = np.cumsum(histogram)
    wanted = share * total
    i = int(np.searchsorted(cumulative, wanted, side="left"))
    below = float(cumulative[i - 1]) if i else 0.0
    inside = (wanted - below) / float(histogram[i])
    low, high = bin_edges(i, per_octave)
    return low + inside * (high - low)


def bin_edges(i: int, per_octave: int) -> tuple[float, float]:
    """Lower and upper edge of a logarithmic bin, seconds."""
    octave, step = divmod(i, per_octave)
    base = 2.0 ** (octave + FIRST_OCTAVE)
    return base * (1 + step / per_octave), base * (1 + (step + 1) / per_octave)
