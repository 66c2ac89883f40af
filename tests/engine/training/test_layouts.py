"""Which layouts are valid, and what an invalid size is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from catalog.training_files import training_profiles
from planner.engine.training.layouts import (
    AskedLayout,
    enumerate_layouts,
    invalid_sizes,
    valid_expert,
    valid_pipeline,
    valid_tensor,
)
from planner.engine.training.work import model_work
from tests.engine.training.cases import LLAMA_8B, LLAMA_70B, MOE_30B, decoder

MEGATRON = training_profiles().frameworks["megatron"]


def grid(arch, gpus: int, **changes):
    values: dict[str, Any] = {
        "gpus": gpus,
        "domain_gpus": min(8, gpus),
        "global_batch": 512.0,
        "batch_is_fixed": True,
        "sequence_length": 8192,
        "asked": AskedLayout(),
        "framework": MEGATRON,
    }
    return enumerate_layouts(model_work(arch), **(values | changes))


@pytest.mark.parametrize(
    ("heads", "kv_heads", "valid"), [(40, 40, (1, 2, 4, 5, 8, 10)), (28, 4, (1, 2, 4)), (12, 12, (1, 2, 3, 4, 6, 12))]
)
def test_tensor_sizes_divide_the_heads(heads: int, kv_heads: int, valid: tuple[int, ...]) -> None:
    arch = decoder("x", 32, heads * 128, heads, kv_heads, 120 * 128, 32000)
    assert valid_tensor(model_work(arch), 12) == valid


def test_stages_hold_whole_layers_with_or_without_the_ends() -> None:
    arch = decoder("405B", 126, 16384, 128, 8, 53248, 128256)
    assert {1, 2, 3, 6, 7, 8, 9, 14, 16} <= set(valid_pipeline(model_work(arch), 16))
    assert 5 not in valid_pipeline(model_work(arch), 16)


def test_experts_divide_over_ranks() -> None:
    assert valid_expert(model_work(MOE_30B), 16) == (1, 2, 4, 8, 16)
    assert valid_expert(model_work(LLAMA_8B), 16) == (1,)


@pytest.mark.parametrize(
    ("asked", "field", "says"),
    [
        (AskedLayout(tensor=3), "tensor_parallel", "64 query heads"),
        (AskedLayout(pipeline=7), "pipeline_parallel", "80 layers"),
        (AskedLayout(expert=3), "expert_parallel", "no experts"),
    ],
)
def test_an_asked_size_that_cannot_be_is_named_with_what_would_do(asked, field, says) -> None:
    (fault,) = invalid_sizes(model_work(LLAMA_70B), asked)
    assert fault.field == field
    assert says in fault.reason
    assert fault.valid
    assert fault.value not in fault.valid


@pytest.mark.parametrize("gpus", [1, 8, 64, 512])
def test_every_layout_uses_all_gpus_and_divides_the_batch(gpus: int) -> None:
    for arch in (LLAMA_8B, LLAMA_70B, MOE_30B):
        found = grid(arch, gpus)
        assert len(found)
        assert np.all(found.tensor * found.pipeline * found.context * found.data == gpus)
        micro_batches = found.global_batch / (found.data * found.micro_batch)
        assert np.all(np.mod(micro_batches, 1) == 0)
        assert np.all(micro_batches >= found.pipeline)
        assert np.all(found.global_batch == 512)
        assert np.all(found.tensor <= 8)
        assert np.all(np.mod(gpus / found.pipeline, found.expert) == 0)


def test_a_free_batch_moves_by_an_eighth_at_most() -> None:
    found = grid(LLAMA_8B, 48, batch_is_fixed=False)
    assert len(found)
    assert np.all(np.abs(found.global_batch / 512 - 1) <= 0.125)


def test_asked_sizes_are_kept() -> None:
    found = grid(LLAMA_70B, 64, asked=AskedLayout(tensor=4, pipeline=2, context=2, micro_batch=1))
    assert set(found.tensor) == {4}
    assert set(found.pipeline) == {2}
    assert set(found.context) == {2}
    assert set(found.data) == {4}


def test_more_gpus_than_sequences_leave_no_pure_data_parallel_layout() -> None:
    found = grid(LLAMA_8B, 1024, global_batch=64.0)
    assert len(found)
    assert found.data.max() <= 64
