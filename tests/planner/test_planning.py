"""The planning service: models by name and by config, errors by field."""

from __future__ import annotations

import pytest

from planner.engine.errors import InvalidQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.planning import plan_inference, plan_training, resolve_model

LLAMA_CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def test_config_is_read_before_the_catalog() -> None:
    arch = resolve_model(InferenceQuestion(model="whatever", config=LLAMA_CONFIG))
    assert (arch.hidden, arch.layers, arch.vocab) == (4096, 32, 128256)


def test_config_that_is_no_transformer_names_its_key() -> None:
    with pytest.raises(InvalidQuestion) as caught:
        resolve_model(InferenceQuestion(config={"name": "my-app", "version": "1.0"}))
    (error,) = caught.value.errors
    assert error.field == "config"
    assert error.code == "unsupported_model"
    assert "config.json" in error.allowed


@pytest.mark.usefixtures("catalog")
def test_unknown_model_is_an_error() -> None:
    with pytest.raises(InvalidQuestion) as caught:
        resolve_model(InferenceQuestion(model="no such model"))
    (error,) = caught.value.errors
    assert (error.field, error.code, error.value) == ("model", "unknown_model", "no such model")


@pytest.mark.usefixtures("catalog")
def test_every_fault_is_told_at_once() -> None:
    raw = {
        "model": "no such model",
        "requests_per_second": -1,
        "providers": ["nobody"],
        "accelerators": ["abacus"],
        "draft_model": "no such draft",
        "speculation": "draft_model",
        "colour": "red",
    }
    with pytest.raises(InvalidQuestion) as caught:
        plan_inference(raw)
    assert {error.field: error.code for error in caught.value.errors} == {
        "colour": "unknown_field",
        "requests_per_second": "out_of_range",
        "providers": "unknown_name",
        "accelerators": "unknown_name",
        "model": "unknown_model",
        "draft_model": "unknown_model",
    }


@pytest.mark.usefixtures("catalog")
def test_a_field_at_fault_starts_no_other_fault() -> None:
    for wrong in ({"users": "many"}, {"concurrency": 0}, {"offline_hours": "x", "offline_requests": 5}):
        with pytest.raises(InvalidQuestion) as caught:
            plan_inference({"model": "Llama 3.1 8B", **wrong})
        assert [error.field for error in caught.value.errors] == [next(iter(wrong))]
    with pytest.raises(InvalidQuestion) as caught:
        plan_inference({"config": "no object", "requests_per_second": 1})
    assert [error.field for error in caught.value.errors] == ["config"]


@pytest.mark.usefixtures("catalog")
def test_faults_of_layout_length_and_filters_are_told_together() -> None:
    raw = {"model": "Llama 3.1 8B", "requests_per_second": 1, "tensor_parallel": 7, "input_tokens": 1_000_000}
    with pytest.raises(InvalidQuestion) as caught:
        plan_inference(raw | {"purchase_options": ["reserved_3y"], "max_price_age_days": 0})
    assert {error.field for error in caught.value.errors} == {"tensor_parallel", "input_tokens", "max_price_age_days"}
    raw = {"model": "Llama 3.1 8B", "tokens": 1e9, "tensor_parallel": 7, "max_price_age_days": 0}
    with pytest.raises(InvalidQuestion) as caught:
        plan_training(raw)
    assert {error.field for error in caught.value.errors} == {"tensor_parallel", "max_price_age_days"}


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize(
    ("accelerator", "gib"), [("mi355x", 288.0), ("mi300x", 192.0), ("h100-sxm", 79.65), ("l40s", 44.99)]
)
def test_a_card_has_one_memory_whatever_it_does(accelerator: str, gib: float) -> None:
    filters = {"model": "Llama 3.1 8B", "accelerators": [accelerator]}
    served = plan_inference(filters | {"requests_per_second": 1}).options[0].memory
    trained = plan_training(filters | {"tokens": 1e9}).options[0].memory
    assert served.capacity_gib == trained.capacity_gib == pytest.approx(gib, abs=0.01)
    for memory in (served, trained):
        assert sum(memory.parts_gib.values()) + memory.free_gib == pytest.approx(memory.capacity_gib)
    assert served.parts_gib["driver"] == pytest.approx(0.5, abs=0.3)


@pytest.mark.usefixtures("catalog")
@pytest.mark.parametrize("asked", ["Llama 3.1 70B-foo", "Llam\N{CYRILLIC SMALL LETTER A} 3.1 70B", "Llama 3.17 0B"])
@pytest.mark.parametrize("field", ["model", "draft_model", "teacher"])
def test_a_name_that_is_nearly_one_is_asked_back(field: str, asked: str) -> None:
    plan = plan_training if field == "teacher" else plan_inference
    traffic = {"tokens": 1e9, "method": "distillation"} if field == "teacher" else {"requests_per_second": 1}
    drafts = {"speculation": "draft_model"} if field == "draft_model" else {}
    with pytest.raises(InvalidQuestion) as caught:
        plan({"model": "Llama 3.1 70B", **traffic, **drafts, field: asked})
    (fault,) = caught.value.errors
    assert (fault.field, fault.code) == (field, "unknown_model")
    assert fault.allowed.startswith("did you mean Llama 3.1 70B")


@pytest.mark.usefixtures("catalog")
def test_a_model_beside_a_config_is_refused() -> None:
    for plan, traffic in ((plan_inference, {"concurrency": 1}), (plan_training, {"tokens": 1e9})):
        with pytest.raises(InvalidQuestion) as caught:
            plan({"model": "Llama 3.1 8B", "config": LLAMA_CONFIG, **traffic})
        assert [(error.field, error.code) for error in caught.value.errors] == [("model", "conflict")]
