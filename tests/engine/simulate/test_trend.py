"""A load that grows: what is asked for is the first week's mean, and each week grows on the one before."""

from __future__ import annotations

import numpy as np
import pytest

from planner.engine.simulate.arrivals import Profile
from planner.engine.simulate.traffic_question import TrafficQuestion
from planner.engine.simulate.workload_model import generate

WEEK_S = 7 * 86_400.0
STEP_S = 300.0


@pytest.mark.parametrize("trend", [-0.3, 0.5, 2.0])
def test_the_mean_load_is_the_first_weeks_whatever_grows(trend: float) -> None:
    asked = TrafficQuestion(
        requests_per_second=2.0, trend_per_week=trend, weekend=0.5, daily_peak=2.0, hours=2 * WEEK_S / 3600
    )
    model = asked.model()
    middles = (np.arange(2 * WEEK_S / STEP_S) + 0.5) * STEP_S
    weekly = model.arrivals.profile.rate(middles).reshape(2, -1).mean(axis=1)
    assert weekly == pytest.approx([2.0, 2.0 * (1 + trend)])
    assert asked.expected_requests == pytest.approx(WEEK_S * weekly.sum(), rel=1e-3)
    made = sum(len(batch.arrival_s) for batch in generate(model, duration_s=WEEK_S, seed=1))
    assert made == pytest.approx(2.0 * WEEK_S, rel=0.005)


def test_without_growth_rates_are_as_they_were() -> None:
    week = (1.2, 1.2, 1.2, 1.2, 1.2, 0.5, 0.5)
    rate = Profile(mean_rate=3.0, by_weekday=week).rate(np.array([0.0, 5.5 * 86_400.0]))
    assert rate.tolist() == [3.0 * (1.2 / np.mean(week)), 3.0 * (0.5 / np.mean(week))]
