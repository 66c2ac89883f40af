"""Copies of the data files that a test may spoil."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from catalog.importers.data_files import DATA_DIR

Rows = list[dict[str, str]]


def folder_copy(parent: Path) -> Path:
    """A folder with the project's own data files."""
    folder = parent / "data"
    shutil.copytree(DATA_DIR, folder)
    return folder


def small_folder(parent: Path) -> Path:
    """As ``folder_copy`` with a few models, token prices and offers: what a gate test reads in no time."""
    folder = folder_copy(parent)
    offers = rows_of(folder, "offers.csv")
    write_rows(folder, "offers.csv", [row for row in offers if row["accelerator"] in ("h100-sxm", "l4", "l40s")])
    tokens = rows_of(folder, "token_api_prices.csv")
    write_rows(folder, "token_api_prices.csv", [row for row in tokens if row["provider"] == "Groq"])
    models = folder / "model_architectures.json"
    content = json.loads(models.read_text(encoding="utf-8"))
    models.write_text(json.dumps({"models": content["models"][:5]}, indent=1), encoding="utf-8")
    return folder


def rows_of(folder: Path, name: str) -> Rows:
    """The rows of a CSV file."""
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(folder: Path, name: str, rows: Rows) -> None:
    """Replace a CSV file."""
    with (folder / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def edit(folder: Path, file_name: str, which: Callable[[dict[str, str]], bool], /, **cells: str) -> list[int]:
    """Change cells of the rows that ``which`` picks; return their line numbers."""
    rows = rows_of(folder, file_name)
    lines = []
    for line, row in enumerate(rows, start=2):
        if which(row):
            row.update(cells)
            lines.append(line)
    assert lines, "no row to change"
    write_rows(folder, file_name, rows)
    return lines
