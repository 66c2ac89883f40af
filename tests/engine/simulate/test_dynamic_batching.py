"""Triton's dynamic batcher: which batches are formed, when, and what they cost."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.simulate.run import simulate
from planner.engine.simulate.setup import BatchedReplica
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import one_pool, rows_of


def batches_of(kind: BatchedReplica, arrivals: list[float]) -> list[tuple[float, int]]:
    """(start, size) of every batch."""
    rows, _ = rows_of(one_pool(kind), batch(np.array(arrivals), np.ones(len(arrivals)), np.ones(len(arrivals))))
    starts, counts = np.unique(np.round(rows["scheduled"], 9), return_counts=True)
    return list(zip(starts.tolist(), counts.tolist(), strict=True))


SIXTEEN_AT_ONCE = [0.0] * 16


def test_without_delay_an_idle_instance_takes_what_is_there() -> None:
    kind = BatchedReplica(batch_s=1.0, max_batch=8)
    assert batches_of(kind, [0.0, 0.1, 0.2, 0.3]) == [(0.0, 1), (1.0, 3)]


def test_never_more_than_the_maximum() -> None:
    kind = BatchedReplica(batch_s=1.0, max_batch=8)
    assert batches_of(kind, [0.0, *[0.5] * 20]) == [(0.0, 1), (1.0, 8), (2.0, 8), (3.0, 4)]


def test_the_largest_preferred_size_that_can_be_filled() -> None:
    kind = BatchedReplica(batch_s=1.0, max_batch=16, preferred_batches=(4, 8))
    # 13 wait: 8, then 4 of the 5 left, then the one that no preferred size fits.
    assert batches_of(kind, [0.0, *[0.5] * 13]) == [(0.0, 1), (1.0, 8), (2.0, 4), (3.0, 1)]


def test_the_oldest_request_waits_for_company_up_to_the_delay() -> None:
    kind = BatchedReplica(batch_s=0.01, max_batch=4, max_queue_delay_s=0.5)
    assert batches_of(kind, [0.0, 0.1, 0.2]) == [(0.5, 3)]
    assert batches_of(kind, [0.0, 0.1, 0.2, 0.3, 0.35]) == [(0.3, 4), (0.85, 1)]


def test_a_preferred_size_ends_the_wait() -> None:
    kind = BatchedReplica(batch_s=0.01, max_batch=8, preferred_batches=(2,), max_queue_delay_s=0.5)
    assert batches_of(kind, [0.0, 0.1, 0.2]) == [(0.1, 2), (0.7, 1)]


def test_instances_work_side_by_side() -> None:
    kind = BatchedReplica(batch_s=1.0, max_batch=1, instances=3)
    assert batches_of(kind, [0.0] * 5) == [(0.0, 3), (1.0, 2)]


def test_an_answer_comes_whole_and_has_no_time_between_tokens() -> None:
    outcome = simulate(one_pool(BatchedReplica(batch_s=1.0)), [batch(np.zeros(3), np.ones(3), np.full(3, 20))])
    assert outcome.left["done"] == 3
    assert outcome.tpot.count == 0
    assert np.isnan(outcome.tpot.mean_s)
    assert np.isnan(outcome.tpot.quantile_s(0.95))
    assert outcome.e2e.mean_s == outcome.ttft.mean_s == pytest.approx(2.0)


def test_batch_time_and_throughput() -> None:
    """Handbook 10: 2 ms + 0.15 ms an item gives 2,500/s at 8, 4,706/s at 32 and 5,517/s at 64."""
    for size, per_second in ((8, 2500), (32, 4706), (64, 5517)):
        kind = BatchedReplica(batch_s=0.002, item_s=0.00015, max_batch=size)
        count = size * 200
        outcome = simulate(one_pool(kind), [batch(np.zeros(count), np.ones(count), np.ones(count))])
        assert count / outcome.duration_s == pytest.approx(per_second, rel=0.01)


def test_padding_costs_the_longest_of_the_batch() -> None:
    traffic = batch(np.array([0.0, 0.5, 0.5]), np.array([1, 100, 300]), np.ones(3))
    for padded, seconds in ((False, 0.4), (True, 0.6)):
        kind = BatchedReplica(batch_s=0.999, token_s=0.001, max_batch=2, padded=padded)
        rows, _ = rows_of(one_pool(kind), traffic)
        assert rows["last"][1] - rows["scheduled"][1] == pytest.approx(0.999 + seconds)


def test_time_out_in_the_queue() -> None:
    kind = BatchedReplica(batch_s=1.0, max_batch=1, queue_timeout_s=1.5)
    outcome = simulate(one_pool(kind), [batch(np.zeros(5), np.ones(5), np.ones(5))])
    assert outcome.left["done"] == 2
    assert outcome.left["queue_timeout"] == 3
