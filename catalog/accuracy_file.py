"""The accuracy file: what the engine predicted of every measured case, beside what was measured.

It is a build product that is kept: ``manage.py rebuild_accuracy`` writes it, the page reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from catalog.profiles import DATA

ACCURACY_FILE: Final = DATA / "accuracy.json"
GROUPINGS: Final = ("source", "gpu", "precision", "model_kind", "software")
"""What errors are broken down by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyCase:
    """One measured case and what was predicted of it."""

    labels: Mapping[str, str]
    """By grouping."""
    model: str
    setup: str
    """Layout and load in short, for the reader to find the case again."""
    pairs: Mapping[str, tuple[float, float]]
    """(measured, predicted) by quantity; what wasn't measured is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracySet:
    """All cases of one kind of question."""

    kind: str
    files: Mapping[str, int]
    """Rows of each measurement file read."""
    unsupported: int
    """Rows the engine can't predict."""
    quantities: tuple[str, ...]
    cases: tuple[AccuracyCase, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The whole file."""

    engine_version: str
    built_on: str
    sets: tuple[AccuracySet, ...]


@cache
def read_accuracy(path: Path = ACCURACY_FILE) -> Accuracy:
    """The file as values; raises ``OSError`` where there is none."""
    with path.open(encoding="utf-8") as file:
        raw = json.load(file)
    return Accuracy(
        engine_version=raw["engine_version"],
        built_on=raw["built_on"],
        sets=tuple(_read_set(kind, found) for kind, found in raw["sets"].items()),
    )


def _read_set(kind: str, raw: Mapping[str, Any]) -> AccuracySet:
    quantities = tuple(raw["quantities"])
    return AccuracySet(
        kind=kind,
        files=raw["files"],
        unsupported=raw["unsupported"],
        quantities=quantities,
        cases=tuple(_read_case(row, raw["labels"], quantities) for row in raw["cases"]),
    )


def _read_case(row: Sequence[Any], labels: Mapping[str, Sequence[str]], quantities: Sequence[str]) -> AccuracyCase:
    codes, (model, setup), pairs = row[: len(GROUPINGS)], row[len(GROUPINGS) :][:2], row[len(GROUPINGS) + 2 :]
    return AccuracyCase(
        labels={name: labels[name][code] for name, code in zip(GROUPINGS, codes, strict=True)},
        model=model,
        setup=setup,
        pairs={name: (pair[0], pair[1]) for name, pair in zip(quantities, pairs, strict=True) if pair},
    )


def write_accuracy(accuracy: Accuracy, path: Path = ACCURACY_FILE) -> None:
    """Write the file: one case a line, labels as places in a list, numbers to four digits."""
    sets = ",\n".join(f"{json.dumps(found.kind)}: {_set_text(found)}" for found in accuracy.sets)
    head = {"engine_version": accuracy.engine_version, "built_on": accuracy.built_on}
    path.write_text(f'{json.dumps(head)[:-1]}, "sets": {{\n{sets}\n}}}}\n', encoding="utf-8")


def _set_text(found: AccuracySet) -> str:
    labels = {name: sorted({case.labels[name] for case in found.cases}) for name in GROUPINGS}
    places = {name: {label: place for place, label in enumerate(values)} for name, values in labels.items()}
    rows = [
        [
            *(places[name][case.labels[name]] for name in GROUPINGS),
            case.model,
            case.setup,
            *(_short(case.pairs.get(name)) for name in found.quantities),
        ]
        for case in found.cases
    ]
    head = {"files": found.files, "unsupported": found.unsupported, "quantities": found.quantities, "labels": labels}
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return f'{json.dumps(head, ensure_ascii=False)[:-1]}, "cases": [\n{lines}\n]}}'


def _short(pair: tuple[float, float] | None) -> list[float] | None:
    return None if pair is None else [float(f"{value:.5g}") for value in pair]
