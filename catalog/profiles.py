"""Engine profiles: constants that were fitted on published logs, read from the catalog's data files.

A profile holds from its version on, until the engine's next one. Where neither version nor date is
known the newest applies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from planner.engine.collectives import CollectiveLaws, LinkLaw
from planner.engine.confidence import Band, ResidualBands
from planner.engine.engine_support import EngineSupport
from planner.engine.engine_versions import version_key
from planner.engine.kv_cache import Allocator
from planner.engine.memory import PoolErrors, ServingMemoryProfile
from planner.engine.serving_calibration import CONSTANTS, EngineSettings, LoraCosts, ServingProfiles
from planner.engine.units import GIB, MIB
from planner.engine.weight_sharding import NO_PADDING, ExpertPadding

DATA = Path(__file__).parent / "data"
SERVING_PROFILES_FILE = "serving_profiles.json"


@cache
def load_profile_file(name: str) -> Mapping[str, Any]:
    """A profile data file of the catalog, parsed once."""
    with (DATA / name).open(encoding="utf-8") as file:
        parsed: Mapping[str, Any] = json.load(file)
    return parsed


@cache
def serving_memory_profile(
    engine: str = "vllm", *, version: str | None = None, date: str | None = None
) -> ServingMemoryProfile:
    """The memory profile of an engine at a version, or else at an ISO date, or else the newest.

    Raises ``KeyError`` for an engine without a profile.
    """
    engine = str(_support(engine).get("memory_of", engine))
    rows = [row for row in load_profile_file("serving_memory_profiles.json")["profiles"] if row["engine"] == engine]
    if not rows:
        raise KeyError(engine)
    padded = {row["weight_format"] for row in load_profile_file("serving_memory_profiles.json")["expert_padding"]}
    padding = {name: expert_padding(engine, name, version=version, date=date) for name in sorted(padded)}
    return replace(_profile(_as_of(rows, version, date)), expert_padding=padding)


def _as_of(rows: list[Mapping[str, Any]], version: str | None, date: str | None) -> Mapping[str, Any]:
    """The newest row that a version, or else a date, had reached; the oldest where none had."""
    ordered = sorted(rows, key=lambda row: str(row["date"]))
    if version:
        ordered_known = [row for row in ordered if version_key(row["version"]) <= version_key(version)]
    elif date:
        ordered_known = [row for row in ordered if row["date"] <= date]
    else:
        ordered_known = ordered
    return ordered_known[-1] if ordered_known else ordered[0]


def expert_padding(
    engine: str, weight_format: str, *, version: str | None = None, date: str | None = None
) -> ExpertPadding:
    """How an engine's loader pads expert matrices of a format; no padding where nothing is recorded."""
    rows = [
        row
        for row in load_profile_file("serving_memory_profiles.json")["expert_padding"]
        if row["engine"] == engine and row["weight_format"] == weight_format
    ]
    if not rows:
        return NO_PADDING
    row = _as_of(rows, version, date)
    return ExpertPadding(hidden_multiple=row["hidden_multiple"], intermediate_multiple=row["intermediate_multiple"])


def scheduler_defaults(
    engine: str,
    *,
    version: str | None = None,
    date: str | None = None,
    gpu: str = "",
    memory_gib: float | None = None,
    max_model_len: int = 0,
) -> tuple[int, int]:
    """An engine's default (max_num_seqs, max_num_batched_tokens) for a GPU by name and memory.

    Old versions without chunked prefill batch at least one whole prompt.
    """
    rows = [row for row in load_profile_file("serving_memory_profiles.json")["scheduler"] if row["engine"] == engine]
    row = _as_of(rows, version, date)
    large = memory_gib is None or memory_gib >= row["large_memory_gib"]
    excluded = any(name.lower() in gpu.lower() for name in row["large_excludes"])
    sizes = row["large"] if large and not excluded else row["small"]
    tokens = sizes["max_num_batched_tokens"]
    if max_model_len <= row["whole_prompt_up_to"]:
        tokens = max(tokens, max_model_len)
    return sizes["max_num_seqs"], tokens


def _profile(row: Mapping[str, Any]) -> ServingMemoryProfile:
    return ServingMemoryProfile(
        engine=row["engine"],
        version=row["version"],
        driver_reserved_bytes=row["driver_reserved_gib"] * GIB,
        non_torch_bytes=row["non_torch_gib"] * GIB,
        non_torch_tensor_parallel_bytes=row["non_torch_tensor_parallel_gib"] * GIB,
        activation_bytes_per_logit=row["activation_bytes_per_logit"],
        activation_ffn_widths=row["activation_ffn_widths"],
        activation_hidden_widths=row["activation_hidden_widths"],
        expert_workspace=row["expert_workspace"],
        encoder_activation_bytes=row["encoder_activation_gib"] * GIB,
        graph_bytes_per_layer=row["graph_mib_per_layer"] * MIB,
        budgeted_graph_bytes_per_layer=row["budgeted_graph_mib_per_layer"] * MIB,
        activation_in_budget=row["activation_in_budget"],
        logs_concurrency_tokens=row["logs_concurrency_tokens"],
        allocator=Allocator(**row["allocator"]),
        pool=_pool_errors(row["engine"]),
    )


