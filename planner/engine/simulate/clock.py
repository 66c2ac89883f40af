"""What is to happen when: the control plane's own events, in order of time, then of asking."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import count

Action = Callable[[float], None]
"""Called with the time it was asked for."""


class Clock:
    """A heap of actions.

    >>> clock, said = Clock(), []
    >>> clock.at(2.0, said.append); clock.every(1.5, said.append)
    >>> clock.run(3.0); said, clock.next_s
    ([1.5, 2.0, 3.0], 4.5)
    """

    def __init__(self) -> None:
        self._events: list[tuple[float, int, Action]] = []
        self._order = count()

    @property
    def next_s(self) -> float:
        """When something is next due; infinity when nothing is."""
        return self._events[0][0] if self._events else math.inf

    def at(self, time_s: float, action: Action) -> None:
        """Do something once."""
        heapq.heappush(self._events, (time_s, next(self._order), action))

    def every(self, period_s: float, action: Action) -> None:
        """Do something again and again, the first time after one period."""
        self._again(period_s, period_s, action)

    def _again(self, at_s: float, period_s: float, action: Action) -> None:
        def due(now_s: float) -> None:
            action(now_s)
            self._again(now_s + period_s, period_s, action)

        self.at(at_s, due)

    def run(self, now_s: float) -> None:
        """Do all that is due by ``now_s``, what that asks for included."""
        while self._events and self._events[0][0] <= now_s:
            time_s, _, action = heapq.heappop(self._events)
            action(time_s)
