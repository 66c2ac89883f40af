"""A fixed number of clients: headroom keeps whole places free, and no replica stands idle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.answers import InferenceOption
from planner.engine.sizing import places_planned
from planner.engine.units import GIB
from tests.engine.small_catalog import accelerator, snapshot
from tests.engine.test_inference_plan import plan

CARD = accelerator(memory_bytes=24 * GIB)
ONE_PLACE: dict[str, Any] = {
    "accelerators": ["h100-sxm"],
    "requests_per_second": None,
    "weight_formats": ["bf16"],
    "input_tokens": 30_000,
    "output_tokens": 500,
    "max_num_batched_tokens": 1024,
    "max_num_seqs": 16,
    "tensor_parallel": 1,
    "pipeline_parallel": 1,
}


def one_gpu(**raw: Any) -> InferenceOption:
    return plan(snapshot(card=CARD), **{**ONE_PLACE, **raw}).options[0]


def test_one_client_needs_one_replica_where_one_sequence_fits() -> None:
    option = one_gpu(concurrency=1)
    assert option.speed.max_concurrency == option.layout.replicas == 1
    assert option.speed.concurrency == 1


@pytest.mark.parametrize("clients", [1, 2, 3, 7])
def test_clients_get_the_throughput_of_their_own_number(clients: int) -> None:
    alone, together = one_gpu(concurrency=1), one_gpu(concurrency=clients)
    assert together.layout.replicas == clients
    assert together.speed.output_tok_s == pytest.approx(clients * alone.speed.output_tok_s)
    assert together.speed.utilization == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize(("seats", "clients", "replicas"), [(2, 2, 1), (4, 4, 1), (4, 5, 2), (5, 4, 1), (5, 5, 2)])
def test_headroom_keeps_whole_places(seats: int, clients: int, replicas: int) -> None:
    found = one_gpu(input_tokens=500, output_tokens=100, max_num_seqs=seats, concurrency=clients)
    assert found.speed.max_concurrency == seats * found.layout.replicas
    assert found.layout.replicas == replicas


def test_headroom_of_many_places_is_its_share() -> None:
    places = np.array([1.0, 2.0, 9.0, 10.0, 100.0, 1000.0])
    assert places_planned(places, 0.9).tolist() == [1.0, 1.0, 1.0, 1.0, 10.0, 100.0]
    assert places_planned(places, 0.0).tolist() == places.tolist()


@pytest.mark.parametrize("pools", ["together", "split"])
@pytest.mark.parametrize("regime", [{}, {"tpot_ms": 11.0, "slo_percentile": "mean"}])
def test_no_more_replicas_than_clients(pools: str, regime: dict[str, Any]) -> None:
    answer = plan(requests_per_second=None, concurrency=3, pools=pools, max_num_seqs=4, **regime)
    assert answer.options
    for option in answer.options:
        assert option.layout.replicas <= 3
        if option.prefill_pool is not None:
            assert option.prefill_pool.layout.replicas <= 3
        assert option.speed.concurrency <= 3 + 1e-9
