"""Fitting the memory profiles' constants on published start-up logs, and what they are worth on unseen ones.

Constants are medians over the logs of one profile's versions. Cross-validation leaves out whole groups
(GPU x model x weight format x tensor parallelism), so that a model's own log never predicts it.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from catalog.model_files import find_model
from catalog.profiles import DATA, expert_padding, scheduler_defaults, serving_memory_profile
from planner.engine.engine_versions import version_key
from planner.engine.memory import ServingMemoryProfile, activation_peak_bytes, serving_memory
from planner.engine.model_arch import ModelArch
from planner.engine.quantization import resolve_format
from planner.engine.units import GIB, MIB

LOGS = DATA / "measurements" / "serving_memory.csv"
FOLDS = 5
FITTED_ENGINE = "vllm"
LEAST_VOCAB = 100_000
"""Logs of smaller vocabularies may peak in a block rather than in sampling: left out of that fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartUpLog:
    """One published start-up log, GiB a GPU; None where the log doesn't say."""

    arch: ModelArch
    profile: ServingMemoryProfile
    version: str
    gpu: str
    weight_format: str
    tp: int
    pp: int
    seqs: float
    tokens: float
    utilization: float
    total_gib: float
    activation_gib: float | None
    non_torch_gib: float | None
    graph_gib: float | None
    pool_gib: float

    @property
    def group(self) -> tuple[str, str, str, int]:
        return self.gpu, self.arch.name, self.weight_format, self.tp


def read_logs() -> list[StartUpLog]:
    """Every log of the fitted engine that states a total and a KV pool."""
    with LOGS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["engine"] == FITTED_ENGINE]
    return [_read(row) for row in rows if row["total_gib"] and row["kv_pool_gib"]]


def _read(row: dict[str, str]) -> StartUpLog:
    def number(column: str) -> float | None:
        return float(row[column]) if row[column] else None

    arch = find_model(row["model"])
    if arch is None:
        raise KeyError(row["model"])
    version, total = row["engine_version"], float(row["total_gib"])
    seqs, tokens = scheduler_defaults(
        FITTED_ENGINE, version=version, gpu=row["gpu"], memory_gib=total, max_model_len=int(row["max_model_len"] or 0)
    )
    return StartUpLog(
        arch=arch,
        profile=serving_memory_profile(FITTED_ENGINE, version=version),
        version=version,
        gpu=row["gpu"],
        weight_format=row["weight_format"],
        tp=int(row["tensor_parallel"]),
        pp=int(row["pipeline_parallel"]),
        seqs=number("max_num_seqs") or seqs,
        tokens=number("max_num_batched_tokens") or tokens,
        utilization=float(row["memory_utilization"]),
        total_gib=total,
        activation_gib=number("activation_gib"),
        non_torch_gib=number("non_torch_gib"),
        graph_gib=number("cuda_graph_gib"),
        pool_gib=float(row["kv_pool_gib"]),
    )


def fit(logs: Sequence[StartUpLog], profile: ServingMemoryProfile) -> ServingMemoryProfile:
    """``profile`` with the constants that ``logs`` of its versions determine; the others stay."""
    own = [log for log in logs if log.profile.version == profile.version]
    alone = [log.non_torch_gib * GIB for log in own if log.non_torch_gib and log.tp == log.pp == 1]
    together = [log.non_torch_gib * GIB for log in own if log.non_torch_gib and log.tp > 1]
    logits = [value for log in own if (value := _bytes_per_logit(log, profile)) is not None]
    captured = [
        log.graph_gib * GIB / log.arch.layers for log in own if log.graph_gib and log.graph_gib > 0 and log.pp == 1
    ]
    fitted = replace(
        profile,
        non_torch_bytes=_median(alone, profile.non_torch_bytes),
        non_torch_tensor_parallel_bytes=_median(together, profile.non_torch_tensor_parallel_bytes),
        activation_bytes_per_logit=_median(logits, profile.activation_bytes_per_logit),
        graph_bytes_per_layer=_median(captured, profile.graph_bytes_per_layer),
    )
    if not profile.budgeted_graph_bytes_per_layer:
        return fitted
    left = [_unexplained(log, fitted) / log.arch.layers for log in own]
    return replace(fitted, budgeted_graph_bytes_per_layer=_median(left, profile.budgeted_graph_bytes_per_layer))


def _median(values: Sequence[float], default: float) -> float:
    return float(np.median(values)) if values else default


