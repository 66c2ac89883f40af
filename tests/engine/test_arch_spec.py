"""Architectures as JSON and from the flat rows of case files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from catalog.profiles import load_profile_file
from planner.engine.arch_spec import arch_from_architecture_row, arch_from_spec, arch_to_spec
from planner.engine.errors import UnsupportedModel
from planner.engine.model_arch import ModelArch
from planner.engine.param_count import count_parameters

SPEC: dict[str, Any] = {
    "name": "tiny",
    "hidden": 64,
    "layers": 2,
    "vocab": 100,
    "attention": [{"kind": "full", "layers": 2, "n_q": 4, "n_kv": 2, "head_dim": 16}],
    "ffn": [{"kind": "dense", "layers": 2, "intermediate": 128}],
}
ROW = {
    "model": "tiny", "layers": "4", "hidden": "64", "heads": "4", "kv_heads": "2", "head_dim": "16", "ffn": "128",
    "vocab": "100", "moe_experts": "0", "moe_active": "0", "moe_shared": "0", "moe_ffn": "0", "tie_embeddings": "0",
    "attention": "GQA", "extras": "",
}  # fmt: skip
SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "validation" / "architectures.csv"


@pytest.mark.parametrize("entry", load_profile_file("model_architectures.json")["models"], ids=lambda e: e["name"])
def test_catalog_specs_survive_the_round_trip(entry: dict[str, Any]) -> None:
    arch = arch_from_spec(entry["spec"])

    assert arch_to_spec(arch) == entry["spec"]
    assert arch_from_spec(json.loads(json.dumps(arch_to_spec(arch)))) == arch


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"hidden": "64"}, "hidden"),
        ({"hidden": -1}, "hidden"),
        ({"hidden": 10**20}, "hidden"),
        ({"tied_embeddings": 1}, "tied_embeddings"),
        ({"colour": "red"}, "colour"),
        ({"attention": []}, "attention"),
        ({"attention": "full"}, "attention"),
        ({"attention": [{"kind": "odd", "layers": 2}]}, "attention[0].kind"),
        ({"attention": [{"kind": "full"}]}, "attention[0].layers"),
        ({"ffn": [{"kind": "dense", "layers": 3, "intermediate": 128}]}, "ffn"),
        ({"native_format": "fp3"}, "native_format"),
        ({"quantized_modules": "some"}, "quantized_modules"),
    ],
)
def test_wrong_specs_name_the_key(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(UnsupportedModel) as raised:
        arch_from_spec(SPEC | changes)

    assert raised.value.field == field


def test_missing_key() -> None:
    with pytest.raises(UnsupportedModel, match="vocab: missing"):
        arch_from_spec({key: value for key, value in SPEC.items() if key != "vocab"})


def row_arch(**changes: str) -> ModelArch:
    return arch_from_architecture_row(ROW | changes)


def test_row_with_leading_dense_and_shared_experts() -> None:
    arch = row_arch(moe_experts="8", moe_active="2", moe_shared="2", moe_ffn="32", extras="dense_layers=1")

    assert [(group.kind, group.layers, group.leading) for group in arch.ffn] == [("dense", 1, True), ("moe", 3, False)]
    assert arch.ffn[1].shared_intermediate == 64


def test_row_with_windows_latents_and_every_second_layer_sparse() -> None:
    sliding = row_arch(extras="swa=128; swa_frac=0.5; note=alternating")
    latent = row_arch(extras="kv_lora=16; q_lora=0; rope=8; nope=8; v=16")
    every = row_arch(moe_experts="8", moe_active="1", moe_ffn="32", extras="moe_every=2")

    assert [(group.kind, group.layers, group.window) for group in sliding.attention] == [
        ("sliding", 2, 128),
        ("full", 2, 0),
    ]
    assert latent.attention[0].kind == "mla"
    assert [(group.kind, group.layers) for group in every.ffn] == [("moe", 2), ("dense", 2)]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"layers": ""}, "layers"),
        ({"hidden": "many"}, "hidden"),
        ({"vocab": "nan"}, "vocab"),
        ({"extras": "swa=8; swa_frac=x"}, "swa_frac"),
    ],
)
def test_wrong_rows_name_the_column(changes: dict[str, str], field: str) -> None:
    with pytest.raises(UnsupportedModel) as raised:
        row_arch(**changes)

    assert raised.value.field == field


def test_published_rows_count_within_a_thousandth() -> None:
    if not SHARED.exists():
        pytest.skip("the published architectures file is not beside this checkout")
    with SHARED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    wrong = {
        row["model"]: counts.total
        for row in rows
        for counts in [count_parameters(arch_from_architecture_row(row))]
        if counts.total / 1e9 != pytest.approx(float(row["computed_total_b"]), rel=1e-3)
    }
    assert wrong == {}
