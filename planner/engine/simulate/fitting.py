"""A model of traffic fitted to a trace: rate, days, bursts, lengths, and what prompts begin with in common."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.simulate.arrivals import Arrivals, Bursts, Profile
from planner.engine.simulate.beginnings import LISTED, Beginnings
from planner.engine.simulate.lengths import Lengths, Lognormal, Seen, SharedPrefixes, shortened
from planner.engine.simulate.workload_model import TrafficModel
from planner.engine.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]

ALIKE: Final = 0.02
"""Farthest that shares of a lognormal may be from those seen, beyond what chance makes; and twice that its mean."""
BURST_WINDOW_S = 10.0
BURST_DISPERSION = 1.5
"""Variance over mean of requests a window, over what their gaps make it: above, the rate itself comes in bursts."""
BURSTY: Final = 3.0
"""A coefficient of variation of gaps above which they are no longer taken for independent: the rate itself changes."""
PROFILE_DAYS = 2.0
"""A daily curve needs as many days of trace; a weekly one seven times as many."""
STEPS: Final = 720
"""Pieces of a bursty trace shorter than that, at most, each with a rate of its own; five seconds and more each."""
SHORTEST_STEP_S: Final = 5.0
CHANCE: Final = 3.0
"""Standard deviations within which a correlation may be chance."""
SAMPLE, HALVINGS = 20_000, 16
"""Pairs drawn to see how a correlation of deviates shows in lengths, and how often it is looked for."""
SHARES: Final = np.arange(1, 2000) / 2000.0
DEVIATES: Final = np.array([NormalDist().inv_cdf(share) for share in SHARES])


def fit(arrival_s: Floats, begin: Beginnings, output_tokens: Ints) -> TrafficModel:
    """A model with a trace's rate, daily and weekly shape, burstiness and lengths, its prompts as they ``begin``.

    The daily curve needs two days of trace, the weekly one two weeks. Gaps are taken relative to the rate
    of their hour, so that the day isn't counted as burstiness. A shorter trace whose gaps are no more alike than those
    of spells keeps its rate step by step. Lengths are lognormal where those seen are, else as they were seen.
    Raises ``ValueError`` on fewer than 10 requests or a trace without duration.
    """
    span_s = float(arrival_s[-1] - arrival_s[0]) if len(arrival_s) else 0.0
    if len(arrival_s) < 10 or span_s <= 0:
        raise ValueError("a model needs at least 10 requests at different times")
    since_s = arrival_s - arrival_s[0]
    profile = _fit_profile(since_s, span_s)
    prefixes = _with_lengths(begin, output_tokens)
    return TrafficModel(
        arrivals=_fit_arrivals(since_s, span_s, profile),
        lengths=_joint(begin, output_tokens, prefixes),
        prefixes=prefixes,
    )


def _fit_profile(since_s: Floats, span_s: float) -> Profile:
    days = span_s / SECONDS_PER_DAY
    mean = (len(since_s) - 1) / span_s
    if days < PROFILE_DAYS:
        return Profile(mean_rate=mean)
    whole_s = int(days) * SECONDS_PER_DAY
    inside = since_s[since_s < whole_s]
    hours = np.bincount((inside // SECONDS_PER_HOUR).astype(np.int64) % 24, minlength=24)
    by_hour = tuple((hours / hours.mean()).tolist())
    if days < 7 * PROFILE_DAYS:
        return Profile(mean_rate=mean, by_hour=by_hour)
    weeks = int(days // 7)
    counts = np.bincount((inside // SECONDS_PER_DAY).astype(np.int64), minlength=7 * weeks)[: 7 * weeks]
    weekly = counts.reshape(weeks, 7)
    by_weekday = tuple((weekly.mean(axis=0) / weekly.mean()).tolist())
    growth = (weekly[-1].sum() / max(weekly[0].sum(), 1)) ** (1.0 / max(weeks - 1, 1)) - 1.0
    return Profile(
        mean_rate=float(weekly[0].sum()) / (7 * SECONDS_PER_DAY),
        by_hour=by_hour,
        by_weekday=by_weekday,
        trend_per_week=float(growth) if weeks > 1 else 0.0,
    )


def _fit_arrivals(since_s: Floats, span_s: float, profile: Profile) -> Arrivals:
    cv = _variation(np.diff(since_s) * profile.rate(since_s[:-1]))
    windows = int(span_s // BURST_WINDOW_S)
    if cv > BURSTY and span_s < PROFILE_DAYS * SECONDS_PER_DAY:
        return _fit_steps(since_s, span_s, profile.mean_rate)
    if windows >= 30:
        counts = np.bincount((since_s // BURST_WINDOW_S).astype(np.int64), minlength=windows)[:windows]
        rates = profile.rate((np.arange(windows) + 0.5) * BURST_WINDOW_S) * BURST_WINDOW_S
        bursts = _fit_bursts(counts, rates, 1.0 if cv > BURSTY else max(1.0, cv**2))
        if bursts is not None:
            return Arrivals(profile=profile, gap_cv=1.0, bursts=bursts)
    return Arrivals(profile=profile, gap_cv=1.0 if abs(cv - 1.0) < 0.05 else cv)


def _variation(gaps: Floats) -> float:
    return float(np.std(gaps) / np.mean(gaps))


def _fit_steps(since_s: Floats, span_s: float, mean_rate: float) -> Arrivals:
    """The rate as it was, step by step, and how uneven gaps still are within a step."""
    pieces = max(1, min(STEPS, int(span_s // SHORTEST_STEP_S)))
    step_s = span_s / pieces
    step = np.minimum((since_s / step_s).astype(np.int64), pieces - 1)
    counts = np.bincount(step, minlength=pieces)
    inside = step[1:] == step[:-1]
    gaps = (np.diff(since_s) * counts[step[1:]])[inside]
    gap_cv = max(1.0, _variation(gaps)) if gaps.any() else 1.0
    factors = np.round(counts / counts.mean(), 4)
    profile = Profile(mean_rate=mean_rate, steps=tuple(factors.tolist()), step_s=step_s)
    return Arrivals(profile=profile, gap_cv=gap_cv)


def _fit_bursts(counts: Ints, expected: Floats, by_gaps: float) -> Bursts | None:
    """Two states where windows vary more than uneven gaps alone make them: above the mean is busy.

    Independent gaps of a coefficient of variation c give counts whose variance tends to ``by_gaps`` = c^2 x their mean.
    """
    if counts.var() <= BURST_DISPERSION * by_gaps * max(float(counts.mean()), 1e-12) or counts.mean() < 1:
        return None
    relative = counts / np.maximum(expected, 1e-12)
    busy = relative > 1.0
    share = float(busy.mean())
    if not 0.0 < share < 1.0:
        return None
    starts = int(np.count_nonzero(busy[1:] & ~busy[:-1])) + int(busy[0])
    return Bursts(
        busy_factor=min(float(relative[busy].mean() / relative.mean()), 1.0 / share),
        busy_share=share,
        busy_s=float(np.count_nonzero(busy)) * BURST_WINDOW_S / max(starts, 1),
    )


def _fit_side(tokens: Ints) -> Lognormal | Seen:
    """A lognormal where that is what was seen, else a list."""
    drawn = _fit_lognormal(tokens)
    ranked = np.sort(tokens)
    sizes = np.unique(ranked)
    if drawn.sigma == 0:
        return drawn
    below = np.searchsorted(ranked, sizes, side="right") / len(ranked)
    away = (np.log(sizes + 0.5) - math.log(drawn.median)) / drawn.sigma
    expected = np.array([0.5 * math.erfc(-each / math.sqrt(2.0)) for each in away])
    expected[-1] = 1.0
    chance = 1.36 / math.sqrt(len(ranked))
    mean = float(ranked.mean())
    apart = abs(drawn.mean / mean - 1.0) > 2 * ALIKE + 2 * float(ranked.std()) / mean / math.sqrt(len(ranked))
    if apart or float(np.abs(below - expected).max()) > ALIKE + chance:
        return Seen(tokens=shortened(ranked, LISTED))
    return drawn


def _fit_lognormal(tokens: Ints) -> Lognormal:
    logs = np.log(np.maximum(tokens, 1))
    return Lognormal(
        median=float(np.exp(logs.mean())), sigma=float(logs.std()), low=int(tokens.min()), high=int(tokens.max())
    )


def _joint(begin: Beginnings, output_tokens: Ints, prefixes: SharedPrefixes | None) -> Lengths:
    """Both sides, and the correlation of deviates at which whole prompts drawn correlate with answers as those seen do.

    NORTA (Cario and Nelson 1997): the deviates' correlation is searched on a fixed sample. None where chance may
    make as much as was seen.
    """
    apart = Lengths(input_tokens=_fit_side(begin.own_tokens), output_tokens=_fit_side(output_tokens))
    inputs = begin.own_tokens + begin.shared_tokens
    if np.ptp(inputs) == 0 or np.ptp(output_tokens) == 0:
        return apart
    seen = float(np.corrcoef(inputs, output_tokens)[0, 1])
    if prefixes is None and abs(seen) < CHANCE / math.sqrt(len(inputs)):
        return apart
    low, high = -1.0, 1.0
    for _ in range(HALVINGS):
        joint = replace(apart, correlation=(low + high) / 2)
        low, high = (joint.correlation, high) if _drawn(joint, prefixes) < seen else (low, joint.correlation)
    return joint


def _drawn(lengths: Lengths, prefixes: SharedPrefixes | None) -> float:
    """Correlation of prompts and answers in a sample."""
    random = np.random.default_rng(0)
    normals = lengths.normals(SAMPLE, random)
    inputs, outputs = lengths.input_tokens.at(normals[0]), lengths.output_tokens.at(normals[1])
    if prefixes is not None:
        inputs = inputs + prefixes.draw(SAMPLE, random, lengths, normals)[1]
    return float(np.corrcoef(inputs, outputs)[0, 1])


def _with_lengths(begin: Beginnings, output_tokens: Ints) -> SharedPrefixes | None:
    """The shared beginnings, and whether prompts that have one are long or short otherwise, and their answers."""
    if begin.prefixes is None:
        return None
    begins = begin.shared_tokens > 0
    return replace(
        begin.prefixes,
        with_input=_biserial(begins, begin.own_tokens),
        with_output=_biserial(begins, output_tokens),
    )


def _biserial(flags: NDArray[np.bool_], tokens: Ints) -> float:
    """Correlation of the deviate behind flags with that behind lengths (Pearson's biserial r)."""
    share = float(flags.mean())
    deviates = np.interp(_ranks(tokens) / (len(tokens) + 1.0), SHARES, DEVIATES)
    if not 0.0 < share < 1.0 or np.ptp(deviates) == 0:
        return 0.0
    normal = NormalDist()
    density = normal.pdf(normal.inv_cdf(share))
    found = float(np.corrcoef(flags, deviates)[0, 1]) * math.sqrt(share * (1.0 - share)) / density
    return 0.0 if abs(found) < CHANCE / math.sqrt(len(tokens)) else max(-0.99, min(0.99, found))


def _ranks(tokens: Ints) -> Floats:
    """Places in ascending order; equal lengths share theirs."""
    _sizes, inverse, counts = np.unique(tokens, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = (last - (counts - 1) / 2.0)[inverse]
    return shared