def _pool_errors(engine: str) -> PoolErrors:
    found = load_profile_file("serving_memory_profiles.json")["pool_errors"]
    own = engine == found["engine"]
    low, high = found["middle_90_percent"] if own else found["extremes"]
    return PoolErrors(logs=found["logs"], low=low, high=high, own=own)


def _support(engine: str) -> Mapping[str, Any]:
    """What is recorded of an engine beside its constants: where it runs, whose constants it takes."""
    known: Mapping[str, Any] = load_profile_file("engine_support.json")["engines"].get(engine, {})
    return known


def _engine_support(row: Mapping[str, Any]) -> EngineSupport:
    return EngineSupport(
        vendors=tuple(row["vendors"]),
        least_capability=row.get("least_capability", 0.0),
        format_capability=row.get("format_capability", {}),
        formats_without={vendor: tuple(names) for vendor, names in row.get("formats_without", {}).items()},
        kv_formats=row.get("kv_formats", {}),
    )


@cache
def serving_profiles() -> ServingProfiles:
    """Speed constants of every serving engine, and how collectives run on every kind of link."""
    parsed, regimes = load_profile_file(SERVING_PROFILES_FILE), load_profile_file("serving_regimes.json")
    supported: Mapping[str, Mapping[str, Any]] = load_profile_file("engine_support.json")["engines"]
    return ServingProfiles(
        base=parsed["base"],
        factors={
            tuple(level["attributes"]): {
                tuple(row["key"]): np.array([row["log"].get(name, 0.0) for name in CONSTANTS])
                for row in level["factors"]
            }
            for level in parsed["levels"]
        },
        collectives=_collective_laws(parsed["collectives"]),
        engines={name: EngineSettings(**settings) for name, settings in parsed["engines"].items()},
        support={name: _engine_support(row) for name, row in supported.items()},
        releases=_releases(),
        versions=_versions(),
        calibrated_as={name: str(row["constants_of"]) for name, row in supported.items() if "constants_of" in row},
        bands={name: _bands(name, rows) for name, rows in parsed["bands"].items()},
        fitted_on=parsed["fitted_on"],
        as_of=parsed["as_of"],
        measured_expert_ranks=regimes["expert_groups"]["measured_ranks"],
        lora=LoraCosts(
            kernels_per_layer=regimes["lora"]["kernels_per_layer"], kernel_s=regimes["lora"]["kernel_us"] * 1e-6
        ),
    )


def _dated_versions() -> dict[str, dict[str, str]]:
    """Versions of each engine with their months: those that measurements name, and that memory profiles begin with."""
    engines = load_profile_file("serving_engines.json")
    found: dict[str, dict[str, str]] = {}
    for row in load_profile_file("serving_memory_profiles.json")["profiles"]:
        found.setdefault(row["engine"], {})[row["version"]] = row["date"]
    for listed in (engines["measured"], engines["releases"]):
        for engine, dated in listed.items():
            numbered = {version.lstrip("~"): date for version, date in dated.items() if version_key(version)}
            found.setdefault(engine, {}).update(numbered)
    return found


def _releases() -> dict[str, tuple[tuple[tuple[int, ...], str], ...]]:
    return {
        engine: tuple(sorted({(version_key(version), date) for version, date in dated.items()}))
        for engine, dated in _dated_versions().items()
    }


def _versions() -> dict[str, tuple[str, ...]]:
    """The same as text, the oldest first."""
    return {engine: tuple(sorted(dated, key=version_key)) for engine, dated in _dated_versions().items()}


def _bands(quantity: str, rows: Sequence[Mapping[str, Any]]) -> ResidualBands:
    bands: dict[tuple[str, ...], dict[tuple[str, ...], Band]] = {}
    for row in rows:
        level = bands.setdefault(tuple(row["level"]), {})
        level[tuple(row["key"])] = Band(cases=row["cases"], low=row["low"], high=row["high"])
    return ResidualBands(quantity=quantity, bands=bands)


def _collective_laws(parsed: Mapping[str, Any]) -> CollectiveLaws:
    links = {
        name: LinkLaw(
            ranks=tuple(law["ranks"]),
            latency_s=tuple(us * 1e-6 for us in law["latency_us"]),
            share=tuple(law["share"]),
            source=law["source"],
        )
        for name, law in parsed["links"].items()
    }
    return CollectiveLaws(
        links=links,
        network_latency_s=parsed["network_latency_us"] * 1e-6,
        network_share=parsed["network_share"],
        point_to_point_latency_s=parsed["point_to_point_latency_us"] * 1e-6,
    )


def serving_engine_of(label: str) -> str | None:
    """The engine that a published label means, or None where no profile knows it."""
    text = label.casefold()
    for name, settings in load_profile_file("serving_engines.json")["engines"].items():
        if any(text.startswith(alias.casefold()) for alias in settings["labels"]):
            return str(name)
    return None


def serving_release_date(engine: str, version: str) -> str:
    """The month an engine's version came out, as far as known; empty where it isn't.

    Remarks after the number (build options, a driver) don't count.
    """
    releases: Mapping[str, str] = load_profile_file("serving_engines.json")["releases"].get(engine, {})
    return releases.get(version) or releases.get(version.partition(" ")[0], "")
