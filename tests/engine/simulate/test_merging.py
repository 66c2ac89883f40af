"""Parts that ran apart add up to the run they are parts of."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.simulate.merging import merge
from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import Fleet, Pool
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import lognormal_traffic, one_pool, replica


def test_replicas_behind_a_round_robin_gateway_are_independent() -> None:
    kind = replica(kv_blocks=1500)
    traffic = lognormal_traffic(6000, 30)
    whole = simulate(one_pool(kind, 4, policy="round_robin", slo_ttft_s=0.5), [traffic])
    parts = [
        simulate(
            one_pool(kind, slo_ttft_s=0.5),
            [batch(*(column[part::4] for column in (traffic.arrival_s, traffic.input_tokens, traffic.output_tokens)))],
        )
        for part in range(4)
    ]
    for order in (parts, parts[::-1]):
        merged = merge(order)
        for latency in ("ttft", "tpot", "e2e"):
            assert getattr(merged, latency).total == getattr(whole, latency).total
            assert (getattr(merged, latency).histogram == getattr(whole, latency).histogram).all()
        for name in ("requests", "good", "input_tokens", "output_tokens", "preemptions", "iterations", "left"):
            assert getattr(merged, name) == getattr(whole, name)
        assert merged.duration_s == whole.duration_s
        assert (merged.timeline.done == whole.timeline.done).all()
        assert (merged.timeline.ttft == whole.timeline.ttft).all()
        assert sorted(merged.busy_s) == sorted(whole.busy_s)
    merged = merge(parts)
    assert merged.gpu_hours == pytest.approx(whole.gpu_hours, rel=1e-12)
    assert merged.unit_hours.sum() == pytest.approx(whole.unit_hours.sum(), rel=1e-12)
    assert merged.samples.running == pytest.approx(whole.samples.running)
    assert merged.samples.ready == pytest.approx(whole.samples.ready)
    assert merged.samples.heat_kv.shape == whole.samples.heat_kv.shape


def test_parts_of_different_length_meet_at_the_coarser_bin() -> None:
    short = simulate(one_pool(replica()), [lognormal_traffic(100, 1)])
    long = simulate(one_pool(replica()), [lognormal_traffic(3000, 1)])
    assert short.timeline.bin_s < long.timeline.bin_s
    merged = merge([short, long])
    assert merged.timeline.bin_s == long.timeline.bin_s
    assert merged.timeline.done.sum() == 3100
    assert merged.timeline.arrived[0] >= long.timeline.arrived[0]
    assert merged.ttft.quantile_s(0.5) > 0


def test_nothing_to_merge() -> None:
    with pytest.raises(ValueError, match="nothing"):
        merge([])


def test_one_part_is_itself() -> None:
    outcome = simulate(one_pool(replica()), [lognormal_traffic(500, 5)])
    merged = merge([outcome])
    assert merged.ttft.mean_s == outcome.ttft.mean_s
    assert np.array_equal(merged.samples.waiting, outcome.samples.waiting)


def test_requests_are_counted_where_they_belong_whoever_serves_them() -> None:
    """A pool of one busy replica that falls back on another: two halves of the traffic, each with its own figures."""
    kind = replica(kv_blocks=1500)
    traffic = lognormal_traffic(4000, 30)
    home = np.arange(4000) % 2
    pools = [
        Pool(kind=kind, replicas=1, max_outstanding=4, fallback=(1,)),
        Pool(kind=kind, replicas=3),
    ]
    fleet = Fleet(pools=pools, distance_s=[[0.0, 0.02], [0.02, 0.0]], slo_ttft_s=0.5)
    columns = (traffic.arrival_s, traffic.input_tokens, traffic.output_tokens)
    kept: list[np.ndarray] = []
    outcome = simulate(fleet, [batch(*columns, pool=home)], rows=lambda rows: kept.append(rows.copy()))
    rows = np.concatenate(kept)
    homes = [outcome.at_home(number) for number in (0, 1)]
    assert [each.requests for each in homes] == [2000, 2000]
    assert sum(each.good for each in homes) == outcome.good
    assert sum(each.ttft.total for each in homes) == outcome.ttft.total
    assert (homes[0].tpot.histogram + homes[1].tpot.histogram == outcome.tpot.histogram).all()
    assert (rows["replica"][home[rows["request"]] == 0] > 0).any()
    for number, each in enumerate(homes):
        own = rows[home[rows["request"]] == number]
        assert each.ttft.mean_s == pytest.approx((own["first"] - own["arrival"]).mean(), abs=1e-6)
    alone = simulate(one_pool(kind, 4), [traffic])
    assert alone.at_home(0).ttft.total == alone.ttft.total
