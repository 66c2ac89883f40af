"""Parameter counts of published models, to the last one where the source is exact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.engine.param_count import attention_params, count_parameters
from tests.engine.published_models import published


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("Llama 3.1 8B", 8_030_261_248),
        ("Llama 3.1 70B", 70_553_706_496),
        ("Llama 3.1 405B", 405_853_388_800),
        ("Qwen3 8B", 8_190_735_360),
        ("Qwen3 32B", 32_762_123_264),
        ("Qwen2.5 7B", 7_615_616_512),
        ("Qwen2.5 14B", 14_770_033_664),
        ("Mixtral 8x7B", 46_702_792_704),
        ("Qwen3 30B-A3B", 30_532_122_624),
        ("Qwen3 235B-A22B", 235_093_634_560),
        ("DeepSeek-V3", 671_026_419_200),
        ("gpt-oss-120b", 116_829_156_672),
        ("gpt-oss-20b", 20_914_757_184),
    ],
)
def test_total(name: str, total: int) -> None:
    assert count_parameters(published(name)).total == total


@pytest.mark.parametrize(
    ("name", "active"),
    [("Mixtral 8x7B", 12_879_925_248), ("Qwen3 30B-A3B", 3_353_032_704), ("Qwen3 235B-A22B", 22_190_763_520)],
)
def test_active(name: str, active: int) -> None:
    assert count_parameters(published(name)).active == active


def test_active_with_and_without_the_input_embedding() -> None:
    deepseek, gpt_oss = count_parameters(published("DeepSeek-V3")), count_parameters(published("gpt-oss-120b"))

    assert deepseek.active == pytest.approx(37.55e9, rel=1e-4)
    assert deepseek.active_without_input_embedding == pytest.approx(36.63e9, rel=2e-4)
    assert gpt_oss.active == pytest.approx(5.71e9, rel=1e-3)
    assert gpt_oss.active_without_input_embedding == pytest.approx(5.13e9, rel=1e-3)


def test_latent_attention_layer() -> None:
    arch = published("DeepSeek-V3")

    assert attention_params(arch, arch.attention[0]).total == 187_107_328


@pytest.mark.parametrize("name", ["Llama 3.1 8B", "DeepSeek-V3", "Gemma 3 27B", "Kimi K3", "Nemotron 3 Nano 30B-A3B"])
def test_parts_sum_to_the_total(name: str) -> None:
    counts = count_parameters(published(name))
    parts = (
        counts.embedding, counts.lm_head, counts.attention, counts.ffn_dense, counts.experts,
        counts.shared_experts, counts.router, counts.norms, counts.other,
    )  # fmt: skip

    assert sum(parts) == counts.total
    assert counts.active == counts.total - counts.experts + counts.experts_active


def test_tied_embedding_takes_part_in_the_output() -> None:
    tied = count_parameters(published("Llama 3.2 1B"))
    untied = count_parameters(replace(published("Llama 3.2 1B"), tied_embeddings=False))

    assert tied.lm_head == 0
    assert tied.active_without_input_embedding == tied.active
    assert untied.active_without_input_embedding == tied.active
    assert untied.total - tied.total == tied.embedding


def test_forward_flops_a_token_of_the_8b() -> None:
    counts = count_parameters(published("Llama 3.1 8B"))

    assert 2 * counts.active_without_input_embedding == pytest.approx(15.010e9, rel=1e-4)
