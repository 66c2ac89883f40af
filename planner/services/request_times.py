"""When each request of a run got where, kept by request number as they leave."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.engine.simulate.layout import Array

FIRST_ROWS = 65_536
TIMES = ("arrival", "scheduled", "first", "last")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RequestTimes:
    """Columns by request; nan where it never got there. Simulated seconds."""

    arrival_s: Array
    scheduled_s: Array
    first_token_s: Array
    last_token_s: Array
    replica: Array
    """-1 where it never reached one."""


class TimesCollector:
    """Takes finished requests in the order they leave."""

    def __init__(self) -> None:
        self._columns = {name: np.full(FIRST_ROWS, math.nan) for name in TIMES}
        self._replica = np.full(FIRST_ROWS, -1, np.int32)
        self._seen = 0

    def take(self, rows: Array) -> None:
        """Keep some finished requests."""
        self._seen = max(self._seen, int(rows["request"].max()) + 1)
        while self._seen > len(self._replica):
            self._grow()
        for name, column in self._columns.items():
            column[rows["request"]] = rows[name]
        self._replica[rows["request"]] = rows["replica"]

    def _grow(self) -> None:
        old = len(self._replica)
        for name, column in self._columns.items():
            self._columns[name] = np.concatenate([column, np.full(old, math.nan)])
        self._replica = np.concatenate([self._replica, np.full(old, -1, np.int32)])

    def times(self) -> RequestTimes:
        """All that were kept."""
        columns = {name: column[: self._seen] for name, column in self._columns.items()}
        return RequestTimes(
            arrival_s=columns["arrival"],
            scheduled_s=columns["scheduled"],
            first_token_s=columns["first"],
            last_token_s=columns["last"],
            replica=self._replica[: self._seen],
        )
