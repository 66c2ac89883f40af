"""KV pools as engines log them when they start, and the tokens that are said of them."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from catalog.profiles import DATA, serving_memory_profile
from planner.engine.kv_cache import (
    kv_pages,
    logged_tokens,
    max_concurrency,
)
from planner.engine.model_arch import ModelArch
from planner.engine.units import GIB
from tests.engine.published_models import published

LOGS = DATA / "measurements" / "kv_capacity.csv"


def test_longest_request_of_a_logged_pool() -> None:
    # vllm#6746: Llama-3.1-405B-FP8 on 8 GPUs; 131,072 is refused, 79,392 is the longest.
    arch, pool = published("Llama 3.1 405B"), 79_392 * 64_512

    assert float(max_concurrency(arch, "bf16", 8, 1, pool, 79_392)) >= 1
    assert float(max_concurrency(arch, "bf16", 8, 1, pool, 79_393)) < 1
    assert float(max_concurrency(arch, "bf16", 8, 1, pool, 131_072)) < 1


def test_sliding_window_pool_of_the_log() -> None:
    arch, pool = published("Gemma 3 27B"), 109.86 * GIB

    pages = kv_pages(arch, "bf16", 1, 1)
    assert float(pages.page_bytes) == 131_072
    assert float(pages.group_layers) == 10
    assert float(pages.group_count) == 7
    assert int(pool // float(pages.block_bytes)) == pytest.approx(89_994, abs=5)
    assert float(max_concurrency(arch, "bf16", 1, 1, pool, 4096)) == pytest.approx(50.05, abs=0.005)
    assert float(max_concurrency(arch, "bf16", 1, 1, pool, 131_072)) == pytest.approx(7.72, abs=0.005)


def exact_logs() -> list[dict[str, str]]:
    with LOGS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if row["exactness"] == "exact" and row["kv_pool_gib"] and float(row["kv_tokens"] or 0)]


def model_of(row: dict[str, str]) -> ModelArch:
    arch = published(row["model"])
    if not row["draft_layers"]:
        return arch
    grown = tuple(replace(group, layers=group.layers + int(row["draft_layers"])) for group in arch.attention)
    return replace(arch, attention=grown)


@pytest.mark.parametrize("row", exact_logs(), ids=lambda row: f"{row['model']} {row['kv_tokens']}")
def test_logged_tokens_of_a_logged_pool(row: dict[str, str]) -> None:
    profile = serving_memory_profile("vllm", version=row["engine_version"] or None)

    found = float(
        logged_tokens(
            model_of(row),
            row["kv_format"],
            int(row["tensor_parallel"]),
            int(row["pipeline_parallel"]),
            float(row["kv_pool_gib"]) * GIB,
            max_model_len=float(row["max_model_len"] or 4096),
            by_concurrency=profile.logs_concurrency_tokens,
            allocator=profile.allocator,
        )
    )

    assert found == pytest.approx(float(row["kv_tokens"]), rel=0.003)
