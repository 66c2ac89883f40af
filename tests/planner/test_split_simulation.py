"""A split option simulated: its own prefill pool and transfer, unless the scenario states them."""

from __future__ import annotations

from typing import Any

import pytest

from planner.engine.answers import Layout, PrefillPool
from planner.engine.simulate.question import SimulationQuestion
from planner.services.run_kind import in_turn
from planner.services.simulation import split_settings
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
    assert settings.prefill_replicas == 3
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
        ({"transfer_gb_s": 7.0}, 3, 7.0),
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
    assert any(note.startswith(f"{prefill} replicas prefill, {replicas - prefill} decode") for note in planned["notes"])


@pytest.mark.usefixtures("catalog")
def test_a_rate_that_nothing_moves_at_is_said() -> None:
    idle = "A KV transfer is stated, but no KV cache moves: replicas process prompts and answer."
    whole = {**SPLIT, "pools": "together"}
    stated, plain = simulated(whole, transfer_gb_s=1.0), simulated(whole)
    assert idle in stated["notes"]
    assert idle not in plain["notes"]
    assert stated["e2e_ms"] == plain["e2e_ms"]
    assert plain["settings"]["transfer_gb_s"] is None
