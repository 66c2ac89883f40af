"""Replaying published cases through the engine: what every kind of case file shares.

A ``ReplayKind`` says which columns a case file has, how a batch of rows is predicted and what is
compared with what; reading, writing and reporting are the same for all.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from planner.services.validation.model_library import ModelLibrary

Case = Mapping[str, str]
"""One row of a case file: text by column, blank where not stated."""


class BadCaseFile(ValueError):
    """A case file that can't be replayed, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the engine says of one case."""

    supported: bool
    reason: str
    """Why not, or which assumptions filled blank inputs."""
    values: Mapping[str, float | str | None] = field(default_factory=dict)
    """By output column; None is written as blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One thing measured and predicted."""

    name: str
    predicted: str
    """Output column."""
    measured: Callable[[Case], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayKind:
    """How one kind of case file is replayed."""

    required: tuple[str, ...]
    """Columns a case file must have."""
    columns: tuple[str, ...]
    """Output columns after ``id, supported, reason``."""
    quantities: tuple[Quantity, ...]
    precision: str
    """The case column that holds the precision the report groups by."""
    predict: Callable[[Sequence[Case], ModelLibrary], list[Prediction]]
    groups: tuple[str, ...] = ()
    """Further case columns the report groups by, where a file has them."""


def number(case: Case, column: str) -> float | None:
    """A cell as a number; None where blank, absent or not a number."""
    try:
        return float(case.get(column) or "")
    except ValueError:
        return None


def measured_column(column: str) -> Callable[[Case], float | None]:
    """The reader of a measured column."""
    return lambda case: number(case, column)


def read_cases(path: Path, required: Sequence[str]) -> list[Case]:
    """Rows of a case file; raises ``BadCaseFile`` where it can't be read or lacks a column."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows: list[Case] = [{key: (value or "").strip() for key, value in row.items() if key} for row in reader]
            header = reader.fieldnames or []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadCaseFile(f"{path}: {error}") from error
    missing = [column for column in required if column not in header]
    if missing:
        raise BadCaseFile(f"{path}: no column {', '.join(missing)}.")
    return rows


def write_predictions(path: Path, cases: Sequence[Case], predictions: Sequence[Prediction], kind: ReplayKind) -> None:
    """One output row per case, in order."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "supported", "reason", *kind.columns])
        for case, prediction in zip(cases, predictions, strict=True):
            values = [_cell(prediction.values.get(column)) for column in kind.columns]
            writer.writerow([case["id"], int(prediction.supported), prediction.reason, *values])


def _cell(value: float | str | None) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.6g}"
