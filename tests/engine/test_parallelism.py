"""Layout validity: the public questions with their right answers."""

import pytest

from planner.engine.model_arch import AttentionGroup, FfnGroup, ModelArch
from planner.engine.parallelism import check_layout, valid_expert_parallel, valid_tensor_parallel


def arch(
    n_q: int,
    n_kv: int,
    *,
    intermediate: int = 16384,
    layers: int = 32,
    experts: int = 0,
    native_format: str = "bf16",
) -> ModelArch:
    ffn = (
        FfnGroup(kind="moe", layers=layers, intermediate=intermediate, experts=experts, top_k=8)
        if experts
        else FfnGroup(kind="dense", layers=layers, intermediate=intermediate)
    )
    return ModelArch(
        name="m",
        hidden=4096,
        layers=layers,
        vocab=32000,
        attention=(AttentionGroup(kind="full", layers=layers, n_q=n_q, n_kv=n_kv, head_dim=128),),
        ffn=(ffn,),
        native_format=native_format,
    )


@pytest.mark.parametrize(
    ("n_q", "n_kv", "limit", "sizes"),
    [
        (40, 40, 10, (1, 2, 4, 5, 8, 10)),  # vllm#596: 40 heads, TP3 is invalid
        (28, 4, 64, (1, 2, 4, 28)),  # vllm#11797: 28 heads allow 7 and 14, 4 KV heads don't
        (12, 12, 16, (1, 2, 3, 4, 6, 12)),  # FSDrive#21
        (64, 8, 8, (1, 2, 4, 8)),  # vllm#52435: TP3 is invalid for 64 heads
    ],
)
def test_valid_sizes_follow_from_heads(n_q, n_kv, limit, sizes):
    assert valid_tensor_parallel(arch(n_q, n_kv), limit) == sizes


def test_one_answer_names_both_faults_and_lists_valid_sizes():
    errors = check_layout(arch(64, 8, experts=256, intermediate=1536), tp=3, ep=3)
    assert [(e.field, e.value) for e in errors] == [("tensor_parallel", 3), ("expert_parallel", 3)]
    assert errors[0].message.startswith("64 attention heads are not divisible by 3.")
    assert errors[0].allowed.startswith("1, 2, 4, 8")
    assert errors[1].message == "256 experts are not divisible by 3."
    assert errors[1].allowed.startswith("1, 2, 4, 8, 16")


def test_quantization_block_must_divide_what_a_rank_holds():
    # vllm#17327: Qwen3-235B-A22B-FP8, experts 1536 wide: 192 a rank at TP8 is no multiple of 128.
    model = arch(64, 4, experts=128, intermediate=1536, native_format="fp8_block")
    (error,) = check_layout(model, tp=8)
    assert "192 is no multiple of the quantization block 128" in error.message
    assert check_layout(model, tp=8, ep=8) == []
    assert check_layout(model, tp=4) == []
    assert valid_tensor_parallel(model, 8, "fp8_block") == (1, 2, 4)


def test_more_stages_than_layers_is_refused():
    (error,) = check_layout(arch(32, 8, layers=32), tp=1, pp=33)
    assert (error.field, error.message) == ("pipeline_parallel", "33 stages for 32 layers.")


def test_expert_parallelism_needs_experts():
    (error,) = check_layout(arch(32, 8), tp=1, ep=2)
    assert error.allowed == "1"
    assert valid_expert_parallel(arch(32, 8), 8) == (1,)


def test_copies_of_experts_make_other_groups_valid() -> None:
    moe = arch(128, 128, experts=256, intermediate=2048)
    # DeepSeek-V3's service: 256 + 32 = 288 experts over 144 ranks, 2 on each.
    assert check_layout(moe, tp=1, ep=144, copies=32) == []
    (error,) = check_layout(moe, tp=1, ep=144)
    assert error.field == "expert_parallel"
    (error,) = check_layout(moe, tp=1, ep=128, copies=32)
    assert error.message == "256 experts and 32 copies are not divisible by 128."
    assert error.allowed == "1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32, 36, 48, 72, 96, ..."
