"""Replaying published inference cases: what is read, assumed, refused and predicted."""

import csv
from pathlib import Path

import numpy as np
import pytest

from catalog.accelerator_files import find_accelerator
from catalog.model_files import find_model
from planner.services.validation.inference import KIND, predict
from planner.services.validation.inference_cases import InferenceCase, Unsupported, read_case, stated_conditions
from planner.services.validation.model_library import ModelLibrary

DATA = Path(__file__).parents[3] / "catalog" / "data" / "measurements"
LIBRARY = ModelLibrary(find_model)


def row(**changes: str) -> dict[str, str]:
    values = {
        "id": "x",
        "date": "2026-04",
        "engine": "vLLM",
        "engine_version": "0.19.0",
        "model": "llama-3.1-8b",
        "weight_precision": "bf16",
        "kv_precision": "bf16",
        "gpu": "H200-SXM",
        "gpus": "1",
        "tp": "1",
        "pp": "1",
        "ep": "1",
        "dp": "1",
        "isl": "1024",
        "osl": "256",
        "concurrency": "16",
        "request_rate": "",
        "mode": "server",
        "ttft_stat": "mean",
        "tpot_stat": "mean",
        "notes": "",
    }
    return values | changes


def read(**changes: str) -> InferenceCase:
    case = read_case(row(**changes), LIBRARY, find_accelerator)
    assert isinstance(case, InferenceCase)
    return case


def test_kinds_of_load():
    assert read().kind == "closed"
    assert read(request_rate="inf").kind == "closed"
    assert read(request_rate="2").kind == "open"
    assert read(mode="offline", concurrency="max").kind == "offline"
    assert read(mode="static", concurrency="8").kind == "static"


def test_attention_data_parallelism_is_expert_parallelism_above_tensor_parallelism():
    case = read(model="deepseek-r1", gpu="B200", weight_precision="fp4", gpus="8", tp="8", ep="8", dp="8")
    assert (case.tp, case.ep, case.gpus_per_replica, case.replicas) == (1, 8, 8, 1)
    replicas = read(gpus="8", tp="2", dp="4", concurrency="64")
    assert (replicas.tp, replicas.ep, replicas.replicas, replicas.concurrency) == (2, 1, 4, 16)


def test_a_small_default_brings_its_token_budget_along():
    assert read().max_num_batched_tokens == 8192
    library = read(source="own measurement, max_num_seqs 256")
    assert (library.max_num_seqs, library.max_num_batched_tokens) == (256, 2048)
    assert read(notes="max_num_seqs 64").max_num_batched_tokens == 8192
    assert read(notes="max_num_seqs 256; max_num_batched_tokens 4096").max_num_batched_tokens == 4096


def test_a_batch_limit_is_each_attention_ranks():
    asked = {"model": "deepseek-r1", "gpu": "B200", "weight_precision": "fp4", "gpus": "8", "tp": "8", "ep": "8"}
    case = read(**asked, mode="offline", concurrency="max", notes="max batch per engine 512")
    assert case.max_num_seqs == 8 * 512


def test_blank_inputs_are_assumed_and_said():
    case = read(tp="", kv_precision="", weight_precision="fp8", gpus="8")
    assert case.tp == 1
    assert case.assumptions == (
        "tp assumed 1: the fewest GPUs that hold the weights",
        "kv_precision assumed fp8, as engines serve such checkpoints",
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "no-such-model"}, "model: no-such-model is not in the catalog; give its architecture."),
        ({"gpu": "NoSuchCard"}, "gpu: NoSuchCard is not in the catalog."),
        ({"weight_precision": "ternary"}, "weight_precision: ternary is not a known format."),
        ({"engine": "Mystery"}, "engine: Mystery has no profile."),
        ({"osl": ""}, "osl: blank; speed depends on both lengths."),
    ],
)
def test_what_cannot_be_replayed_says_why(changes, reason):
    case = read_case(row(**changes), LIBRARY, find_accelerator)
    assert case == Unsupported(reason)
    (prediction,) = predict([row(**changes)], LIBRARY)
    assert not prediction.supported
    assert prediction.reason == reason


def test_conditions_in_words_and_as_names_mean_the_same():
    words = {"notes": "200 ShareGPT prompts; max-num-seqs 32 bounds the batch", "engine_version": "0.8.5"}
    assert stated_conditions(words) == stated_conditions(
        {"conditions": "requests=200 max_num_seqs=32 natural_lengths"}
    ) | {"natural_lengths": 1.0}


def test_predictions_keep_the_order_of_the_cases():
    cases = [row(id=str(i), model=m) for i, m in enumerate(["llama-3.1-8b", "qwen3-32b", "llama-3.1-8b", "mistral-7b"])]
    together = predict(cases, LIBRARY)
    alone = [predict([case], LIBRARY)[0] for case in cases]
    for a, b in zip(together, alone, strict=True):
        assert a.values["tpot_ms"] == pytest.approx(b.values["tpot_ms"])
        assert a.values["output_tok_s_per_gpu"] == pytest.approx(b.values["output_tok_s_per_gpu"])


def measured_errors(name: str) -> dict[str, np.ndarray]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        cases = list(csv.DictReader(file))
    predictions = predict(cases, LIBRARY)
    assert np.mean([p.supported for p in predictions]) >= 0.97
    errors: dict[str, list[float]] = {q.name: [] for q in KIND.quantities}
    for case, prediction in zip(cases, predictions, strict=True):
        for quantity in KIND.quantities:
            measured = quantity.measured(case)
            predicted = prediction.values.get(quantity.predicted)
            if measured and isinstance(predicted, float):
                errors[quantity.name].append(abs(predicted / measured - 1))
    return {name: np.asarray(found) for name, found in errors.items()}


def test_core_measurements_are_reproduced():
    errors = measured_errors("inference.csv")
    assert np.median(errors["output_tok_s_per_gpu"]) < 0.10
    assert np.median(errors["tpot_ms"]) < 0.10
    assert np.median(errors["ttft_ms"]) < 0.25


def test_own_h200_runs_are_reproduced():
    errors = measured_errors("inference_h200.csv")
    assert np.median(errors["output_tok_s_per_gpu"]) < 0.06
    assert np.median(errors["tpot_ms"]) < 0.06
    assert np.median(errors["ttft_ms"]) < 0.15
