"""Bands from held-out errors."""

import numpy as np
import pytest

from planner.engine.confidence import bands_from_residuals, confidence_of, weighted_quantile

LIKE = {"chip": "Hopper 9.0", "engine": "vllm", "kind": "dense", "format": "fp8"}


def test_the_nearest_group_with_enough_cases_is_used():
    rng = np.random.default_rng(0)
    near, far = rng.normal(0, 0.05, 200), rng.normal(0, 0.5, 200)
    cases = [LIKE] * 200 + [LIKE | {"chip": "Ada 8.9"}] * 200
    bands = bands_from_residuals("tpot", cases, np.concatenate([near, far]))
    found = confidence_of(bands, LIKE)
    assert (found.kind, found.cases) == ("calibrated", 200)
    assert found.low == pytest.approx(np.exp(-0.082), abs=0.02)
    assert found.high == pytest.approx(np.exp(0.082), abs=0.02)
    assert found.basis == "200 measured cases: Hopper 9.0, vllm, dense, fp8"


def test_what_was_never_measured_is_extrapolated_from_all():
    bands = bands_from_residuals("tpot", [LIKE] * 20, np.linspace(-0.3, 0.3, 20))
    found = confidence_of(bands, {"chip": "x", "engine": "y", "kind": "z", "format": "w"})
    assert (found.kind, found.cases) == ("extrapolated", 20)
    assert found.low < 1 < found.high


def test_a_sweep_counts_once_however_many_cases_it_has():
    cases = [LIKE] * 104
    residuals = np.concatenate([np.full(100, 1.0), np.linspace(-0.1, 0.1, 4)])
    sweeps = ["one"] * 100 + ["a", "b", "c", "d"]
    apart = bands_from_residuals("tpot", cases, residuals)
    together = bands_from_residuals("tpot", cases, residuals, sweeps)
    assert confidence_of(apart, LIKE).low > 0.95  # a hundred equal cases hide the four others
    assert confidence_of(together, LIKE).low < 0.95


def test_bands_hold_nine_in_ten():
    rng = np.random.default_rng(1)
    bands = bands_from_residuals("tpot", [LIKE] * 500, rng.normal(0, 0.2, 500))
    found = confidence_of(bands, LIKE)
    fresh = np.exp(rng.normal(0, 0.2, 4000))
    assert 0.86 < np.mean((fresh >= found.low) & (fresh <= found.high)) < 0.94


def test_weighted_quantile_of_equal_weights_is_the_order_statistic():
    values = np.arange(1.0, 11.0)
    assert weighted_quantile(values, np.ones(10), 0.3) == 3.0
    assert weighted_quantile(values, np.ones(10), 1.5) == 10.0
    assert weighted_quantile(values, np.ones(10), -0.5) == 1.0
