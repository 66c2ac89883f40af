"""When requests come: stationary streams of a given burstiness, stretched by a rate that changes over time.

Every process is a stream of mean rate 1 (exponential or Gamma gaps) read through the inverse of the
cumulated rate, so that bursts, days and trends combine freely (time rescaling; Cinlar 1975).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

Floats = NDArray[np.floating[Any]]

FLAT_DAY: Final = (1.0,) * 24
FLAT_WEEK: Final = (1.0,) * 7
NIGHT: Final = 0.1
"""The quietest hour of ``daily_curve`` over its busiest, at least: public week-long traces show 0.09 to 0.5."""
STEP_S: Final = 300.0
"""Resolution of a changing rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The rate over time: hour of the day x day of the week x trend; linear between hours."""

    mean_rate: float
    """Requests a second over the first whole week."""
    by_hour: tuple[float, ...] = FLAT_DAY
    """24 factors of the daily mean; the run starts at hour 0 of day 0."""
    by_weekday: tuple[float, ...] = FLAT_WEEK
    trend_per_week: float = 0.0
    """Growth, e.g. 0.05 for 5 % a week, compounding."""
    steps: tuple[float, ...] = ()
    """Factors of the rate, one after another and over again; their mean counts as 1."""
    step_s: float = 60.0
    """How long each holds."""

    @property
    def is_flat(self) -> bool:
        """Whether the rate never changes."""
        return (
            self.by_hour == FLAT_DAY and self.by_weekday == FLAT_WEEK and self.trend_per_week == 0.0 and not self.steps
        )

    def rate(self, time_s: Floats) -> Floats:
        """Requests a second at each time."""
        hour = time_s / SECONDS_PER_HOUR
        hours = np.asarray(self.by_hour) / np.mean(self.by_hour)
        days = np.asarray(self.by_weekday) / _week_mean(hours, self.by_weekday, self.trend_per_week)
        within = np.interp(hour % 24, np.arange(25), np.append(hours, hours[0]))
        day = days[(time_s // SECONDS_PER_DAY).astype(np.int64) % 7]
        weeks = time_s / (7 * SECONDS_PER_DAY)
        growth: Floats = self.mean_rate * within * day * (1.0 + self.trend_per_week) ** weeks
        if not self.steps:
            return growth
        factors = np.asarray(self.steps) / np.mean(self.steps)
        growth *= factors[(time_s // self.step_s).astype(np.int64) % len(factors)]
        return growth

    def knots(self, duration_s: float) -> Floats:
        """Times between which the rate counts as even."""
        pieces = 1 if self.is_flat else max(1, math.ceil(duration_s / STEP_S))
        even = np.linspace(0.0, duration_s, pieces + 1)
        if not self.steps:
            return even
        return np.unique(np.concatenate([even, np.arange(math.ceil(duration_s / self.step_s)) * self.step_s]))


def _week_mean(hours: Floats, by_weekday: tuple[float, ...], trend_per_week: float) -> float:
    """Mean over the first week of days, hours (24 factors of mean 1) and growth."""
    if trend_per_week == 0.0:
        return float(np.mean(by_weekday))
    time_s = (np.arange(7 * SECONDS_PER_DAY / STEP_S) + 0.5) * STEP_S
    within = np.interp(time_s / SECONDS_PER_HOUR % 24, np.arange(25), np.append(hours, hours[0]))
    day = np.asarray(by_weekday)[(time_s // SECONDS_PER_DAY).astype(np.int64)]
    return float(np.mean(within * day * (1.0 + trend_per_week) ** (time_s / (7 * SECONDS_PER_DAY))))


def daily_curve(peak_to_mean: float, peak_hour: float = 14.0) -> tuple[float, ...]:
    """24 factors of a day with one peak, ``peak_to_mean`` x the mean (1 to 5), its nights a tenth of the peak or more.

    A raised cosine to the power that gives the asked peak.

    >>> curve = daily_curve(2.0)
    >>> round(max(curve), 6), round(sum(curve) / 24, 6), curve.index(max(curve))
    (2.0, 1.0, 14)
    """
    if not 1.0 <= peak_to_mean <= 5.0:
        raise ValueError("peak_to_mean must be 1 to 5")
    if peak_to_mean == 1.0:
        return FLAT_DAY
    wave = (1.0 + np.cos(2 * math.pi * (np.arange(24) - round(peak_hour)) / 24)) / 2
    low, high = 0.0, 200.0
    for _ in range(80):
        power = (low + high) / 2
        if 1.0 / _above_night(wave, power).mean() < peak_to_mean:
            low = power
        else:
            high = power
    shape = _above_night(wave, high)
    return tuple((shape / shape.mean()).tolist())


def _above_night(wave: Floats, power: float) -> Floats:
    return NIGHT + (1.0 - NIGHT) * wave**power


@dataclass(frozen=True, slots=True, kw_only=True)
class Bursts:
    """A two-state rate (Markov-modulated): quiet and busy spells of exponential length."""

    busy_factor: float
    """Rate in busy spells over the mean."""
    busy_share: float
    """Of the time."""
    busy_s: float
    """Mean length of a busy spell."""

    @property
    def quiet_factor(self) -> float:
        """Rate in quiet spells over the mean, so that the mean holds."""
        return max(0.0, (1.0 - self.busy_share * self.busy_factor) / (1.0 - self.busy_share))

    @property
    def quiet_s(self) -> float:
        """Mean length of a quiet spell."""
        return self.busy_s * (1.0 - self.busy_share) / self.busy_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """A stream of requests: rate over time, burstiness of gaps, bursts of the rate itself."""

    profile: Profile
    gap_cv: float = 1.0
    """Coefficient of variation of gaps; 1 is Poisson, 0 a metronome."""
    bursts: Bursts | None = None


@dataclass(slots=True)
class ArrivalStream:
    """Draws the arrivals of ``duration_s`` seconds, some at a time."""

    arrivals: Arrivals
    duration_s: float
    random: np.random.Generator
    _knots_s: Floats = field(init=False)
    _cumulated: Floats = field(init=False)
    _unit: float = 0.0

    def __post_init__(self) -> None:
        self._knots_s, self._cumulated = _cumulated_rate(self.arrivals, self.duration_s, self.random)

    def take(self, count: int) -> Floats:
        """The next arrivals, seconds, at most ``count``; empty when the time is over."""
        units = self._unit + np.cumsum(_unit_gaps(self.arrivals.gap_cv, count, self.random))
        self._unit = float(units[-1])
        units = units[units < self._cumulated[-1]]
        arrival_s: Floats = np.interp(units, self._cumulated, self._knots_s)
        return arrival_s


def _unit_gaps(cv: float, count: int, random: np.random.Generator) -> Floats:
    if cv == 0:
        return np.ones(count)
    if cv == 1:
        return random.standard_exponential(count)
    shape = 1.0 / cv**2
    return random.standard_gamma(shape, count) / shape


def _cumulated_rate(arrivals: Arrivals, duration_s: float, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Knots in time and the expected number of requests up to each."""
    knots = arrivals.profile.knots(duration_s)
    factor: Any = 1.0
    if arrivals.bursts is not None:
        switches, busy = _spells(arrivals.bursts, duration_s, random)
        knots = np.unique(np.concatenate([knots, switches]))
        middle = (knots[:-1] + knots[1:]) / 2
        state = busy[np.searchsorted(switches, middle, side="right") - 1]
        factor = np.where(state, arrivals.bursts.busy_factor, arrivals.bursts.quiet_factor)
    middle = (knots[:-1] + knots[1:]) / 2
    cumulated = np.concatenate([[0.0], np.cumsum(arrivals.profile.rate(middle) * factor * np.diff(knots))])
    return knots, cumulated


def _spells(bursts: Bursts, duration_s: float, random: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
    """Starts of the spells, the first at 0, and which are busy."""
    pairs = math.ceil(duration_s / (bursts.busy_s + bursts.quiet_s) * 1.5) + 20
    first_busy = bool(random.random() < bursts.busy_share)
    means = (bursts.busy_s, bursts.quiet_s) if first_busy else (bursts.quiet_s, bursts.busy_s)
    starts = np.zeros(1)
    while starts[-1] < duration_s:
        lengths = random.standard_exponential((pairs, 2)) * means
        starts = np.concatenate([starts, starts[-1] + np.cumsum(lengths.ravel())])
    busy = (np.arange(len(starts)) % 2 == 0) == first_busy
    return starts[starts < duration_s], busy[starts < duration_s]