def _bytes_per_logit(log: StartUpLog, profile: ServingMemoryProfile) -> float | None:
    """What sampling took a logit, after the hidden states and expert workspaces."""
    if (
        log.activation_gib is None
        or log.arch.vocab < LEAST_VOCAB
        or log.pp > 1
        or not profile.activation_bytes_per_logit
    ):
        return None
    rest = replace(profile, activation_bytes_per_logit=0, activation_ffn_widths=0, activation_hidden_widths=0)
    tp = np.array(float(log.tp))
    other = activation_peak_bytes(log.arch, rest, tp, np.ones_like(tp), np.array(log.tokens), np.array(log.seqs))
    return (log.activation_gib * GIB - float(other)) / (log.seqs * log.arch.vocab)


def _unexplained(log: StartUpLog, profile: ServingMemoryProfile) -> float:
    """Bytes of the budget that weights, activations, non-torch and the pool leave."""
    without = replace(profile, budgeted_graph_bytes_per_layer=0)
    return max(0.0, (predicted_pool_gib(log, without) - log.pool_gib) * GIB)


def predicted_pool_gib(log: StartUpLog, profile: ServingMemoryProfile) -> float:
    """The KV pool the engine model gives for a log's inputs, GiB a GPU."""
    found = serving_memory(
        log.arch,
        profile=replace(profile, driver_reserved_bytes=0),
        weight_format=log.weight_format,
        memory_bytes=log.total_gib * GIB,
        utilization=log.utilization,
        tp=log.tp,
        pp=log.pp,
        ep=1,
        max_num_batched_tokens=log.tokens,
        max_num_seqs=log.seqs,
        padding=expert_padding(FITTED_ENGINE, resolve_format(log.arch, log.weight_format).name, version=log.version),
    )
    return float(found.kv_pool) / GIB


def held_out_pools_gib(logs: Sequence[StartUpLog]) -> list[float]:
    """The KV pool of every log, GiB a GPU, each predicted without its own group."""
    groups = sorted({log.group for log in logs})
    fold_of = {group: index % FOLDS for index, group in enumerate(groups)}
    pools = []
    for log in logs:
        others = [other for other in logs if fold_of[other.group] != fold_of[log.group]]
        pools.append(predicted_pool_gib(log, fit(others, log.profile)))
    return pools


def held_out_ratios(logs: Sequence[StartUpLog]) -> list[float]:
    """Logged KV pool over the one predicted without its group, of every log."""
    return [log.pool_gib / pool for pool, log in zip(held_out_pools_gib(logs), logs, strict=True)]


def cross_validated_errors(logs: Sequence[StartUpLog]) -> list[float]:
    """Absolute relative error of the KV pool of every log, each predicted without its own group."""
    return [abs(pool / log.pool_gib - 1) for pool, log in zip(held_out_pools_gib(logs), logs, strict=True)]


def format_fit(logs: Sequence[StartUpLog]) -> str:
    """Fitted constants by version, and in-sample and cross-validated errors, as text."""
    lines = [
        f"{'from':8}{'logs':>5}{'non-torch GiB':>15}{'under TP':>10}{'B/logit':>9}"
        f"{'graph MiB/layer':>17}{'budgeted':>10}"
    ]
    profiles = {log.profile.version: log.profile for log in logs}
    for version, profile in sorted(profiles.items(), key=lambda item: version_key(item[0])):
        found = fit(logs, profile)
        count = sum(log.profile.version == version for log in logs)
        lines.append(
            f"{version:8}{count:5d}{found.non_torch_bytes / GIB:15.2f}"
            f"{found.non_torch_tensor_parallel_bytes / GIB:10.2f}"
            f"{found.activation_bytes_per_logit:9.2f}{found.graph_bytes_per_layer / MIB:17.1f}"
            f"{found.budgeted_graph_bytes_per_layer / MIB:10.1f}"
        )
    stored = [abs(predicted_pool_gib(log, log.profile) / log.pool_gib - 1) for log in logs]
    held_out = cross_validated_errors(logs)
    for name, errors in (("stored constants", stored), (f"{FOLDS}-fold, groups held out", held_out)):
        median, p90 = np.percentile(errors, [50, 90])
        lines.append(f"KV pool, {name}: {len(errors)} logs, median {median:.2%}, 90th percentile {p90:.2%}")
    least, low, high, most = np.quantile(held_out_ratios(logs), [0, 0.05, 0.95, 1])
    lines.append(f"logged / predicted: middle 90 % {low:.3f} to {high:.3f}, extremes {least:.3f} to {most:.3f}")
    return "\n".join(lines)
