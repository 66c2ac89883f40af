"""Means and quantiles of a run are those of its requests."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.simulate.distributions import Distribution
from planner.engine.simulate.layout import FINE, Array, Traffic
from planner.engine.simulate.traffic import batch
from tests.engine.simulate.fleets import lognormal_traffic, one_pool, replica, rows_of

QUANTILES = (0.01, 0.5, 0.9, 0.95, 0.99, 0.999)


def assert_are_the_samples(found: Distribution, values: Array) -> None:
    assert found.count == len(values)
    assert found.mean_s == pytest.approx(values.mean(), rel=1e-5)
    for share in QUANTILES:
        sample = np.quantile(values, share, method="inverted_cdf")
        assert found.quantile_s(share) == pytest.approx(sample, rel=1 / FINE)


def fixed_lengths(requests: int, rate: float) -> Traffic:
    arrival_s = np.cumsum(np.random.default_rng(5).exponential(1 / rate, requests))
    return batch(arrival_s, np.full(requests, 3000), np.full(requests, 50))


@pytest.mark.parametrize("rate", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("make", [lognormal_traffic, fixed_lengths])
def test_histograms_keep_every_quantile_to_a_thousandth(make: object, rate: float) -> None:
    traffic = make(3000, rate)  # type: ignore[operator]
    rows, outcome = rows_of(one_pool(replica(), 2), traffic)
    assert_are_the_samples(outcome.ttft, rows["first"] - rows["arrival"])
    assert_are_the_samples(outcome.e2e, rows["last"] - rows["arrival"])
    several = traffic.output_tokens > 1
    tpot = (rows["last"] - rows["first"])[several] / (traffic.output_tokens[several] - 1)
    assert_are_the_samples(outcome.tpot, tpot)


def test_a_mean_above_p95_is_true_of_the_samples() -> None:
    """Hardly any load: more than 95 in 100 requests meet nobody and wait equally long; the mean knows the rest too."""
    rows, outcome = rows_of(one_pool(replica()), fixed_lengths(5000, 0.05))
    ttft = rows["first"] - rows["arrival"]
    lone = ttft.min()
    assert 0.95 < np.mean(ttft < 1.0001 * lone) < 1.0
    assert ttft.mean() > np.quantile(ttft, 0.95)
    assert outcome.ttft.mean_s > outcome.ttft.quantile_s(0.95)
    assert outcome.ttft.mean_s > 1.001 * lone
