"""A split option simulated: its own prefill pool and transfer, unless the scenario states them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.engine.answers import Layout, PrefillPool
from planner.engine.question_reading import parse_question
from planner.engine.simulate.planned_fleet import Unit, rented_units
from planner.engine.simulate.question import SimulationQuestion
from planner.engine.simulate.traffic_like import traffic_like
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.generated_traffic import GeneratedTraffic
from planner.services.option_fleet import split_settings
from planner.services.run_kind import in_turn
from planner.services.simulation import planned_cluster
from planner.services.simulation_parts import serve_part
from planner.services.simulation_run import run_simulation
from tests.factories import inference_option

POOL = PrefillPool(
    layout=Layout(tensor=1, pipeline=1, expert=1, context=1, replicas=6),
    gpus=6,
    gpus_per_decode_gpu=0.5,
    utilization=0.7,
    kv_transfer_gib=0.25,
    kv_transfer_ms=10.0,
)
SPLIT: dict[str, Any] = {
    "model": "meta-llama/Llama-3.1-8B",
    "requests_per_second": 4,
    "input_tokens": 2000,
    "output_tokens": 100,
    "accelerators": ["h100-sxm"],
    "pools": "split",
}
KV_BYTES = 2 * 32 * 8 * 128 * 2
"""Keys and values of 32 layers, 8 heads of 128 in 16 bits: 131,072 a token."""


def test_the_option_says_how_many_prefill_and_how_fast_caches_move() -> None:
    option = inference_option(prefill_pool=POOL)
    assert option.layout.tensor == 2
    settings = split_settings(option, SimulationQuestion(), prompt_bytes=5e8)
    assert settings.prefill_replicas == 6
    assert settings.transfer_gb_s == pytest.approx(50.0)


def test_a_scenario_of_its_own_wins_and_a_whole_option_stays_whole() -> None:
    stated = SimulationQuestion(prefill_replicas=2, transfer_gb_s=7.0)
    assert split_settings(inference_option(prefill_pool=POOL), stated, 5e8) == stated
    assert split_settings(inference_option(), SimulationQuestion(), 5e8) == SimulationQuestion()
    batches = SimulationQuestion(batching="dynamic", batch_ms=5.0)
    assert split_settings(inference_option(prefill_pool=POOL), batches, 5e8) is batches


@pytest.mark.parametrize(
    ("stated", "replicas", "rate_gb_s"),
    [
        ({"transfer_gb_s": 7.0}, 6, 7.0),
        ({"prefill_replicas": 2}, 2, 50.0),
    ],
)
def test_what_a_scenario_states_counts_and_the_rest_is_the_plans(
    stated: dict[str, Any], replicas: int, rate_gb_s: float
) -> None:
    settings = split_settings(inference_option(prefill_pool=POOL), SimulationQuestion(**stated), prompt_bytes=5e8)
    assert settings.prefill_replicas == replicas
    assert settings.transfer_gb_s == pytest.approx(rate_gb_s)


def test_pools_of_the_scenario_alone_have_a_usual_rate() -> None:
    settings = split_settings(inference_option(), SimulationQuestion(prefill_replicas=2), 5e8)
    assert (settings.prefill_replicas, settings.transfer_gb_s) == (2, 25.0)


def simulated(question: dict[str, Any], **scenario: Any) -> dict[str, Any]:
    params = {"question": question, "traffic": {"hours": 0.05}, "scenario": scenario}
    return run_simulation(params, lambda share, message: None, in_turn(serve_part, params))


@pytest.mark.usefixtures("catalog")
def test_a_split_plan_tells_the_pools_that_ran_and_a_stated_rate_counts() -> None:
    """Each prompt's KV cache takes bytes / rate to move; what differs in the time to the last token is that."""
    planned = simulated(SPLIT)
    assert planned["settings"]["prefill_replicas"] > 0
    assert planned["settings"]["transfer_gb_s"] > 0
    rates = (0.5, 25.0)
    slow, fast = (simulated(SPLIT, transfer_gb_s=rate) for rate in rates)
    assert [run["settings"]["transfer_gb_s"] for run in (slow, fast)] == [0.5, 25.0]
    tokens = slow["input_tokens"] / slow["completed"]
    moved_gb = tokens * KV_BYTES / 1e9
    longer_ms = slow["e2e_ms"]["mean"] - fast["e2e_ms"]["mean"]
    assert longer_ms == pytest.approx(moved_gb * (1 / rates[0] - 1 / rates[1]) * 1e3, rel=0.05)
    replicas, prefill = planned["replicas"], planned["settings"]["prefill_replicas"]
    assert any(
        note.startswith(f"Replicas that prefill: {prefill}; that decode: {replicas - prefill}.")
        for note in planned["notes"]
    )


