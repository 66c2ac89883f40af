"""The serving budget: identity, published start-up logs, and users' fit questions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.profiles import expert_padding, scheduler_defaults, serving_memory_profile
from planner.engine.kv_cache import max_concurrency
from planner.engine.memory import ServingMemory, ServingMemoryProfile, serving_memory
from planner.engine.units import GIB, bytes_to_gib, mib_to_bytes
from planner.engine.weight_sharding import NO_PADDING, ExpertPadding
from tests.engine.published_models import published

MODELS = ["Llama 3.1 8B", "Qwen3 30B-A3B", "gpt-oss-120b", "DeepSeek-V3", "Gemma 3 27B"]


def memory_of(
    name: str,
    *,
    profile: ServingMemoryProfile,
    total_gib: float,
    weight_format: str = "auto",
    utilization: float = 0.9,
    tp: int = 1,
    tokens: float = 8192,
    seqs: float = 1024,
    padding: ExpertPadding = NO_PADDING,
) -> ServingMemory:
    """``total_gib`` is what the framework sees, as logs print it."""
    return serving_memory(
        published(name),
        profile=profile,
        weight_format=weight_format,
        memory_bytes=total_gib * GIB + profile.driver_reserved_bytes,
        utilization=utilization,
        tp=tp,
        pp=1,
        ep=1,
        max_num_batched_tokens=tokens,
        max_num_seqs=seqs,
        padding=padding,
    )


def test_vendor_gigabytes() -> None:
    assert bytes_to_gib(80e9) == pytest.approx(74.506, abs=0.001)
    assert mib_to_bytes(81_559) / 1e9 == pytest.approx(85.521, abs=0.001)
    assert bytes_to_gib(mib_to_bytes(81_559)) == pytest.approx(79.648, abs=0.001)


@pytest.mark.parametrize(
    ("utilization", "total", "parts", "pool"),
    [
        (0.80, 79.19, (1.12, 0.16, 0.23), 61.84),
        (0.90, 79.22, (14.96, 1.79, 1.26), 53.28),
        (0.92, 276.62, (171.25, 36.74, 0.0), 46.50),
    ],
)
def test_budget_identity_of_logs(utilization: float, total: float, parts: tuple[float, ...], pool: float) -> None:
    assert utilization * total - sum(parts) == pytest.approx(pool, abs=0.01)


def test_logged_start_of_an_8b() -> None:
    found = memory_of("Llama 3.1 8B", profile=serving_memory_profile("vllm", version="0.19.0"), total_gib=79.19,
                      utilization=0.95)  # fmt: skip

    assert float(found.weights) / GIB == pytest.approx(14.99, rel=0.005)
    assert float(found.activation_peak) / GIB == pytest.approx(1.89, abs=0.02)
    assert float(found.non_torch) / GIB == pytest.approx(0.25, abs=0.01)
    assert float(found.kv_pool) / GIB == pytest.approx(58.11, rel=0.002)


@pytest.mark.parametrize(
    ("utilization", "version", "pool_gib"), [(0.9, "0.10.1", -2.14), (0.95, "0.10.1", 1.71)], ids=["0.90", "0.95"]
)
def test_single_gpu_that_is_advertised_for_a_120b(utilization: float, version: str, pool_gib: float) -> None:
    # vllm#23278, #27508: the loader pads 60.8 GiB of 4-bit experts to 66 GiB.
    found = memory_of(
        "gpt-oss-120b",
        profile=serving_memory_profile("vllm", version=version),
        total_gib=79.19,
        utilization=utilization,
        padding=expert_padding("vllm", "mxfp4", version=version),
    )

    assert float(found.weights) / GIB == pytest.approx(65.97, rel=0.002)
    assert float(found.kv_pool) / GIB == pytest.approx(pool_gib, abs=0.15)
    assert bool(found.fits) is (pool_gib > 0)


@pytest.mark.parametrize(("max_model_len", "tokens"), [(20_000, 31_232), (29_000, 23_648)])
def test_whole_prompts_grow_the_activation_peak(max_model_len: int, tokens: int) -> None:
    # vllm#10517: Llama-3.1-8B on 24 GB; without chunked prefill a longer maximum leaves fewer KV tokens.
    profile = serving_memory_profile("vllm", version="0.6.4")
    seqs, budget = scheduler_defaults("vllm", version="0.6.4", memory_gib=23.58, max_model_len=max_model_len)
    found = memory_of("Llama 3.1 8B", profile=profile, total_gib=23.58, tokens=budget, seqs=seqs)

    assert budget == max_model_len
    fits = float(max_concurrency(published("Llama 3.1 8B"), "bf16", 1, 1, found.kv_pool, 1000))
    assert fits * 1000 == pytest.approx(tokens, rel=0.05)


def test_graphs_are_budgeted_in_recent_versions() -> None:
    # club-3090#323: on 24 GB, utilization 0.95 behaves like 0.9325 did.
    old, new = (serving_memory_profile("vllm", version=version) for version in ("0.20", "0.22"))
    before = memory_of("Qwen3.6 35B-A3B", profile=old, total_gib=23.58, utilization=0.9325, weight_format="awq_int4")
    after = memory_of("Qwen3.6 35B-A3B", profile=new, total_gib=23.58, utilization=0.95, weight_format="awq_int4")

    assert float(before.kv_pool - after.kv_pool) / GIB == pytest.approx(0, abs=0.12)


def test_pool_is_per_gpu_and_shrinks_with_the_token_budget() -> None:
    # vllm#28228: Kimi-Linear-48B on two 24 GB cards.
    profile = serving_memory_profile("vllm", version="0.11")

    def pool(tokens: int) -> float:
        found = memory_of("Kimi-Linear 48B-A3B", profile=profile, total_gib=23.58, utilization=0.95, tp=2,
                          weight_format="awq_int4", tokens=tokens, seqs=256)  # fmt: skip
        return float(found.kv_pool) / GIB

    assert pool(64_000) < pool(8_192) < 23.58 * 0.95 - 26.0 / 2


def test_scheduler_defaults_follow_the_card() -> None:
    assert scheduler_defaults("vllm", version="0.19", gpu="H100-SXM", memory_gib=79.19) == (1024, 8192)
    assert scheduler_defaults("vllm", version="0.19", gpu="A100-80GB", memory_gib=79.15) == (256, 2048)
    assert scheduler_defaults("vllm", version="0.19", gpu="RTX-4090", memory_gib=23.5) == (256, 2048)
    assert scheduler_defaults("vllm", version="0.5", gpu="RTX 3090", memory_gib=23.6, max_model_len=20_000)[1] == 20_000


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt_llm", "llama_cpp"])
def test_every_engine_has_a_profile(engine: str) -> None:
    assert serving_memory_profile(engine).engine == engine


def test_unknown_engine() -> None:
    with pytest.raises(KeyError):
        serving_memory_profile("abacus")


@given(
    name=st.sampled_from(MODELS),
    version=st.sampled_from(["0.6", "0.11", "0.19", "0.24"]),
    weight_format=st.sampled_from(["auto", "bf16", "fp8", "awq_int4"]),
    total_gib=st.floats(8, 300),
    utilization=st.floats(0.1, 1),
    tp=st.sampled_from([1, 2, 4, 8]),
    tokens=st.integers(16, 100_000),
    seqs=st.integers(1, 4096),
)
def test_parts_sum_to_the_budget(
    name: str, version: str, weight_format: str, total_gib: float, utilization: float, tp: int, tokens: int, seqs: int
) -> None:
    found = memory_of(
        name, profile=serving_memory_profile("vllm", version=version), weight_format=weight_format,
        total_gib=total_gib, utilization=utilization, tp=tp, tokens=tokens, seqs=seqs,
    )  # fmt: skip
    parts = found.weights + found.activation_peak + found.non_torch + found.cuda_graphs + found.kv_pool

    assert float(parts) == pytest.approx(float(found.budget), rel=1e-9)
    room = total_gib * GIB - float(found.unbudgeted)
    assert float(found.budget) == pytest.approx(min(utilization * total_gib * GIB, room), rel=1e-9)
    assert not bool(found.fits) or float(found.kv_pool) > 0


@given(
    name=st.sampled_from(MODELS),
    engine=st.sampled_from(["vllm", "sglang", "tensorrt_llm", "llama_cpp"]),
    total_gib=st.floats(8, 300),
    more_gib=st.floats(0, 300),
    utilization=st.floats(0.3, 0.98),
)
def test_more_memory_never_fits_less(
    name: str, engine: str, total_gib: float, more_gib: float, utilization: float
) -> None:
    profile = serving_memory_profile(engine)
    small, large = (
        memory_of(name, profile=profile, total_gib=size, utilization=utilization)
        for size in (total_gib, total_gib + more_gib)
    )

    assert float(large.kv_pool) >= float(small.kv_pool)
    assert bool(large.fits) or not bool(small.fits)


def test_arrays_of_cards_and_layouts() -> None:
    profile = serving_memory_profile("vllm")
    found = serving_memory(
        published("Llama 3.1 70B"), profile=profile, weight_format="bf16",
        memory_bytes=np.array([[48], [80], [141]]) * GIB, utilization=0.9, tp=np.array([1, 2, 4, 8]), pp=1, ep=1,
        max_num_batched_tokens=8192, max_num_seqs=256,
    )  # fmt: skip

    assert found.fits.tolist() == [
        [False, False, True, True],
        [False, True, True, True],
        [False, True, True, True],
    ]
