"""Many inference cases as arrays: one set of candidates a model, one load a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catalog.profiles import serving_memory_profile, serving_release_date
from planner.engine.collectives import LINK_CLASSES, Topology
from planner.engine.hardware import Accelerator
from planner.engine.kv_cache import max_concurrency
from planner.engine.memory import serving_memory
from planner.engine.serving import AdmissionLimits, LoadKind, ServingEstimate, ServingLoad, steady_state
from planner.engine.serving_calibration import ATTRIBUTES, EngineSettings, Keys, ServingProfiles, resolve_constants
from planner.engine.serving_candidates import (
    MODES,
    ServingCandidates,
    ServingCoefficients,
    candidate_keys,
    coefficients_from,
    engine_era,
)
from planner.engine.step_time import StepCoefficients
from planner.engine.units import GB
from planner.services.validation.inference_cases import InferenceCase

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PCIE_BYTES_S = {3: 16 * GB, 4: 32 * GB, 5: 64 * GB, 6: 128 * GB}
"""A x16 slot, one direction."""
NETWORK_BYTES_S = 50.0 * GB
"""One GPU's share of the network where a case spans nodes: 400 Gbit/s, as reference systems have."""
NODE_GPUS = 8
PREEMPTION_MARGIN = 0.95
CARRIED_SHARE = 0.7
"""Below this share of the stated rate, clients and not arrivals limit a case that states both."""
UNKNOWN_ENGINE = EngineSettings(max_num_seqs=256, max_num_batched_tokens=8192, memory_utilization=0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """Per case: seconds, tokens a second and GPU, and the estimate they come from."""

    ttft_s: Mapping[str, FloatArray]
    tpot_s: Mapping[str, FloatArray]
    output_tok_s_per_gpu: FloatArray
    limit: IntArray
    prompt_share: FloatArray
    """First-token latency over the whole answer's: for statistics that count the first token in."""


class CaseBatch:
    """Cases sorted by model, their candidates and limits; predictions come back in the cases' order."""

    def __init__(self, cases: Sequence[InferenceCase], engines: Mapping[str, EngineSettings]) -> None:
        first_seen: dict[int, int] = {}
        for index, case in enumerate(cases):
            first_seen.setdefault(id(case.arch), index)
        self.order = sorted(range(len(cases)), key=lambda i: first_seen[id(cases[i].arch)])
        self.cases = [cases[i] for i in self.order]
        self.blocks: list[tuple[slice, ServingCandidates]] = []
        start = 0
        for stop in range(1, len(self.cases) + 1):
            if stop == len(self.cases) or self.cases[stop].arch is not self.cases[start].arch:
                self.blocks.append((slice(start, stop), _candidates(self.cases[start:stop])))
                start = stop
        self.limits = _limits(self.cases, engines)
        self.keys = [candidate_keys(self.cases[rows.start].arch, block) for rows, block in self.blocks]
        self.attributes = [
            {name: str(keys.vocabularies[name][keys.codes[name][row]]) for name in ATTRIBUTES}
            for keys in self.keys
            for row in range(keys.size)
        ]

    def predict(self, profiles: ServingProfiles) -> Predicted:
        """Speed of every case with the profiles' constants, in the order the cases were given."""
        return self._unsort(self.evaluate(profiles, lambda block, keys: resolve_constants(profiles, keys)))

    def evaluate(
        self, profiles: ServingProfiles, constants_of: Callable[[int, Keys], dict[str, FloatArray]]
    ) -> Predicted:
        """Speed of every case in sorted order, with the constants given for each block."""
        parts = [
            coefficients_from(self.cases[rows.start].arch, block, profiles, constants_of(index, keys))
            for index, ((rows, block), keys) in enumerate(zip(self.blocks, self.keys, strict=True))
        ]
        return _speeds(_joined(parts, [block.size for _, block in self.blocks]), self.cases, self.limits)

    def _unsort(self, predicted: Predicted) -> Predicted:
        back = np.argsort(np.asarray(self.order))
        return Predicted(
            ttft_s={name: values[back] for name, values in predicted.ttft_s.items()},
            tpot_s={name: values[back] for name, values in predicted.tpot_s.items()},
            output_tok_s_per_gpu=predicted.output_tok_s_per_gpu[back],
            limit=predicted.limit[back],
            prompt_share=predicted.prompt_share[back],
        )


def case_era(case: InferenceCase) -> str:
    """The half-year of the engine: by the case's date, else by the version's release."""
    date = case.date or serving_release_date(case.engine, case.version)
    return engine_era(date) or engine_era(serving_release_date(case.engine, case.version))


def _candidates(cases: Sequence[InferenceCase]) -> ServingCandidates:
    accelerators = list({case.accelerator.key: case.accelerator for case in cases}.values())
    positions = {accelerator.key: index for index, accelerator in enumerate(accelerators)}
    engines = sorted({(case.engine, case_era(case)) for case in cases})
    weight_formats = sorted({case.weight_format for case in cases})
    kv_formats = sorted({case.kv_format for case in cases})

    def floats(values: list[int]) -> FloatArray:
        return np.asarray(values, dtype=np.float64)

    return ServingCandidates(
        accelerators=tuple(accelerators),
        accelerator=np.array([positions[case.accelerator.key] for case in cases]),
        weight_formats=tuple(weight_formats),
        weight_format=np.array([weight_formats.index(case.weight_format) for case in cases]),
        kv_formats=tuple(kv_formats),
        kv_format=np.array([kv_formats.index(case.kv_format) for case in cases]),
        engines=tuple(engines),
        engine=np.array([engines.index((case.engine, case_era(case))) for case in cases]),
        tp=floats([case.tp for case in cases]),
        pp=floats([case.pp for case in cases]),
        ep=floats([case.ep for case in cases]),
        topology=_topology(cases),
        mode=np.array([MODES.index(case.mode) for case in cases]),
    )


def _topology(cases: Sequence[InferenceCase]) -> Topology:
    links = [scale_up_link(case.accelerator) for case in cases]
    return Topology(
        link_class=np.array([LINK_CLASSES.index(link) for link, _, _ in links]),
        link_bytes_s=np.array([rate for _, rate, _ in links]),
        domain_gpus=np.array([domain for _, _, domain in links]),
        network_bytes_s=np.full(len(cases), NETWORK_BYTES_S),
    )


def scale_up_link(accelerator: Accelerator) -> tuple[str, float, int]:
    """Link class, rate and domain of a published system: its board's link, or PCIe where cards have none.

    Bridges join pairs; published systems with more cards reach the rest over PCIe.
    """
    if accelerator.link in LINK_CLASSES and accelerator.link_bytes_s:
        return accelerator.link, accelerator.link_bytes_s, max(accelerator.scaleup_domain_gpus, NODE_GPUS)
    return "pcie", PCIE_BYTES_S.get(accelerator.pcie_gen or 4, PCIE_BYTES_S[4]), NODE_GPUS


def _limits(cases: Sequence[InferenceCase], engines: Mapping[str, EngineSettings]) -> AdmissionLimits:
    return AdmissionLimits(
        kv_sequences=np.array([_kv_sequences(case, engines.get(case.engine, UNKNOWN_ENGINE)) for case in cases]),
        max_num_seqs=np.array([_batch_limit(case) for case in cases]),
        max_num_batched_tokens=np.array([case.max_num_batched_tokens for case in cases]),
    )


def _batch_limit(case: InferenceCase) -> float:
    """An offline run never has more in flight than it is given."""
    return min(case.max_num_seqs, case.concurrency) if case.kind == "offline" else case.max_num_seqs


def _kv_sequences(case: InferenceCase, engine: EngineSettings) -> float:
    """Requests of the case's lengths that one replica's KV memory holds."""
    try:
        profile = serving_memory_profile(case.engine, date=case.date or None)
    except LookupError:
        profile = serving_memory_profile("vllm", date=case.date or None)
    tokens = case.input_tokens + engine.reserved_output_share * case.output_tokens
    # Benchmarks size the engine for their lengths: sampling buffers for the sequences they send.
    seqs = min(case.max_num_seqs, 1024.0 if case.kind == "open" else case.concurrency, 1024.0)
    memory = serving_memory(
        case.arch,
        profile=profile,
        weight_format=case.weight_format,
        memory_bytes=case.accelerator.memory_bytes,
        utilization=engine.memory_utilization if engine.free_memory_share is None else 1.0,
        tp=case.tp,
        pp=case.pp,
        ep=case.ep,
        max_num_batched_tokens=case.max_num_batched_tokens,
        max_num_seqs=seqs,
    )
    # What was published ran: a pool estimated at less than this was larger.
    pool = max(float(memory.kv_pool) * (engine.free_memory_share or 1.0), 0.02 * case.accelerator.memory_bytes)
    fits = max_concurrency(
        case.arch,
        case.kv_format,
        case.tp,
        case.pp,
        pool * PREEMPTION_MARGIN,
        tokens,
        max_num_batched_tokens=case.max_num_batched_tokens,
        allocator=profile.allocator,
    )
    return max(float(fits) * max(case.ep / case.tp, 1.0), 1.0)


def _joined(parts: Sequence[ServingCoefficients], sizes: Sequence[int]) -> ServingCoefficients:
    def column(values: list[object]) -> FloatArray:
        return np.concatenate([np.broadcast_to(np.asarray(v), (n,)) for v, n in zip(values, sizes, strict=True)])

    step = StepCoefficients(*(column(list(values)) for values in zip(*(part.step for part in parts), strict=True)))
    return ServingCoefficients(
        step=step,
        request_s=column([part.request_s for part in parts]),
        cohort=column([part.cohort for part in parts]),
        backlog=column([part.backlog for part in parts]),
        lookahead=column([part.lookahead for part in parts]),
        drain=column([part.drain for part in parts]),
    )


def _speeds(c: ServingCoefficients, cases: Sequence[InferenceCase], limits: AdmissionLimits) -> Predicted:
    size = len(cases)
    kinds = np.array([case.kind for case in cases])
    ttft = {name: np.full(size, np.nan) for name in ("mean", "p50", "p90", "p95", "p99")}
    tpot = {name: np.full(size, np.nan) for name in ttft}
    rate, limit = np.full(size, np.nan), np.zeros(size, dtype=np.int64)
    closed = _bounded_by_clients(c, cases, limits)
    kinds[closed] = "closed"
    for kind in sorted(set(kinds.tolist())):
        rows = np.flatnonzero(kinds == kind)
        estimate = _estimate(c, [cases[row] for row in rows.tolist()], rows, limits, kind)
        for name, first in ttft.items():
            first[rows], tpot[name][rows] = estimate.ttft_s[name], estimate.tpot_s[name]
        rate[rows], limit[rows] = estimate.output_tok_s, estimate.limit
    outputs = np.array([case.output_tokens for case in cases])
    gpus = np.array([case.gpus / case.replicas for case in cases])
    return Predicted(
        ttft_s=ttft,
        tpot_s=tpot,
        output_tok_s_per_gpu=rate / gpus,
        limit=limit,
        prompt_share=1.0 / (1.0 + tpot["mean"] / ttft["mean"] * np.maximum(outputs - 1.0, 0.0)),
    )


def _bounded_by_clients(c: ServingCoefficients, cases: Sequence[InferenceCase], limits: AdmissionLimits) -> IntArray:
    """Open-loop cases whose stated concurrency can't carry the stated rate: a closed loop of so many clients."""
    rows = np.flatnonzero([case.kind == "open" and bool(case.row.get("concurrency")) for case in cases])
    if not len(rows):
        return rows
    chosen = [cases[row] for row in rows.tolist()]
    rate = _estimate(c, chosen, rows, limits, "closed").requests_s
    return rows[rate < CARRIED_SHARE * np.array([case.requests_s for case in chosen])]


def _estimate(
    c: ServingCoefficients, cases: Sequence[InferenceCase], rows: IntArray, limits: AdmissionLimits, kind: LoadKind
) -> ServingEstimate:
    def column(name: str) -> FloatArray:
        return np.array([getattr(case, name) for case in cases], dtype=np.float64)

    requests = column("requests")
    load = ServingLoad(
        kind=kind,
        input_tokens=column("input_tokens"),
        output_tokens=column("output_tokens"),
        concurrency=np.minimum(column("concurrency"), 1e9),
        requests=np.where(np.isnan(requests), np.inf, requests) if kind in ("closed", "open") else None,
        requests_s=column("requests_s"),
        length_cv=column("length_cv"),
        prefix_cache_hit=column("prefix_cache_hit"),
    )
    chosen = ServingCoefficients(
        step=StepCoefficients(*(values[rows] for values in c.step)),
        request_s=c.request_s[rows],
        cohort=c.cohort[rows],
        backlog=c.backlog[rows],
        lookahead=c.lookahead[rows],
        drain=c.drain[rows],
    )
    here = AdmissionLimits(
        kv_sequences=np.asarray(limits.kv_sequences)[rows],
        max_num_seqs=np.asarray(limits.max_num_seqs)[rows],
        max_num_batched_tokens=np.asarray(limits.max_num_batched_tokens)[rows],
    )
    with np.errstate(all="ignore"):
        return steady_state(chosen, load, here)
