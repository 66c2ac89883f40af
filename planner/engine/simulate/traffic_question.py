"""Traffic described in a few numbers: one flat set of named, bounded fields, and the model they make."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.engine.errors import FieldError
from planner.engine.field_spec import integer, number, numbers, specs
from planner.engine.sentences import FieldName, say
from planner.engine.simulate.arrivals import FLAT_DAY, FLAT_WEEK, Arrivals, Bursts, Profile, daily_curve
from planner.engine.simulate.lengths import Lengths, Lognormal, Seen, SharedPrefixes
from planner.engine.simulate.setup import ClosedLoop
from planner.engine.simulate.workload_model import TrafficModel
from planner.engine.units import SECONDS_PER_HOUR

WORKDAYS = 5
MOST_CLIENTS = 1_000_000
"""That wait for their answers in one run."""
MOST_QUEUED = 1_000_000
"""Requests that are all there at the beginning of one run: each takes memory until it is answered."""
MOST_STEPS = 2_000_000
"""Times that the load may change in one run."""
OPEN_ONLY = (
    *("requests_per_second", "gap_cv", "daily_peak", "peak_hour", "weekend", "trend_per_week"),
    *("burst_factor", "burst_share", "burst_s", "rates"),
)
"""What says when requests come: by the load of an open loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficQuestion:
    """Traffic to generate: how much, how uneven, how long."""

    requests_per_second: float = number("Mean load", 1.0, 1e-6, 1e6, "req/s", "Over the first week.", "traffic")
    clients: int | None = integer(
        "Clients", None, 1, MOST_CLIENTS, "clients", "Closed loop: each waits for its answer. Empty: a load.", "traffic"
    )
    requests: int | None = integer(
        "Requests", None, 1, MOST_QUEUED, "requests", "A job: all queued at the beginning. Empty: a load.", "traffic"
    )
    think_s: float = number(
        "Pause", 0.0, 0, 3600, "s", "Of clients, between an answer and the next request; mean, random.", "traffic"
    )
    hours: float = number("Duration", 1.0, 1e-3, 24 * 366, "h", "Simulated time, paid for to its end.", "traffic")
    gap_cv: float = number(
        "Burstiness", 1.0, 0, 20, "CV", "Of gaps between requests: 1 is Poisson, public traces show 1 to 13.", "traffic"
    )
    daily_peak: float = number(
        "Daily peak", 1.0, 1, 5, "x mean", "Busiest hour over the day's mean; 1 is flat, 2-3 is usual.", "traffic"
    )
    peak_hour: float = number("Peak hour", 14.0, 0, 23, "h", "Of the day; the run starts at 0:00.", "traffic")
    weekend: float = number("Weekend", 1.0, 0, 5, "x weekday", "Days 6 and 7 of each week.", "traffic")
    trend_per_week: float = number("Trend", 0.0, -0.9, 10, "share/week", "Growth, compounding.", "traffic")
    burst_factor: float = number("Bursts", 1.0, 1, 50, "x mean", "Rate in busy spells; 1 has none.", "traffic")
    burst_share: float = number("Busy share", 0.1, 0.001, 0.9, "share", "Of the time.", "traffic")
    burst_s: float = number("Busy spell", 60.0, 1, 86_400, "s", "Its mean length.", "traffic")
    rates: tuple[float, ...] = numbers(
        "Load by step",
        0,
        1e6,
        "x mean",
        "Factors, one after another and over again; their mean counts as 1.",
        "traffic",
    )
    rate_s: float = number("Step", 60.0, 1, 86_400, "s", "How long each factor of the load holds.", "traffic")
    input_median: float = number("Input, median", 700.0, 1, 1e7, "tokens", "Of prompts.", "traffic")
    input_sigma: float = number("Input, spread", 0.9, 0, 4, "sigma", "Of the logarithm; 0 is fixed.", "traffic")
    input_max: int = integer("Input, longest", 100_000, 1, 10_000_000, "tokens", "Longer ones are cut.", "traffic")
    input_lengths: tuple[int, ...] = numbers(
        *("Input, as seen", 1, 10_000_000, "tokens"),
        "A list, each as likely; instead of median and spread.",
        "traffic",
        whole=True,
    )
    output_median: float = number("Output, median", 130.0, 1, 1e6, "tokens", "Of answers.", "traffic")
    output_sigma: float = number("Output, spread", 0.9, 0, 4, "sigma", "Of the logarithm; 0 is fixed.", "traffic")
    output_max: int = integer("Output, longest", 8000, 1, 1_000_000, "tokens", "Longer ones are cut.", "traffic")
    output_lengths: tuple[int, ...] = numbers(
        *("Output, as seen", 1, 1_000_000, "tokens"),
        "A list, each as likely; instead of median and spread.",
        "traffic",
        whole=True,
    )
    length_correlation: float = number(
        "Input with output",
        0.0,
        -1,
        1,
        "correlation",
        "Long prompts with long answers: 1; with short ones: -1.",
        "traffic",
    )
    prefixes: int = integer(
        "Shared prefixes", 0, 0, 1_000_000, "texts", "System prompts or tenants; 0 for none.", "traffic"
    )
    prefix_share: float = number(
        "Prompts with a prefix", 1.0, 0, 1, "share", "The others begin with nothing in common.", "traffic"
    )
    prefix_tokens: int = integer("Prefix length", 500, 1, 1_000_000, "tokens", "Added to those prompts.", "traffic")
    prefix_lengths: tuple[int, ...] = numbers(
        *("Prefixes, as seen", 1, 1_000_000, "tokens"),
        "A list, each as likely; instead of one length.",
        "traffic",
        whole=True,
    )
    prefix_with_input: float = number(
        "Prefix with input",
        0.0,
        -1,
        1,
        "correlation",
        "Prompts with a prefix are otherwise long: 1; short: -1.",
        "traffic",
    )
    prefix_with_output: float = number(
        "Prefix with output", 0.0, -1, 1, "correlation", "Their answers are long: 1; short: -1.", "traffic"
    )
    prefix_zipf: float = number("Popularity", 1.0, 0, 5, "Zipf", "0: all prefixes alike.", "traffic")
    seed: int = integer("Seed", 0, 0, 2**53, "", "The same seed gives the same requests.", "run")

    @property
    def duration_s(self) -> float:
        """In which requests come."""
        return self.hours * SECONDS_PER_HOUR

    @property
    def lasts_s(self) -> float:
        """How long a fleet is kept for it, however soon its last answer: 0 of a job, which ends with that."""
        return 0.0 if self.requests is not None else self.duration_s

    @property
    def expected_requests(self) -> float:
        """How many there will be on average; of clients nobody knows, as that is what answers take: 0.

        >>> grown = TrafficQuestion(requests_per_second=1.0, hours=24 * 14, trend_per_week=1.0)
        >>> round(grown.expected_requests / (7 * 86_400), 2)  # the first week's, and twice as many in the second
        3.0
        """
        if self.requests is not None:
            return float(self.requests)
        if self.clients is not None:
            return 0.0
        profile = self._profile()
        if profile.is_flat:
            return self.requests_per_second * self.duration_s
        steps = math.ceil(self.hours)
        if self.rates:
            steps = max(steps, min(MOST_STEPS, math.ceil(self.duration_s / self.rate_s)))
        return float(profile.rate((np.arange(steps) + 0.5) / steps * self.duration_s).mean()) * self.duration_s

    @property
    def busiest_hour(self) -> float:
        """The busiest hour's load over the mean, of the day's curve and of the load by step.

        >>> TrafficQuestion(daily_peak=2.0).busiest_hour, TrafficQuestion(rates=(1, 3), rate_s=7200.0).busiest_hour
        (2.0, 1.5)
        >>> TrafficQuestion(rates=(1, 3), rate_s=60.0).busiest_hour
        1.0
        """
        if not self.rates:
            return self.daily_peak
        # As much of the steps, over and over again, as an hour takes.
        around = np.tile(self.rates, math.ceil(SECONDS_PER_HOUR / self.rate_s / len(self.rates)) + 1)
        cumulated = np.concatenate([[0.0], np.cumsum(around)])
        starts = np.arange(len(self.rates))
        stops = starts + SECONDS_PER_HOUR / self.rate_s
        within = np.interp(stops, np.arange(len(cumulated)), cumulated) - cumulated[starts]
        return self.daily_peak * float(within.max() * self.rate_s / SECONDS_PER_HOUR / np.mean(self.rates))

    @property
    def loop(self) -> ClosedLoop | None:
        """The clients that wait for their answers; None where requests come as they come."""
        if self.clients is None:
            return None
        return ClosedLoop(clients=self.clients, think_s=self.think_s, until_s=self.duration_s)

    @staticmethod
    def faults_between(values: Mapping[str, Any]) -> Iterator[FieldError]:
        """Clients that wait decide themselves when they send, and a job is there at once: what says when requests come
        has no meaning then.
        """
        yield from _faults_of_steps(values)
        if values["clients"] is None and values["think_s"] > 0:
            message = say("Only clients that wait for their answers pause.")
            yield _conflict("think_s", values, message, say("0, or {clients} too", clients=FieldName("clients")))
        if values["requests"] is not None:
            message = say("A job's requests are all there at the beginning, until the last is answered.")
            given = [name for name in (*OPEN_ONLY, "hours") if values[name] != specs(TrafficQuestion)[name][1]]
            for name in ["clients", *given] if values["clients"] is not None else given:
                yield _conflict(name, values, message, say("{requests} or this", requests=FieldName("requests")))
        elif values["clients"] is not None:
            for name in OPEN_ONLY:
                if values[name] != specs(TrafficQuestion)[name][1]:
                    message = say("Clients that wait for their answers send at no given rate.")
                    yield _conflict(name, values, message, say("{clients} or this", clients=FieldName("clients")))

    @property
    def mean_input_tokens(self) -> float:
        """Before long prompts are cut."""
        shared = self._prefixes()
        return self._input().mean + (0.0 if shared is None else shared.mean)

    @property
    def mean_output_tokens(self) -> float:
        """Before long answers are cut."""
        return self._output().mean

    def model(self) -> TrafficModel:
        """What generates it.

        >>> TrafficQuestion(weekend=0.5).model().arrivals.profile.by_weekday
        (1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5)
        """
        return TrafficModel(
            arrivals=Arrivals(profile=self._profile(), gap_cv=self.gap_cv, bursts=self._bursts()),
            whenever=self.clients is not None or self.requests is not None,
            lengths=Lengths(
                input_tokens=self._input(), output_tokens=self._output(), correlation=self.length_correlation
            ),
            prefixes=self._prefixes(),
        )

    def _prefixes(self) -> SharedPrefixes | None:
        if not self.prefixes:
            return None
        return SharedPrefixes(
            count=self.prefixes,
            tokens=self.prefix_tokens,
            zipf=self.prefix_zipf,
            share=self.prefix_share,
            seen=tuple(sorted(self.prefix_lengths)),
            with_input=self.prefix_with_input,
            with_output=self.prefix_with_output,
        )

    def _profile(self) -> Profile:
        return Profile(
            mean_rate=self.requests_per_second,
            by_hour=FLAT_DAY if self.daily_peak == 1 else daily_curve(self.daily_peak, self.peak_hour),
            by_weekday=(*FLAT_WEEK[:WORKDAYS], self.weekend, self.weekend),
            trend_per_week=self.trend_per_week,
            steps=self.rates,
            step_s=self.rate_s,
        )

    def _bursts(self) -> Bursts | None:
        if self.burst_factor == 1:
            return None
        # A busy share that leaves nothing for quiet spells is all there can be.
        share = min(self.burst_share, 1.0 / self.burst_factor)
        return Bursts(busy_factor=self.burst_factor, busy_share=share, busy_s=self.burst_s)

    def _input(self) -> Lognormal | Seen:
        if self.input_lengths:
            return Seen(tokens=tuple(sorted(self.input_lengths)))
        return Lognormal(median=self.input_median, sigma=self.input_sigma, high=self.input_max)

    def _output(self) -> Lognormal | Seen:
        if self.output_lengths:
            return Seen(tokens=tuple(sorted(self.output_lengths)))
        return Lognormal(median=self.output_median, sigma=self.output_sigma, high=self.output_max)


def _faults_of_steps(values: Mapping[str, Any]) -> Iterator[FieldError]:
    """A load of nothing but zeros, and one that changes more often than one run can tell."""
    if not values["rates"]:
        return
    if not any(values["rates"]):
        yield _conflict("rates", values, say("No load at all."), say("factors of which one at least is above 0"))
    if values["hours"] * SECONDS_PER_HOUR / values["rate_s"] > MOST_STEPS:
        least = math.ceil(values["hours"] * SECONDS_PER_HOUR / MOST_STEPS)
        message = say("The load changes too often in this time.")
        yield _conflict("rate_s", values, message, say("{least:,} s or more", least=least))


def _conflict(name: str, values: Mapping[str, Any], message: str, allowed: str) -> FieldError:
    return FieldError(field=name, value=values[name], message=message, allowed=allowed, code="conflict")
