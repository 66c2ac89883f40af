"""Data files with something wrong in them: file, line, column and what is allowed are named, all at once."""

from __future__ import annotations

import json

import pytest

from tests.catalog.data_folder import edit, rows_of, write_rows
from tests.catalog.gates import is_offer, problems


@pytest.mark.parametrize(
    ("file", "pick", "cells", "column", "allowed"),
    [
        ("accelerators.csv", "h100-sxm", {"memory_bytes": "80000"}, "memory_bytes", "sold as 80 GB"),
        ("accelerators.csv", "h100-sxm", {"memory_bytes": str(188 * 10**9)}, "memory_bytes", "sold as 80 GB"),
        ("accelerators.csv", "h100-sxm", {"link_one_way_gb_s": "900"}, "link_one_way_gb_s", "both-way sum"),
        ("accelerators.csv", "h100-sxm", {"link_name": "NVLink9"}, "link_name", "link_classes.csv"),
        ("accelerators.csv", "h100-sxm", {"peak_class": "kepler"}, "peak_class", "peak_classes.csv"),
        ("accelerators.csv", "h100-sxm", {"aliases": "A100"}, "aliases", "already names a100-80-sxm"),
        ("accelerators.csv", "l4", {"scaleup_domain_gpus": "8"}, "scaleup_domain_gpus", "must be 1"),
        ("accelerators.csv", "l4", {"tdp_w": "-72"}, "tdp_w", "greater than 0"),
        ("accelerators.csv", "l4", {"tdp_w": "NaN"}, "tdp_w", "finite"),
        ("accelerators.csv", "l4", {"tdp_w": "inf"}, "tdp_w", "finite"),
        ("accelerators.csv", "l4", {"sm_count": "58.5"}, "sm_count", "whole number"),
        ("accelerators.csv", "l4", {"as_of": "29.11.2026"}, "as_of", "YYYY-MM-DD"),
        ("accelerators.csv", "l4", {"as_of": "2026-02-30"}, "as_of", "YYYY-MM-DD"),
        ("accelerators.csv", "l4", {"source": ""}, "source", "must not be empty"),
        ("instance_types.csv", "p5.48xlarge", {"accelerator": "h900"}, "accelerator", "unknown accelerator"),
        ("instance_types.csv", "p5.48xlarge", {"link_domain_gpus": "64"}, "link_domain_gpus", "at most 8"),
        ("instance_types.csv", "p5.48xlarge", {"intra_node_link": "nvlink5"}, "intra_node_link", "allowed: "),
        ("instance_types.csv", "p5.48xlarge", {"intra_node_link": "pcie"}, "link_domain_gpus", "must be 1"),
        ("instance_types.csv", "g6.12xlarge", {"intra_node_link": "nvlink"}, "intra_node_link", "no scale-up link"),
        ("instance_types.csv", "g6.12xlarge", {"intra_node_link": "none"}, "intra_node_link", "pcie at least"),
        ("instance_types.csv", "g6.12xlarge", {"fabric": "token ring"}, "fabric", "infiniband"),
        ("regions.csv", "asia-southeast2", {"country": "XX"}, "country", "ISO 3166"),
        ("regions.csv", "asia-southeast2", {"country": ""}, "country", "must not be empty"),
        ("providers.csv", "civo", {"kind": "shop"}, "kind", "neocloud"),
        ("fx_rates.csv", "EUR", {"rate": "0"}, "rate", "greater than 0"),
        ("tax_rules.csv", "ID", {"rate": "12"}, "rate", "share below 1"),
        ("tax_rules.csv", "ID", {"valid_to": "2024-01-01"}, "valid_to", "after valid_from"),
        ("carbon.csv", "ap-southeast-3", {"method": ""}, "method", "must not be empty"),
        ("token_api_prices.csv", "Groq", {"input_usd_per_mtok": ""}, "input_usd_per_mtok", "must be a number"),
        ("token_api_prices.csv", "Groq", {"output_usd_per_mtok": "0"}, "output_usd_per_mtok", "greater than 0"),
        ("price_age_limits.csv", "neocloud", {"limit_days": "0"}, "limit_days", "at least 1"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(folder, file, pick, cells, column, allowed):
    lines = edit(folder, file, lambda row: pick in row.values(), **cells)

    found = [problem for problem in problems(folder) if problem.file == file and problem.column == column]

    assert {problem.line for problem in found} == set(lines)
    assert all(allowed in problem.message for problem in found)
    if column in cells:
        assert all(problem.value == cells[column] for problem in found)


@pytest.mark.parametrize(
    ("cells", "column", "allowed"),
    [
        ({"usd_per_node_hour": "-1"}, "usd_per_node_hour", "greater than 0"),
        ({"usd_per_node_hour": "0"}, "usd_per_node_hour", "greater than 0"),
        ({"usd_per_node_hour": "free"}, "usd_per_node_hour", "must be a number"),
        ({"usd_per_node_hour": "1e30"}, "usd_per_node_hour", "at most 10 digits"),
        ({"usd_per_node_hour": "1.12345678"}, "usd_per_node_hour", "6 after the point"),
        ({"observed_on": "2026-13-01"}, "observed_on", "YYYY-MM-DD"),
        ({"region": "mars-1"}, "region", "unknown region of civo"),
        ({"instance_type": "huge"}, "instance_type", "unknown instance type"),
        ({"provider": "nobody"}, "provider", "unknown provider"),
        ({"purchase_option": "lease"}, "purchase_option", "on_demand"),
        ({"tax_included": "maybe"}, "tax_included", "yes"),
        ({"flags": "cheap"}, "flags", "separated by |"),
        ({"flags": "superseded"}, "flags", "leave the row out"),
        ({"flags": "volatile|suspicious"}, "flags", "leave the row out"),
    ],
)
def test_a_wrong_offer_is_refused_with_what_is_allowed(folder, cells, column, allowed):
    (line,) = edit(folder, "offers.csv", is_offer("civo", "gpu-l40s-small", "gb-*", "on_demand"), **cells)

    found = [problem for problem in problems(folder) if problem.column == column]

    assert [(problem.file, problem.line) for problem in found] == [("offers.csv", line)]
    assert allowed in found[0].message


def test_a_repeated_row_is_refused_with_the_line_it_repeats(folder):
    for name in ("offers.csv", "accelerators.csv", "instance_types.csv"):
        rows = rows_of(folder, name)
        write_rows(folder, name, [*rows, rows[0]])

    found = {problem.file: problem for problem in problems(folder)}

    assert set(found) == {"offers.csv", "accelerators.csv", "instance_types.csv"}
    assert all("repeats line 2" in problem.message for problem in found.values())


def test_everything_that_is_wrong_is_told_at_once_in_order(folder):
    first = edit(folder, "accelerators.csv", lambda row: row["key"] in ("a10", "t4"), memory_bytes="none")
    second = edit(folder, "instance_types.csv", lambda row: row["name"] == "p5.48xlarge", vcpus="-3", as_of="soon")
    third = edit(folder, "offers.csv", is_offer("civo", "gpu-l40s-small", "gb-*", "on_demand"), currency="")

    found = [(problem.file, problem.line, problem.column) for problem in problems(folder)]

    assert found == [
        ("accelerators.csv", first[0], "memory_bytes"),
        ("accelerators.csv", first[1], "memory_bytes"),
        ("instance_types.csv", second[0], "as_of"),
        ("instance_types.csv", second[0], "vcpus"),
        ("offers.csv", third[0], "currency"),
    ]


def test_a_missing_file_and_a_missing_or_unknown_column_are_named(folder):
    (folder / "carbon.csv").unlink()
    rows = [{**row, "colour": "red"} for row in rows_of(folder, "providers.csv")]
    for row in rows:
        del row["kind"]
    write_rows(folder, "providers.csv", rows)

    found = [(p.file, p.line, p.column, p.message.split(":")[0]) for p in problems(folder)]

    assert ("carbon.csv", 0, "", "the file is missing") in found
    assert ("providers.csv", 1, "colour", "allowed columns") in found
    assert ("providers.csv", 1, "kind", "the column is missing") in found


def test_text_that_is_not_utf8_or_not_csv_is_named(folder):
    (folder / "carbon.csv").write_bytes((folder / "carbon.csv").read_bytes() + b"\xff")
    with (folder / "fx_rates.csv").open("a", encoding="utf-8") as file:
        file.write('EUR,"USD\n')
    with (folder / "tax_rules.csv").open("a", encoding="utf-8") as file:
        file.write("ID,PPN\n")

    found = {problem.file: problem.message for problem in problems(folder)}

    assert found["carbon.csv"] == "must be UTF-8 text"
    assert found["fx_rates.csv"].startswith("not CSV")
    assert found["tax_rules.csv"] == "has 2 cells, the header has 10"


@pytest.mark.parametrize(
    ("change", "column", "message"),
    [
        (lambda entry: entry.update(name=""), "name", "must not be empty"),
        (lambda entry: entry.update(as_of="yesterday"), "as_of", "YYYY-MM-DD"),
        (lambda entry: entry.update(aliases="one"), "aliases", "list of names"),
        (lambda entry: entry.update(published_total_params_b=-1), "published_total_params_b", "above 0"),
        (lambda entry: entry["spec"].update(layers=0), "spec", "layers"),
        (lambda entry: entry["spec"].update(colour="red"), "spec", "unknown key"),
        (lambda entry: entry["spec"].update(hf_id="else/where"), "hf_id", "differs from the spec"),
        (lambda entry: entry.pop("license"), "license", "missing"),
        (lambda entry: entry.update(colour="red"), "colour", "allowed keys"),
    ],
)
def test_a_wrong_model_is_refused(folder, change, column, message):
    path = folder / "model_architectures.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content["models"][3])
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")

    found = [problem for problem in problems(folder) if problem.column == column]

    assert found
    assert found[0].file == "model_architectures.json"
    assert message in found[0].message


def test_models_may_not_share_a_name(folder):
    path = folder / "model_architectures.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["models"][3]["aliases"] = [content["models"][0]["hf_id"].upper()]
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")

    (problem,) = problems(folder)

    assert "already names the model of line" in problem.message


@pytest.mark.parametrize("text", ["", "[1]", '{"models": 3}', "{"])
def test_a_model_file_that_is_none_is_refused(folder, text):
    (folder / "model_architectures.json").write_text(text, encoding="utf-8")
    (problem,) = problems(folder)
    assert problem.file == "model_architectures.json"
