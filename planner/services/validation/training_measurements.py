"""The project's own measurement files: published training runs as cases, one row each.

Rows are restructured from their publications: what a table keeps in prose (framework, recipe facts,
FLOP convention) is a column here, and speed is always seconds an optimizer step. Architectures are
kept once, in a JSON file beside the rows.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_type_hints

from planner.engine.arch_spec import arch_from_spec
from planner.services.validation.training_case import TrainingCase
from planner.services.validation.training_rows import FindAccelerator

_ELSEWHERE = frozenset({"arch", "accelerator", "assumptions"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A published run: the case, and what it took."""

    case: TrainingCase
    source: str
    source_ref: str
    as_of: str
    model: str
    effect: str
    """Which effect the row tests; blank for rows that only widen the fit."""
    grade: str
    """A: exact configuration public; B: some inputs assumed; C: doubtful."""
    step_s: float | None
    step_basis: str
    """What speed was published: step, tokens, flops, mfu."""
    memory_gib: float | None
    outcome: str
    """ran, or out_of_memory."""
    precision_label: str
    accelerator_label: str

    @property
    def group(self) -> str:
        """Runs that cross-validation holds out together: source, model, accelerator and precision."""
        return "|".join((self.source, self.model, self.accelerator_label, self.precision_label))


_HEAD = (
    "source",
    "source_ref",
    "as_of",
    "model",
    "effect",
    "grade",
    "step_s",
    "step_basis",
    "memory_gib",
    "outcome",
    "precision_label",
    "accelerator_label",
)


def _case_columns() -> list[str]:
    return [f.name for f in fields(TrainingCase) if f.name not in _ELSEWHERE]


def architectures_path(path: Path) -> Path:
    """Where the architectures of a measurement file are kept."""
    return path.with_name(path.stem + "_architectures.json")


def read_measurements(path: Path, find_accelerator: FindAccelerator) -> list[Measurement]:
    """Rows of a measurement file; raises ``KeyError`` for an accelerator the catalog doesn't have."""
    with architectures_path(path).open(encoding="utf-8") as file:
        architectures = {key: arch_from_spec(spec) for key, spec in json.load(file).items()}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    hints = get_type_hints(TrainingCase)
    return [_read(row, architectures, find_accelerator, hints) for row in rows]


def _read(
    row: Mapping[str, str],
    architectures: Mapping[str, Any],
    find_accelerator: FindAccelerator,
    hints: Mapping[str, Any],
) -> Measurement:
    accelerator = find_accelerator(row["accelerator"])
    if accelerator is None:
        raise KeyError(row["accelerator"])
    values = {name: _value(row[name], hints[name]) for name in _case_columns()}
    case = TrainingCase(arch=architectures[row["architecture"]], accelerator=accelerator, **values)
    head = {name: row[name] for name in _HEAD if name not in ("step_s", "memory_gib")}
    return Measurement(
        case=case,
        step_s=float(row["step_s"]) if row["step_s"] else None,
        memory_gib=float(row["memory_gib"]) if row["memory_gib"] else None,
        **head,
    )


def _value(text: str, hint: Any) -> Any:
    kind = str(hint)
    if not text and "None" in kind:
        return None
    if "bool" in kind:
        return text == "1"
    if "int" in kind:
        return int(text)
    return float(text) if "float" in kind else text
