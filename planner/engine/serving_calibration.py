"""Constants of serving engines, fitted on measurements and shrunk towards what is common.

Each constant is the product of a base and of factors, one for each level of a hierarchy (engine, engine and
date, chip, precision, kind of model, and combinations). A factor is fitted only as far from 1 as the cases of
its level carry; a combination never measured has none, so a candidate falls back to its parents by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.engine.collectives import CollectiveLaws
from planner.engine.confidence import ResidualBands
from planner.engine.engine_support import EngineSupport

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CONSTANTS: Final = (
    "weight_bandwidth",
    "gemm_compute",
    "gemm_tile_tokens",
    "kv_bandwidth",
    "attention_compute",
    "expert_bandwidth",
    "expert_compute",
    "expert_tile_tokens",
    "expert_coverage",
    "layer_s",
    "expert_layer_s",
    "step_s",
    "sequence_s",
    "prefill_launch_s",
    "collective_latency",
    "collective_bandwidth",
    "request_s",
    "cohort",
    "backlog",
    "drain",
)
"""Shares of datasheet peaks (``*_bandwidth``, ``*_compute``), seconds (``*_s``), and factors."""

SHARES: Final = frozenset(
    {"weight_bandwidth", "gemm_compute", "kv_bandwidth", "attention_compute", "expert_bandwidth", "expert_compute"}
)

ATTRIBUTES: Final = (
    "engine",
    "era",
    "build",
    "chip",
    "form",
    "card",
    "power",
    "format",
    "kind",
    "tp",
    "link",
    "mode",
    "experts",
)
"""What a candidate is keyed by. ``era`` is the quarter of the engine's release, ``build`` whether it is one,
``chip`` the accelerator's generation and compute capability, ``form`` its form factor, ``card`` its catalog key,
``power`` whether its board holds the peak, ``tp`` the ranks of its tensor-parallel group, ``link`` what joins them
(``none`` for one), ``experts`` how experts are laid out: an ``EXPERT_LAYOUTS`` value."""

BUILDS: Final = ("release", "development")
"""What engines are: a release, or a build between two."""

EXPERT_LAYOUTS: Final = ("none", "sliced", "whole")
"""No experts, each expert cut over all ranks, or whole experts spread over them."""

Level = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraCosts:
    """What adapters launch in every layer; data with a source, loaded with the profiles."""

    kernels_per_layer: float = 0.0
    kernel_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingProfiles:
    """Fitted constants and engine settings, as values; loaded from the catalog's data."""

    base: Mapping[str, float]
    """Value of each of ``CONSTANTS`` before any factor."""
    factors: Mapping[Level, Mapping[tuple[str, ...], FloatArray]]
    """Level -> attribute values -> natural logarithm of the factor of each constant, in order."""
    collectives: CollectiveLaws
    engines: Mapping[str, EngineSettings]
    bands: Mapping[str, ResidualBands] = field(default_factory=dict)
    """Held-out errors by quantity: output_tok_s, tpot, ttft."""
    fitted_on: str = ""
    as_of: str = ""
    lora: LoraCosts = field(default_factory=LoraCosts)
    measured_expert_ranks: int = 8
    """Ranks of the widest expert groups that more than single cases were measured with."""
    calibrated_as: Mapping[str, str] = field(default_factory=dict)
    """Engines that have no cases of their own, and the one whose constants they take."""
    support: Mapping[str, EngineSupport] = field(default_factory=dict)
    """What each engine runs on."""
    releases: Mapping[str, tuple[tuple[tuple[int, ...], str], ...]] = field(default_factory=dict)
    """Releases whose month is known, by engine: (numbers of the version, year and month)."""
    versions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same releases as they are called, the oldest first."""

    resolved: dict[tuple[str, ...], FloatArray] = field(init=False, default_factory=dict, compare=False, repr=False)
    """Constants by attribute values, kept once they were multiplied out: a plan meets the same few again and again."""

    def newest_era(self, engine: str) -> str:
        """The latest quarter that constants of ``engine`` were fitted for; empty where there is none."""
        eras = [
            dict(zip(level, key, strict=True))["era"]
            for level, factors in self.factors.items()
            if {"engine", "era"} <= set(level)
            for key in factors
            if dict(zip(level, key, strict=True))["engine"] == engine
        ]
        return max(eras, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """What an engine does when it is not told otherwise."""

    max_num_seqs: int
    max_num_batched_tokens: int
    memory_utilization: float
    """Share of GPU memory that weights, activations and KV cache take together."""
    free_memory_share: float | None = None
    """Where the KV cache takes this share of what weights and activations leave, instead."""
    dated_batch_limits: bool = False
    """Batch limit and token budget changed with versions: the memory profiles' scheduler rows hold them."""
    reserved_output_share: float = 0.5
    """Of an answer's tokens, the share that admission keeps room for: all of them, where an engine never evicts."""
    schedules_ahead_since: str = ""
    """The quarter since when the next batch is chosen while one runs; empty: never."""
    prompt_graph_tokens: float = 0.0
    """Tokens of the largest iteration with prompts that is replayed from a captured graph; 0: none is."""
    prompt_graphs_since: str = ""
    """The quarter that such graphs came with."""
    graphs_since: str = ""
    """The quarter that captured graphs came with at all: every iteration before is launched kernel by kernel."""
    graph_batches: float = math.inf
    """Captured graphs reach no further than so many times the batch limit."""
    mixed_tile_tokens: float = 0.0
    """Queries of an attention tile that a decoding sequence has to itself in iterations that hold prompts; 0: none."""
    mixed_tile_since: str = ""
    """The quarter since when prompts and decodes are one call of such a kernel."""
    unfused_formats: Sequence[str] = ()
    """Weight formats without a kernel that multiplies them as they are: each iteration writes them out in 16 bit."""
    unfused_before: str = ""
    """The quarter that kernels for ``unfused_formats`` came with."""
    mixed_tile_capabilities: Sequence[str] = ()
    """Compute capabilities whose kernel does so, by their major number."""
    source: str = field(default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Attribute values of candidates: one integer array each, indexing its vocabulary."""

    codes: Mapping[str, IntArray]
    vocabularies: Mapping[str, Sequence[str]]

    @property
    def size(self) -> int:
        return len(next(iter(self.codes.values())))

    def attributes(self, row: int) -> dict[str, str]:
        """One candidate's attribute values by name."""
        return {name: self.vocabularies[name][int(codes[row])] for name, codes in self.codes.items()}


def distinct(keys: Keys) -> tuple[list[dict[str, str]], IntArray]:
    """The distinct attribute combinations among candidates, and which of them each candidate has."""
    mixed = np.zeros(keys.size, dtype=np.int64)
    for name in ATTRIBUTES:
        mixed = mixed * len(keys.vocabularies[name]) + keys.codes[name]
    _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
    combinations = [
        {name: keys.vocabularies[name][keys.codes[name][row]] for name in ATTRIBUTES} for row in first.tolist()
    ]
    return combinations, inverse


def resolve_constants(profiles: ServingProfiles, keys: Keys) -> dict[str, FloatArray]:
    """The value of every constant for each candidate: base x product of its levels' factors.

    Shares of a datasheet peak are held at or below 1, whatever the factors multiply to.
    """
    combinations, inverse = distinct(keys)
    base = np.log([profiles.base[name] for name in CONSTANTS])
    eras = _known_eras(profiles.factors)
    values = np.empty((len(combinations), len(CONSTANTS)))
    for row, attributes in enumerate(combinations):
        known = tuple(attributes.values())
        if known not in profiles.resolved:
            profiles.resolved[known] = np.exp(_with_factors(base, profiles, attributes, eras))
        values[row] = profiles.resolved[known]
    constants = {}
    for column, name in enumerate(CONSTANTS):
        column_values = np.minimum(values[:, column], 1.0) if name in SHARES else values[:, column]
        constants[name] = column_values[inverse]
    return constants


def _with_factors(
    base: FloatArray,
    profiles: ServingProfiles,
    attributes: Mapping[str, str],
    eras: Mapping[tuple[str, ...], list[str]],
) -> FloatArray:
    """The base and the levels' logarithms summed, for one combination of attributes."""
    total = base
    for level, factors in profiles.factors.items():
        key = _latest_key(level, attributes, eras) if "era" in level else tuple(attributes[n] for n in level)
        found = factors.get(key)
        if found is not None:
            total = total + found
    return total


def _known_eras(factors: Mapping[Level, Mapping[tuple[str, ...], FloatArray]]) -> dict[tuple[str, ...], list[str]]:
    """Eras with factors, by level and its other attributes' values (level names first)."""
    known: dict[tuple[str, ...], list[str]] = {}
    for level, found in factors.items():
        if "era" in level:
            place = level.index("era")
            for key in found:
                known.setdefault((*level, *key[:place], *key[place + 1 :]), []).append(key[place])
    return known


def _latest_key(
    level: Level, attributes: Mapping[str, str], eras: Mapping[tuple[str, ...], list[str]]
) -> tuple[str, ...]:
    """The key of the latest known era not after the candidate's: an engine keeps what it last measured."""
    others = tuple(attributes[name] for name in level if name != "era")
    passed = [era for era in eras.get((*level, *others), ()) if era <= attributes["era"]]
    era = max(passed, default=attributes["era"])
    return tuple(era if name == "era" else attributes[name] for name in level)
