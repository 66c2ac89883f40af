"""The model architectures file: complete, sourced, and counting what its publishers state."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catalog.model_files import architecture_key, find_model, model_key
from catalog.profiles import load_profile_file
from planner.engine.arch_spec import arch_from_spec
from planner.engine.kv_cache import layer_token_bytes
from planner.engine.param_count import count_parameters
from tests.engine.published_models import published

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
MODELS: list[dict[str, Any]] = load_profile_file("model_architectures.json")["models"]
ONE_RANK = np.array(1.0)
KNOWN_TO_DIFFER = {
    "Llama 4 Scout": "published with its vision tower",
    "DeepSeek-V4-Pro": "published rounded",
    "MiMo-7B": "published with its prediction layer",
}
"""Counts more than 1 % from the published one, and why."""


@pytest.mark.parametrize("entry", MODELS, ids=lambda entry: entry["name"])
def test_entry_is_complete(entry: dict[str, Any]) -> None:
    assert entry["source"]
    assert date.fromisoformat(entry["as_of"])
    assert entry["license"]
    assert len(entry["release"]) == len("2026-11")
    assert entry["spec"]["name"] == entry["name"]


@pytest.mark.parametrize("entry", MODELS, ids=lambda entry: entry["name"])
def test_count_is_the_published_one(entry: dict[str, Any]) -> None:
    counts = count_parameters(arch_from_spec(entry["spec"]))
    within = counts.total / 1e9 == pytest.approx(entry["published_total_params_b"], rel=0.01)

    assert within is (entry["name"] not in KNOWN_TO_DIFFER)


def test_names_are_unique() -> None:
    names = [model_key(entry["name"]) for entry in MODELS]

    assert len(names) == len(set(names))
    assert len(MODELS) >= 90


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 8B"),
        ("RedHatAI/Llama-3.3-70B-Instruct-fp8-dynamic", "Llama 3.3 70B"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "Llama 3.1 70B"),
        ("cyankiwi/gemma-4-31B-it-AWQ-4bit", "Gemma 4 31B"),
        ("deepseek-ai/DeepSeek-R1-0528", "DeepSeek-V3"),
        ("Qwen/Qwen3-235B-A22B-FP8", "Qwen3 235B-A22B"),
        ("mistral-7b", "Mistral 7B v0.1"),
        ("kimi-k2.5", "Kimi K2.5"),
        ("gpt-oss-20b", "gpt-oss-20b"),
    ],
)
def test_repacks_and_tunings_are_found(asked: str, name: str) -> None:
    assert published(asked).name == name


@pytest.mark.parametrize("asked", ["", "no such model", "llama", "fp8", "Qwen3"])
def test_unknown_names_are_not_guessed(asked: str) -> None:
    assert find_model(asked) is None


def test_sizes_are_not_stripped() -> None:
    assert architecture_key("Llama-3.1-8B") != architecture_key("Llama-3.1-70B")


def test_against_the_published_tables() -> None:
    if not SHARED.exists():
        pytest.skip("the published tables are not beside this checkout")
    with (SHARED / "catalog" / "models.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    for row in rows:
        arch = published(row["hf_id"])
        total = count_parameters(arch).total / 1e9
        assert total == pytest.approx(float(row["recount_total_b"]), rel=1e-3), row["name"]
        growing = [group for group in arch.attention if group.kind in ("full", "mla")]
        elements = sum(
            (float(layer_token_bytes(group, "bf16", ONE_RANK)) - group.index_elems) / 2 * group.layers
            for group in growing
        )
        assert elements == pytest.approx(float(row["kv_elems_per_token"]), rel=1e-6), row["name"]


def test_every_measured_model_is_known() -> None:
    if not SHARED.exists():
        pytest.skip("the published tables are not beside this checkout")
    missing = set()
    for name in ("architectures", "inference", "serving_memory"):
        with (SHARED / "validation" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            missing |= {row["model"] for row in csv.DictReader(file) if find_model(row["model"]) is None}

    assert missing == set()


@pytest.mark.parametrize(
    "asked",
    [
        "Llama 3.17 0B",
        "Llama 3.1 7 0B",
        "Llam\N{CYRILLIC SMALL LETTER A} 3.1 70B",
        "Llama 3.1 70B \N{LATIN SMALL LETTER E WITH ACUTE}",
        "Llama 3.1 70B\N{ZERO WIDTH SPACE}",
        "Llama 3.1 70B!!!",
        "Llama 3.1 70B-foo",
    ],
)
def test_names_that_look_like_one_are_not_that_one(asked: str) -> None:
    assert find_model(asked) is None