@pytest.mark.usefixtures("catalog")
def test_a_rate_that_nothing_moves_at_is_said() -> None:
    idle = "A KV transfer is stated, but no KV cache moves: replicas process prompts and answer."
    whole = {**SPLIT, "pools": "together"}
    stated, plain = simulated(whole, transfer_gb_s=1.0), simulated(whole)
    assert idle in stated["notes"]
    assert idle not in plain["notes"]
    assert stated["e2e_ms"] == plain["e2e_ms"]
    assert plain["settings"]["transfer_gb_s"] is None


LLAMA: dict[str, Any] = {"model": "Llama 3.1 70B", "input_tokens": 4000, "output_tokens": 300, "ttft_ms": 4000}
PLANS: dict[str, dict[str, Any]] = {
    "slow network": LLAMA
    | {"input_tokens": 1155, "output_tokens": 211, "requests_per_second": 40, "accelerators": ["h200-sxm"]},
    "one node, other layout": LLAMA
    | {"requests_per_second": 5, "instance_types": ["genesis/HGX H100 8x"], "accelerators": ["h100-sxm"]},
    "one GPU each": SPLIT | {"requests_per_second": 20, "output_tokens": 250, "ttft_ms": 1000},
    "experts": {"model": "Mixtral 8x7B", "input_tokens": 2000, "output_tokens": 250, "requests_per_second": 10},
}


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("headroom", [0.3, 0.7])
@pytest.mark.parametrize("name", PLANS)
def test_a_split_plan_and_its_simulation_mean_the_same(name: str, headroom: float) -> None:
    """First tokens, pace and bill of the same pools, at the load that the plan is for and far below it."""
    question = PLANS[name] | {"pools": "split", "peak_factor": 1, "tpot_ms": 60, "headroom": headroom}
    cluster = planned_cluster(question, "")
    option, pool = cluster.option, cluster.option.prefill_pool
    assert pool is not None
    asked = parse_question(InferenceQuestion, question)
    traffic = traffic_like(asked, {}) | {"hours": 5000 / question["requests_per_second"] / 3600}
    source = GeneratedTraffic(question=parse_question(TrafficQuestion, traffic))
    prefill, decode = cluster.fleet(source, SimulationQuestion()).fleet.pools
    assert (prefill.kind.gpus, prefill.replicas) == (pool.layout.gpus_per_replica, pool.layout.replicas)
    assert (decode.kind.gpus, decode.replicas) == (option.layout.gpus_per_replica, option.layout.replicas)
    run = cluster.run(source, SimulationQuestion()).document
    assert run["ttft_ms"]["mean"] == pytest.approx(option.speed.ttft_ms["mean"], rel=0.1)
    assert run["tpot_ms"]["mean"] == pytest.approx(option.speed.tpot_ms["mean"], rel=0.05)
    assert float(run["usd_per_month"]) == pytest.approx(float(option.price.usd_per_month), rel=1e-4)
    assert run["gpu_hours"] == pytest.approx(option.cluster.gpus_billed * run["duration_s"] / 3600, rel=1e-3)


def units(gpus: int, **layouts: Any) -> tuple[Unit, Unit]:
    """On nodes of 8 GPUs: ``own`` and ``fed`` are (GPUs of a replica, replicas), ``nodes`` what the plan rents."""
    (each, count), (fed, many) = layouts["own"], layouts["fed"]
    own = Layout(tensor=each, pipeline=1, expert=1, context=1, replicas=count)
    other = Layout(tensor=fed, pipeline=1, expert=1, context=1, replicas=many)
    option = inference_option(layout=own, prefill_pool=replace(POOL, layout=other, gpus=fed * many))
    nodes = layouts["nodes"]
    cluster = replace(option.cluster, gpus_per_node=gpus, nodes=nodes, gpus_used=each * count + fed * many)
    return rented_units(replace(option, cluster=cluster))


def test_pools_that_share_nodes_share_their_price() -> None:
    """One node of 8 holds a replica of 4 GPUs and two of 2: each pool bears half of it."""
    assert units(8, own=(4, 1), fed=(2, 2), nodes=1) == (Unit(replicas=2, nodes=0.5), Unit(replicas=4, nodes=0.5))
    # Five replicas of 4 GPUs alone would take three nodes, ten of 2 GPUs three too; together they fill five.
    own, fed = units(8, own=(4, 5), fed=(2, 10), nodes=5)
    assert 3 * own.nodes + 3 * fed.nodes == pytest.approx(5)


def test_pools_with_nodes_of_their_own_pay_whole_nodes() -> None:
    assert units(8, own=(8, 3), fed=(8, 2), nodes=5) == (Unit(replicas=1, nodes=1), Unit(replicas=1, nodes=1))
    assert units(8, own=(16, 2), fed=(8, 1), nodes=5) == (Unit(replicas=1, nodes=2), Unit(replicas=1, nodes=1))
