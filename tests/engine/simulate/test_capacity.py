"""The search for the smallest fleet: right, and short."""

from __future__ import annotations

import pytest

from planner.engine.simulate.capacity import CapacitySearch, meets
from planner.engine.simulate.run import simulate
from tests.engine.simulate.fleets import lognormal_traffic, one_pool, replica


def rounds(search: CapacitySearch, smallest: int) -> int:
    count = 0
    while sizes := search.ask():
        search.tell({size: size >= smallest for size in sizes})
        count += 1
    return count


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("start", [1, 7, 60])
def test_finds_every_size(width: int, start: int) -> None:
    for smallest in range(1, 101):
        search = CapacitySearch(start=start, most=100, width=width)
        rounds(search, smallest)
        assert search.answer == smallest
        assert len(search.tried) <= 8 * width + 8


def test_more_at_a_time_takes_fewer_rounds() -> None:
    alone, together = (CapacitySearch(start=10, most=4096, width=width) for width in (1, 4))
    assert rounds(together, 777) < rounds(alone, 777) * 0.6


def test_what_never_does_ends() -> None:
    search = CapacitySearch(start=3, most=50, width=2)
    assert rounds(search, 51) < 10
    assert search.answer is None
    assert max(search.tried) == 50


def test_meets_looks_at_the_percentile_and_at_what_was_dropped() -> None:
    outcome = simulate(one_pool(replica()), [lognormal_traffic(500, 5)])
    ttft_s = outcome.ttft.quantile_s(0.95)
    assert meets(outcome, ttft_s=ttft_s * 1.001, tpot_s=None, percentile="p95")
    assert not meets(outcome, ttft_s=ttft_s * 0.999, tpot_s=None, percentile="p95")
    assert meets(outcome, ttft_s=ttft_s * 1.001, tpot_s=1.0, percentile="p95")
    assert not meets(outcome, ttft_s=None, tpot_s=outcome.tpot.quantile_s(0.95) * 0.99, percentile="p95")
    assert meets(outcome, ttft_s=outcome.ttft.mean_s, tpot_s=None, percentile="mean")
    dropped = simulate(one_pool(replica(max_waiting=0)), [lognormal_traffic(50, 5)])
    assert not meets(dropped, ttft_s=None, tpot_s=None, percentile="p95")
