"""What tests of the catalog's gates share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from catalog.importers.data_files import InvalidData, read_data_files
from catalog.importers.rows import Problem


def problems(folder: Path) -> list[Problem]:
    with pytest.raises(InvalidData) as refused:
        read_data_files(folder)
    return refused.value.problems


def is_offer(provider: str, instance_type: str, region: str, option: str) -> Callable[[dict[str, str]], bool]:
    return lambda row: (
        (row["provider"], row["instance_type"], row["region"], row["purchase_option"])
        == (
            provider,
            instance_type,
            region,
            option,
        )
    )


def priced(node: float, count: int) -> dict[str, str]:
    return {
        "usd_per_node_hour": f"{node:.6f}",
        "usd_per_gpu_hour": f"{node / count:.6f}",
        "amount_per_node_hour": f"{node:.6f}",
    }
