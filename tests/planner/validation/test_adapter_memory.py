"""Memory of adapters on a frozen base, against what was published: one A100 40 GB, nothing recomputed.

litgpt's resource tables (tutorials/resource-tables.md @2685705, 2024-06): peak of the allocator in 10^9 bytes,
samples of 1,304 tokens.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from catalog.accelerator_files import find_accelerator
from catalog.profiles import DATA
from catalog.training_files import training_profiles
from planner.engine.training.memory import training_memory
from planner.engine.training.profile import memory_constants
from planner.engine.units import GB
from planner.services.planning import plan_training
from planner.services.validation.training_case import TrainingCase, context_of, stack_cases
from planner.services.validation.training_measurements import Measurement, read_measurements

ROWS = read_measurements(DATA / "measurements" / "training.csv", find_accelerator)
CARD_GB = 42.9


def published(model: str, *, source: str = "litgpt", **changes: object) -> TrainingCase:
    """A published run of the model, with some of its facts changed."""

    def is_it(row: Measurement) -> bool:
        return source in row.source and row.model == model and row.case.gpus == 1 and row.memory_gib is not None

    return replace(next(row.case for row in ROWS if is_it(row)), **changes)  # type: ignore[arg-type]


def peak_gb(case: TrainingCase) -> float:
    profiles = training_profiles()
    work, recipe, candidates = stack_cases([case], profiles)
    memory = training_memory(work, recipe, candidates, memory_constants(profiles, [context_of(case, profiles)]))
    return float(np.ravel(memory.total)[0]) / GB


def adapters(model: str, method: str, sequences: float) -> float:
    return peak_gb(published(model, method=method, micro_batch=sequences, global_batch=sequences))


@pytest.mark.parametrize(
    ("model", "method", "sequences", "measured_gb"),
    [
        ("Llama-2-7B", "lora", 1.0, 21.30),
        ("Llama-2-7B", "lora", 2.0, 29.07),
        ("Llama-2-7B", "qlora", 1.0, 14.14),
        ("Llama-2-13B", "lora", 1.0, 38.12),
        ("Llama-2-13B", "qlora", 1.0, 23.14),
    ],
)
def test_adapters_take_what_was_measured(model: str, method: str, sequences: float, measured_gb: float) -> None:
    found = adapters(model, method, sequences)
    assert found == pytest.approx(measured_gb, rel=0.12)
    assert found < CARD_GB


@pytest.mark.parametrize(("model", "sequences"), [("Llama-2-7B", 4.0), ("Llama-2-13B", 2.0)])
def test_what_ran_out_of_memory_does_not_fit(model: str, sequences: float) -> None:
    assert adapters(model, "lora", sequences) > CARD_GB


def test_another_sample_takes_what_was_measured() -> None:
    """7.77 GB for 1,304 tokens more: 5.96 MB a token of all 32 layers."""
    assert adapters("Llama-2-7B", "lora", 2.0) - adapters("Llama-2-7B", "lora", 1.0) == pytest.approx(7.77, rel=0.10)


def test_the_published_8b_lies_between_its_two_cards() -> None:
    """torchtune's README: LoRA of Llama 3 8B takes 16.2 GiB on an RTX 4090 and 30.3 GiB on an A6000, same settings."""
    case = published("llama3-8b LoRA", source="torchtune")
    assert 16.2 < peak_gb(case) * GB / 2**30 < 30.3


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("method", "sequences", "measured_gb"), [("lora", 1, 21.30), ("lora", 2, 29.07), ("qlora", 1, 14.14)]
)
def test_a_plan_of_adapters_takes_what_was_measured(method: str, sequences: int, measured_gb: float) -> None:
    """The same runs as the page asks for them: PyTorch libraries run adapters eagerly."""
    asked = {
        "model": "Llama 2 7B",
        "method": method,
        "framework": "ddp",
        "tokens": 1e6,
        "gpus": 1,
        "micro_batch": sequences,
        "sequence_length": 1304,
        "global_batch_tokens": 1304 * sequences,
        "packing": "padded",
        "document_tokens": 1304,
        "optimizer": "adamw_bf16",
        "recompute": "none",
        "sharding": "none",
    }
    planned = plan_training(asked)
    parts = planned.options[0].memory.parts_gib
    assert sum(parts.values()) * 2**30 / GB == pytest.approx(measured_gb, rel=0.14)
    assert any(line.startswith("Kernels are not compiled") for line in planned.assumptions)
    assert not any(
        line.startswith("Kernels") for line in plan_training(asked | {"method": "full_finetune"}).assumptions
    )
