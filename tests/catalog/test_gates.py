"""Gates of prices and peaks: each refuses its kind of error, naming file, line, column and what is allowed."""

from __future__ import annotations

import pytest

from catalog.importers.accelerators import read_accelerators
from catalog.importers.data_files import DATA_DIR, read_data_files
from catalog.importers.rows import Problem
from tests.catalog.data_folder import edit, rows_of, write_rows
from tests.catalog.gates import is_offer, priced, problems


def test_the_projects_own_files_pass_every_gate():
    assert len(read_data_files(DATA_DIR).offers) > 3300


def test_spot_above_on_demand_is_refused(folder):
    (line,) = edit(folder, "offers.csv", is_offer("gcp", "g2-standard-4", "us-central1", "spot"), **priced(0.75, 1))

    (problem,) = problems(folder)

    assert (problem.file, problem.line, problem.column) == ("offers.csv", line, "usd_per_node_hour")
    assert "spot above on demand" in problem.message


def test_only_the_latest_spot_and_on_demand_prices_are_compared(folder):
    rows = rows_of(folder, "offers.csv")
    spot = next(filter(is_offer("gcp", "g2-standard-4", "us-central1", "spot"), rows))
    rows.append(spot | {"observed_on": "2025-01-01", "source": "an older reading"} | priced(0.75, 1))
    write_rows(folder, "offers.csv", rows)

    assert read_data_files(folder)


@pytest.mark.parametrize("factor", [10, 0.1])
def test_a_price_far_from_its_median_is_refused(folder, factor):
    (line,) = edit(
        folder,
        "offers.csv",
        is_offer("azure", "Standard_ND96isr_H100_v5", "westus3", "on_demand"),
        **priced(98.32 * factor, 8),
    )

    found = [problem for problem in problems(folder) if problem.column == "usd_per_gpu_hour"]

    assert [(problem.file, problem.line) for problem in found] == [("offers.csv", line)]
    assert "allowed 0.3 to 3" in found[0].message
    assert "price_reviews.csv" in found[0].message


def test_a_review_lets_a_price_through_only_within_its_bounds(folder):
    pick = is_offer("azure", "Standard_ND96isr_H100_v5", "westus3", "on_demand")
    edit(folder, "offers.csv", pick, **priced(600, 8))
    reviews = rows_of(folder, "price_reviews.csv")
    reviews.append(
        {
            "provider": "azure",
            "instance_type": "Standard_ND96isr_H100_v5",
            "purchase_option": "on_demand",
            "lowest_usd_per_gpu_hour": "70",
            "highest_usd_per_gpu_hour": "80",
            "reason": "a test",
            "reviewed_on": "2026-11-29",
        }
    )
    write_rows(folder, "price_reviews.csv", reviews)
    assert read_data_files(folder)

    edit(folder, "offers.csv", pick, **priced(700, 8))
    assert [problem.column for problem in problems(folder)] == ["usd_per_gpu_hour"]


def test_a_review_needs_a_reason(folder):
    edit(folder, "price_reviews.csv", lambda row: row["provider"] == "vultr", reason="")
    assert [(p.file, p.column) for p in problems(folder)] == [("price_reviews.csv", "reason")]


def test_an_accelerator_count_that_contradicts_the_instance_type_is_refused(folder):
    pick = is_offer("aws", "p5.48xlarge", "us-east-1", "on_demand")
    lines = edit(folder, "offers.csv", pick, gpu_count="4", usd_per_gpu_hour="13.76")

    found = problems(folder)

    assert [(p.line, p.column) for p in found] == [(line, "gpu_count") for line in lines]
    assert all("contradicts instance_types.csv line" in p.message and p.message.endswith(": 8") for p in found)


def test_an_accelerator_that_contradicts_the_instance_type_is_refused(folder):
    edit(folder, "offers.csv", is_offer("aws", "p5.48xlarge", "us-east-1", "on_demand"), accelerator="h200-sxm")
    assert {p.column for p in problems(folder)} == {"accelerator"}


def test_a_price_per_accelerator_that_is_not_the_nodes_share_is_refused(folder):
    edit(folder, "offers.csv", is_offer("aws", "p5.48xlarge", "us-east-1", "on_demand"), usd_per_gpu_hour="55.04")
    assert {p.column for p in problems(folder)} == {"usd_per_gpu_hour"}


@pytest.mark.parametrize(
    ("key", "cells", "column"),
    [
        ("h100-sxm", {"bf16_tflops": "1978.9"}, "bf16_tflops"),
        ("h100-sxm", {"fp8_tflops": "3957.8"}, "fp8_tflops"),
        ("h100-sxm", {"bf16_tflops": "1978.9", "fp16_tflops": "1978.9", "fp8_tflops": "3957.8"}, "bf16_tflops"),
        ("a100-80-sxm", {"bf16_tflops": "624", "tf32_tflops": "312", "int8_tops": "1248"}, "bf16_tflops"),
        ("a100-80-sxm", {"fp8_tflops": "624"}, "fp8_tflops"),
        ("l4", {"bf16_tflops": "242", "tf32_tflops": "120", "fp8_tflops": "485", "int8_tops": "485"}, "bf16_tflops"),
        ("l40", {"bf16_tflops": "362.1"}, "fp8_tflops"),
        ("b300-sxm", {"int8_tops": "4500"}, "int8_tops"),
        ("b200-sxm", {"fp4_tflops": "18000"}, "fp4_tflops"),
        ("mi355x", {"fp8_tflops": "10066.3"}, "fp8_tflops"),
        ("t4", {"fp16_tflops": "130"}, "fp16_tflops"),
    ],
)
def test_a_sparse_peak_in_the_place_of_the_dense_one_is_refused(folder, key, cells, column):
    (line,) = edit(folder, "accelerators.csv", lambda row: row["key"] == key, **cells)

    found = problems(folder)

    assert column in {p.column for p in found}
    assert {(p.file, p.line) for p in found} == {("accelerators.csv", line)}
    assert all("dense" in p.message.lower() or "no fp8 path" in p.message for p in found)


def test_a_whole_table_of_doubled_peaks_is_noticed_on_every_gpu(folder):
    formats = ("tf32_tflops", "bf16_tflops", "fp16_tflops", "fp8_tflops", "int8_tops", "fp6_tflops", "fp4_tflops")
    rows = rows_of(folder, "accelerators.csv")
    for row in rows:
        row.update({name: str(2 * float(row[name])) for name in formats if row[name]})
    write_rows(folder, "accelerators.csv", rows)
    classes = {row["peak_class"]: row for row in rows_of(folder, "peak_classes.csv")}
    timed = {
        line
        for line, row in enumerate(rows, start=2)
        if row["sm_count"]
        and classes[row["peak_class"]]["max_clock_ghz"]
        and (row["bf16_tflops"] or row["fp16_tflops"])
    }
    noticed: list[Problem] = []
    read_accelerators(folder, noticed)

    assert len(timed) > 50
    assert timed <= {problem.line for problem in noticed}


def test_every_kind_of_price_needs_an_age_limit(folder):
    rows = rows_of(folder, "price_age_limits.csv")
    write_rows(folder, "price_age_limits.csv", rows[1:])
    (problem,) = problems(folder)
    assert "no limit for" in problem.message
