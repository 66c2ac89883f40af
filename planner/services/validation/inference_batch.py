"""Many inference cases as arrays: one set of candidates a model, one load a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from catalog.profiles import serving_memory_profile, serving_release_date
from planner.engine.collectives import LINK_CLASSES, Topology
from planner.engine.engine_versions import is_development_build
from planner.engine.hardware import Accelerator
from planner.engine.kv_cache import max_concurrency
from planner.engine.memory import serving_memory
from planner.engine.serving import AdmissionLimits
from planner.engine.serving_calibration import (
    ATTRIBUTES,
    CONSTANTS,
    EngineSettings,
    ServingProfiles,
    resolve_constants,
)
from planner.engine.serving_candidates import (
    MODES,
    ServingCandidates,
    candidate_keys,
    engine_era,
)
from planner.engine.serving_coefficients import StepWork, coefficients_from, step_work
from planner.engine.units import GB
from planner.services.validation.inference_cases import InferenceCase
from planner.services.validation.inference_speeds import CaseLoads, Predicted, speeds

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PCIE_BYTES_S = {3: 16 * GB, 4: 32 * GB, 5: 64 * GB, 6: 128 * GB}
"""A x16 slot, one direction."""
NETWORK_BYTES_S = 50.0 * GB
"""One GPU's share of the network where a case spans nodes: 400 Gbit/s, as reference systems have."""
NODE_GPUS = 8
PREEMPTION_MARGIN = 0.95
UNKNOWN_ENGINE = EngineSettings(max_num_seqs=256, max_num_batched_tokens=8192, memory_utilization=0.9)


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
        self.loads = CaseLoads(self.cases, _limits(self.cases, engines))
        self.keys = [candidate_keys(self.cases[rows.start].arch, block) for rows, block in self.blocks]
        self.attributes = [
            {name: str(keys.vocabularies[name][keys.codes[name][row]]) for name in ATTRIBUTES}
            for keys in self.keys
            for row in range(keys.size)
        ]

    def work(self, profiles: ServingProfiles) -> StepWork:
        """The work of every case at datasheet peaks, in sorted order."""
        parts = [step_work(self.cases[rows.start].arch, block, profiles) for rows, block in self.blocks]
        names = [f.name for f in fields(StepWork)]
        return StepWork(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})

    def predict(self, profiles: ServingProfiles) -> Predicted:
        """Speed of every case with the profiles' constants, in the order the cases were given."""
        parts = [resolve_constants(profiles, keys) for keys in self.keys]
        constants = {name: np.concatenate([part[name] for part in parts]) for name in CONSTANTS}
        return self._unsort(self.evaluate(self.work(profiles), constants))

    def evaluate(self, work: StepWork, constants: Mapping[str, FloatArray]) -> Predicted:
        """Speed of every case in sorted order, with the value of each constant for each case."""
        return speeds(coefficients_from(work, constants), self.loads)

    def _unsort(self, predicted: Predicted) -> Predicted:
        back = np.argsort(np.asarray(self.order))
        return Predicted(
            ttft_s={name: values[back] for name, values in predicted.ttft_s.items()},
            tpot_s={name: values[back] for name, values in predicted.tpot_s.items()},
            output_tok_s_per_gpu=predicted.output_tok_s_per_gpu[back],
            limit=predicted.limit[back],
        )


def case_era(case: InferenceCase) -> str:
    """The quarter of the engine: of its version's release where known, else of the case's date."""
    return engine_era(serving_release_date(case.engine, case.version)) or engine_era(case.date)


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
        development=np.array([is_development_build(case.version) for case in cases]),
        tp=floats([case.tp for case in cases]),
        pp=floats([case.pp for case in cases]),
        ep=floats([case.ep for case in cases]),
        topology=_topology(cases),
        mode=np.array([MODES.index(case.mode) for case in cases]),
        max_num_seqs=np.array([case.max_num_seqs / max(case.ep / case.tp, 1.0) for case in cases]),
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
