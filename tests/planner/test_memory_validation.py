"""Memory cases replayed: the command's contract, and constants that are what the logs give."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from catalog.profiles import DATA
from planner.services.validation.memory_fit import cross_validated_errors, fit, predicted_pool_gib, read_logs
from planner.services.validation.model_library import ModelLibrary, read_architectures
from planner.services.validation.precision import kv_format_of, weight_format_of

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "validation"
COLUMNS = (
    "id,source,date,engine,engine_version,model,weight_precision,kv_precision,gpu,tp,pp,max_model_len,"
    "gpu_memory_utilization,gpu_total_gib,weights_gib_per_gpu,kv_pool_gib_per_gpu,kv_tokens,notes"
)
ROWS = (
    "a,log,2026-04,vLLM,0.19.0,meta-llama/Llama-3.1-8B-Instruct,bf16,bf16,H100-SXM,1,1,8192,0.95,79.19,14.99,58.11,476016,",
    "b,log,2026-04,vLLM,0.19.0,own-model,bf16,,H100-SXM,1,1,8192,0.95,79.19,,,,",
    "c,log,2026-04,vLLM,0.19.0,nobody/knows-this,bf16,bf16,H100-SXM,1,1,8192,0.95,79.19,1,1,1,",
    "d,log,2026-04,abacus,1,meta-llama/Llama-3.1-8B,bf16,bf16,H100-SXM,1,1,8192,0.95,79.19,1,1,1,",
    "e,log,2026-04,vLLM,0.19.0,llama-3.1-8b,int3,bf16,H100-SXM,1,1,8192,0.95,79.19,1,1,1,",
    "f,log,2026-11,vLLM,,llama-3.1-8b,fp8,fp8,H100-SXM,,,,,,,,,max_num_seqs 128",
)
ARCHITECTURE = (
    "model,layers,hidden,heads,kv_heads,head_dim,ffn,vocab,moe_experts,moe_active,moe_shared,moe_ffn,tie_embeddings,"
    "attention,extras\nown-model,2,512,8,2,64,2048,32000,0,0,0,0,0,GQA,\n"
)


def replay(tmp_path: Path, rows: tuple[str, ...] = ROWS, header: str = COLUMNS) -> tuple[list[dict[str, str]], str]:
    cases, out, architectures = tmp_path / "cases.csv", tmp_path / "out.csv", tmp_path / "arch.csv"
    cases.write_text("\n".join((header, *rows)) + "\n")
    architectures.write_text(ARCHITECTURE)
    printed = StringIO()
    call_command(
        "validate_engine",
        "memory",
        str(cases),
        "--out",
        str(out),
        "--architectures",
        str(architectures),
        stdout=printed,
    )
    with out.open(newline="") as file:
        return list(csv.DictReader(file)), printed.getvalue()


def test_one_output_row_a_case_in_order(catalog: object, tmp_path: Path) -> None:
    rows, printed = replay(tmp_path)

    assert list(rows[0]) == [
        "id", "supported", "reason", "weights_gib_per_gpu", "kv_pool_gib_per_gpu", "kv_tokens", "confidence",
    ]  # fmt: skip
    assert [row["id"] for row in rows] == list("abcdef")
    assert [row["supported"] for row in rows] == ["1", "1", "0", "0", "0", "1"]
    assert float(rows[0]["weights_gib_per_gpu"]) == pytest.approx(14.96, abs=0.01)
    assert float(rows[0]["kv_pool_gib_per_gpu"]) == pytest.approx(58.11, rel=0.002)
    assert float(rows[0]["kv_tokens"]) == pytest.approx(476_016, rel=0.002)
    assert "rows supported: 3 of 6" in printed
    assert "KV pool" in printed


def test_reasons_say_what_is_wrong_or_assumed(catalog: object, tmp_path: Path) -> None:
    rows, _ = replay(tmp_path)
    reasons = {row["id"]: row["reason"] for row in rows}

    assert "nobody/knows-this" in reasons["c"]
    assert "abacus" in reasons["d"]
    assert "int3" in reasons["e"]
    assert "memory of H100" in reasons["f"]
    assert "tp 1 assumed" in reasons["f"]
    assert "max_num_seqs" not in reasons["f"]


def test_case_file_without_a_column(catalog: object, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="gpu") as raised:
        replay(tmp_path, header=COLUMNS.replace("gpu,", "card,"))

    assert raised.value.returncode == 2


def test_case_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"missing\.csv"):
        call_command("validate_engine", "memory", str(tmp_path / "missing.csv"), "--out", str(tmp_path / "out.csv"))


@pytest.mark.parametrize(
    ("label", "gpu", "expected"),
    [
        ("", "", "auto"),
        ("fp8-block", "", "fp8_block"),
        ("fp8 (some layers bf16)", "", "fp8_fbgemm"),
        ("int8 (W8A8)", "", "int8"),
        ("fp4", "B200", "nvfp4"),
        ("fp4", "MI355X", "mxfp4"),
        ("q4_k_m (4.85 bpw)", "", "gguf_q4_k_m"),
        ("int4 (W4A16)", "", "awq_int4"),
        ("ternary", "", None),
    ],
)
def test_weight_labels(label: str, gpu: str, expected: str | None) -> None:
    assert weight_format_of(label, gpu=gpu) == expected


@pytest.mark.parametrize(("label", "expected"), [("", "auto"), ("FP8", "fp8"), ("bf16", "bf16"), ("q9", None)])
def test_kv_labels(label: str, expected: str | None) -> None:
    assert kv_format_of(label) == expected


def test_catalog_comes_before_the_architectures_file(tmp_path: Path) -> None:
    path = tmp_path / "arch.csv"
    path.write_text(ARCHITECTURE)
    library = ModelLibrary(lambda name: None, read_architectures(path))

    assert library.resolve("own-model") is not None
    assert library.resolve("another") is None


def test_stored_constants_are_the_fitted_ones() -> None:
    logs = read_logs()
    for profile in {log.profile.version: log.profile for log in logs}.values():
        fitted = fit(logs, profile)
        for name in (
            "non_torch_bytes", "non_torch_tensor_parallel_bytes", "activation_bytes_per_logit",
            "graph_bytes_per_layer", "budgeted_graph_bytes_per_layer",
        ):  # fmt: skip
            assert getattr(profile, name) == pytest.approx(getattr(fitted, name), rel=0.02), (profile.version, name)


def test_pool_error_of_logs_in_and_out_of_the_fit() -> None:
    logs = read_logs()
    seen = [abs(predicted_pool_gib(log, log.profile) / log.pool_gib - 1) for log in logs]

    for errors in (seen, cross_validated_errors(logs)):
        median, p90 = np.percentile(errors, [50, 90])
        assert median < 0.02
        assert p90 < 0.08


def test_published_logs_are_all_supported(catalog: object, tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip("the published memory cases are not beside this checkout")
    out = tmp_path / "out.csv"
    call_command("validate_engine", "memory", str(SHARED / "serving_memory.csv"), "--out", str(out), stdout=StringIO())
    with out.open(newline="") as file:
        assert {row["supported"] for row in csv.DictReader(file)} == {"1"}


def test_exact_capacity_logs_within_three_thousandths(catalog: object, tmp_path: Path) -> None:
    out, printed = tmp_path / "out.csv", StringIO()
    cases = DATA / "measurements" / "kv_capacity.csv"
    call_command("validate_engine", "kv_capacity", str(cases), "--out", str(out), stdout=printed)
    with out.open(newline="") as file, cases.open(newline="") as measured:
        pairs = list(zip(csv.DictReader(file), csv.DictReader(measured), strict=True))
    exact = [(row, case) for row, case in pairs if case["exactness"] == "exact" and row["supported"] == "1"]

    assert len(exact) >= 17
    for row, case in exact:
        if case["kv_tokens"]:
            assert float(row["kv_tokens"]) == pytest.approx(float(case["kv_tokens"]), rel=0.003), case["model"]
        if case["concurrency"]:
            assert float(row["concurrency"]) == pytest.approx(float(case["concurrency"]), rel=0.004), case["model"]
    assert "exactness  exact" in printed.getvalue()
