"""The accelerator facts file as engine values, read once, without a database.

Validation and calibration run on the files alone; pages and plans read the loaded catalog.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from datetime import date
from functools import cache

from catalog.importers.accelerators import FORMATS
from catalog.profiles import DATA
from planner.engine.hardware import Accelerator
from planner.engine.units import GB, TERA

ACCELERATORS_FILE = "accelerators.csv"
LINKS_FILE = "link_classes.csv"


def accelerator_file_key(name: str) -> str:
    """A name as it is looked up: lower case, without separators.

    >>> accelerator_file_key("A100-80GB") == accelerator_file_key("a100 80gb")
    True
    """
    return re.sub(r"[^a-z0-9]+", "", name.lower())


@cache
def _index() -> Mapping[str, Accelerator]:
    index: dict[str, Accelerator] = {}
    with (DATA / ACCELERATORS_FILE).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            accelerator = _accelerator(row)
            for name in (row["key"], row["name"], *row["aliases"].split("|")):
                if name:
                    index.setdefault(accelerator_file_key(name), accelerator)
    return index


@cache
def _link_kinds() -> Mapping[str, str]:
    with (DATA / LINKS_FILE).open(encoding="utf-8", newline="") as file:
        return {row["link_name"]: row["link_kind"] for row in csv.DictReader(file)}


def find_accelerator(name: str) -> Accelerator | None:
    """The accelerator of a key, name or alias, however it is spelled; None if there is none."""
    return _index().get(accelerator_file_key(name))


def _accelerator(row: Mapping[str, str]) -> Accelerator:
    def number(column: str) -> float | None:
        return float(row[column]) if row[column] else None

    peaks = {name: number(column) for name, column in FORMATS.items()}
    return Accelerator(
        key=row["key"],
        name=row["name"],
        vendor=row["vendor"],
        generation=row["generation"],
        form_factor=row["form_factor"],
        memory_bytes=int(row["memory_bytes"]),
        memory_bandwidth_bytes_s=float(row["memory_bandwidth_gb_s"]) * GB,
        peak_flops={name: peak * TERA for name, peak in peaks.items() if peak},
        link=_link_kinds()[row["link_name"]],
        link_name=row["link_name"],
        link_bytes_s=(number("link_one_way_gb_s") or 0.0) * GB,
        scaleup_domain_gpus=int(row["scaleup_domain_gpus"]),
        pcie_gen=int(row["pcie_gen"]) if row["pcie_gen"] else None,
        sm_count=int(row["sm_count"]) if row["sm_count"] else None,
        tdp_w=number("tdp_w"),
        compute_capability=row["compute_capability"],
        confidence=row["confidence"],
        source=row["source"],
        as_of=date.fromisoformat(row["as_of"]),
    )
