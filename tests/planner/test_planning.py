"""The planning service: models by name and by config, errors by field."""

from __future__ import annotations

import pytest

from planner.engine.errors import InvalidQuestion
from planner.engine.workload import InferenceQuestion
from planner.services.planning import resolve_model

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
