"""Whole published runs: GPU-hours as a plan reckons them, against what was reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from django.conf import settings

from catalog.model_files import find_model
from planner.engine.training.goodput import Reliability, goodput, interruptions_per_day
from planner.services.validation.long_runs import (
    KIND,
    gpu_hour_ratios,
    measured_gpu_hours,
    predict,
    recipes,
    reported_runs,
)
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.replay import Case, read_cases

LLAMA_405B: Case = {
    "id": "1",
    "model": "Llama-3.1 405B",
    "tokens_t": "15.6",
    "gpu": "H100",
    "gpus": "16384",
    "gpu_hours": "30840000",
    "days": "",
}
OPT: Case = {**LLAMA_405B, "model": "OPT-175B", "tokens_t": "0.18", "gpu": "A100-80GB", "gpus": "992", "gpu_hours": ""}


def test_llama_405b_takes_the_gpu_hours_it_took() -> None:
    (found,) = KIND.predict([LLAMA_405B], ModelLibrary(find_model, {}))
    assert found.supported
    assert found.values["gpu_hours"] == pytest.approx(30.84e6, rel=0.15)
    assert found.values["days"] == pytest.approx(30.84e6 / 16_384 / 24, rel=0.15)


def test_llama_405b_is_interrupted_as_published() -> None:
    """Llama 3 paper, table 5: 419 unexpected interruptions in 54 days on 16,384 H100; more than 90 % effective."""
    assert float(interruptions_per_day(16_384, Reliability())) == pytest.approx(419 / 54, rel=1e-3)
    assert 0.90 < float(np.asarray(goodput(16_384, Reliability()))) < 0.92


def test_days_and_gpus_stand_in_for_gpu_hours() -> None:
    assert measured_gpu_hours({**OPT, "days": "57"}) == 992 * 57 * 24
    assert measured_gpu_hours(OPT) is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [({"model": "a run nobody wrote about"}, "software"), ({"tokens_t": ""}, "tokens"), ({"gpu": "x"}, "accelerator")],
)
def test_what_is_not_known_of_a_run_is_said(changes: dict[str, str], says: str) -> None:
    (found,) = KIND.predict([{**LLAMA_405B, **changes}], ModelLibrary(find_model, {}))
    assert not found.supported
    assert says in found.reason


def test_recipes_name_their_source() -> None:
    assert len(recipes()) > 20
    assert all(row["source"] for row in recipes().values())


def test_published_runs_are_within_a_fifth() -> None:
    cases = reported_runs()
    ratios = gpu_hour_ratios(cases, predict(cases))
    assert len(ratios) >= 25
    assert np.median(np.abs(np.array(ratios) - 1)) < 0.20


def test_the_published_table_says_the_same_as_the_fact_file() -> None:
    path = Path(settings.BASE_DIR).parent / "shared" / "data" / "validation" / "longruns.csv"
    if not path.exists():
        pytest.skip("the published table of runs is not beside this checkout")
    table = {case["model"]: case for case in read_cases(path, ("id", *KIND.required))}
    for case in reported_runs():
        assert measured_gpu_hours(table[case["model"]]) == measured_gpu_hours(case)
