"""Statistics of one quantity by name, each worked out when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planner.engine.columns import taken

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Distribution(Protocol):
    """How a quantity scatters: columns over candidates."""

    def at(self, quantile: float) -> FloatArray:
        """The quantile of every candidate."""


class Statistics(Mapping[str, FloatArray]):
    """The mean and percentiles of every candidate: arrays of length ``n``.

    A search compares one percentile at many loads, and an answer shows them all, but of few candidates.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Even:
    ...     most: FloatArray
    ...     def at(self, quantile: float) -> FloatArray:
    ...         return self.most * quantile
    >>> found = Statistics(np.array([2.0, 3.0]), {"p50": 0.5, "p99": 0.99}, Even(np.array([4.0, 6.0])))
    >>> list(found), found["p50"].tolist(), found.take(np.array([1, 1]))["p50"].tolist()
    (['mean', 'p50', 'p99'], [2.0, 3.0], [3.0, 3.0])
    """

    def __init__(
        self,
        mean: FloatArray,
        percentiles: Mapping[str, float],
        distribution: Distribution,
        rows: IntArray | None = None,
    ) -> None:
        """``rows`` are those of the distribution that each candidate has, where not one each."""
        self._found = {"mean": mean}
        self._percentiles = percentiles
        self._distribution = distribution
        self._rows = rows
        self._here: tuple[Distribution, IntArray] | None = None

    def take(self, rows: IntArray) -> Statistics:
        """Those of some candidates only, in the order of ``rows``."""
        part = Statistics(
            self._found["mean"][rows],
            self._percentiles,
            self._distribution,
            rows if self._rows is None else self._rows[rows],
        )
        part._found |= {name: value[rows] for name, value in self._found.items()}
        return part

    def __getitem__(self, name: str) -> FloatArray:
        if name not in self._found:
            self._found[name] = self._at(self._percentiles[name])
        return self._found[name]

    def _at(self, quantile: float) -> FloatArray:
        if self._rows is None:
            return self._distribution.at(quantile)
        if self._here is None:
            some, each = np.unique(self._rows, return_inverse=True)
            self._here = taken(self._distribution, some), each
        distribution, each = self._here
        return distribution.at(quantile)[each]

    def __iter__(self) -> Iterator[str]:
        return iter(("mean", *self._percentiles))

    def __len__(self) -> int:
        return 1 + len(self._percentiles)
