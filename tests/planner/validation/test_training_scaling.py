"""The scaling effects that published tables are known for come out of the stored constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from catalog.accelerator_files import find_accelerator
from catalog.profiles import DATA
from catalog.training_files import training_profiles
from planner.services.validation.training_calibration import predict_step_s
from planner.services.validation.training_measurements import Measurement, read_measurements

ROWS = read_measurements(DATA / "measurements" / "training.csv", find_accelerator)


def rows_where(keep: Callable[[Measurement], bool]) -> list[Measurement]:
    found = [row for row in ROWS if row.effect and row.step_s and keep(row)]
    assert found
    return found


def rate(row: Measurement) -> float:
    """Predicted tokens per second and GPU."""
    (seconds,) = predict_step_s([row.case], training_profiles())
    return float(row.case.global_batch * row.case.sequence_length / seconds / row.case.gpus)


def measured_rate(row: Measurement) -> float:
    assert row.step_s
    return row.case.global_batch * row.case.sequence_length / row.step_s / row.case.gpus


def test_gpt3_strong_scaling_falls_as_published() -> None:
    """MLPerf v3.1: 740 tokens/s/GPU on 512 H100, 628 on 4,096, 538 on 10,752."""
    series = {
        row.case.gpus: row
        for row in rows_where(
            lambda r: r.model == "GPT-3 175B" and r.as_of == "2023-11" and r.source.startswith("MLPerf")
        )
    }
    base = series[512]
    assert measured_rate(base) == pytest.approx(740, abs=1)
    for gpus, published in ((4096, 628), (10_752, 538)):
        assert rate(series[gpus]) / rate(base) == pytest.approx(published / 740, rel=0.10)
    for gpus, published in ((512, 740), (4096, 628), (10_752, 538)):
        assert rate(series[gpus]) == pytest.approx(published, rel=0.15)


def test_bloom_prefers_tensor_4_over_8_within_a_node() -> None:
    """BLOOM 181B on 384 A100: TP4 PP12 110 s beats TP8 PP6 114 s."""
    sweep = rows_where(lambda r: r.model.startswith("GPT 181B") and r.case.global_batch == 2048)
    step = {
        (row.case.tensor, row.case.pipeline, row.case.micro_batch): float(
            predict_step_s([row.case], training_profiles())[0]
        )
        for row in sweep
    }
    assert step[4, 12, 2] < step[8, 6, 4]


def test_node_local_shards_win_on_a_slow_network() -> None:
    """InternEvo 7B, 1,024 A100 at 50 Gb/s each: 2,271 tokens/s/GPU sharded over all, 3,625 within nodes."""
    sharded = {
        row.case.shard_group: row
        for row in rows_where(lambda r: r.case.framework == "internevo" and r.case.gpus == 1024 and r.case.tensor == 1)
        if row.effect.startswith("ZeRO-1")
    }
    gain = rate(sharded[8]) / rate(sharded[1024])
    assert gain == pytest.approx(3625 / 2271, rel=0.20)


def test_weak_scaling_is_nearly_flat_on_a_good_fabric() -> None:
    """Llama 3.1 405B on 512 and 2,048 H100: within a percent, published."""
    series = rows_where(
        lambda r: r.model == "Llama 3.1 405B" and r.accelerator_label == "H100" and r.case.precision == "bf16"
    )
    rates = [rate(row) for row in sorted(series, key=lambda r: r.case.gpus)]
    assert rates[-1] / rates[0] == pytest.approx(1.0, abs=0.05)


def test_recomputation_costs_what_was_published() -> None:
    """Korthikanti: selective recomputation with sequence parallelism takes 22 to 24 % off a step at 22B and 175B."""
    rows = rows_where(lambda r: r.source.startswith("Korthikanti"))
    for model in ("GPT 22B", "GPT-3 175B"):
        pair = {row.case.recompute: 1 / rate(row) for row in rows if row.model == model}
        assert 1 - pair["selective"] / pair["full"] == pytest.approx(0.23, abs=0.08)


def test_fp8_is_worth_less_than_twice_bf16() -> None:
    rows = rows_where(lambda r: r.accelerator_label == "H100")
    for model in ("Llama 3.1 405B", "Nemotron-4 340B"):
        rates = {
            precision: np.median([rate(r) for r in rows if r.model == model and r.case.precision == precision])
            for precision in ("bf16", "fp8")
        }
        assert 1.3 < rates["fp8"] / rates["bf16"] < 1.75
