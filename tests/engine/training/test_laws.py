"""Laws of training memory and step time that hold whatever the constants."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.model_arch import ModelArch
from planner.engine.training.memory import TrainingMemory, training_memory
from planner.engine.training.step import StepTime, step_time
from planner.engine.training.work import model_work, stack_work
from tests.engine.training.cases import (
    LLAMA_8B,
    LLAMA_70B,
    MOE_30B,
    layout,
    memory_constants,
    recipe,
    scalar,
    step_constants,
)

ARCHS = st.sampled_from([LLAMA_8B, LLAMA_70B, MOE_30B])
FACTORS = st.floats(min_value=1.01, max_value=8.0)


@st.composite
def layouts(draw):
    tensor = draw(st.sampled_from([1.0, 2.0, 4.0]))
    pipeline = draw(st.sampled_from([1.0, 2.0, 4.0]))
    data = draw(st.sampled_from([1.0, 2.0, 16.0]))
    sharding = draw(st.sampled_from(["none", "zero1", "zero2", "zero3"]))
    return {
        "gpus": tensor * pipeline * data,
        "tensor": tensor,
        "pipeline": pipeline,
        "sharding": sharding,
        "recompute": draw(st.sampled_from(["none", "selective", "full"])),
        "micro_batch": draw(st.sampled_from([1.0, 2.0])),
    }


def total_s(arch: ModelArch, **of_layout) -> float:
    return scalar(step_time(model_work(arch), recipe(), layout(**of_layout), step_constants()).total)


def total_bytes(arch: ModelArch, **of_layout) -> float:
    constants = memory_constants(fragmentation=0.05, reserve_bytes=1e9, unsharded_layers=2.0, frozen_saving=0.3)
    return scalar(training_memory(model_work(arch), recipe(), layout(**of_layout), constants).total)


@given(arch=ARCHS, where=layouts())
def test_terms_sum_to_the_total_and_none_is_negative(arch, where) -> None:
    step = step_time(model_work(arch), recipe(), layout(**where), step_constants())
    terms = [scalar(getattr(step, f.name)) for f in fields(StepTime)]
    assert min(terms) >= 0.0
    assert sum(terms) == pytest.approx(scalar(step.total))


@given(arch=ARCHS, where=layouts())
def test_memory_parts_sum_to_the_total_and_none_is_negative(arch, where) -> None:
    memory = training_memory(model_work(arch), recipe(), layout(**where), memory_constants(reserve_bytes=1e9))
    parts = [scalar(getattr(memory, f.name)) for f in fields(TrainingMemory)]
    assert min(parts) >= 0.0
    assert sum(parts) == pytest.approx(scalar(memory.total))


@pytest.mark.parametrize(
    "resource", ["link_bytes_s", "network_bytes_s", "memory_bandwidth_bytes_s", "peak_flops", "peak_flops_16bit"]
)
@given(arch=ARCHS, where=layouts(), factor=FACTORS)
def test_more_of_a_resource_is_never_slower(resource, arch, where, factor) -> None:
    base = scalar(getattr(layout(**where), resource))
    assert total_s(arch, **where, **{resource: base * factor}) <= total_s(arch, **where) * (1 + 1e-12)


@given(arch=ARCHS, where=layouts())
def test_recomputation_trades_memory_for_time(arch, where) -> None:
    where = {key: value for key, value in where.items() if key != "recompute"}
    bytes_of = [total_bytes(arch, **where, recompute=name) for name in ("none", "full")]
    seconds = [total_s(arch, **where, recompute=name) for name in ("none", "selective", "full")]
    assert seconds == sorted(seconds)
    # A layer's peak is held on top of its input: recomputing pays from a few layers a stage on.
    assert bytes_of[1] < bytes_of[0]


@given(arch=ARCHS, where=layouts())
def test_more_sharding_never_takes_more_memory(arch, where) -> None:
    where = {key: value for key, value in where.items() if key != "sharding"} | {"gpus": where["gpus"] * 4}
    states = []
    for name in ("none", "zero1", "zero2", "zero3"):
        memory = training_memory(model_work(arch), recipe(), layout(**where, sharding=name), memory_constants())
        states.append(scalar(memory.weights + memory.gradients + memory.optimizer))
    assert states == sorted(states, reverse=True)


@given(arch=ARCHS, where=layouts())
def test_longer_sequences_take_longer_and_more_memory(arch, where) -> None:
    spans, sizes = [], []
    for sequence in (2048.0, 8192.0, 32768.0):
        asked = recipe(sequence_length=sequence)
        spans.append(scalar(step_time(model_work(arch), asked, layout(**where), step_constants()).total))
        sizes.append(scalar(training_memory(model_work(arch), asked, layout(**where), memory_constants()).total))
    assert spans == sorted(spans)
    assert sizes == sorted(sizes)


@given(where=layouts())
def test_frozen_base_is_faster_and_smaller(where) -> None:
    work = model_work(LLAMA_8B)
    lora = recipe(frozen_base=1.0, adapter_params=40e6)
    full = recipe()
    place = layout(**where)
    assert scalar(step_time(work, lora, place, step_constants()).total) < scalar(
        step_time(work, full, place, step_constants()).total
    )
    assert scalar(training_memory(work, lora, place, memory_constants()).total) < scalar(
        training_memory(work, full, place, memory_constants()).total
    )


def test_slow_network_makes_node_local_shards_worth_it() -> None:
    """ZeRO-1 over all ranks against node-local shards, 128 nodes at 50 Gb/s a GPU."""
    work = model_work(LLAMA_8B)
    slow = {"gpus": 1024.0, "sharding": "zero1", "network_bytes_s": 6.25e9}
    everywhere = step_time(work, recipe(global_batch=4096.0), layout(**slow), step_constants())
    local = step_time(work, recipe(global_batch=4096.0), layout(**slow, shard_group=8.0), step_constants())
    assert scalar(local.data_comm) < 0.7 * scalar(everywhere.data_comm)


def test_tensor_parallelism_over_pcie_is_a_trap() -> None:
    work = model_work(LLAMA_8B)
    cards = {"tensor": 8.0, "link_bytes_s": 25e9}
    shared = step_time(work, recipe(), layout(**cards, link_is_shared=1.0), step_constants())
    assert scalar(shared.tensor_comm) > 10 * scalar(shared.compute)


def test_many_models_at_once_equal_each_alone() -> None:
    archs = [LLAMA_8B, LLAMA_70B, MOE_30B]
    together = step_time(stack_work([model_work(a) for a in archs]), recipe(), layout(tensor=2.0), step_constants())
    alone = [scalar(step_time(model_work(a), recipe(), layout(tensor=2.0), step_constants()).total) for a in archs]
    assert np.allclose(together.total, alone)
