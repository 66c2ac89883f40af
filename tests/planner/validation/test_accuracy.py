"""The accuracy file belongs to the measurement files as they are, and survives its own writing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from catalog.accuracy_file import ACCURACY_FILE, Accuracy, AccuracyCase, AccuracySet, read_accuracy, write_accuracy
from planner.engine.inference_plan import ENGINE_VERSION
from planner.services.validation.accuracy import measured_rows, short_source

CASE = AccuracyCase(
    labels={"source": "docs", "gpu": "H200", "precision": "fp8", "model_kind": "dense", "software": "vllm"},
    model="Llama",
    setup="8× H200",
    pairs={"tpot_ms": (10.0, 11.0)},
)
SMALL = Accuracy(
    engine_version="1",
    built_on="2026-11-29",
    sets=(
        AccuracySet(
            kind="inference", files={"a.csv": 2}, unsupported=1, quantities=("ttft_ms", "tpot_ms"), cases=(CASE,)
        ),
    ),
)


def test_it_was_built_from_the_measurement_files_as_they_are() -> None:
    accuracy = read_accuracy()
    counted = {name: measured_rows(name) for found in accuracy.sets for name in found.files}
    written = {name: rows for found in accuracy.sets for name, rows in found.files.items()}
    assert written == counted, "run: manage.py rebuild_accuracy"
    assert accuracy.engine_version == ENGINE_VERSION


def test_every_row_is_shown_or_counted_as_unsupported() -> None:
    for found in read_accuracy().sets:
        assert sum(found.files.values()) - found.unsupported >= len(found.cases) > 0
        for quantity in found.quantities:
            pairs = np.array([case.pairs[quantity] for case in found.cases if quantity in case.pairs])
            assert len(pairs) >= 20
            assert np.isfinite(pairs).all()
            assert (pairs > 0).all()


def test_it_is_light() -> None:
    assert ACCURACY_FILE.stat().st_size < 500_000


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "accuracy.json"
    write_accuracy(SMALL, path)
    assert read_accuracy(path) == SMALL


def test_unknown_labels_are_kept_blank(tmp_path: Path) -> None:
    path = tmp_path / "blank.json"
    blank = replace(CASE, labels={**CASE.labels, "model_kind": ""})
    found = replace(SMALL, sets=(replace(SMALL.sets[0], cases=(CASE, blank)),))
    write_accuracy(found, path)
    assert [case.labels["model_kind"] for case in read_accuracy(path).sets[0].cases] == ["dense", ""]


@pytest.mark.parametrize(
    ("source", "shown"),
    [("https://github.com/a/b/issues/1", "github.com/a/b"), ("own logs (2026)", "own logs"), ("", "")],
)
def test_sources_in_short(source: str, shown: str) -> None:
    assert short_source(source) == shown
