"""Generated traffic has the rate, burstiness, days and lengths asked for; a fit finds them again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.engine.simulate.arrivals import Arrivals, Bursts, Profile, daily_curve
from planner.engine.simulate.beginnings import LISTED, Beginnings, fit_hashed_prefixes, fit_prefixes, nothing_shared
from planner.engine.simulate.fitting import fit
from planner.engine.simulate.layout import Traffic
from planner.engine.simulate.lengths import Lengths, Lognormal, Seen, SharedPrefixes
from planner.engine.simulate.traffic import batch
from planner.engine.simulate.workload_model import TrafficModel, generate

DAY = 86_400.0
LENGTHS = Lengths(
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


def test_prefixes_of_some_requests_have_lengths_of_their_own() -> None:
    shared = SharedPrefixes(count=50, tokens=1, share=0.4, seen=(100, 300, 800), with_input=-0.8, with_output=0.5)
    model = TrafficModel(arrivals=flat(50.0), lengths=LENGTHS, prefixes=shared)
    (made,) = generate(model, duration_s=2000.0, seed=1)
    begins = made.key >= 0
    assert begins.mean() == pytest.approx(0.4, abs=0.01)
    assert set(made.shared_tokens[begins].tolist()) == {100, 300, 800}
    assert not made.shared_tokens[~begins].any()
    for text in range(50):
        assert len(set(made.shared_tokens[made.key == text].tolist())) == 1
    own = made.input_tokens - made.shared_tokens
    assert np.median(own[begins]) < 0.5 * np.median(own[~begins])
    assert np.median(made.output_tokens[begins]) > 1.5 * np.median(made.output_tokens[~begins])
    assert shared.mean == pytest.approx(made.shared_tokens.mean(), rel=0.03)


def test_seen_lengths_are_drawn_alike_and_in_pairs() -> None:
    pairs = Lengths(input_tokens=Seen(tokens=(10, 20, 30)), output_tokens=Seen(tokens=(1, 2, 3)), correlation=1.0)
    inputs, outputs = pairs.draw(9000, np.random.default_rng(0))
    assert (inputs == 10 * outputs).all()
    assert np.bincount(outputs)[1:].tolist() == pytest.approx([3000] * 3, rel=0.05)
    apart = Lengths(input_tokens=Seen(tokens=(10, 20, 30)), output_tokens=Seen(tokens=(1, 2, 3)))
    inputs, outputs = apart.draw(9000, np.random.default_rng(0))
    assert abs(np.corrcoef(inputs, outputs)[0, 1]) < 0.05


def test_rates_come_step_by_step_and_over_again() -> None:
    profile = Profile(mean_rate=4.0, steps=(0.0, 3.0, 1.0), step_s=100.0)
    made = traffic(Arrivals(profile=profile), 30_000.0)
    counts = np.bincount((made.arrival_s // 100).astype(int) % 3, minlength=3)
    assert counts[0] == 0
    assert counts[1:].tolist() == pytest.approx([9 * 10_000, 3 * 10_000], rel=0.02)


def independent(made: Traffic) -> tuple[Any, Beginnings, Any]:
    return made.arrival_s, nothing_shared(made.input_tokens), made.output_tokens


def test_fit_keeps_lengths_that_are_no_lognormal_and_their_correlation() -> None:
    random = np.random.default_rng(3)
    inputs = np.where(random.random(5000) < 0.5, 100, 9000) + random.integers(0, 50, 5000)
    outputs = np.maximum(1, 400 - inputs // 30 + random.integers(0, 60, 5000))
    model = fit(np.arange(5000.0), nothing_shared(inputs), outputs)
    assert isinstance(model.lengths.input_tokens, Seen)
    assert len(model.lengths.input_tokens.tokens) == LISTED
    made = traffic(flat(20.0), 1000.0)
    drawn = model.lengths.draw(20_000, random)
    for seen, again in zip((inputs, outputs), drawn, strict=True):
        assert again.mean() == pytest.approx(seen.mean(), rel=0.02)
        assert np.percentile(again, [10, 90]).tolist() == pytest.approx(
            np.percentile(seen, [10, 90]).tolist(), rel=0.05
        )
    assert np.corrcoef(*drawn)[0, 1] == pytest.approx(np.corrcoef(inputs, outputs)[0, 1], abs=0.1)
    assert isinstance(fit(*independent(made)).lengths.input_tokens, Lognormal)


def test_fit_keeps_the_rate_of_spells_step_by_step() -> None:
    """Quarter-minute spells of 40/s, a minute of silence between: gaps alone would make any number of requests."""
    random = np.random.default_rng(5)
    starts = np.arange(40) * 75.0
    at = np.sort(np.concatenate([start + random.random(600) * 15 for start in starts]))
    lengths = nothing_shared(np.full(len(at), 100))
    found = fit(at, lengths, np.full(len(at), 10)).arrivals
    assert found.gap_cv < 1.5
    made = [traffic(found, float(at[-1]), seed=seed).arrival_s for seed in range(5)]
    assert [len(each) for each in made] == pytest.approx([len(at)] * 5, rel=0.05)
    for each in made:
        counts = np.bincount((each // 15).astype(int), minlength=200)
        assert counts.max() == pytest.approx(600, rel=0.2)
        assert (counts < 60).mean() == pytest.approx(0.8, abs=0.03)


def test_hashed_blocks_are_found_again_as_often() -> None:
    """30 documents of 4 to 40 blocks, asked about 10 times each, and as many requests that share nothing."""
    random = np.random.default_rng(2)
    blocks = random.integers(4, 41, 30)
    first = np.concatenate([[0], np.cumsum(blocks)])
    hashes, ids, inputs, fresh = [0], [], [], int(first[-1])
    for document in random.permutation(np.concatenate([np.repeat(np.arange(30), 10), np.full(300, -1)])):
        tail = int(random.integers(1, 4))
        held = [] if document < 0 else list(range(first[document], first[document + 1]))
        ids += held + list(range(fresh, fresh + tail))
        fresh += tail
        hashes.append(len(ids))
        inputs.append(512 * (len(held) + tail) - 100)
    found = fit_hashed_prefixes(np.array(inputs), np.array(hashes), np.array(ids), 512)
    assert found.prefixes is not None
    assert found.prefixes.count == pytest.approx(30, abs=2)
    assert found.prefixes.share == pytest.approx(0.5, abs=0.01)
    assert found.prefixes.mean == pytest.approx(0.5 * 512 * blocks.mean(), rel=0.03)
    assert found.own_tokens.mean() == pytest.approx(512 * 2 - 100, rel=0.1)
    assert found.prefixes.zipf < 0.2


def test_prompts_that_share_nothing_have_no_prefixes() -> None:
    inputs, hashes = np.full(50, 900), np.arange(51) * 2
    assert fit_hashed_prefixes(inputs, hashes, np.arange(100), 512).prefixes is None
    assert fit_prefixes(inputs, np.full(50, -1), None).prefixes is None
    assert fit_prefixes(inputs, np.arange(50), None).prefixes is None


@pytest.mark.parametrize("cv", [1.0, 2.5])
def test_fit_finds_rate_burstiness_and_lengths(cv: float) -> None:
    made = traffic(flat(0.5, cv), 40_000.0)
    model = fit(*independent(made))
    assert model.arrivals.profile.mean_rate == pytest.approx(0.5, rel=0.05)
    assert isinstance(model.lengths.input_tokens, Lognormal)
    assert model.lengths.input_tokens.median == pytest.approx(690, rel=0.05)
    if model.arrivals.bursts is None:
        assert model.arrivals.gap_cv == pytest.approx(cv, rel=0.05)


def test_fit_finds_bursts() -> None:
    bursts = Bursts(busy_factor=3.0, busy_share=0.25, busy_s=300.0)
    made = traffic(Arrivals(profile=Profile(mean_rate=10.0), bursts=bursts), 100_000.0)
    found = fit(*independent(made)).arrivals.bursts
    assert found is not None
    assert found.busy_factor == pytest.approx(3.0, rel=0.15)
    assert found.busy_share == pytest.approx(0.25, rel=0.25)
    assert found.busy_s == pytest.approx(300.0, rel=0.35)


def test_fit_finds_days_weeks_and_growth_without_calling_them_bursts() -> None:
    profile = Profile(
        mean_rate=0.5, by_hour=daily_curve(2.0, 14), by_weekday=(1.2,) * 5 + (0.5, 0.5), trend_per_week=0.08
    )
    made = traffic(Arrivals(profile=profile), 21 * DAY)
    found = fit(*independent(made)).arrivals
    assert found.profile.by_hour[14] == pytest.approx(2.0, rel=0.05)
    assert found.profile.by_weekday[6] == pytest.approx(0.5, rel=0.1)
    assert found.profile.trend_per_week == pytest.approx(0.08, abs=0.02)
    assert found.gap_cv == pytest.approx(1.0, abs=0.1)


def test_fit_needs_something_to_fit() -> None:
    with pytest.raises(ValueError, match="at least 10 requests"):
        fit(np.zeros(20), nothing_shared(np.ones(20, np.int64)), np.ones(20, np.int64))
