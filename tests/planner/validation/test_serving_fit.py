"""Fitting serving constants: what was put in is found again; eras carry on; groups stay together."""

import numpy as np
import pytest

from catalog.accelerator_files import find_accelerator
from catalog.model_files import find_model
from catalog.profiles import serving_profiles
from planner.engine.serving_calibration import CONSTANTS, resolve_constants
from planner.services.validation.inference_batch import CaseBatch
from planner.services.validation.inference_cases import InferenceCase, read_case
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.serving_crossval import band_coverage, cross_validate, error_rows, fold_of_case
from planner.services.validation.serving_fit import FitProblem
from planner.services.validation.serving_profile_file import with_fit
from planner.services.validation.serving_solver import fit

LIBRARY = ModelLibrary(find_model)


def case(
    model: str, gpu: str, clients: int, isl: int, osl: int, date: str = "2026-04", **measured: str
) -> InferenceCase:
    row = {
        "date": date,
        "engine": "vLLM",
        "engine_version": "x",
        "model": model,
        "weight_precision": "bf16",
        "kv_precision": "bf16",
        "gpu": gpu,
        "gpus": "1",
        "tp": "1",
        "pp": "1",
        "ep": "1",
        "dp": "1",
        "isl": str(isl),
        "osl": str(osl),
        "concurrency": str(clients),
        "request_rate": "",
        "mode": "server",
        "conditions": "",
        "grade": "A",
        "ttft_stat": "mean",
        "tpot_stat": "mean",
    } | measured
    found = read_case(row, LIBRARY, find_accelerator)
    assert isinstance(found, InferenceCase)
    return found


def synthetic() -> list[InferenceCase]:
    """Cases whose measurements are the profiles' own predictions with TPOT a fifth longer on one chip."""
    plans = [
        (model, gpu, clients, isl, osl)
        for model in ("llama-3.1-8b", "mistral-7b", "qwen3-14b")
        for gpu in ("H100-SXM", "A100-SXM4-80GB")
        for clients, isl, osl in ((1, 128, 256), (8, 1024, 256), (32, 512, 512), (64, 2048, 128))
    ]
    blank = [case(*plan) for plan in plans]
    predicted = CaseBatch(blank, serving_profiles().engines).predict(serving_profiles())
    cases = []
    for index, plan in enumerate(plans):
        slower = 1.2 if plan[1].startswith("A100") else 1.0
        tpot_ms = predicted.tpot_s["mean"][index] * 1e3 * slower
        cases.append(case(*plan, tpot_ms=f"{tpot_ms:.6g}"))
    return cases


@pytest.fixture(scope="module")
def problem() -> FitProblem:
    return FitProblem(synthetic(), serving_profiles(), kernels=())


def test_a_fit_reproduces_what_it_was_given(problem):
    fitted = fit(problem, np.ones(len(problem.cases), dtype=np.bool_))
    error = np.abs(np.expm1(fitted.predicted["tpot"] - problem.measured["tpot"]))
    assert np.median(error) < 0.03


def test_written_constants_predict_as_the_fit_did(problem):
    fitted = fit(problem, np.ones(len(problem.cases), dtype=np.bool_), rounds=3)
    raw: dict[str, object] = {"engines": {}, "collectives": {}}
    content = with_fit(raw, problem.effects, fitted, {}, "a test")
    profiles = serving_profiles()
    levels = {
        tuple(level["attributes"]): {
            tuple(row["key"]): np.array([row["log"].get(name, 0.0) for name in CONSTANTS]) for row in level["factors"]
        }
        for level in content["levels"]
    }
    stored = type(profiles)(
        base=content["base"], factors=levels, collectives=profiles.collectives, engines=profiles.engines
    )
    constants = resolve_constants(stored, problem.batch.keys[0])
    rows, _ = problem.batch.blocks[0]
    for column, name in enumerate(CONSTANTS):
        fitted_values = np.exp(fitted.logs[rows, column])
        assert constants[name] == pytest.approx(np.minimum(fitted_values, np.maximum(constants[name], 1.0)), rel=0.05)


def test_a_new_era_inherits_from_the_last_one_measured():
    cases = synthetic()
    later = case("llama-3.1-8b", "H100-SXM", 8, 1024, 256, date="2027-09")
    problem = FitProblem([*cases, later], serving_profiles(), kernels=())
    train = np.array([one is not later for one in problem.cases])
    fitted = fit(problem, train, rounds=3)
    twin = next(
        index
        for index, one in enumerate(problem.cases)
        if one is not later and one.arch is later.arch and one.accelerator is later.accelerator
    )
    at = next(index for index, one in enumerate(problem.cases) if one is later)
    assert fitted.logs[at] == pytest.approx(fitted.logs[twin], abs=1e-9)


def test_cases_of_one_group_share_a_fold(problem):
    fold = fold_of_case(problem)
    by_group: dict[tuple[str, ...], int] = {}
    for group, index in zip(problem.groups, fold.tolist(), strict=True):
        assert by_group.setdefault(group, index) == index
    assert set(fold.tolist()) <= {0, 1, 2, 3, 4}


def test_cross_validation_predicts_every_case_from_the_others(problem):
    fold = fold_of_case(problem, folds=3)
    predicted = cross_validate(problem, fold)
    everything = np.ones(len(problem.cases), dtype=np.bool_)
    assert np.isfinite(predicted["tpot"]).all()
    (row,) = [found for found in error_rows(problem, predicted, [("all", everything)]) if found.quantity == "tpot"]
    assert row.rows == len(problem.cases)
    assert row.median < 0.3
    assert 0.0 <= band_coverage(problem, predicted, fold, everything)["tpot"] <= 1.0
