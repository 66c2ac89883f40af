"""offers.csv: price observations, each against its instance type and region."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from pathlib import Path
from typing import get_args

from catalog.importers.rows import PRECISIONS, Problem, Row, read_rows, unique_rows
from planner.engine.hardware import PurchaseOption

COLUMNS = (
    "provider,instance_type,region,purchase_option,accelerator,gpu_count,usd_per_node_hour,usd_per_gpu_hour,"
    "currency,amount_per_node_hour,tax_included,observed_on,observed_precision,flags,source,notes"
)
OFFER_KEY = ("provider", "instance_type", "region", "purchase_option")
FLAGS = (
    "availability_unverified",
    "average",
    "derived",
    "estimated",
    "excerpt_only",
    "fx_converted",
    "older_than_stated",
    "stale",
    "volatile",
)
REFUSED_FLAGS = ("superseded", "suspicious")
ROUNDING = Decimal("0.005")
"""Relative: sources round the price of one accelerator."""


def read_offers(
    folder: Path,
    problems: list[Problem],
    instance_types: Mapping[tuple[str, str], Row],
    regions: Collection[tuple[str, str]],
    providers: Collection[str],
) -> list[Row]:
    """Rows of offers.csv; one row is one price as one source stated it on one day."""
    rows = []
    for row in read_rows(folder / "offers.csv", COLUMNS, problems):
        provider = row.known("provider", providers, "provider")
        row.values = {
            "provider": provider,
            "instance_type": row.text("instance_type", max_length=100),
            "region": row.text("region", max_length=60),
            "purchase_option": row.choice("purchase_option", get_args(PurchaseOption)),
            "usd_per_node_hour": row.decimal("usd_per_node_hour"),
            "currency": row.text("currency", max_length=3),
            "amount_per_node_hour": row.decimal("amount_per_node_hour"),
            "tax_included": row.choice("tax_included", ("yes", "no")) == "yes",
            "observed_on": row.day("observed_on"),
            "observed_precision": row.choice("observed_precision", PRECISIONS),
            "flags": row.flags("flags", FLAGS, refused=REFUSED_FLAGS),
            "source": row.text("source"),
            "notes": row.text("notes", blank=True),
        }
        if provider in providers:
            if (provider, row.values["region"]) not in regions:
                row.problem("region", f"unknown region of {provider}: add it to regions.csv")
            _check_shape(row, instance_types)
        rows.append(row)
    return unique_rows(rows, (*OFFER_KEY, "observed_on", "source"))


def _check_shape(row: Row, instance_types: Mapping[tuple[str, str], Row]) -> None:
    """The row repeats accelerator, count and price per accelerator, so that a slip in one shows."""
    count, per_gpu = row.decimal("gpu_count"), row.decimal("usd_per_gpu_hour")
    shape = instance_types.get((row.values["provider"], row.values["instance_type"]))
    if shape is None:
        row.problem("instance_type", "unknown instance type: add it to instance_types.csv")
        return
    if not shape.sound:
        return
    if row.cells["accelerator"] != shape.values["accelerator"]:
        row.problem("accelerator", f"contradicts instance_types.csv line {shape.line}: {shape.values['accelerator']}")
    if count is not None and count != shape.values["gpu_count"]:
        row.problem("gpu_count", f"contradicts instance_types.csv line {shape.line}: {shape.values['gpu_count']}")
    per_node = row.values["usd_per_node_hour"]
    if count is not None and per_gpu is not None and per_node is not None:
        if abs(per_gpu * count - per_node) > ROUNDING * per_node:
            row.problem("usd_per_gpu_hour", f"times {count} accelerators is not {per_node} per node-hour")
        row.values["usd_per_gpu_hour"] = per_node / count
