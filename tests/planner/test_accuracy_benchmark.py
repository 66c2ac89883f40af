"""Figures of the serving model: errors in percent, the worst group among those with enough rows."""

from __future__ import annotations

import pytest

from catalog.accuracy_file import AccuracyCase
from planner.services.accuracy_benchmark import accuracy_figures, errors_of, worst_group


def case(gpu: str, predicted: float) -> AccuracyCase:
    labels = {"source": "", "gpu": gpu, "precision": "fp8", "model_kind": "dense", "software": "vllm"}
    return AccuracyCase(labels=labels, model="", setup="", pairs={"tpot_ms": (10.0, predicted)})


def test_errors_are_shares_of_what_was_measured() -> None:
    blank = AccuracyCase(labels=case("L4", 1.0).labels, model="", setup="", pairs={})
    assert errors_of([case("L4", 12.0), blank, case("L4", 5.0)], "tpot_ms") == pytest.approx([20.0, 50.0])


def test_the_worst_group_has_five_rows() -> None:
    cases = [case("L4", 13.0)] * 5 + [case("H200-SXM", 11.0)] * 6 + [case("B200", 90.0)] * 4
    group, error = worst_group(cases, "tpot_ms")
    assert group == "L4 vllm dense fp8"
    assert error == pytest.approx(30.0)


def test_every_figure_of_the_serving_model() -> None:
    figures = {figure.name.split(",")[0].split(":")[0]: figure for figure in accuracy_figures()}
    assert figures["step times evaluated a second"].value > 100_000
    assert figures["inference rows supported"].met
    for name in ("held-out TPOT", "held-out throughput"):
        assert 0.0 < figures[name].value < 60.0
