"""A simulation's outcome as JSON values: latencies, goodput, cost, and timelines cut to what a chart can show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

from planner.engine.cost import CENT, HOURLY, PER_MILLION, quantize, usd_per_million_tokens
from planner.engine.simulate.distributions import STATISTICS, Distribution
from planner.engine.simulate.layout import Array
from planner.engine.simulate.results import AtHome, Outcome
from planner.engine.units import HOURS_PER_MONTH, SECONDS_PER_HOUR

CUMULATIVE_STEPS: Final = 100
"""Steps of the cumulative distributions; the last hundredth is finer."""
HEAT_COLUMNS: Final = 120
"""Columns of the heat maps; timelines keep every bin (at most 480)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RentedTime:
    """What one pool of replicas is billed, and what it did."""

    usd_per_hour: Decimal
    """Price of a unit: a node, or the nodes of a replica that spans several."""
    hours: float
    """Of all units, added up."""
    busy_s: float
    """What its replicas spent in iterations,"""
    prefill_s: float
    """and the part of it that prompts added."""

    @property
    def usd(self) -> Decimal:
        """The bill, exact."""
        return self.usd_per_hour * Decimal(repr(self.hours))

    def and_more(self, other: RentedTime) -> RentedTime:
        """Another part of the same pool added."""
        return replace(
            self,
            hours=self.hours + other.hours,
            busy_s=self.busy_s + other.busy_s,
            prefill_s=self.prefill_s + other.prefill_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a run is billed, by pool."""

    rented: tuple[RentedTime, ...]

    @property
    def usd(self) -> Decimal:
        """The bill, exact."""
        return sum((pool.usd for pool in self.rented), Decimal(0))

    @property
    def input_share(self) -> float | None:
        """Of the bill, what prompts bear: of each pool's as much as of the time it runs; none where nothing ran."""
        ran = [pool for pool in self.rented if pool.busy_s > 0]
        usd = float(sum((pool.usd for pool in ran), Decimal(0)))
        if not usd > 0:
            return None
        return sum(float(pool.usd) * pool.prefill_s / pool.busy_s for pool in ran) / usd


def report(outcome: Outcome, *, wall_s: float, costs: Costs, limits_ms: Mapping[str, float | None]) -> dict[str, Any]:
    """Everything a run says, as plain JSON values; what isn't known is null."""
    done = outcome.left["done"]
    span_s = outcome.duration_s
    dropped = {name: count for name, count in outcome.left.items() if name != "done"}
    return {
        "requests": outcome.requests,
        "completed": done,
        "dropped": sum(dropped.values()),
        "dropped_by_reason": dropped,
        "duration_s": span_s,
        "wall_s": wall_s,
        "simulated_requests_per_wall_s": outcome.requests / wall_s if wall_s > 0 else None,
        "throughput": {
            "requests_s": _rate(done, span_s),
            "input_tok_s": _rate(outcome.input_tokens, span_s),
            "output_tok_s": _rate(outcome.output_tokens, span_s),
        },
        "ttft_ms": _latency(outcome.ttft),
        "tpot_ms": _latency(outcome.tpot),
        "e2e_ms": _latency(outcome.e2e),
        "goodput": {
            "requests_s": _rate(outcome.good, span_s),
            "share": outcome.good / outcome.requests if outcome.requests else None,
            "ttft_limit_ms": limits_ms["ttft"],
            "tpot_limit_ms": limits_ms["tpot"],
        },
        "input_tokens": outcome.input_tokens,
        "output_tokens": outcome.output_tokens,
        "cached_input_tokens": outcome.cached_input_tokens,
        "preemptions": outcome.preemptions,
        "retries": outcome.retries,
        "iterations": outcome.iterations,
        "utilization": _known(outcome.utilization),
        "gpu_hours": outcome.gpu_hours,
        **_money(outcome, costs),
        "ecdf": _cumulative(outcome),
        "timeline": _timeline(outcome),
    }


def cents_of(bills: Sequence[Decimal], total: Decimal) -> list[Decimal]:
    """Bills to the cent that add up to ``total``: what rounding leaves goes where it is nearest.

    >>> [str(each) for each in cents_of([Decimal("6.414"), Decimal("6.414")], Decimal("12.83"))]
    ['6.42', '6.41']
    """
    down = [bill.quantize(CENT, ROUND_FLOOR) for bill in bills]
    left = int((total - sum(down, Decimal(0))) / CENT)
    first = sorted(range(len(bills)), key=lambda place: (down[place] - bills[place], place))[: max(left, 0)]
    return [each + CENT if place in first else each for place, each in enumerate(down)]


def region_report(name: str, own: AtHome, cost_usd: Decimal, *, replicas: int, gpu_hours: float) -> dict[str, Any]:
    """One region beside the others: its own requests, wherever they were served, and what it rents."""
    return {
        "name": name,
        "replicas": replicas,
        "cost_usd": cost_usd,
        "requests": own.requests,
        "completed": own.done,
        "ttft_ms": _latency(own.ttft),
        "tpot_ms": _latency(own.tpot),
        "goodput_share": _share(own.good, own.requests),
        "gpu_hours": gpu_hours,
    }


def _rate(amount: float, seconds: float) -> float | None:
    return amount / seconds if seconds > 0 else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _latency(latency: Distribution) -> dict[str, float | None]:
    values = {"mean": latency.mean_s} | {name: latency.quantile_s(share) for name, share in STATISTICS.items()}
    return {name: _ms(value) for name, value in values.items()}


def _ms(value_s: float) -> float | None:
    return None if math.isnan(value_s) else value_s * 1e3


def _cumulative(outcome: Outcome) -> dict[str, list[float | None]]:
    """TTFT and TPOT by the share of requests that stay within them."""
    shares = [step / CUMULATIVE_STEPS for step in range(1, CUMULATIVE_STEPS)] + [0.995, 0.999, 1.0]
    return {
        "shares": list(shares),
        "ttft_ms": [_ms(outcome.ttft.quantile_s(share)) for share in shares],
        "tpot_ms": [_ms(outcome.tpot.quantile_s(share)) for share in shares],
    }


def _money(outcome: Outcome, costs: Costs) -> dict[str, Decimal | None]:
    """The bill, and what it comes to per million tokens: shared by the time prompts and answers took."""
    input_share = costs.input_share
    output_share = None if input_share is None else 1.0 - input_share
    if input_share is not None and math.isnan(outcome.tpot.mean_s):
        # Every output token came with its prefill.
        input_share, output_share = 1.0, None
    return {
        "cost_usd": quantize(costs.usd, CENT),
        **pace(costs.usd, outcome),
        "usd_per_million_input_tokens": _per_million(costs.usd, input_share, outcome.input_tokens),
        "usd_per_million_output_tokens": _per_million(costs.usd, output_share, outcome.output_tokens),
        "usd_per_million_tokens": _per_million(costs.usd, 1.0, outcome.input_tokens + outcome.output_tokens),
    }


def pace(usd: Decimal, outcome: Outcome) -> dict[str, Decimal | None]:
    """A bill as what the same fleet costs an hour and a month of 730 hours: of one that changes, its mean."""
    if not outcome.end_s > 0:
        return {"usd_per_hour": None, "usd_per_month": None}
    hour = usd * SECONDS_PER_HOUR / Decimal(repr(outcome.end_s))
    return {"usd_per_hour": quantize(hour, HOURLY), "usd_per_month": quantize(hour * HOURS_PER_MONTH, CENT)}


def _per_million(usd: Decimal, share: float | None, tokens: int) -> Decimal | None:
    if share is None or tokens == 0:
        return None
    return quantize(usd_per_million_tokens(usd * Decimal(repr(share)), tokens / SECONDS_PER_HOUR), PER_MILLION)


def _timeline(outcome: Outcome) -> dict[str, Any]:
    timeline, samples = outcome.timeline, outcome.samples
    return {
        "requests": {
            "bin_s": timeline.bin_s,
            "arrived": timeline.arrived.tolist(),
            "completed": timeline.done.tolist(),
            "dropped": timeline.lost.tolist(),
            "input_tokens": timeline.input_tokens.tolist(),
            "output_tokens": timeline.output_tokens.tolist(),
            "cached_input_tokens": timeline.cached_input_tokens.tolist(),
            "ttft_ms": {name: _numbers(values * 1e3) for name, values in timeline.ttft_s.items()},
            "tpot_ms": {name: _numbers(values * 1e3) for name, values in timeline.tpot_s.items()},
        },
        "replicas": {
            "bin_s": samples.bin_s,
            "ready": _numbers(samples.ready),
            "ready_min": _numbers(samples.ready_min),
            "billed": _numbers(samples.billed),
        },
        "queue": {
            "bin_s": samples.bin_s,
            "waiting": _numbers(samples.waiting),
            "waiting_max": _numbers(samples.waiting_max),
            "running": _numbers(samples.running),
            "running_max": _numbers(samples.running_max),
        },
        "kv": {"bin_s": samples.bin_s, "used": _numbers(samples.kv), "used_max": _numbers(samples.kv_max)},
        "heat": _heat(outcome),
    }


def _heat(outcome: Outcome) -> dict[str, Any]:
    """KV use and queue by replica, bins merged to at most ``HEAT_COLUMNS`` (the highest of each)."""
    samples = outcome.samples
    bins = len(samples.heat_kv)
    together = max(1, -(-bins // HEAT_COLUMNS))
    return {
        "bin_s": samples.bin_s * together,
        "kv": [[round(float(value), 4) for value in row] for row in _highest(samples.heat_kv, together)],
        "waiting": [[float(value) for value in row] for row in _highest(samples.heat_waiting, together)],
    }


def _highest(rows: Array, together: int) -> list[Array]:
    return [rows[start : start + together].max(axis=0) for start in range(0, len(rows), together)]


def _numbers(values: Array) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]
