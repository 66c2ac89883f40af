"""Parts of a simulation that ran apart, as one outcome: exact, in any order.

Parts must not interact: regions, or replicas behind a round-robin gateway. Counts, sums and histograms add
up as whole numbers; timelines are brought to the coarsest bin of any part first (bins double, so they nest).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from planner.engine.simulate.distributions import Distribution
from planner.engine.simulate.layout import Array
from planner.engine.simulate.results import Outcome, Samples, Timeline
from planner.engine.units import SECONDS_PER_HOUR

SUMMED = (
    "requests",
    "good",
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "preemptions",
    "retries",
    "iterations",
    "gpus_up",
)
SIDE_BY_SIDE = (
    *("busy_s", "prefill_s", "work_s", "served", "rented", "units_up"),
    *("home_counts", "home_sums", "home_histogram"),
)
LASTING = ("ready", "billed")
"""What a part has at its own end, it has to the end of all."""
ADDED_SAMPLES = ("waiting", "waiting_max", "running", "running_max", "ready", "ready_min", "billed", "billed_max")


def merge(parts: Sequence[Outcome]) -> Outcome:
    """One outcome for all parts; raises ``ValueError`` without any."""
    if not parts:
        raise ValueError("nothing to merge")
    begins_s = min(part.begins_s for part in parts)
    end_s = max(part.end_s for part in parts)
    merged: dict[str, Any] = {name: sum(getattr(part, name) for part in parts) for name in SUMMED}
    merged |= {name: np.concatenate([getattr(part, name) for part in parts]) for name in SIDE_BY_SIDE}
    # What a part still rents at its own end is rented to the end of all.
    more_s = [end_s - part.end_s for part in parts]
    more_h = [seconds / SECONDS_PER_HOUR for seconds in more_s]
    return replace(
        parts[0],
        gpu_hours=sum(part.gpu_hours + part.gpus_up * hours for part, hours in zip(parts, more_h, strict=True)),
        unit_hours=np.concatenate(
            [part.unit_hours + part.units_up * hours for part, hours in zip(parts, more_h, strict=True)]
        ),
        rented_s=np.concatenate(
            [part.rented_s + part.rented * seconds for part, seconds in zip(parts, more_s, strict=True)]
        ),
        begins_s=begins_s,
        duration_s=end_s - begins_s,
        left={name: sum(part.left[name] for part in parts) for name in parts[0].left},
        ttft=added([part.ttft for part in parts]),
        tpot=added([part.tpot for part in parts]),
        e2e=added([part.e2e for part in parts]),
        timeline=_timeline([part.timeline for part in parts]),
        samples=_samples([part.samples for part in parts]),
        **merged,
    )


def added(parts: Sequence[Distribution]) -> Distribution:
    """One distribution over the requests of all parts."""
    return Distribution(
        count=sum(part.count for part in parts),
        total=sum(part.total for part in parts),
        unit_s=parts[0].unit_s,
        histogram=np.sum([part.histogram for part in parts], axis=0),
    )


def _timeline(parts: Sequence[Timeline]) -> Timeline:
    bin_s = max(part.bin_s for part in parts)
    names = ("arrived", "done", "lost", "input_tokens", "output_tokens", "cached_input_tokens", "ttft", "tpot")
    columns = {
        name: _added([_coarser(getattr(part, name), bin_s / part.bin_s, np.add) for part in parts]) for name in names
    }
    return Timeline(bin_s=bin_s, **columns)


def _samples(parts: Sequence[Samples]) -> Samples:
    """Requests and replicas add up, KV is the mean over ready replicas; extremes add to a bound of the extreme."""
    bin_s = max(part.bin_s for part in parts)
    columns: dict[str, Any] = {}
    for name in ADDED_SAMPLES:
        how = np.minimum if name.endswith("_min") else np.maximum if name.endswith("_max") else _mean
        parts_of = [_coarser(getattr(part, name), bin_s / part.bin_s, how) for part in parts]
        columns[name] = _added(parts_of, lasting=name.startswith(LASTING))
    used = [_coarser(part.kv * part.ready, bin_s / part.bin_s, _mean) for part in parts]
    columns["kv"] = _added(used) / np.maximum(columns["ready"], 1e-12)
    columns["kv_max"] = _highest([_coarser(part.kv_max, bin_s / part.bin_s, np.maximum) for part in parts])
    for name in ("heat_kv", "heat_waiting"):
        rows = [_coarser(getattr(part, name), bin_s / part.bin_s, np.maximum) for part in parts]
        columns[name] = np.concatenate(_same_length(rows), axis=1)
    return Samples(bin_s=bin_s, **columns)


def _coarser(values: Array, times: float, how: Callable[[Array, Array], Array]) -> Array:
    """Pairs of bins as one, until the bin is ``times`` as wide (a power of two)."""
    while times > 1:
        if len(values) % 2:
            values = np.concatenate([values, values[-1:] if how is not np.add else np.zeros_like(values[-1:])])
        values = how(values[::2], values[1::2])
        times /= 2
    return values


def _mean(a: Array, b: Array) -> Array:
    return (a + b) / 2


def _same_length(columns: Sequence[Array], *, lasting: bool = False) -> list[Array]:
    longest = max(len(column) for column in columns)
    padded = []
    for column in columns:
        more = np.zeros((longest - len(column), *column.shape[1:]), column.dtype)
        if lasting and len(column):
            more[:] = column[-1]
        padded.append(np.concatenate([column, more]))
    return padded


def _added(columns: Sequence[Array], *, lasting: bool = False) -> Array:
    total: Array = np.sum(_same_length(columns, lasting=lasting), axis=0)
    return total


def _highest(columns: Sequence[Array]) -> Array:
    highest: Array = np.max(_same_length(columns), axis=0)
    return highest
