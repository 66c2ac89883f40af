"""What an autoscaler can measure of a pool."""

from __future__ import annotations

import numpy as np

from planner.engine.simulate.autoscaling import Metric
from planner.engine.simulate.codes import BATCHED
from planner.engine.simulate.run import Run


def read_metric(run: Run, meter: Meter, pool: int, ready: list[int], metric: Metric, now_s: float) -> float:
    """The metric's total over the pool's ready replicas, and the gateway's own queue for queue and concurrency.

    ``kv_use`` and ``utilization`` are shares, so their total over the replicas is a mean once divided by
    them; rates are taken since the last reading.
    """
    replicas = run.state.replicas[ready]
    held = float(run.state.pools["held"][pool])
    match metric:
        case "queue":
            return float(replicas["waiting"].sum()) + held
        case "concurrency":
            return float(replicas["outstanding"].sum()) + held
        case "kv_use":
            blocks = np.maximum(run.state.kinds["blocks"][replicas["kind"]], 1)
            return float((1.0 - replicas["free"] / blocks).sum())
        case "requests_per_s":
            return meter.rate(float(run.state.pools["arrived"][pool]), now_s)
        case "utilization":
            kinds = run.state.kinds[replicas["kind"]]
            # Batches of whole requests run side by side: each is its instance's share of the replica.
            batched = replicas["heap_n"] / np.maximum(kinds["instances"], 1)
            share = np.where(kinds["mode"] == BATCHED, batched, replicas["busy"] != 0)
            under_way = (now_s - replicas["run_start"]) * share
            return meter.rate(float((replicas["busy_s"] + under_way).sum()), now_s)


class Meter:
    """The rate of a counter between readings.

    >>> meter = Meter()
    >>> meter.rate(10.0, 5.0), meter.rate(40.0, 10.0), meter.rate(40.0, 10.0)
    (2.0, 6.0, 6.0)
    """

    def __init__(self) -> None:
        self._at_s = 0.0
        self._value = 0.0
        self._rate = 0.0

    def rate(self, value: float, now_s: float) -> float:
        """Growth a second since the last reading at an earlier time."""
        if now_s > self._at_s:
            self._rate = max(0.0, value - self._value) / (now_s - self._at_s)
            self._at_s = now_s
            self._value = value
        return self._rate
