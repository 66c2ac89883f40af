"""Statistics of one quantity by name, each worked out when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Statistics(Mapping[str, FloatArray]):
    """The mean and percentiles of every candidate: arrays of length ``n``.

    A search compares one percentile at many loads, and an answer shows them all.

    >>> found = Statistics(np.array([2.0]), {"p50": 0.5, "p99": 0.99}, lambda quantile: np.array([4.0 * quantile]))
    >>> list(found), found["p50"].tolist(), found["mean"].tolist()
    (['mean', 'p50', 'p99'], [2.0], [2.0])
    """

    def __init__(self, mean: FloatArray, percentiles: Mapping[str, float], at: Callable[[float], FloatArray]) -> None:
        self._found = {"mean": mean}
        self._percentiles = percentiles
        self._at = at

    def __getitem__(self, name: str) -> FloatArray:
        if name not in self._found:
            self._found[name] = self._at(self._percentiles[name])
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("mean", *self._percentiles))

    def __len__(self) -> int:
        return 1 + len(self._percentiles)
