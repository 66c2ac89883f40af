"""Which architecture a case means: the catalog's, else that of the architectures file given."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

from planner.engine.arch_spec import arch_from_architecture_row
from planner.engine.errors import UnsupportedModel
from planner.engine.model_arch import ModelArch

FindModel = Callable[[str], ModelArch | None]


class ModelLibrary:
    """Resolves the ``model`` column of a case."""

    def __init__(self, find_model: FindModel, rows: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self._find_model = find_model
        self._rows = rows or {}
        self._found: dict[str, ModelArch | UnsupportedModel | None] = {}

    def resolve(self, name: str) -> ModelArch | None:
        """The architecture of ``name``, or None where neither the catalog nor the file has it.

        Raises ``UnsupportedModel`` where the file's row can't be read.
        """
        if name not in self._found:
            try:
                self._found[name] = self._find_model(name) or self._from_rows(name)
            except UnsupportedModel as error:
                self._found[name] = error
        found = self._found[name]
        if isinstance(found, UnsupportedModel):
            raise found
        return found

    def _from_rows(self, name: str) -> ModelArch | None:
        row = self._rows.get(name)
        return arch_from_architecture_row(row) if row is not None else None


def read_architectures(path: Path) -> dict[str, Mapping[str, str]]:
    """Rows of an architectures file by model name."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["model"]: {k: (v or "").strip() for k, v in row.items() if k} for row in csv.DictReader(file)}
