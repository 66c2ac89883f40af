"""Generated traffic has the rate, burstiness, days and lengths asked for; a fit finds them again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.arrivals import Arrivals, Bursts, Profile, daily_curve
from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.lengths import EmpiricalLengths, Lognormal, LognormalLengths, SharedPrefixes
from planner.engine.simulate.traffic import batch
from planner.engine.simulate.workload_model import TrafficModel, fit, generate

DAY = 86_400.0
LENGTHS = LognormalLengths(
    input_tokens=Lognormal(median=700, sigma=0.9, low=16, high=4000),
    output_tokens=Lognormal(median=130, sigma=0.9, low=4, high=1000),
)


def traffic(arrivals: Arrivals, duration_s: float, *, seed: int = 1, **options: Any) -> Traffic:
    """All batches as one."""
    model = TrafficModel(arrivals=arrivals, lengths=LENGTHS)
    batches = list(generate(model, duration_s=duration_s, seed=seed, **options))
    columns = {
        name: [getattr(each, name) for each in batches] for name in ("arrival_s", "input_tokens", "output_tokens")
    }
    return batch(*(np.concatenate(pieces) for pieces in columns.values()))


def flat(rate: float, cv: float = 1.0) -> Arrivals:
    return Arrivals(profile=Profile(mean_rate=rate), gap_cv=cv)


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0, 3.0])
def test_rate_and_burstiness(cv: float) -> None:
    made = traffic(flat(20.0, cv), 20_000.0)
    gaps = np.diff(made.arrival_s)
    assert len(made.arrival_s) / 20_000 == pytest.approx(20.0, rel=0.02)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.03, abs=1e-6)


def test_arrivals_are_sorted_and_inside_the_duration() -> None:
    made = traffic(flat(50.0, 4.0), 3000.0, size=1000)
    assert (np.diff(made.arrival_s) >= 0).all()
    assert made.arrival_s[0] >= 0
    assert made.arrival_s[-1] <= 3000.0


def test_lengths_are_lognormal_and_cut() -> None:
    made = traffic(flat(50.0), 4000.0)
    assert np.median(made.input_tokens) == pytest.approx(700, rel=0.02)
    assert np.log(made.output_tokens).std() == pytest.approx(0.9, rel=0.05)
    assert (made.input_tokens.min(), made.input_tokens.max()) == (16, 4000)


def test_batch_size_changes_nothing_but_the_cuts() -> None:
    whole = list(generate(TrafficModel(arrivals=flat(20.0), lengths=LENGTHS), duration_s=500.0, seed=3, size=100))
    numbers = [batch.first_request for batch in whole]
    assert numbers == list(range(0, 100 * len(whole), 100))


def test_same_seed_same_traffic_other_seed_other() -> None:
    first, again, other = (traffic(flat(20.0), 300.0, seed=seed) for seed in (5, 5, 6))
    assert (first.arrival_s == again.arrival_s).all()
    assert (first.input_tokens == again.input_tokens).all()
    assert len(first.arrival_s) != len(other.arrival_s) or (first.arrival_s != other.arrival_s).any()


def test_at_most_so_many() -> None:
    made = traffic(flat(20.0), 1e6, most_requests=1234)
    assert len(made.arrival_s) == 1234


@pytest.mark.parametrize("peak", [1.0, 1.5, 2.0, 3.0, 5.0])
def test_daily_curve_has_its_peak_and_mean(peak: float) -> None:
    curve = daily_curve(peak, 9)
    assert max(curve) == pytest.approx(peak, rel=1e-6)
    assert sum(curve) / 24 == pytest.approx(1.0)
    assert min(curve) >= 0.1 * max(curve) - 1e-9
    assert peak == 1.0 or curve.index(max(curve)) == 9


def test_days_weekends_and_growth_show() -> None:
    week = (1.2, 1.2, 1.2, 1.2, 1.2, 0.5, 0.5)
    profile = Profile(mean_rate=3.0, by_hour=daily_curve(2.0, 14), by_weekday=week, trend_per_week=0.1)
    made = traffic(Arrivals(profile=profile), 14 * DAY)
    day = (made.arrival_s // DAY).astype(int)
    per_day = np.bincount(day, minlength=14)
    assert per_day[5] / per_day[4] == pytest.approx(0.5 / 1.2, rel=0.05)
    assert per_day[7:].sum() / per_day[:7].sum() == pytest.approx(1.1, rel=0.03)
    hour = ((made.arrival_s // 3600) % 24).astype(int)
    per_hour = np.bincount(hour, minlength=24)
    assert per_hour[14] / per_hour.mean() == pytest.approx(2.0, rel=0.05)
    assert per_hour[2] / per_hour.mean() < 0.35


def test_bursts_keep_the_mean_and_raise_the_dispersion() -> None:
    bursts = Bursts(busy_factor=3.0, busy_share=0.2, busy_s=60.0)
    assert bursts.quiet_factor == pytest.approx(0.5)
    assert bursts.quiet_s == pytest.approx(240.0)
    made = traffic(Arrivals(profile=Profile(mean_rate=10.0), bursts=bursts), 200_000.0)
    counts = np.bincount((made.arrival_s // 10).astype(int))
    assert counts.mean() == pytest.approx(100, rel=0.05)
    # Variance of the rate (3 - 1)^2 0.2 + (0.5 - 1)^2 0.8 = 1, on top of chance.
    assert counts.var() / counts.mean() == pytest.approx(1 + 100 * 1.0 * 0.9, rel=0.2)


def test_shared_prefixes() -> None:
    model = TrafficModel(arrivals=flat(50.0), lengths=LENGTHS, prefixes=SharedPrefixes(count=20, tokens=1000, zipf=1.0))
    (made,) = generate(model, duration_s=400.0, seed=1)
    popularity = np.bincount(made.key, minlength=20) / len(made.key)
    harmonic = sum(1 / rank for rank in range(1, 21))
    assert popularity[0] == pytest.approx(1 / harmonic, rel=0.05)
    assert made.input_tokens.min() >= 1016
    assert set(made.shared_tokens.tolist()) == {1000}


def test_empirical_lengths_keep_their_pairs() -> None:
    lengths = EmpiricalLengths(input_tokens=np.array([10, 20, 30]), output_tokens=np.array([1, 2, 3]))
    inputs, outputs = lengths.draw(1000, np.random.default_rng(0))
    assert (inputs == 10 * outputs).all()
    assert set(inputs.tolist()) == {10, 20, 30}


@pytest.mark.parametrize("cv", [1.0, 2.5])
def test_fit_finds_rate_burstiness_and_lengths(cv: float) -> None:
    made = traffic(flat(0.5, cv), 40_000.0)
    model = fit(made.arrival_s, made.input_tokens, made.output_tokens, empirical=False)
    assert model.arrivals.profile.mean_rate == pytest.approx(0.5, rel=0.05)
    assert isinstance(model.lengths, LognormalLengths)
    assert model.lengths.input_tokens.median == pytest.approx(690, rel=0.05)
    if model.arrivals.bursts is None:
        assert model.arrivals.gap_cv == pytest.approx(cv, rel=0.05)


def test_fit_finds_bursts() -> None:
    bursts = Bursts(busy_factor=3.0, busy_share=0.25, busy_s=300.0)
    made = traffic(Arrivals(profile=Profile(mean_rate=10.0), bursts=bursts), 100_000.0)
    found = fit(made.arrival_s, made.input_tokens, made.output_tokens).arrivals.bursts
    assert found is not None
    assert found.busy_factor == pytest.approx(3.0, rel=0.15)
    assert found.busy_share == pytest.approx(0.25, rel=0.25)
    assert found.busy_s == pytest.approx(300.0, rel=0.35)


def test_fit_finds_days_weeks_and_growth_without_calling_them_bursts() -> None:
    profile = Profile(
        mean_rate=0.5, by_hour=daily_curve(2.0, 14), by_weekday=(1.2,) * 5 + (0.5, 0.5), trend_per_week=0.08
    )
    made = traffic(Arrivals(profile=profile), 21 * DAY)
    found = fit(made.arrival_s, made.input_tokens, made.output_tokens).arrivals
    assert found.profile.by_hour[14] == pytest.approx(2.0, rel=0.05)
    assert found.profile.by_weekday[6] == pytest.approx(0.5, rel=0.1)
    assert found.profile.trend_per_week == pytest.approx(0.08, abs=0.02)
    assert found.gap_cv == pytest.approx(1.0, abs=0.1)


def test_fit_needs_something_to_fit() -> None:
    with pytest.raises(ValueError, match="at least 10 requests"):
        fit(np.zeros(20), np.ones(20, np.int64), np.ones(20, np.int64))
