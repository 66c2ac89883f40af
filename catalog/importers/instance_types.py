"""instance_types.csv: the shapes that can be rented."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import get_args

from catalog.importers.rows import PRECISIONS, Problem, Row, read_rows, unique_rows
from planner.engine.hardware import Fabric, IntraNodeLink
from planner.engine.units import GB, GIB, gbit_s_to_bytes_s

COLUMNS = (
    "provider,name,accelerator,gpu_count,vcpus,ram_gib,local_disk_gb,intra_node_link,link_domain_gpus,fabric,"
    "fabric_name,network_gbit_s_one_way,basis,assumption,source,as_of,as_of_precision,notes"
)
SCALE_UP_LINKS = ("nvlink", "nvlink_bridge", "xgmi", "ici", "neuronlink")


def read_instance_types(
    folder: Path, problems: list[Problem], providers: Collection[str], accelerators: Mapping[str, Row]
) -> list[Row]:
    """Rows of instance_types.csv, keyed by ``provider`` and ``name``."""
    rows = []
    for row in read_rows(folder / "instance_types.csv", COLUMNS, problems):
        ram_gib, disk_gb = row.number("ram_gib", blank=True), row.number("local_disk_gb", blank=True, zero=True)
        network = row.number("network_gbit_s_one_way", blank=True, maximum=1e5)
        row.values = {
            "provider": row.known("provider", providers, "provider"),
            "name": row.text("name", max_length=100),
            "accelerator": row.known("accelerator", accelerators, "accelerator"),
            "gpu_count": row.decimal("gpu_count"),
            "vcpus": row.number("vcpus", blank=True),
            "ram_bytes": None if ram_gib is None else round(ram_gib * GIB),
            "local_disk_bytes": None if disk_gb is None else round(disk_gb * GB),
            "intra_node_link": row.choice("intra_node_link", get_args(IntraNodeLink)),
            "link_domain_gpus": row.integer("link_domain_gpus"),
            "fabric": row.choice("fabric", get_args(Fabric)),
            "fabric_name": row.text("fabric_name", blank=True, max_length=80),
            "network_bytes_s": None if network is None else gbit_s_to_bytes_s(network),
            "basis": row.choice("basis", ("listed", "offer")),
            "assumption": row.text("assumption", blank=True),
            "as_of_precision": row.choice("as_of_precision", PRECISIONS),
            "notes": row.text("notes", blank=True),
            **row.origin(),
        }
        _check_link(row, accelerators)
        rows.append(row)
    return unique_rows(rows, ("provider", "name"))


def _check_link(row: Row, accelerators: Mapping[str, Row]) -> None:
    link, domain, count = (row.values[name] for name in ("intra_node_link", "link_domain_gpus", "gpu_count"))
    accelerator = accelerators.get(row.values["accelerator"])
    if domain is None or count is None or accelerator is None or not accelerator.sound:
        return
    if link not in SCALE_UP_LINKS:
        if domain != 1:
            row.problem("link_domain_gpus", "must be 1 without a scale-up link")
        if link == "none" and count > 1:
            row.problem("intra_node_link", f"{count} accelerators are joined by something: pcie at least")
        return
    if accelerator.values["link_bytes_s"] == 0:
        row.problem("intra_node_link", f"{row.values['accelerator']} has no scale-up link")
    most = max(accelerator.values["scaleup_domain_gpus"], int(count))
    if domain > most:
        row.problem("link_domain_gpus", f"{row.values['accelerator']} links at most {most}")
