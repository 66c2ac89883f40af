"""Memory cases: what a serving engine's start-up log says, predicted part by part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from catalog.profiles import expert_padding, scheduler_defaults, serving_memory_profile
from catalog.selectors import resolve_accelerator
from planner.engine.errors import InvalidQuestion, UnsupportedModel
from planner.engine.kv_cache import logged_tokens
from planner.engine.memory import ServingMemoryProfile, serving_memory
from planner.engine.model_arch import ModelArch
from planner.engine.quantization import resolve_format
from planner.engine.units import GIB
from planner.services.validation.model_library import ModelLibrary
from planner.services.validation.precision import kv_format_of, weight_format_of
from planner.services.validation.replay import (
    Case,
    Prediction,
    Quantity,
    ReplayKind,
    measured_column,
    number,
)

ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "tensorrt_llm", "trt-llm": "tensorrt_llm"}
DEFAULT_UTILIZATION = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCase:
    """One case's inputs, read and completed."""

    arch: ModelArch
    version: str
    profile: ServingMemoryProfile
    weight_format: str
    kv_format: str
    capacity_bytes: float | None
    utilization: float
    tp: float
    pp: float
    ep: float
    max_model_len: float
    max_num_batched_tokens: float
    max_num_seqs: float
    assumptions: tuple[str, ...]


def predict(cases: Sequence[Case], library: ModelLibrary) -> list[Prediction]:
    """Predict weights, KV pool and the engine's token line of every case."""
    return [_predict(case, library) for case in cases]


def _predict(case: Case, library: ModelLibrary) -> Prediction:
    try:
        read = read_case(case, library)
    except (UnsupportedModel, InvalidQuestion) as error:
        return Prediction(supported=False, reason=str(error))
    if isinstance(read, str):
        return Prediction(supported=False, reason=read)
    resolved = resolve_format(read.arch, read.weight_format)
    padding = expert_padding(read.profile.engine, resolved.name, version=read.version)
    capacity = read.capacity_bytes
    memory = serving_memory(
        read.arch,
        profile=replace(read.profile, driver_reserved_bytes=0),
        weight_format=read.weight_format,
        memory_bytes=np.nan if capacity is None else capacity,
        utilization=read.utilization,
        tp=read.tp,
        pp=read.pp,
        ep=read.ep,
        max_num_batched_tokens=read.max_num_batched_tokens,
        max_num_seqs=read.max_num_seqs,
        padding=padding,
    )
    tokens = logged_tokens(
        read.arch,
        read.kv_format,
        read.tp,
        read.pp,
        memory.kv_pool,
        max_model_len=read.max_model_len,
        max_num_batched_tokens=read.max_num_batched_tokens,
        by_concurrency=read.profile.logs_concurrency_tokens,
        allocator=read.profile.allocator,
    )
    known = capacity is not None
    return Prediction(
        supported=True,
        reason="; ".join(read.assumptions),
        values={
            "weights_gib_per_gpu": float(memory.weights) / GIB,
            "kv_pool_gib_per_gpu": float(memory.kv_pool) / GIB if known else None,
            "kv_tokens": float(tokens) if known else None,
            "confidence": "calibrated" if known else "exact",
        },
    )


def read_case(case: Case, library: ModelLibrary) -> MemoryCase | str:
    """One case's inputs; a text says why it isn't supported."""
    arch = library.resolve(case["model"])
    if arch is None:
        return f"model {case['model']!r}: neither in the catalog nor in the architectures file"
    engine = ENGINES.get(case["engine"].lower())
    if engine is None:
        return f"engine {case['engine']!r}: no memory profile; known: {', '.join(sorted(ENGINES))}"
    weight_format = weight_format_of(case["weight_precision"], gpu=case["gpu"])
    kv_format = kv_format_of(case["kv_precision"])
    if weight_format is None or kv_format is None:
        label = case["weight_precision"] if weight_format is None else case["kv_precision"]
        return f"precision {label!r}: not a known format"
    assumed: list[str] = []
    version = case["engine_version"]
    profile = serving_memory_profile(engine, version=version or None, date=case["date"] or None)
    total_gib = number(case, "gpu_total_gib")
    max_model_len = _given(case, "max_model_len", arch.max_context or 8192, assumed)
    default_seqs, default_tokens = scheduler_defaults(
        engine, version=version, gpu=case["gpu"], memory_gib=total_gib, max_model_len=int(max_model_len)
    )
    return MemoryCase(
        arch=arch,
        version=version,
        profile=profile,
        weight_format=weight_format,
        kv_format=kv_format,
        capacity_bytes=_capacity_bytes(case, total_gib, profile, assumed),
        utilization=_given(case, "gpu_memory_utilization", DEFAULT_UTILIZATION, assumed),
        tp=_given(case, "tp", 1, assumed),
        pp=_given(case, "pp", 1, assumed),
        ep=1,
        max_model_len=max_model_len,
        max_num_batched_tokens=_noted(case, "max_num_batched_tokens", default_tokens, assumed),
        max_num_seqs=_noted(case, "max_num_seqs", default_seqs, assumed),
        assumptions=tuple(assumed),
    )


def _capacity_bytes(
    case: Case, total_gib: float | None, profile: ServingMemoryProfile, assumed: list[str]
) -> float | None:
    """What the framework sees: as logged, else the catalog's driver-visible memory less the driver's share."""
    if total_gib is not None:
        return total_gib * GIB
    accelerator = resolve_accelerator(case["gpu"])
    if accelerator is None:
        return None
    assumed.append(f"memory of {accelerator.name} from the catalog")
    return accelerator.memory_bytes - profile.driver_reserved_bytes


def _given(case: Case, column: str, default: float, assumed: list[str]) -> float:
    value = number(case, column)
    if value is None:
        assumed.append(f"{column} {default:g} assumed")
        return default
    return value


def _noted(case: Case, name: str, default: float, assumed: list[str]) -> float:
    """A scheduler limit: its own column, else stated in the notes, else the engine's default."""
    value = number(case, name)
    if value is None:
        stated = re.search(rf"{name} (\d+)", case.get("notes", ""))
        value = float(stated[1]) if stated else None
    if value is None:
        assumed.append(f"{name} {default:g} (the engine's default)")
        return default
    return value


KIND = ReplayKind(
    required=("model", "engine", "engine_version", "date", "gpu", "weight_precision", "kv_precision"),
    columns=("weights_gib_per_gpu", "kv_pool_gib_per_gpu", "kv_tokens", "confidence"),
    quantities=(
        Quantity(name="weights", predicted="weights_gib_per_gpu", measured=measured_column("weights_gib_per_gpu")),
        Quantity(name="KV pool", predicted="kv_pool_gib_per_gpu", measured=measured_column("kv_pool_gib_per_gpu")),
        Quantity(name="KV tokens", predicted="kv_tokens", measured=measured_column("kv_tokens")),
    ),
    precision="weight_precision",
    predict=predict,
)
