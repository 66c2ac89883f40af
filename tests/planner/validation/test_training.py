"""Replaying published training runs: rows are read as written, and predictions stay near what was measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from django.conf import settings

from catalog.accelerator_files import find_accelerator
from catalog.model_files import find_model
from catalog.profiles import DATA
from catalog.training_files import training_profiles
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.replay import Case, read_cases
from planner.services.validation.training import KIND, measured_step_s, published_flops_per_token, row_reader
from planner.services.validation.training_calibration import ratios
from planner.services.validation.training_fit import grouped_folds
from planner.services.validation.training_measurements import read_measurements
from planner.services.validation.training_row_arch import UnreadableRow
from planner.services.validation.training_row_facts import method_of, most_chunks, precision_of

ROW: Case = {
    "id": "1",
    "source": "a paper",
    "date": "2025-04",
    "framework": "NeMo 25.02",
    "model": "a 70B",
    "params_b": "70.55",
    "layers": "80",
    "hidden": "8192",
    "heads": "64",
    "kv_heads": "8",
    "ffn": "28672",
    "gated_mlp": "1",
    "vocab": "128256",
    "seq_len": "8192",
    "global_batch_seqs": "128",
    "micro_batch_seqs": "1",
    "gpu": "H100",
    "gpus": "64",
    "tp": "4",
    "pp": "4",
    "vpp": "5",
    "cp": "2",
    "ep": "1",
    "dp": "2",
    "sharding": "zero1",
    "recompute": "",
    "precision": "BF16",
    "network": "InfiniBand NDR 400Gb/s per GPU",
    "notes": "",
}


def read(**changes: str):
    return row_reader(find_model).read({**ROW, **changes})


def test_a_row_is_read_as_written() -> None:
    case = read()
    assert (case.tensor, case.pipeline, case.virtual, case.context, case.data) == (4, 4, 5, 2, 2)
    assert case.accelerator.key == "h100-sxm"
    assert case.network_bytes_s == 50e9
    assert case.framework == "megatron"
    assert case.arch.layers == 80
    assert not case.arch.tied_embeddings
    assert "recompute" in case.assumptions[0]


@pytest.mark.parametrize(
    ("changes", "name", "value"),
    [
        ({"network": "Omni-Path 100Gb/s x4 per node"}, "network_bytes_s", 6.25e9),
        ({"network": "8x HDR IB 200Gb/s per node"}, "network_bytes_s", 25e9),
        ({"network": "EFA 3200Gb/s per node"}, "network_bytes_s", 50e9),
        ({"network": "InfiniBand (4 GPUs per node)"}, "link_domain_gpus", 4),
        ({"gpu": "GB200"}, "link_domain_gpus", 72),
        ({"gpu": "H100 (96GB HBM2e, 500W)"}, "power_share", 500 / 700),
        ({"notes": "ZeRO-1 shard group = 8 (node-local); x"}, "shard_group", 8),
        ({"notes": "real data, natural routing"}, "natural_routing", True),
        ({"notes": "no sequence parallel (baseline)"}, "sequence_parallel", False),
        ({"model": "x LoRA"}, "method", "lora"),
        ({"vpp": ""}, "virtual", 10),
        ({"micro_batch_seqs": ""}, "micro_batch", 1),
        ({"recompute": "full"}, "recompute", "full"),
    ],
)
def test_recipe_facts_are_found_where_tables_keep_them(changes: dict[str, str], name: str, value: object) -> None:
    found = getattr(read(**changes), name)
    assert found == (pytest.approx(value, rel=1e-4) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    ("label", "precision"),
    [("MXFP8", "mxfp8"), ("NVFP4 (recipe)", "nvfp4"), ("FP8 rowwise", "fp8"), ("FP16", "fp16"), ("BF16 eager", "bf16")],
)
def test_precision_labels(label: str, precision: str) -> None:
    assert precision_of(label) == precision


def test_methods() -> None:
    assert method_of({"model": "7B SFT"}) == "full_finetune"
    assert method_of({"model": "7B", "notes": "QLoRA nf4"}) == "qlora"
    assert method_of({"model": "7B"}) == "pretrain"


def test_chunks_count_the_ends_as_layers_where_that_divides() -> None:
    assert most_chunks(126, 8) == 8
    assert most_chunks(80, 1) == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"gpu": "Voodoo 2"}, "Voodoo 2"), ({"layers": "", "hidden": ""}, "layers"), ({"heads": ""}, "heads")],
)
def test_a_row_that_cannot_be_read_says_what_is_missing(changes: dict[str, str], says: str) -> None:
    with pytest.raises(UnreadableRow, match=says):
        read(**changes)


def test_every_published_speed_gives_the_same_step_time() -> None:
    case = read()
    tokens = 128 * 8192
    rate = tokens / (14.66 * 64)
    flops = published_flops_per_token(case, "model-FLOPs, non-causal attention")
    for stated in (
        {"step_time_s": "14.66"},
        {"tok_s_per_gpu": f"{rate:.10g}"},
        {"tflops_per_gpu": f"{rate * flops / 1e12:.10g}", "flops_convention": "model-FLOPs, non-causal attention"},
        {"mfu": f"{rate * flops / 989.4e12:.10g}", "flops_convention": "model-FLOPs, non-causal attention"},
    ):
        seconds, _ = measured_step_s({**ROW, **stated}, case)
        assert seconds == pytest.approx(14.66, rel=1e-6)


def test_conventions_differ_as_published() -> None:
    case = read()
    causal = published_flops_per_token(case, "model-FLOPs, causal attention (halved)")
    non_causal = published_flops_per_token(case, "model-FLOPs, non-causal attention")
    hardware = published_flops_per_token(case, "hardware-FLOPs (full recompute), non-causal")
    assert causal < non_causal
    assert hardware == pytest.approx(non_causal * 4 / 3)
    assert published_flops_per_token(read(model="x LoRA"), "") == pytest.approx(non_causal * 2 / 3)


def test_predictions_have_every_contract_column() -> None:
    good, bad = KIND.predict([ROW, {**ROW, "gpu": "Voodoo 2"}], ModelLibrary(find_model, {}))
    assert good.supported
    assert set(good.values) == set(KIND.columns)
    assert good.values["step_time_s"] == pytest.approx(14.66, rel=0.15)
    assert not bad.supported
    assert "Voodoo 2" in bad.reason


def test_folds_hold_out_whole_groups() -> None:
    groups = ["a"] * 5 + ["b"] * 3 + ["c", "d", "e"]
    folds = grouped_folds(groups)
    for group in set(groups):
        assert len({fold for fold, name in zip(folds, groups, strict=True) if name == group}) == 1


def test_stored_constants_reproduce_the_measurements() -> None:
    rows = read_measurements(DATA / "measurements" / "training.csv", find_accelerator)
    step, memory = ratios(rows, training_profiles())
    core = np.array([bool(row.effect) for row in rows])
    for ratio, median in ((step, 0.10), (memory, 0.12)):
        errors = np.abs(ratio[core & ~np.isnan(ratio)] - 1)
        assert np.median(errors) < median


def test_published_table_is_supported_and_near() -> None:
    path = Path(settings.BASE_DIR).parent / "shared" / "data" / "validation" / "training.csv"
    if not path.exists():
        pytest.skip("the published validation table is not beside this checkout")
    cases = read_cases(path, ("id", *KIND.required))
    predictions = KIND.predict(cases, ModelLibrary(find_model, {}))
    assert sum(p.supported for p in predictions) >= 0.97 * len(cases)
    step = KIND.quantities[0]
    errors = [
        abs(float(p.values[step.predicted] or 0) / measured - 1)
        for case, p in zip(cases, predictions, strict=True)
        if p.supported and (measured := step.measured(case))
    ]
    assert np.median(errors) < 0.10
