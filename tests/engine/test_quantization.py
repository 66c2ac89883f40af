"""Weight bytes by recipe and by rank, against checkpoints and start-up logs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.errors import InvalidQuestion
from planner.engine.quantization import WEIGHT_FORMATS, compute_format, resolve_format, weight_bytes
from planner.engine.units import GIB
from planner.engine.weight_sharding import ExpertPadding, weight_bytes_per_gpu
from planner.engine.workload import WEIGHT_FORMATS as ASKABLE_FORMATS
from tests.engine.published_models import published


@pytest.mark.parametrize(
    ("name", "weight_format", "gib"),
    [
        ("Llama 3.1 70B", "bf16", 131.417),
        ("Llama 3.1 70B", "int8", 67.667),
        ("Llama 3.1 70B", "fp8", 67.667),
        ("Llama 3.1 70B", "awq_int4", 37.037),
        ("Llama 3.1 70B", "nvfp4", 39.776),
        ("Llama 3.1 8B", "bf16", 14.958),
        ("Qwen3 8B", "bf16", 15.257),
        ("DeepSeek-V3", "auto", 626.92),
    ],
)
def test_weights_of_a_recipe(name: str, weight_format: str, gib: float) -> None:
    assert weight_bytes(published(name), weight_format).total / GIB == pytest.approx(gib, abs=0.001)


def test_checkpoint_of_4_bit_experts_to_the_byte() -> None:
    assert weight_bytes(published("gpt-oss-120b")).total == 65_248_815_744


def test_recipe_that_keeps_attention_in_16_bit_is_not_one_byte_a_parameter() -> None:
    arch = published("Llama 3.1 405B")
    kept, linear = weight_bytes(arch, "fp8_fbgemm").total / GIB, weight_bytes(arch, "fp8").total / GIB

    assert linear == pytest.approx(382, rel=0.01)
    # The log's 462 GiB is of the first revision, which stored the KV heads twice (7.9 GiB).
    assert kept == pytest.approx(462 - 7.88, rel=0.002)


@pytest.mark.parametrize(("name", "billions_of_bytes"), [("Qwen3.5 122B-A10B", (64, 76)), ("DeepSeek-V3", (345, 395))])
def test_memory_holds_all_experts_not_the_active_ones(name: str, billions_of_bytes: tuple[float, float]) -> None:
    low, high = billions_of_bytes

    assert low < weight_bytes(published(name), "awq_int4").total / 1e9 < high


def test_four_bit_80b_is_not_nine_gigabytes() -> None:
    # odysseus#377: Qwen3-Coder-Next AWQ was shown as 9.2 GB.
    assert weight_bytes(published("Qwen3-Coder-Next"), "awq_int4").total / 1e9 > 37


def test_parts_sum_to_the_total() -> None:
    for name in WEIGHT_FORMATS:
        found = weight_bytes(published("DeepSeek-V3"), name)
        parts = (found.embedding, found.lm_head, found.attention, found.ffn_dense, found.experts)
        assert sum(parts) + found.shared_experts + found.encoder + found.other == pytest.approx(found.total)


def test_every_askable_format_is_known() -> None:
    assert set(ASKABLE_FORMATS) - {"auto"} <= set(WEIGHT_FORMATS)


def test_native_restriction_holds_for_the_native_format_only() -> None:
    arch = published("gpt-oss-120b")

    assert resolve_format(arch, "auto").modules == {"experts"}
    assert "attention" in resolve_format(arch, "nvfp4").modules


def test_unknown_format_says_what_is_known() -> None:
    with pytest.raises(InvalidQuestion) as raised:
        weight_bytes(published("Llama 3.1 8B"), "fp3")

    assert raised.value.errors[0].field == "weight_formats"
    assert "awq_int4" in raised.value.errors[0].allowed


@pytest.mark.parametrize(
    ("weight_format", "peaks", "expected"),
    [
        ("fp8", {"bf16", "fp16", "fp8"}, "fp8"),
        ("fp8", {"bf16", "fp16"}, "bf16"),
        ("bf16", {"fp16", "fp32"}, "fp16"),
        ("nvfp4", {"bf16", "fp8"}, "bf16"),
        ("mxfp4", {"bf16", "fp8", "fp4"}, "fp4"),
        ("int8", {"fp16", "int8"}, "int8"),
        ("bf16", {"fp32"}, None),
    ],
)
def test_compute_format(weight_format: str, peaks: set[str], expected: str | None) -> None:
    assert compute_format(WEIGHT_FORMATS[weight_format], peaks) == expected


@pytest.mark.parametrize(
    ("name", "weight_format", "tp", "pp", "gib"),
    [
        ("Llama 3.3 70B", "fp8", 2, 1, 33.88),
        ("Llama 3.3 70B", "fp8", 4, 1, 16.96),
        ("Qwen2.5 72B", "bf16", 2, 1, 67.8),
        ("Mixtral 8x7B", "bf16", 2, 1, 43.51),
        ("Llama 3.1 8B", "bf16", 1, 2, 7.51),
        ("Llama 3.1 8B", "bf16", 1, 4, 4.26),
    ],
)
def test_weights_of_a_rank_as_logged(name: str, weight_format: str, tp: int, pp: int, gib: float) -> None:
    found = float(weight_bytes_per_gpu(published(name), weight_format, tp, pp, 1)) / GIB

    assert found == pytest.approx(gib, rel=0.008)


@pytest.mark.parametrize(
    ("multiples", "gib"), [((1, 1), 60.768), ((256, 64), 64.38), ((256, 128), 65.965)], ids=["stored", "one", "both"]
)
def test_loader_padding_of_4_bit_experts(multiples: tuple[int, int], gib: float) -> None:
    padding = ExpertPadding(hidden_multiple=multiples[0], intermediate_multiple=multiples[1])

    found = float(weight_bytes_per_gpu(published("gpt-oss-120b"), "auto", 1, 1, 1, padding=padding)) / GIB

    assert found == pytest.approx(gib, rel=0.003)


def test_layouts_are_arrays() -> None:
    found = weight_bytes_per_gpu(published("DeepSeek-V3"), "auto", [[8], [1]], 1, [[8, 16], [8, 16]])

    assert found.shape == (2, 2)
    # Data-parallel attention (tp 1) keeps attention whole on every rank.
    assert (found[1] > found[0]).all()


@given(
    name=st.sampled_from(["Llama 3.1 8B", "DeepSeek-V3", "gpt-oss-120b", "Gemma 3 27B", "Qwen3.5 397B-A17B"]),
    weight_format=st.sampled_from(sorted(WEIGHT_FORMATS)),
    power=st.integers(0, 5),
    pp=st.integers(1, 8),
)
def test_more_ranks_never_hold_more_each(name: str, weight_format: str, power: int, pp: int) -> None:
    arch, tp = published(name), 2**power
    less = weight_bytes_per_gpu(arch, weight_format, [tp, tp], [pp, pp], [1, tp])
    more = weight_bytes_per_gpu(arch, weight_format, [2 * tp, 2 * tp], [pp, pp], [1, tp])
    whole = weight_bytes_per_gpu(arch, weight_format, 1, 1, 1)

    assert (more <= less * (1 + 1e-9)).all()
    assert (less * tp * pp >= whole * (1 - 1e-9)).all()
    assert np.isclose(whole, weight_bytes(arch, weight_format).total, rtol=2e-4)
