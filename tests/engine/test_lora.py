"""LoRA adapters at serving time: published sizes, slots in memory, what an iteration pays."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.profiles import serving_profiles
from planner.engine.lora import adapter_bytes_per_gpu, adapter_params, distinct
from planner.engine.serving_regimes import lora_slots, regime_coefficients, resident_bytes
from planner.engine.workload import InferenceQuestion
from tests.engine.published_models import published
from tests.engine.serving_cases import LLAMA_8B, candidates

ONE = np.ones(1)


@pytest.mark.parametrize(
    ("name", "rank", "params"), [("llama-3.1-8b", 16, 41_943_040), ("llama-3.1-70b", 16, 207_093_760)]
)
def test_adapters_on_every_linear_layer(name: str, rank: int, params: int) -> None:
    """As PEFT prints them for all linear layers of these models."""
    assert adapter_params(published(name), rank) == params


def test_of_two_factors_the_one_at_the_split_side_is_split() -> None:
    whole, halves = (float(adapter_bytes_per_gpu(LLAMA_8B, 16, tp, 1)) for tp in (1, 2))
    assert whole == 2 * 41_943_040
    assert whole / 2 < halves < whole
    assert float(adapter_bytes_per_gpu(LLAMA_8B, 16, 1, 2)) == whole / 2


def test_routed_experts_are_left_alone() -> None:
    arch = published("mixtral-8x7b")
    attention_only = 16 * 32 * ((4096 + 4096) * 2 + (4096 + 1024) * 2)
    assert adapter_params(arch, 16) == attention_only


def test_adapters_met_by_a_batch() -> None:
    assert float(distinct(4, 1e6)) == pytest.approx(4)
    assert float(distinct(1000, 8)) == pytest.approx(8, rel=0.01)


def test_slots_take_memory_and_default_to_eight() -> None:
    question = InferenceQuestion(model="m", lora_adapters=100, lora_rank=64)
    assert lora_slots(question) == 8
    assert lora_slots(InferenceQuestion(model="m", lora_adapters=3)) == 3
    held = float(resident_bytes(LLAMA_8B, None, question, "bf16", ONE, ONE, ONE)[0])
    assert held == 8 * 4 * 2 * 41_943_040


def test_an_iteration_pays_launches_flops_and_reads() -> None:
    profiles = serving_profiles()
    one = InferenceQuestion(model="m", lora_adapters=1)
    many = InferenceQuestion(model="m", lora_adapters=64, lora_slots=64)
    plain = regime_coefficients(LLAMA_8B, None, candidates(), InferenceQuestion(model="m"), profiles)
    with_one, with_many = (regime_coefficients(LLAMA_8B, None, candidates(), q, profiles) for q in (one, many))
    launches = profiles.lora.kernels_per_layer * profiles.lora.kernel_s * 32
    times = [float(c.iteration_s(32.0, 32e3)[0]) for c in (plain, with_one, with_many)]
    assert times[1] - times[0] == pytest.approx(launches, rel=0.25)
    assert times[2] > times[1]
    assert float(with_many.request_s[0]) == float(plain.request_s[0])


def test_an_adapter_without_a_slot_is_read_from_the_host() -> None:
    question = InferenceQuestion(model="m", lora_adapters=100, lora_slots=50)
    plain = regime_coefficients(LLAMA_8B, None, candidates(), InferenceQuestion(model="m"), serving_profiles())
    found = regime_coefficients(LLAMA_8B, None, candidates(), question, serving_profiles())
    wait = float(found.request_s[0] - plain.request_s[0])
    assert wait == pytest.approx(0.5 * 2 * 41_943_040 / 64e9)
