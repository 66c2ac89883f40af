"""A split option simulated: its own prefill pool and transfer, unless the scenario states them."""

from __future__ import annotations

import pytest

from planner.engine.answers import Layout, PrefillPool
from planner.engine.simulate.question import SimulationQuestion
from planner.services.simulation import split_settings
from tests.factories import inference_option

POOL = PrefillPool(
    layout=Layout(tensor=1, pipeline=1, expert=1, context=1, replicas=6),
    gpus=6,
    gpus_per_decode_gpu=0.5,
    utilization=0.7,
    kv_transfer_gib=0.25,
    kv_transfer_ms=10.0,
)


def test_the_option_says_how_many_prefill_and_how_fast_caches_move() -> None:
    option = inference_option(prefill_pool=POOL)
    assert option.layout.tensor == 2
    settings = split_settings(option, SimulationQuestion(), prompt_bytes=5e8)
    assert settings.prefill_replicas == 3
    assert settings.transfer_gb_s == pytest.approx(50.0)


def test_a_scenario_of_its_own_wins_and_a_whole_option_stays_whole() -> None:
    stated = SimulationQuestion(prefill_replicas=2, transfer_gb_s=7.0)
    assert split_settings(inference_option(prefill_pool=POOL), stated, 5e8) is stated
    assert split_settings(inference_option(), SimulationQuestion(), 5e8).prefill_replicas == 0
