"""Spare nodes: the wait for a replacement, up to fleets that lose thousands of nodes at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planner.engine.training.goodput import Reliability, stop_s

RESTART_S = Reliability().restart_s


@pytest.mark.parametrize("spares", [0, 1, 5, 100])
def test_the_wait_is_the_chance_that_all_spares_are_out(spares: int) -> None:
    spared = Reliability(replacement_s=3600.0, spare_nodes=spares)
    bare = Reliability(replacement_s=3600.0)
    longest = float(stop_s(16_384, bare)) - RESTART_S
    mean = longest / 3600.0 * 16_384 / (bare.gpu_hours_per_interruption * 3600.0) * 3600.0
    out = 1.0 - sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(spares))
    assert float(stop_s(16_384, spared)) - RESTART_S == pytest.approx(out * longest, rel=1e-9, abs=1e-9)


def test_a_fleet_that_loses_thousands_at_a_time_waits_each_time() -> None:
    doomed = Reliability(replacement_s=1e9, spare_nodes=100, gpu_hours_per_interruption=1.0)
    bare = Reliability(replacement_s=1e9, gpu_hours_per_interruption=1.0)
    gpus = np.array([1.0, 1e4, 1e6])
    with np.errstate(all="raise", under="ignore"):
        assert stop_s(gpus, doomed) == pytest.approx(stop_s(gpus, bare))
