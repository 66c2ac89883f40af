"""accelerators.csv, against the physics in peak_classes.csv and link_classes.csv."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from catalog.importers.rows import Problem, Row, read_rows, unique_rows
from planner.engine.hardware import IntraNodeLink
from planner.engine.units import GB, TERA

FORMATS = {
    "fp32": "fp32_tflops",
    "tf32": "tf32_tflops",
    "bf16": "bf16_tflops",
    "fp16": "fp16_tflops",
    "fp8": "fp8_tflops",
    "int8": "int8_tops",
    "fp6": "fp6_tflops",
    "fp4": "fp4_tflops",
}
"""The engine's name of a number format, and the column that holds its dense peak."""

RATIO_FORMATS = ("tf32", "fp8", "int8", "fp6", "fp4")
RATIO_TOLERANCE = 0.1
"""Datasheets round; a sparse figure is 100 % off."""

MEMORY_SHARE = (0.9, 1.09)
"""Driver-visible bytes over marketing GB: from ECC and reserved memory, to GiB sold as GB."""

COLUMNS = (
    "key,name,vendor,generation,product_line,form_factor,aliases,memory_bytes,memory_basis,memory_marketing_gb,"
    "memory_type,memory_bandwidth_gb_s,peak_class,fp32_tflops,tf32_tflops,bf16_tflops,fp16_tflops,fp8_tflops,"
    "int8_tops,fp6_tflops,fp4_tflops,l2_mb,sm_count,tdp_w,link_name,link_one_way_gb_s,scaleup_domain_gpus,"
    "pcie_gen,compute_capability,launch_year,confidence,source,as_of,notes"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakClass:
    """How fast the tensor units of one generation can be, dense."""

    flop_per_unit_clock: float | None
    """bf16 (fp16 where there is no bf16) FLOP a clock and SM, CU or core."""
    max_clock_ghz: float | None
    ratios: dict[str, float | None]
    """Dense peak over the bf16 peak, by format; ``None``: the generation has no such path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkClass:
    """One kind of scale-up link."""

    kind: str
    max_bytes_s: float
    """One direction, all links of one accelerator."""


def read_peak_classes(folder: Path, problems: list[Problem]) -> dict[str, PeakClass]:
    """peak_classes.csv by class name."""
    ratios = ",".join(f"{name}_per_bf16" for name in RATIO_FORMATS)
    columns = f"peak_class,flop_per_unit_clock,max_clock_ghz,{ratios},source,as_of"
    classes = {}
    for row in read_rows(folder / "peak_classes.csv", columns, problems):
        row.origin()
        classes[row.text("peak_class", max_length=40)] = PeakClass(
            flop_per_unit_clock=row.number("flop_per_unit_clock", blank=True),
            max_clock_ghz=row.number("max_clock_ghz", blank=True, maximum=10),
            ratios={name: row.number(f"{name}_per_bf16", blank=True) for name in RATIO_FORMATS},
        )
    return classes


def read_link_classes(folder: Path, problems: list[Problem]) -> dict[str, LinkClass]:
    """link_classes.csv by link name."""
    columns = "link_name,link_kind,max_one_way_gb_s,note,source,as_of"
    classes = {}
    for row in read_rows(folder / "link_classes.csv", columns, problems):
        row.origin()
        kind = row.choice("link_kind", get_args(IntraNodeLink))
        rate = row.scaled("max_one_way_gb_s", GB, blank=kind == "none")
        classes[row.text("link_name", max_length=40)] = LinkClass(kind=kind, max_bytes_s=rate or 0)
    return classes


def read_accelerators(folder: Path, problems: list[Problem]) -> list[Row]:
    """Rows of accelerators.csv, keyed by ``key``, whose peaks and links their generation can reach."""
    peaks = read_peak_classes(folder, problems)
    links = read_link_classes(folder, problems)
    rows = []
    for row in read_rows(folder / "accelerators.csv", COLUMNS, problems):
        _read_identity(row)
        _read_memory(row)
        _read_peaks(row, peaks)
        _read_link(row, links)
        rows.append(row)
    rows = unique_rows(rows, ("key",))
    _check_names(rows)
    return rows


def _read_identity(row: Row) -> None:
    l2_mb = row.number("l2_mb", blank=True)
    row.values |= {
        "key": row.text("key", max_length=40),
        "name": row.text("name", max_length=80),
        "vendor": row.text("vendor", max_length=20),
        "generation": row.text("generation", max_length=40),
        "product_line": row.choice("product_line", ("datacenter", "workstation", "geforce")),
        "form_factor": row.choice("form_factor", ("SXM", "PCIe", "OAM", "superchip", "chip")),
        "aliases": [name for name in row.text("aliases", blank=True).split("|") if name],
        "l2_bytes": None if l2_mb is None else round(l2_mb * 2**20),
        "tdp_w": row.number("tdp_w", blank=True, maximum=10_000),
        "pcie_gen": row.integer("pcie_gen", blank=True),
        "compute_capability": row.text("compute_capability", blank=True, max_length=20),
        "launch_year": row.integer("launch_year", blank=True, minimum=2010),
        "confidence": row.choice("confidence", ("high", "medium", "low")),
        "notes": row.text("notes", blank=True),
        **row.origin(),
    }


def _read_memory(row: Row) -> None:
    size, sold = row.integer("memory_bytes"), row.number("memory_marketing_gb", maximum=100_000)
    bandwidth = row.scaled("memory_bandwidth_gb_s", GB, maximum=1e6)
    if size is not None and sold is not None:
        low, high = (share * sold * GB for share in MEMORY_SHARE)
        if not low <= size <= high:
            row.problem("memory_bytes", f"is not what a card sold as {sold:g} GB shows: {low:.0f} to {high:.0f}")
    row.values |= {
        "memory_bytes": size,
        "memory_marketing_gb": sold,
        "memory_basis": row.choice("memory_basis", ("driver", "framework", "stated", "assumed")),
        "memory_type": row.text("memory_type", max_length=20),
        "memory_bandwidth_bytes_s": bandwidth,
    }


def _read_peaks(row: Row, classes: dict[str, PeakClass]) -> None:
    peaks = {name: row.scaled(column, TERA, blank=True, maximum=1e6) for name, column in FORMATS.items()}
    units = row.integer("sm_count", blank=True)
    class_name = row.known("peak_class", classes, "peak class: add it to peak_classes.csv")
    if class_name in classes:
        _check_peaks(row, peaks, units, classes[class_name])
    row.values |= {
        "peak_class": class_name,
        "sm_count": units,
        "peak_flops": {name: value for name, value in peaks.items() if value is not None},
    }


def _check_peaks(row: Row, peaks: dict[str, float | None], units: int | None, limits: PeakClass) -> None:
    base_format = "bf16" if peaks["bf16"] else "fp16"
    base = peaks[base_format]
    if base is None:
        return
    if units and limits.flop_per_unit_clock and limits.max_clock_ghz:
        clock_ghz = base / (units * limits.flop_per_unit_clock) / 1e9
        if clock_ghz > limits.max_clock_ghz:
            row.problem(
                FORMATS[base_format],
                f"needs a clock of {clock_ghz:.2f} GHz, the class reaches {limits.max_clock_ghz:g}: "
                "a figure with sparsity? The dense one belongs here",
            )
    for name in RATIO_FORMATS:
        value, ratio = peaks[name], limits.ratios[name]
        if value is None:
            continue
        if ratio is None:
            row.problem(FORMATS[name], f"must be empty: this class has no {name} path")
        elif not 1 - RATIO_TOLERANCE <= value / base / ratio <= 1 + RATIO_TOLERANCE:
            row.problem(
                FORMATS[name],
                f"must be {ratio:g} x {base_format} ({ratio * base / TERA:g}), dense: "
                f"{value / base:.2f} x looks like a figure with sparsity in one of the two",
            )


def _read_link(row: Row, classes: dict[str, LinkClass]) -> None:
    name = row.known("link_name", classes, "link: add it to link_classes.csv")
    link = classes.get(name)
    rate = row.scaled("link_one_way_gb_s", GB, blank=link is None or link.kind == "none")
    domain = row.integer("scaleup_domain_gpus")
    if link is not None and rate is not None and rate > link.max_bytes_s * 1.001:
        row.problem(
            "link_one_way_gb_s",
            f"{name} carries at most {link.max_bytes_s / GB:g} GB/s in one direction: a both-way sum?",
        )
    if link is not None and link.kind == "none" and domain not in (None, 1):
        row.problem("scaleup_domain_gpus", "must be 1 without a scale-up link")
    row.values |= {
        "link_name": name,
        "link_kind": "" if link is None else link.kind,
        "link_bytes_s": rate or 0,
        "scaleup_domain_gpus": domain,
    }


def accelerator_name_key(name: str) -> str:
    """How names compare: letters and digits only, vendor and brand words left out.

    >>> accelerator_name_key("NVIDIA GeForce RTX 4090") == accelerator_name_key("RTX-4090")
    True
    """
    words = re.sub(r"\b(nvidia|amd|intel|tesla|geforce|instinct)\b", " ", name.lower())
    return re.sub(r"[^a-z0-9]", "", words)


def _check_names(rows: list[Row]) -> None:
    owner: dict[str, Row] = {}
    for row in rows:
        for name in (row.values["key"], row.values["name"], *row.values["aliases"]):
            other = owner.setdefault(accelerator_name_key(name), row)
            if other is not row:
                row.problem("aliases", f"{name!r} already names {other.values['key']} (line {other.line})")
