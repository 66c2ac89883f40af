"""The smallest fleet that holds the SLO: which sizes to try next, several at a time.

Latencies of a larger fleet are taken never to be worse. Runs are independent, so a caller with several workers
asks for as many sizes as it can run at once: ``k`` of them cut the bracket to a (k + 1)-th.

>>> search = CapacitySearch(start=6, most=100, width=1)
>>> while (sizes := search.ask()):
...     search.tell({size: size >= 11 for size in sizes})
>>> search.answer, search.tried
(11, (6, 9, 10, 11, 12))
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.engine.simulate.distributions import STATISTICS
from planner.engine.simulate.results import AtHome, Outcome


class CapacitySearch:
    """Brackets the smallest size that meets the SLO: doubling up from where it starts, then cutting."""

    def __init__(self, *, start: int, most: int, width: int = 1) -> None:
        self._too_few = 0
        self._enough: int | None = None
        self._next = min(max(start, 1), most)
        self._most = most
        self._width = max(width, 1)
        self._met: dict[int, bool] = {}

    @property
    def answer(self) -> int | None:
        """The smallest size found to do; None where even the most does not, or it isn't known yet."""
        return self._enough if self._enough is not None and self._enough - self._too_few == 1 else None

    @property
    def tried(self) -> tuple[int, ...]:
        """All sizes tried, in order of size."""
        return tuple(sorted(self._met))

    def ask(self) -> tuple[int, ...]:
        """Sizes to try now, at most ``width``; empty when the search is over."""
        if self._enough is None:
            if self._too_few >= self._most:
                return ()
            sizes = [min(self._next * 2**step, self._most) for step in range(self._width)]
            return tuple(dict.fromkeys(sizes))
        inside = self._enough - self._too_few - 1
        if inside < 1:
            return ()
        count = min(self._width, inside)
        cuts = np.linspace(self._too_few, self._enough, count + 2)[1:-1]
        return tuple(dict.fromkeys(min(max(round(cut), self._too_few + 1), self._enough - 1) for cut in cuts))

    def tell(self, met: Mapping[int, bool]) -> None:
        """What came of the sizes tried."""
        self._met |= met
        enough = [size for size, holds in self._met.items() if holds]
        self._enough = min(enough) if enough else None
        short = [size for size, holds in self._met.items() if not holds and (not enough or size < min(enough))]
        self._too_few = max(short, default=0)
        self._next = min(max(self._too_few * 2, self._next), self._most)


def meets(outcome: Outcome | AtHome, *, ttft_s: float | None, tpot_s: float | None, percentile: str) -> bool:
    """Whether every request was answered, and both latencies hold at the percentile (or the mean)."""
    if outcome.done < outcome.requests:
        return False
    for latency, limit_s in ((outcome.ttft, ttft_s), (outcome.tpot, tpot_s)):
        if limit_s is None or latency.count == 0:
            continue
        value = latency.mean_s if percentile == "mean" else latency.quantile_s(STATISTICS[percentile])
        if not value <= limit_s:
            return False
    return True
