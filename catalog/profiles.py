"""Engine profiles: constants that were fitted on published logs, read from the catalog's data files.

A profile holds from its version on, until the engine's next one. Where neither version nor date is
known the newest applies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from planner.engine.collectives import CollectiveLaws, LinkLaw
from planner.engine.kv_cache import Allocator
from planner.engine.memory import ServingMemoryProfile
from planner.engine.serving_calibration import CONSTANTS, EngineSettings, ServingProfiles
from planner.engine.units import GIB, MIB

DATA = Path(__file__).parent / "data"


@cache
def load_profile_file(name: str) -> Mapping[str, Any]:
    """A profile data file of the catalog, parsed once."""
    with (DATA / name).open(encoding="utf-8") as file:
        parsed: Mapping[str, Any] = json.load(file)
    return parsed


def version_key(version: str) -> tuple[int, ...]:
    """Numbers of a version, for ordering.

    >>> version_key("0.11.0rc2") > version_key("0.9")
    True
    """
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


@cache
def serving_memory_profile(
    engine: str = "vllm", *, version: str | None = None, date: str | None = None
) -> ServingMemoryProfile:
    """The memory profile of an engine at a version, or else at an ISO date, or else the newest.

    Raises ``KeyError`` for an engine without a profile.
    """
    rows = [row for row in load_profile_file("serving_memory_profiles.json")["profiles"] if row["engine"] == engine]
    if not rows:
        raise KeyError(engine)
    rows.sort(key=lambda row: row["date"])
    if version:
        known = [row for row in rows if version_key(row["version"]) <= version_key(version)]
    elif date:
        known = [row for row in rows if row["date"] <= date]
    else:
        known = rows
    return _profile(known[-1] if known else rows[0])


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
    )


@cache
def serving_profiles() -> ServingProfiles:
    """Speed constants of every serving engine, and how collectives run on every kind of link."""
    parsed = load_profile_file("serving_profiles.json")
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
        fitted_on=parsed["fitted_on"],
        as_of=parsed["as_of"],
    )


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
