"""KV cache against published start-up logs, and users' questions with a settled answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.engine.errors import InvalidQuestion
from planner.engine.kv_cache import (
    Allocator,
    kv_bytes_per_sequence,
    kv_bytes_per_token_per_gpu,
    kv_pages,
    kv_read_bytes,
    logged_tokens,
    max_concurrency,
    state_bytes_per_sequence,
)
from planner.engine.model_arch import AttentionGroup, ModelArch
from planner.engine.units import GIB
from tests.engine.published_models import published


def token_bytes(name: str, kv_format: str = "bf16", tp: int = 1, pp: int = 1) -> float:
    return float(kv_bytes_per_token_per_gpu(published(name), kv_format, tp, pp))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Llama 3 8B", 131_072),
        ("Llama 3.1 70B", 327_680),
        ("Llama 3.1 405B", 516_096),
        ("Llama 2 7B", 524_288),
        ("Qwen3 30B-A3B", 98_304),
        ("Qwen3 235B-A22B", 192_512),
        ("MiniMax-M2", 253_952),
        ("DeepSeek-V3", 70_272),
        ("Qwen2.5-7B-Instruct-GPTQ-Int8", 57_344),
        ("Qwen3.8-27B-FP8", 65_536),
        ("Qwen2.5 14B", 196_608),
    ],
)
def test_bytes_a_token(name: str, expected: float) -> None:
    assert token_bytes(name) == expected


def test_quantized_weights_do_not_quantize_the_cache() -> None:
    # vllm#22291: 3,072 tokens of Qwen2.5-7B GPTQ-Int8.
    assert 3072 * token_bytes("Qwen2.5 7B") == 168 * 2**20
    assert token_bytes("Qwen2.5 7B", "fp8") * 2 == token_bytes("Qwen2.5 7B")


def test_heads_replicate_beyond_their_number_and_latents_always() -> None:
    assert [token_bytes("Llama 3.1 8B", tp=tp) for tp in (1, 2, 8, 16)] == [131_072, 65_536, 16_384, 16_384]
    assert [token_bytes("DeepSeek-V3", tp=tp) for tp in (1, 8)] == [70_272, 70_272]


def test_pipeline_stage_holds_its_own_layers() -> None:
    # vllm#34076: 262,144 tokens of Qwen3-Coder-30B on a stage with a third of 48 layers.
    assert 262_144 * token_bytes("Qwen3-Coder 30B-A3B") / GIB == 24.0
    assert 262_144 * token_bytes("Qwen3-Coder 30B-A3B", pp=3) / GIB == 8.0


@pytest.mark.parametrize(
    ("name", "tokens", "gib"),
    [
        ("DeepSeek-V3.1", 163_840, 10.72),
        ("Gemma 3 27B", 131_072, 10.41),
        ("Qwen3.5 27B", 262_144, 16.00),
        ("Kimi-K2.5", 262_144, 17.16),
        ("Qwen3 0.6B", 40_960, 4.38),
    ],
    ids=["latent", "sliding", "recurrent", "latent, large", "explicit head_dim"],
)
def test_whole_context_of_one_sequence_by_layer_kind(name: str, tokens: int, gib: float) -> None:
    # unsloth#4757: decoding, so that windows hold no more than themselves; state counted apart.
    arch = published(name)
    plain = Allocator(block_tokens=1, grouped=False)

    found = kv_bytes_per_sequence(arch, "bf16", 1, 1, tokens, allocator=plain) - state_bytes_per_sequence(arch, 1, 1)

    assert float(found) / GIB == pytest.approx(gib, abs=0.006)


def test_windows_capped_or_full() -> None:
    # hf-mem#70: gpt-oss-20b, 32 sequences of 8,192 tokens.
    arch = published("gpt-oss-20b")

    def all_sequences(allocator: Allocator, budget: int) -> float:
        each = kv_bytes_per_sequence(arch, "bf16", 1, 1, 8192, max_num_batched_tokens=budget, allocator=allocator)
        return 32 * float(each) / GIB

    assert all_sequences(Allocator(grouped=False, hybrid=False), 1) == 12.0
    assert all_sequences(Allocator(grouped=False), 1) == pytest.approx(6.09, abs=0.01)
    block = 12 * 16 * 2048 * 32 / GIB
    assert all_sequences(Allocator(), 8192) == pytest.approx(12.0 + block)


def test_every_layer_full_where_windows_are_ignored() -> None:
    # vllm#16118: Llama 4 Scout, TP8, 1,048,576 tokens.
    plain = Allocator(hybrid=False)
    arch = published("Llama 4 Scout")

    assert float(kv_bytes_per_sequence(arch, "bf16", 8, 1, 1_048_576, allocator=plain)) / GIB == 24.0
    assert float(kv_bytes_per_sequence(arch, "bf16", 8, 1, 1_048_576, max_num_batched_tokens=8192)) / GIB < 7


def test_heads_by_layer_not_the_widest_everywhere() -> None:
    # llama-toolchest#58: gemma-4-12b at 128K with an 8-bit cache was predicted 40 times too large.
    sliding = AttentionGroup(kind="sliding", layers=40, n_q=16, n_kv=8, head_dim=256, window=1024)
    full = AttentionGroup(kind="full", layers=8, n_q=16, n_kv=1, head_dim=512, value_from_key=True)
    arch = ModelArch(name="12b", hidden=3840, layers=48, vocab=262_144, attention=(sliding, full), ffn=())
    plain = Allocator(grouped=False)

    held = float(kv_bytes_per_sequence(arch, "fp8", 1, 1, 131_072, allocator=plain)) / GIB
    assert held == pytest.approx(1.0 + 40 * 4096 * 1024 / GIB, abs=0.001)
    assert 58e9 / GIB / held > 40


def test_each_rank_holds_every_token_of_its_heads() -> None:
    # vllm#5248: deepseek-coder-6.7b on two T4, 507 blocks.
    arch = published("DeepSeek Coder 6.7B")
    pool = 507 * 16 * float(kv_bytes_per_token_per_gpu(arch, "fp16", 2, 1))

    assert float(logged_tokens(arch, "fp16", 2, 1, pool, max_model_len=4096, by_concurrency=False)) == 8112


def test_hybrid_holds_a_context_that_a_dense_model_of_its_size_would_not() -> None:
    # talos-argocd-proxmox#1995: Qwen3.8-27B FP8, two 24 GB cards, 302,921 tokens: 262,144 fits.
    arch = published("Qwen3.8-27B")
    pool = 302_921 * float(kv_bytes_per_token_per_gpu(arch, "bf16", 2, 1))

    assert float(max_concurrency(arch, "bf16", 2, 1, pool, 262_144)) > 1


@pytest.mark.parametrize(("budget", "gib"), [(8192, 4.786), (1024, 4.540)])
def test_one_long_request_depends_on_the_token_budget(budget: int, gib: float) -> None:
    # vllm#27508: 1.71 GiB were free, so the start is refused.
    arch = published("gpt-oss-120b")

    needed = float(kv_bytes_per_sequence(arch, "bf16", 1, 1, 131_072, max_num_batched_tokens=budget))

    assert needed / GIB == pytest.approx(gib, abs=0.001)
    assert float(max_concurrency(arch, "bf16", 1, 1, 1.71 * GIB, 131_072, max_num_batched_tokens=budget)) < 1
    assert float(max_concurrency(arch, "bf16", 1, 1, 5.38 * GIB, 131_072, max_num_batched_tokens=8192)) == (
        pytest.approx(1.12, abs=0.005)
    )


def test_recurrent_state_sets_the_page() -> None:
    # vllm#40691: Qwen3.5-27B; the token line divides by the KV groups, concurrency does not.
    arch = published("Qwen3.5 27B")
    pages = kv_pages(arch, "bf16", 1, 1)
    pool = 1487 * float(pages.block_bytes)

    assert float(pages.block_tokens) == 784
    concurrency = float(max_concurrency(arch, "bf16", 1, 1, pool, 32_768))
    assert concurrency == pytest.approx(33.04, abs=0.005)
    assert float(logged_tokens(arch, "bf16", 1, 1, pool, max_model_len=32_768, by_concurrency=False)) == 290_864


def test_same_pool_reads_ten_times_larger_when_the_line_changes_meaning() -> None:
    # vllm#43308: gemma-4-31B, about 50 GiB, ~55k tokens and then ~525k.
    arch, pool = published("Gemma 4 31B"), 50 * GIB

    def line(*, by_concurrency: bool) -> float:
        tokens = logged_tokens(
            arch, "bf16", 1, 1, pool, max_model_len=131_072, max_num_batched_tokens=2048,
            by_concurrency=by_concurrency,
        )  # fmt: skip
        return float(tokens)

    assert line(by_concurrency=False) == pytest.approx(55_000, rel=0.02)
    assert line(by_concurrency=True) == pytest.approx(525_000, rel=0.02)


def test_data_parallel_attention_instead_of_tensor_parallel_latents() -> None:
    # vllm#51454: one latent head replicates over TP8, so eight data-parallel ranks hold 7.7 times as much.
    arch = published("DeepSeek-V4-Flash")

    one_rank = float(max_concurrency(arch, "fp8", 8, 1, 100 * GIB, 100_000))
    own_rank = float(max_concurrency(arch, "fp8", 1, 1, 100 * GIB, 100_000))

    assert 8 * own_rank / one_rank == pytest.approx(8, rel=0.05)


@pytest.mark.parametrize(
    ("pool_gib", "max_model_len", "tokens", "by_concurrency"),
    [(5.69, 32_768, 148_816, False), (5.98, 131_072, 567_978, True), (0.779, 8_192, 31_129, True)],
)
def test_recurrent_hybrid_with_prefix_caching(
    pool_gib: float, max_model_len: int, tokens: int, by_concurrency: bool
) -> None:
    found = logged_tokens(
        published("Qwen3.6 35B-A3B"),
        "fp8",
        1,
        1,
        pool_gib * GIB,
        max_model_len=max_model_len,
        by_concurrency=by_concurrency,
        allocator=Allocator(state_blocks=2),
    )

    assert float(found) == tokens


def test_packed_latents_of_sparse_attention() -> None:
    found = float(kv_bytes_per_token_per_gpu(published("DeepSeek-V3.2"), "fp8", 1, 1))

    assert found == 61 * (656 + 132)


def test_reads_of_a_decode_step() -> None:
    dense, sparse = published("DeepSeek-V3"), published("DeepSeek-V3.2")
    window = published("gpt-oss-120b")

    assert float(kv_read_bytes(dense, "bf16", 1, 1, 10_000)) == 10_000 * 70_272
    assert float(kv_read_bytes(sparse, "bf16", 1, 1, 100_000)) == 61 * (2048 * 1152 + 100_000 * 132)
    assert float(kv_read_bytes(window, "bf16", 1, 1, 10_000)) == 18 * 2048 * (10_000 + 128)


def test_unknown_kv_format_says_what_is_known() -> None:
    with pytest.raises(InvalidQuestion) as raised:
        kv_bytes_per_token_per_gpu(published("Llama 3.1 8B"), "fp3", 1, 1)

    assert raised.value.errors[0].field == "kv_format"


@given(
    name=st.sampled_from(["Llama 3.1 8B", "DeepSeek-V3.2", "gpt-oss-20b", "Gemma 3 27B", "Qwen3.5 27B", "Kimi K3"]),
    tokens=st.integers(1, 1_000_000),
    more=st.integers(0, 1_000_000),
    tp=st.sampled_from([1, 2, 4, 8]),
    grouped=st.booleans(),
)
def test_longer_sequences_never_take_less(name: str, tokens: int, more: int, tp: int, grouped: bool) -> None:
    arch, allocator = published(name), Allocator(grouped=grouped)
    held = kv_bytes_per_sequence(
        arch, "bf16", tp, 1, np.array([tokens, tokens + more]), max_num_batched_tokens=8192, allocator=allocator
    )
    fits = max_concurrency(arch, "bf16", tp, 1, 40 * GIB, np.array([tokens, tokens + more]), allocator=allocator)

    assert held[0] <= held[1]
    assert fits[0] >= fits[1]
    assert held[0] * fits[0] <= 40 * GIB * (1 + 1e-9)
