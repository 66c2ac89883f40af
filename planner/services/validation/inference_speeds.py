"""Speeds of inference cases by kind of load: each kind evaluated once, over arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.kv_cache import kv_bytes_per_token_per_gpu
from planner.engine.serving import AdmissionLimits, LoadKind, ServingLoad, steady_state
from planner.engine.serving_coefficients import ServingCoefficients
from planner.engine.serving_split import SplitPools, split_state
from planner.engine.step_time import StepCoefficients
from planner.engine.units import GB
from planner.services.validation.inference_cases import InferenceCase

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

STATISTICS: Final = ("mean", "p50", "p90", "p95", "p99")
CARRIED_SHARE: Final = 0.7
"""Below this share of the stated rate, clients and not arrivals limit a case that states both."""
TRANSFER_BYTES_S: Final = 50.0 * GB
"""Between prefill and decode replicas, a GPU, where a case doesn't say: 400 Gbit/s."""
MOST_CLIENTS: Final = 1e9
"""Clients of a run that queues everything at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """Per case: seconds, tokens a second and GPU, and what limits it."""

    ttft_s: Mapping[str, FloatArray]
    tpot_s: Mapping[str, FloatArray]
    output_tok_s_per_gpu: FloatArray
    limit: IntArray


COLUMNS: Final = (
    "input_tokens",
    "output_tokens",
    "concurrency",
    "requests",
    "requests_s",
    "length_cv",
    "prefix_cache_hit",
    "prefill_workers",
    "decode_workers",
)


class CaseLoads:
    """What the cases' replicas are asked to do, as arrays."""

    def __init__(self, cases: Sequence[InferenceCase], limits: AdmissionLimits) -> None:
        self.size = len(cases)
        self.limits = limits
        self.kinds = np.array([case.kind for case in cases])
        self.gpus = np.array([case.gpus / case.replicas for case in cases])
        self.columns = {name: np.array([getattr(case, name) for case in cases], dtype=np.float64) for name in COLUMNS}
        self.stated_clients = np.array([bool(case.row.get("concurrency")) for case in cases])
        self.cache_bytes = np.zeros(self.size)
        """KV cache of one prompt on one rank, where it moves between replicas."""
        for row in np.flatnonzero(self.kinds == "split").tolist():
            case = cases[row]
            per_token = float(kv_bytes_per_token_per_gpu(case.arch, case.kv_format, case.tp, case.pp))
            self.cache_bytes[row] = case.input_tokens * per_token


def speeds(c: ServingCoefficients, loads: CaseLoads) -> Predicted:
    """Speed of every case, in order."""
    size = loads.size
    kinds = loads.kinds.copy()
    ttft = {name: np.full(size, np.nan) for name in STATISTICS}
    tpot = {name: np.full(size, np.nan) for name in STATISTICS}
    rate, limit = np.full(size, np.nan), np.zeros(size, dtype=np.int64)
    kinds[_bounded_by_clients(c, loads)] = "closed"
    for kind in sorted(set(kinds.tolist())):
        rows = np.flatnonzero(kinds == kind)
        part = _Part(c, loads, rows)
        first, rest, rate[rows], limit[rows] = part.split() if kind == "split" else part.shared(kind)
        for name in STATISTICS:
            ttft[name][rows], tpot[name][rows] = first[name], rest[name]
    return Predicted(ttft_s=ttft, tpot_s=tpot, output_tok_s_per_gpu=rate / loads.gpus, limit=limit)


def _bounded_by_clients(c: ServingCoefficients, loads: CaseLoads) -> IntArray:
    """Open-loop cases whose stated concurrency can't carry the stated rate: a closed loop of so many clients."""
    rows = np.flatnonzero((loads.kinds == "open") & loads.stated_clients)
    if not len(rows):
        return rows
    _, _, tokens, _ = _Part(c, loads, rows).shared("closed")
    asked = loads.columns["requests_s"][rows] * loads.columns["output_tokens"][rows]
    return rows[tokens < CARRIED_SHARE * asked]


Speeds = tuple[Mapping[str, FloatArray], Mapping[str, FloatArray], FloatArray, IntArray]
"""TTFT and TPOT by statistic, output tokens a second, limit."""


class _Part:
    """Some of the cases, with their coefficients and limits."""

    def __init__(self, c: ServingCoefficients, loads: CaseLoads, rows: IntArray) -> None:
        self.columns = {name: values[rows] for name, values in loads.columns.items()}
        self.cache_bytes = loads.cache_bytes[rows]
        others = {f.name: getattr(c, f.name)[rows] for f in fields(c) if f.name != "step"}
        self.c = ServingCoefficients(step=StepCoefficients(*(values[rows] for values in c.step)), **others)
        limits = {f.name: np.asarray(getattr(loads.limits, f.name))[rows] for f in fields(loads.limits)}
        self.limits = AdmissionLimits(**limits)

    def load(self, kind: LoadKind) -> ServingLoad:
        given = self.columns
        requests = given["requests"]
        return ServingLoad(
            kind=kind,
            input_tokens=given["input_tokens"],
            output_tokens=given["output_tokens"],
            concurrency=np.minimum(given["concurrency"], MOST_CLIENTS),
            requests=np.where(np.isnan(requests), np.inf, requests) if kind in ("closed", "open") else None,
            requests_s=given["requests_s"],
            length_cv=given["length_cv"],
            prefix_cache_hit=given["prefix_cache_hit"],
        )

    def shared(self, kind: LoadKind) -> Speeds:
        """Replicas that prefill and decode."""
        with np.errstate(all="ignore"):
            estimate = steady_state(self.c, self.load(kind), self.limits)
        return estimate.ttft_s, estimate.tpot_s, estimate.output_tok_s, estimate.limit

    def split(self) -> Speeds:
        """Prefill and decode on replicas of their own: means only."""
        pools = SplitPools(
            prefill_replicas=self.columns["prefill_workers"],
            decode_replicas=self.columns["decode_workers"],
            transfer_bytes=self.cache_bytes,
            transfer_bytes_s=TRANSFER_BYTES_S,
        )
        with np.errstate(all="ignore"):
            estimate = split_state(self.c, self.load("closed"), self.limits, pools)
        none = np.zeros(len(self.cache_bytes), dtype=np.int64)
        first, rest = dict.fromkeys(STATISTICS, estimate.ttft_s), dict.fromkeys(STATISTICS, estimate.tpot_s)
        return first, rest, estimate.output_tok_s, none
